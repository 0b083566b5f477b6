package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainvet/trainvet/lint/check"
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
	a.replace = func(name string, before, after []byte) error {
		if filepath.Base(name) == "b.py" {
			return &fs.PathError{Op: "open", Path: name, Err: errors.New("permission denied")}
		}
		return check.Replace(name, before, after)
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

// TestFixKilled kills --fix at random moments: every file is as it was or as it should be, and a second run finishes.
func TestFixKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	const files, rounds = 40, 12
	filler := strings.Repeat("y = 2\n", 4000)
	before := "x = 1  # trainvet: ignore[syntax-error] gone\n" + filler
	after := "x = 1\n" + filler
	args := []string{"check", "--isolated", "--fix", "--format", "concise", "."}
	t.Chdir(t.TempDir())
	reset := func() {
		for i := range files {
			if err := os.WriteFile(fmt.Sprintf("f%02d.py", i), []byte(before), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	reset()
	written := func(command *exec.Cmd, file int) { // starts it, and returns when that file is written
		t.Helper()
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("f%02d.py", file)
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
			if info, err := os.Stat(name); err == nil && info.Size() == int64(len(after)) {
				break
			}
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	partly := 0
	for range rounds {
		reset()
		command := exec.Command("trainvet", args...)
		written(command, random.IntN(files/2))
		command.Process.Kill()
		command.Wait()
		fixed := 0
		for i := range files {
			text, err := os.ReadFile(fmt.Sprintf("f%02d.py", i))
			switch {
			case err == nil && string(text) == after:
				fixed++
			case err != nil || string(text) != before:
				t.Fatalf("f%02d.py holds %d bytes that are neither the old nor the new ones (%v)", i, len(text), err)
			}
		}
		if fixed > 0 && fixed < files {
			partly++
		}
	}
	if t.Logf("killed %d of %d times while some files were written and others not", partly, rounds); partly == 0 {
		t.Error("no kill came between two files, so this test has shown nothing")
	}
	if out, err := exec.Command("trainvet", args...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("the run after it: %v\n%s", err, out)
	}
}
