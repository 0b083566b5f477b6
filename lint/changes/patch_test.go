package changes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestParsePatch(t *testing.T) {
	for name, test := range map[string]struct{ patch, want string }{
		"lines":      {"--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,4 @@ def f():\n a\n-b\n+c\n+d\n e\n@@ -9 +10 @@\n-z\n+y\n", "x.py 2-3 10-10"},
		"deletion":   {"--- a/x.py\n+++ b/x.py\n@@ -2,2 +1,0 @@\n-a\n-b\n", "x.py"},
		"gone":       {"--- a/x.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", ""},
		"new":        {"--- /dev/null\n+++ b/new dir/x.py\t\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n", "new dir/x.py 1-2"},
		"no prefix":  {"--- src/x.py\n+++ src/x.py\n@@ -1 +1 @@\n-a\n+b\n", "src/x.py 1-1"},
		"mnemonic":   {"--- i/x.py\n+++ w/x.py\n@@ -1 +1 @@\n-a\n+b\n", "x.py 1-1"},
		"quoted":     {"--- \"a/t\\tq\\\"\\346\\226\\207.py\"\n+++ \"b/t\\tq\\\"\\346\\226\\207.py\"\n@@ -1 +1 @@\n-a\n+b\n", "t\tq\"文.py 1-1"},
		"like heads": {"--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n--- a\n-++ b\n+++ c\n+@@ -1 +1 @@\n+--- d\n--- a/y\n+++ b/y\n@@ -1 +1,2 @@\n a\n+b\n", "x 1-3; y 2-2"},
		"renamed":    {"diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", ""},
		"binary":     {"diff --git a/x b/x\nBinary files a/x and b/x differ\n", ""},
		"crlf":       {"--- a/x.py\r\n+++ b/x.py\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n", "x.py 1-1"},
		"merge":      {"diff --cc x\n--- a/x\n+++ b/x\n@@@ -1,1 -1,1 +1,2 @@@\n  a\n++b\n", "x whole"},
		"mail":       {"From: a@b\nSubject: c\n---\n x | 2 +-\n\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n-- \n2.39\n", "x 1-1"},
		"empty line": {"--- a/x\n+++ b/x\n@@ -1,3 +1,4 @@\n a\n\n+b\n c\n", "x 3-3"},
	} {
		files, err := ParsePatch([]byte(test.patch))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := shown(files); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if _, err := ParsePatch([]byte("@@ -1 +1 @@\n-a\n+b\n")); err == nil {
		t.Error("lines of no file were taken")
	}
}

func shown(files map[string]Lines) string {
	var parts []string
	for _, name := range []string{"x", "x.py", "src/x.py", "t\tq\"文.py", "new dir/x.py", "y"} {
		lines, known := files[name]
		if !known {
			continue
		}
		text := name
		for _, r := range lines.Ranges {
			text += fmt.Sprintf(" %d-%d", r.First, r.Last)
		}
		if lines.Whole {
			text += " whole"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

func FuzzParsePatch(f *testing.F) {
	f.Add([]byte("--- a/x.py\n+++ \"b/\\303.py\"\n@@ -1,3 +1,4 @@ def f():\n a\n-b\n+c\n+d\n e\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		files, err := ParsePatch(text)
		if err != nil {
			return
		}
		for name, lines := range files {
			last := -1
			for _, r := range lines.Ranges {
				if r.First > r.Last || r.First <= last {
					t.Fatalf("%s: %v", name, lines.Ranges)
				}
				last = r.Last
			}
		}
	})
}

// TestAgainstDiff changes a text at random and holds what git says against the lines themselves: whatever is not called new must
// stand in the old text as well, in this order.
func TestAgainstDiff(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("NO git: the lines of a patch are not compared with a real one")
	}
	dir := t.TempDir()
	for _, entry := range os.Environ() { // a hook of git may run the tests
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "GIT_") {
			t.Setenv(name, "") // which brings it back in the end
			os.Unsetenv(name)
		}
	}
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(dir, "none"))
	git := func(args ...string) {
		t.Helper()
		command := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0", "-c", "maintenance.auto=false"}, args...)...)
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", args, out)
		}
	}
	write := func(lines []string) {
		if err := os.WriteFile(filepath.Join(dir, "x"), []byte(strings.Join(lines, "\n")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	var old []string
	for range 60 {
		old = append(old, fmt.Sprint("line ", random.IntN(20)))
	}
	write(old)
	git("init", "-q")
	git("add", "x")
	git("commit", "-qm", "one")
	ctx := context.Background()
	repo, err := Open(ctx, filepath.ToSlash(dir))
	if err != nil {
		t.Fatal(err)
	}
	commit, err := repo.Commit(ctx, "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		lines := append([]string(nil), old...)
		for range 1 + random.IntN(6) {
			at := random.IntN(len(lines))
			if random.IntN(2) == 0 {
				lines = append(lines[:at], lines[at+1:]...)
			} else {
				lines = append(lines[:at], append([]string{fmt.Sprint("new ", random.IntN(1000))}, lines[at:]...)...)
			}
		}
		write(lines)
		set, err := repo.Since(ctx, commit)
		if err != nil {
			t.Fatal(err)
		}
		is, from := set.Of(filepath.ToSlash(filepath.Join(dir, "x"))), 0
		for i, line := range lines {
			if is.Overlaps(i+1, i+1) {
				continue
			}
			for from < len(old) && old[from] != line {
				from++
			}
			if from++; from > len(old) {
				t.Fatalf("line %d, %q, is called old\n%v", i+1, line, is)
			}
		}
		for i, line := range lines {
			if strings.HasPrefix(line, "new") && !is.Overlaps(i+1, i+1) {
				t.Errorf("line %d, %q, is not called new", i+1, line)
			}
		}
	}
}
