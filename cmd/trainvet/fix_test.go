package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/rules"
)

// One file that cannot be written must not hide what became of the others. The script fix-unwritable does the same with a mode,
// where the user is not root.
func TestFixUnwritable(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"a.py", "b.py", "c.py"} {
		if err := os.WriteFile(name, []byte("x = 1  # trainvet: ignore[syntax-error] gone\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var stdout, stderr bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, env: func(string) string { return "" }, rules: rules.All()}
	a.overwrite = func(file *source.File) error {
		if filepath.Base(file.Path) == "b.py" {
			return &fs.PathError{Op: "open", Path: file.Path, Err: errors.New("permission denied")}
		}
		return overwrite(file)
	}
	if code := run(a, []string{"check", "--fix", "--format", "concise", "."}); code != exitTrouble {
		t.Errorf("exit code %d, want %d", code, exitTrouble)
	}
	if got := stdout.String(); !strings.HasPrefix(got, "b.py:1:8: warning[unused-suppression]") || strings.Count(got, "\n") != 1 {
		t.Errorf("stdout %q, want the finding of b.py alone", got)
	}
	if got, want := stderr.String(), "trainvet: b.py: not fixed: permission denied\n"; got != want {
		t.Errorf("stderr %q, want %q", got, want)
	}
	for name, want := range map[string]string{"a.py": "x = 1\n", "b.py": "x = 1  # trainvet: ignore[syntax-error] gone\n", "c.py": "x = 1\n"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s holds %q, want %q (%v)", name, got, want, err)
		}
	}
}
