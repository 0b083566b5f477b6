package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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

// announcing is trainvet that says on stderr which file it is about to write, and never gets to the last of the files of TestFixKilled:
// whoever kills it then finds some of them written and others not, however fast either side is.
func announcing() {
	tried := 0
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.Getenv, rules: rules.All()}
	a.replace = func(name string, before, after []byte) error {
		fmt.Fprintln(os.Stderr, "writing", filepath.Base(name))
		if tried++; tried == killedFiles {
			io.Copy(io.Discard, os.Stdin) // the end of it is that of the test
		}
		return check.Replace(name, before, after)
	}
	os.Exit(run(a, os.Args[1:]))
}

const killedFiles = 20

// TestFixOfBrokenFile: a repair behind which the parser finds more that is wrong is left alone, and is no fault of trainvet.
func TestFixOfBrokenFile(t *testing.T) {
	dir := t.TempDir()
	text := "model:\n    \"\"\"test class\"\"\"\n    @pytest.mark.parametrize(\n        \"world_size\",\n"
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	output, code := runIn(t, dir, "check", "--fix", "--unsafe-fixes", "a.yaml")
	if code != exitFindings || !strings.Contains(output, "@ cannot begin a value") || strings.Contains(output, "fault of trainvet") {
		t.Errorf("exit code %d, wanted %d:\n%s", code, exitFindings, output)
	}
	if after, err := os.ReadFile(filepath.Join(dir, "a.yaml")); err != nil || string(after) != text {
		t.Errorf("the file was changed to %q (%v)", after, err)
	}
}

// TestFixKilled kills --fix while it writes: every file is as it was or as it should be, and a second run finishes.
func TestFixKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	const rounds = 12
	filler := strings.Repeat("y = 2\n", 4000)
	before := "x = 1  # trainvet: ignore[syntax-error] gone\n" + filler
	after := "x = 1\n" + filler
	args := []string{"check", "--isolated", "--fix", "--format", "concise", "."}
	t.Chdir(t.TempDir())
	reset := func() {
		for i := range killedFiles {
			if err := os.WriteFile(fmt.Sprintf("f%02d.py", i), []byte(before), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	written := 0
	for round := range rounds {
		reset()
		command := exec.Command("trainvet-announcing", args...)
		stdin, err := command.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stderr, err := command.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewReader(stderr)
		for range 2 + round { // then all before that file are written
			if line, err := said.ReadString('\n'); !strings.HasPrefix(line, "writing ") {
				t.Fatalf("it says %q (%v)", line, err)
			}
		}
		command.Process.Kill()
		command.Wait()
		stdin.Close()
		fixed := 0
		for i := range killedFiles {
			text, err := os.ReadFile(fmt.Sprintf("f%02d.py", i))
			switch {
			case err == nil && string(text) == after:
				fixed++
			case err != nil || string(text) != before:
				t.Fatalf("f%02d.py holds %d bytes that are neither the old nor the new ones (%v)", i, len(text), err)
			}
		}
		if fixed <= round || fixed >= killedFiles {
			t.Errorf("round %d: %d files were written", round, fixed)
		}
		written += fixed
	}
	t.Logf("killed %d times, after %d files in all", rounds, written)
	if out, err := exec.Command("trainvet", args...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("the run after it: %v\n%s", err, out)
	}
}
