package trainvet

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/trainvet/trainvet/"

// house is the order of the packages: each may import only what stands in a line before its own. `rules/*` stands for the
// families.
var house = [][]string{
	{"lint/source", "lint/nearest", "lint/changes", "configs/pep440"},
	{"lint/constant"},
	{"configs/plan", "configs", "pyscan/syntax"},
	{"configs/catalog", "pyscan"},
	{"configs/memory", "configs/dialect", "pyscan/loop"},
	{"lint/workspace"},
	{"lint"},
	{"rules/*", "lint/check"},
	{"lint/compare"}, // what a change does: both sides are checked
	{"rules", "lint/output", "lint/lsp", "lint/linttest"},
	{"lint/review"}, // the only one that opens the network
	{"cmd/trainvet", "cmd/gen/keys"},
}

// strangers never import each other, though the order would let them.
var strangers = [][2]string{
	{"configs", "pyscan"},                                                    // siblings: neither knows the other
	{"lint/output", "rules"}, {"lint/lsp", "rules"}, {"lint/check", "rules"}, // only cmd joins them
	{"configs/memory", "configs/dialect"}, // memory reads plans, never configs
}

func TestImportOrder(t *testing.T) {
	for folder, imports := range packages(t) {
		if strings.Contains(folder, "/internal/") {
			continue // part of the package around it
		}
		own := floor(folder)
		if own < 0 {
			t.Errorf("%s has no place in the house; give it one above", folder)
			continue
		}
		for _, name := range imports {
			other, ours := strings.CutPrefix(name, module)
			if !ours {
				if strings.HasPrefix(folder, "rules/") && outside(name) {
					t.Errorf("%s imports %s: a rule sees files through its Pass alone", folder, name)
				}
				continue
			}
			if parent, _, internal := strings.Cut(other, "/internal/"); internal && parent == folder {
				continue
			}
			if floor(other) >= own {
				t.Errorf("%s imports %s, which does not stand below it", folder, other)
			}
			for _, pair := range strangers {
				if within(folder, pair[0]) && within(other, pair[1]) || within(folder, pair[1]) && within(other, pair[0]) && pair[0] == "configs" {
					t.Errorf("%s imports %s: they are strangers", folder, other)
				}
			}
		}
	}
}

func floor(folder string) int {
	if path.Dir(folder) == "rules" {
		folder = "rules/*"
	}
	return slices.IndexFunc(house, func(level []string) bool { return slices.Contains(level, folder) })
}

func within(folder, room string) bool { return folder == room || strings.HasPrefix(folder, room+"/") }

// outside holds for packages that reach files, processes or the network.
func outside(name string) bool {
	return within(name, "os") || within(name, "net") || within(name, "syscall") || name == "io/fs" || name == "io/ioutil" || name == "plugin" || name == "unsafe"
}

// packages gives the imports of each package of the module, tests and generators left out.
func packages(t *testing.T) map[string][]string {
	found := map[string][]string{}
	files := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() && name != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "editors") {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go") || filepath.ToSlash(filepath.Dir(name)) == "cmd/gen" {
			return nil
		}
		file, err := parser.ParseFile(files, name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(name))
		found[folder] = append(found[folder], "")
		for _, spec := range file.Imports {
			if path, err := strconv.Unquote(spec.Path.Value); err == nil {
				found[folder] = append(found[folder], path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 {
		t.Fatalf("only %d packages found; the test must run at the root of the module", len(found))
	}
	return found
}
