package session

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainvet/trainvet/lint/workspace"
)

// TestLinksOut holds that a text which lies outside of the project is not read when an editor tells that a link to it was changed or is not
// shown any more, nor to show where settings are wrong.
func TestLinksOut(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"project/.git/HEAD": "", "project/own.py": "CANARY = 1\n", "outside/x.py": "CANARY = 1\n", "outside/trainvet.toml": "CANARY = 1\n"} {
		name = filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"leads.py": "../outside/x.py", "trainvet.toml": "../outside/trainvet.toml", "inner.py": "own.py"} {
		if err := os.Symlink(filepath.FromSlash(to), filepath.Join(top, "project", name)); err != nil {
			t.Skip("NO links here: that the server follows none out of a project is not tested: ", err)
		}
	}
	root := filepath.ToSlash(filepath.Join(top, "project"))
	for _, name := range []string{"own.py", "inner.py", "leads.py", "trainvet.toml"} {
		inside := name == "own.py" || name == "inner.py"
		s := New(nil, nil, "")
		s.Start(0, []string{root})
		file := root + "/" + name
		held := func(when string) {
			t.Helper()
			st := s.State()
			if got := st.TextAt(file).String() != ""; got != inside {
				t.Errorf("%s, %s: text is shown: %v", name, when, got)
			}
			p, relative := st.ProjectOf(file)
			if got := p.File(relative) != nil; got != inside && name != "trainvet.toml" {
				t.Errorf("%s, %s: the project holds its text: %v", name, when, got)
			}
		}
		held("at the start")
		s.Watched([]string{file}, nil)
		held("changed")
		s.Watched([]string{file}, []string{file})
		held("new")
		s.Open(URIOf(file), URIOf(file), "python", 1, "x = 1\n")
		s.Close(URIOf(file))
		held("closed")
		if kind := s.State().Projects()[0].snapshot.Kind(name); (kind == workspace.RegularFile) != inside {
			t.Errorf("%s is %v", name, kind)
		}
	}
}
