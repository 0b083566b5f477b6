package workspace

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/trainvet/trainvet/lint/source"
)

// TestPins reads testdata/pins/*.txtar: a project each, in `ask` a file and packages a line, and in `want` the answers.
func TestPins(t *testing.T) {
	names, err := filepath.Glob("testdata/pins/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no cases", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			project, ask, want := memory{}, "", -1
			for i, f := range archive.Files {
				switch f.Name {
				case "want":
					want = i
				case "ask":
					ask = string(f.Data)
				default:
					project[f.Name] = string(f.Data)
				}
			}
			if ask == "" || want < 0 {
				t.Fatal("it needs `ask` and `want`")
			}
			var got bytes.Buffer
			view := NewSnapshot(project).View(context.Background())
			for line := range strings.Lines(ask) {
				words := strings.Fields(line)
				for _, pkg := range words[1:] {
					pin := view.Pin(words[0], pkg)
					fmt.Fprintf(&got, "%s %s: %s", words[0], pkg, pin.Range)
					for _, at := range pin.From {
						file := view.Text(at.Path)
						fmt.Fprintf(&got, ", %s:%d %q", at.Path, file.Line(at.Span.Start)+1, file.Slice(at.Span))
					}
					fmt.Fprintln(&got)
				}
			}
			if *updateRuns {
				archive.Files[want].Data = got.Bytes()
				if err := os.WriteFile(name, txtar.Format(archive), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !bytes.Equal(got.Bytes(), archive.Files[want].Data) {
				t.Errorf("the pins are\n%s\nwanted\n%s", got.Bytes(), archive.Files[want].Data)
			}
		})
	}
}

// TestPinReads holds that what a pin was concluded from is recorded: a changed requirement changes the answer to Holds.
func TestPinReads(t *testing.T) {
	project := memory{"src/train.py": "import torch\n", "requirements.txt": "-r base.txt\n", "base.txt": "torch==2.3\n"}
	snapshot := NewSnapshot(project)
	view := snapshot.View(context.Background())
	if got := view.Pin("src/train.py", "torch").Range.String(); got != "==2.3" {
		t.Fatal(got)
	}
	reads := view.Reads()
	if !snapshot.Holds(reads) {
		t.Fatal("nothing changed")
	}
	for name, text := range map[string]string{"base.txt": "torch==2.6\n", "requirements.txt": "torch\n", "src/requirements.txt": "torch==2.1\n"} {
		file, err := source.Decode(name, source.KindOf(name, nil), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		changed := snapshot.With(file)
		if changed.Holds(reads) {
			t.Errorf("%s changed, and nobody noticed", name)
		}
		if got := changed.View(context.Background()).Pin("src/train.py", "torch").Range.String(); got == "==2.3" {
			t.Errorf("with another %s it is still %s", name, got)
		}
	}
}
