package workspace

import (
	"os"
	"path/filepath"
	"testing"
)

// TestConfined follows links within a project, and none out of it.
func TestConfined(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.ToSlash(filepath.Join(top, name)) }
	for _, name := range []string{"out/x.py", "out/.git/HEAD", "repo/.git/HEAD", "repo/a/y.py", "plain/z.py"} {
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), []byte("x = 1\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"repo/file.py": "a/y.py", "repo/folder": "a", "repo/leaves.py": "../out/x.py", "repo/out": "../out", "repo/a/chain.py": "../leaves.py",
		"plain/leaves.py": "../out/x.py", "plain/repo": "../repo", "link": "repo", "home": "out"} {
		if err := os.Symlink(filepath.FromSlash(to), at(name)); err != nil {
			t.Skip("NO links here: that none is followed out of a project is not tested: ", err)
		}
	}
	for _, c := range []struct {
		dir, name string
		named     []string
		want      EntryKind
	}{
		{"repo", "file.py", nil, RegularFile},
		{"repo", "folder/y.py", nil, RegularFile},
		{"repo", "leaves.py", nil, Special},
		{"repo", "leaves.py", []string{"leaves.py"}, Special}, // a checkout may be a stranger's, whoever names its files
		{"repo", "a/chain.py", nil, Special},
		{"repo", "out", nil, Special},
		{"repo", "out", []string{"out"}, Special},
		{"repo", "out/x.py", nil, Special}, // though that is a checkout too
		{"repo", "nothing.py", nil, Absent},
		{"", "repo/leaves.py", nil, Special},
		{"", "link/leaves.py", nil, Special},
		{"", "link/file.py", nil, RegularFile},
		{"plain", "leaves.py", nil, Special},
		{"plain", "leaves.py", []string{"leaves.py"}, RegularFile}, // no checkout: who names it means it
		{"plain", "repo/a/y.py", nil, Special},
		{"plain", "repo/a/y.py", []string{"repo"}, RegularFile},
		{"plain", "repo/leaves.py", []string{"repo"}, Special},
		{"home", "x.py", nil, RegularFile},                  // who stands in a folder means it
		{"repo/a", at("plain/leaves.py"), nil, RegularFile}, // nobody's project: the user's own
		{"repo/a", at("plain/leaves.py"), []string{at("plain")}, Special},
	} {
		files := NewConfined(at(c.dir), c.named...)
		if got := files.Kind(c.name); got != c.want {
			t.Errorf("from %s %s, named %v: %v, want %v", c.dir, c.name, c.named, got, c.want)
		}
		if _, err := files.ReadFile(c.name); (err == nil) != (c.want == RegularFile) {
			t.Errorf("from %s %s, named %v: read with %v", c.dir, c.name, c.named, err)
		}
		if err := files.Outside(c.name); (err == nil) != (c.want != Special) {
			t.Errorf("from %s %s, named %v: outside %v", c.dir, c.name, c.named, err)
		}
	}
}
