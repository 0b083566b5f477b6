package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/trainvet/trainvet/pyscan/loop"
)

// TestLoops runs testdata/loops/*.txtar: the member `want` holds the loops of all Python files as Describe prints them, and
// how gradients add up in each micro-batch loop.
func TestLoops(t *testing.T) {
	archives, _ := filepath.Glob("testdata/loops/*.txtar")
	if len(archives) == 0 {
		t.Fatal("no cases")
	}
	for _, name := range archives {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			archive := txtar.Parse(text)
			v, files := open(t, string(text))
			var got strings.Builder
			for _, file := range sortedNames(files) {
				m := v.Module(file)
				if m == nil {
					continue
				}
				fmt.Fprintf(&got, "%s\n", file)
				for _, l := range v.EveryLoop(m) {
					got.WriteString(loop.Describe(l))
					for _, w := range loop.Windows(l, v) {
						fmt.Fprintf(&got, "  => accumulates: %s, steps: %d", w.Accumulates, len(w.Steps))
						for _, b := range w.Backward {
							fmt.Fprintf(&got, ", scaled: %s", w.Scaled(b, v))
						}
						got.WriteString("\n")
					}
				}
			}
			for i := range archive.Files {
				if archive.Files[i].Name != "want" {
					continue
				}
				if *updateRuns {
					archive.Files[i].Data = []byte(got.String())
					if err := os.WriteFile(name, txtar.Format(archive), 0o666); err != nil {
						t.Fatal(err)
					}
				} else if want := string(archive.Files[i].Data); want != got.String() {
					t.Errorf("got\n%s\nwant\n%s", got.String(), want)
				}
			}
		})
	}
}
