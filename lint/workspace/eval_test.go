package workspace

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// memory is an FS of a txtar archive.
type memory map[string]string

func (m memory) ReadFile(name string) ([]byte, error) {
	if text, ok := m[path.Clean(name)]; ok {
		return []byte(text), nil
	}
	return nil, fs.ErrNotExist
}

func (m memory) Kind(name string) EntryKind {
	name = path.Clean(name)
	if _, ok := m[name]; ok {
		return RegularFile
	}
	for file := range m {
		if name == "." || strings.HasPrefix(file, name+"/") {
			return Folder
		}
	}
	return Absent
}

func (m memory) ReadDir(folder string) ([]fs.DirEntry, error) {
	seen := map[string]bool{}
	for file := range m {
		rest, inside := strings.CutPrefix(file, path.Clean(folder)+"/")
		if path.Clean(folder) == "." {
			rest, inside = file, true
		}
		if inside {
			name, _, dir := strings.Cut(rest, "/")
			seen[name] = seen[name] || dir
		}
	}
	var list []fs.DirEntry
	for name, dir := range seen {
		list = append(list, entry{name, dir})
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name() < list[j].Name() })
	return list, nil
}

type entry struct {
	name string
	dir  bool
}

func (e entry) Name() string               { return e.name }
func (e entry) IsDir() bool                { return e.dir }
func (e entry) Type() fs.FileMode          { return 0 }
func (e entry) Info() (fs.FileInfo, error) { return info{e}, nil }

type info struct{ entry }

func (i info) Size() int64        { return 0 }
func (i info) Mode() fs.FileMode  { return 0 }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) Sys() any           { return nil }

func open(t testing.TB, archive string) (*View, memory) {
	t.Helper()
	files := memory{}
	for _, file := range txtar.Parse([]byte(archive)).Files {
		files[file.Name] = string(file.Data)
	}
	return NewSnapshot(files).View(context.Background()), files
}

// TestEval runs testdata/eval/*.txtar: in each file, `show(EXPR)  # WANT` says what EXPR must be described as. The call is
// read like any other, so it can stand in functions; parameters are expanded by their callers first.
func TestEval(t *testing.T) {
	showCases(t, "testdata/eval", func(v *View, m *pyscan.Module, call *syntax.Call) string {
		return v.Describe(v.Expand(v.Eval(pyscan.ScopeAt(m, call), nil, call.Args[0])))
	})
}

// showCases runs the archives of a folder: of each call of show in them, describe must say what the comment behind it says.
func showCases(t *testing.T, folder string, describe func(*View, *pyscan.Module, *syntax.Call) string) {
	t.Helper()
	archives, _ := filepath.Glob(folder + "/*.txtar")
	if len(archives) == 0 {
		t.Fatal("no cases")
	}
	for _, name := range archives {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			v, files := open(t, string(text))
			checked := 0
			for _, file := range sortedNames(files) {
				m := v.Module(file)
				if m == nil {
					continue
				}
				syntaxCalls(m, func(call *syntax.Call) {
					if pyscan.Path(call.Func) != "show" {
						return
					}
					line := m.File.Line(call.Span().Start)
					_, want, _ := strings.Cut(m.File.Slice(m.File.LineSpan(line)), "# ")
					checked++
					if got := describe(v, m, call); got != want {
						t.Errorf("%s:%d: got  %s\nwant %s", file, line+1, got, want)
					}
				})
			}
			if checked == 0 {
				t.Error("the case shows nothing")
			}
		})
	}
}

func sortedNames(files memory) []string {
	var names []string
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func syntaxCalls(m *pyscan.Module, visit func(*syntax.Call)) {
	for _, stmt := range m.Tree.Body {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			if call, ok := n.(*syntax.Call); ok {
				visit(call)
			}
			return true
		})
	}
}
