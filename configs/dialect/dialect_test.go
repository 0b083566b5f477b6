package dialect_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint/source"
)

var update = flag.Bool("update", false, "rewrite the wanted plans in testdata")

// TestSamples reads the files of testdata/*.txtar. Each file NAME is followed by NAME.plan: the dialect, then every known
// value with how it came and the lines it came from, then faults, sections and references.
func TestSamples(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no samples", err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			wanted := map[string][]byte{}
			for _, f := range archive.Files {
				if strings.HasSuffix(f.Name, ".plan") {
					wanted[f.Name] = f.Data
				}
			}
			var made []txtar.File
			for _, f := range archive.Files {
				if strings.HasSuffix(f.Name, ".plan") {
					continue
				}
				got := describe(t, f.Name, f.Data)
				made = append(made, f, txtar.File{Name: f.Name + ".plan", Data: got})
				if want := wanted[f.Name+".plan"]; !*update && !bytes.Equal(got, want) {
					t.Errorf("%s reads as\n%s\nwanted\n%s", f.Name, got, want)
				}
			}
			if *update {
				archive.Files = made
				if err := os.WriteFile(name, txtar.Format(archive), 0o666); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func describe(t *testing.T, name string, text []byte) []byte {
	t.Helper()
	file, trees := parse(t, name, text)
	var out bytes.Buffer
	for _, tree := range trees {
		d := dialect.Of(tree)
		if d == nil {
			fmt.Fprintln(&out, "none")
			continue
		}
		show(&out, file, d, tree)
		for _, section := range d.Sections(tree) {
			fmt.Fprintf(&out, "section %s\n", section.Path)
			show(&out, file, section.Dialect, section.Tree)
		}
		for _, reference := range d.References(tree) {
			if reference.Model {
				continue
			}
			fmt.Fprintf(&out, "names %s at %s\n", reference.File, reference.Path)
		}
	}
	return out.Bytes()
}

func show(out *bytes.Buffer, file *source.File, d *dialect.Dialect, tree *configs.Tree) {
	fmt.Fprintln(out, d.Name)
	reading := d.Read(tree)
	for name, fact := range plan.Values(&reading.Plan) {
		value, known := fact.Any()
		if !known {
			continue
		}
		fmt.Fprintf(out, "%s = %v %s", name, value, fact.How())
		for _, place := range fact.From() {
			fmt.Fprintf(out, " :%d", file.Position(place.Span.Start).Line)
		}
		if note := fact.Note(); note != "" {
			fmt.Fprintf(out, " (%s)", note)
		}
		fmt.Fprintln(out)
	}
	for _, u := range reading.Plan.Unmodelled {
		fmt.Fprintf(out, "not modelled: %s :%d\n", u.What, file.Position(u.At.Span.Start).Line)
	}
	for _, fault := range reading.Faults {
		fmt.Fprintf(out, "fault :%d %s %s\n", file.Position(fault.At.Span.Start).Line, fault.Key, fault.Message)
	}
}

func parse(t *testing.T, name string, text []byte) (*source.File, []*configs.Tree) {
	t.Helper()
	file, err := source.Decode(name, source.KindOf(name, text[:min(len(text), 128)]), text)
	if err != nil {
		t.Fatal(err)
	}
	switch file.Kind {
	case source.YAML:
		return file, configs.ParseYAML(file)
	case source.JSON:
		return file, []*configs.Tree{configs.ParseJSON(file)}
	case source.TOML:
		return file, []*configs.Tree{configs.ParseTOML(file)}
	case source.Shell:
		var trees []*configs.Tree
		for _, command := range configs.ParseShell(file).Commands {
			if command.Flags != nil {
				trees = append(trees, command.Flags)
			}
		}
		return file, trees
	case source.Python:
		// What makes trees of Python is another package; here JSON stands for a dict of constants.
		tree := configs.ParseJSON(file)
		tree.Format = configs.Python
		return file, []*configs.Tree{tree}
	}
	return file, nil
}
