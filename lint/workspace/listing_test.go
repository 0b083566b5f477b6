package workspace

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"testing"
	"testing/fstest"
)

// listed is a disk that tells what its folders hold, and counts what is asked for by itself.
type listed struct {
	fstest.MapFS
	asked int
}

func (l *listed) ReadFile(name string) ([]byte, error) { return l.MapFS.ReadFile(path.Clean(name)) }
func (l *listed) ReadDir(name string) ([]fs.DirEntry, error) {
	return l.MapFS.ReadDir(path.Clean(name))
}
func (l *listed) Absolute(name string) string { return path.Clean(name) }
func (l *listed) Entries(name string) ([]fs.DirEntry, bool) {
	if path.Clean(name) == "large" {
		return nil, false
	}
	entries, _ := l.ReadDir(name)
	return entries, true
}
func (l *listed) Kind(name string) EntryKind {
	l.asked++
	info, err := l.MapFS.Stat(path.Clean(name))
	if err != nil {
		return Absent
	}
	return entryKind(info)
}

// TestListing tells from what folders hold what the disk says of each name, and asks it only for what a listing leaves open.
func TestListing(t *testing.T) {
	files := &listed{MapFS: fstest.MapFS{"a.py": {}, "Mixed.py": {}, "pkg/__init__.py": {}, "pkg/src/inner/x.py": {}, "large/x.py": {}, "fifo": {Mode: fs.ModeNamedPipe},
		"link.py": {Mode: fs.ModeSymlink, Data: []byte("a.py")}}}
	for _, c := range []struct {
		name  string
		asked bool
	}{
		{"a.py", false}, {"b.py", false}, {"pkg", false}, {"pkg/src/inner", false}, {"pkg/src/other/deep/x.py", false}, {"a.py/x", false}, {"fifo", false},
		{"./pkg/../a.py", false}, {"pkg/", true}, {".", true}, {"pkg/..", true},
		{"link.py", true}, {"large/x.py", true}, {"large/y.py", true},
		{"mixed.py", true}, {"A.py", true}, {"B.py", false}, {"é.py", true}, {"A~1.PY", true}, {"b.py.", true}, // on a disk that takes them for others they are there
	} {
		files.asked = 0
		got, asked := NewSnapshot(files).Kind(c.name), files.asked
		if want := files.Kind(c.name); got != want || (asked > 0) != c.asked {
			t.Errorf("%q: %v, want %v; asked %v, want %v", c.name, got, want, asked > 0, c.asked)
		}
	}
	for _, names := range [][2]string{{"pkg", "pk"}, {"mixed", "mixe"}, {"MIXED", "mixed.py"}, {"é", "é"}} {
		l := newListing(EntriesOf(must(files.ReadDir("."))))
		if !l.begins(names[0]) || !l.begins(names[1]) {
			t.Errorf("nothing begins like %v", names)
		}
		if l.begins("pkgs") || l.begins("mixed.pyc") || l.begins("zz") || l.begins("B") {
			t.Error("there is nothing of the kind")
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// TestListingOfDisk holds what Confined says of names against what it says of folders.
func TestListingOfDisk(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.ToSlash(filepath.Join(top, name)) }
	for _, name := range []string{"out/x.py", "repo/.git/HEAD", "repo/a/y.py", "repo/b.py"} {
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), []byte("x = 1\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"repo/folder": "a", "repo/leaves.py": "../out/x.py", "repo/out": "../out", "repo/gone": "nowhere"} {
		if err := os.Symlink(filepath.FromSlash(to), at(name)); err != nil {
			t.Skip("NO links here: that none is followed out of a project is not tested: ", err)
		}
	}
	files := NewConfined(at("repo"))
	for _, name := range []string{"a", "a/y.py", "a/z.py", "folder/y.py", "leaves.py", "out", "out/x.py", "out/y.py", "gone", "gone/x.py", "b.py/x", "../out/x.py", at("repo/a/y.py"), at("out/x.py")} {
		if got, want := NewSnapshot(files).Kind(name), files.Kind(name); got != want {
			t.Errorf("%s: %v, by itself %v", name, got, want)
		}
	}
	s := NewSnapshot(files)
	for _, name := range []string{"leaves.py", "out/x.py"} {
		if _, err := s.File(name); err == nil {
			t.Errorf("%s was read, which lies outside", name)
		}
	}
	if s.Kind("b.py") != RegularFile || s.Kind("a/y.py") != RegularFile {
		t.Error("what is there is not seen")
	}
	if err := os.Remove(at("repo/b.py")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.FromSlash("../out/x.py"), at("repo/b.py")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.File("b.py"); err == nil {
		t.Error("a file that became a link out of the project was read")
	}
	if file, err := s.File("a/y.py"); err != nil || string(file.Text) != "x = 1\n" {
		t.Error("a file that is there was not read: ", err)
	}
	other := NewSnapshot(files).Frugal()
	other.Kind("a/y.py")
	other.Kind("b.py")
	if held := other.store.listings; held["a"] == nil || held["."] == nil {
		t.Error("what was looked at is not held")
	}
	if other.Release("a"); other.store.listings["a"] != nil || other.store.listings[at("repo/a")] != nil || other.store.listings["."] == nil {
		t.Error("a was to go, and what is around it to stay")
	}
	if err := os.WriteFile(at("repo/a/new.py"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if next := s.Forget("a/new.py"); s.Kind("a/new.py") != Absent || next.Kind("a/new.py") != RegularFile {
		t.Error("a snapshot does not change, and the next one looks anew")
	}
}

// TestLocateBothWays holds that an import means the same file whether the view records what it asks or not.
func TestLocateBothWays(t *testing.T) {
	files := &listed{MapFS: fstest.MapFS{"setup.py": {}, "src/lib/__init__.py": {}, "src/lib/core.py": {}, "tools/run.py": {}, "tools/lib.py": {}, "tools/deep/er/x.py": {}, "space/inner/mod.py": {},
		"tools/Camel.py": {}, "tools/deep/src/near.py": {}}}
	for _, from := range []string{"tools/run.py", "tools/deep/er/x.py", "src/lib/core.py", "x.py", "../other/x.py"} {
		for _, module := range []string{"lib", "lib.core", "space.inner.mod", "space", "run", "camel", "Camel", "near", "er.x", "torch", "none", "li"} {
			for level := range 3 {
				recording := NewSnapshot(files).View(context.Background())
				forgetful := NewSnapshot(files).View(context.Background()).Forgetful()
				if got, want := forgetful.locate(from, module, level), recording.locate(from, module, level); got != want {
					t.Errorf("%s, level %d, from %s: %q, recording %q", module, level, from, got, want)
				}
			}
		}
	}
	if got := NewSnapshot(files).View(context.Background()).Forgetful().locate("tools/deep/er/x.py", "lib.core", 0); got != "src/lib/core.py" {
		t.Errorf("lib.core is %q", got)
	}
}
