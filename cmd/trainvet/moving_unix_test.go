//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/rules"
)

// TestMoving checks files while they vanish, come back, grow, and are replaced by a FIFO, a folder and links. Every check ends, nothing fails
// inside, and the sound file is checked.
func TestMoving(t *testing.T) {
	t.Chdir(t.TempDir())
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	if err := os.WriteFile("sound.py", []byte("x = 1  # trainvet: ignore[no-such-rule]\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	names := []string{"a.py", "b.json", "c.yaml", "d.toml", "e.sh", "f.ipynb", "requirements.txt", "Dockerfile"}
	stop, stopped := make(chan struct{}), make(chan struct{})
	defer func() { // also where the test fails: then it would go on in the folder of the next one
		close(stop)
		<-stopped
	}()
	go func() {
		defer close(stopped)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			name := names[n%len(names)]
			next := fmt.Sprintf(".next-%d", n)
			switch n / len(names) % 7 { // errors do not matter: the one before may be in the way
			case 0:
				os.WriteFile(next, []byte("x = 1\n"), 0o666)
			case 1:
				syscall.Mkfifo(next, 0o666)
			case 2:
				os.Mkdir(next, 0o777)
			case 3:
				os.Symlink("/etc/passwd", next)
			case 4:
				os.Symlink(name, next)
			case 5:
				os.WriteFile(next, bytes.Repeat([]byte("[1, 2],\n"), 1<<14), 0o666)
			}
			os.RemoveAll(name)
			os.Rename(next, name)
			os.RemoveAll(next)
		}
	}()
	for round := range rounds {
		var stdout, stderr bytes.Buffer
		a := &app{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, env: func(string) string { return "" }, rules: rules.All(), replace: check.Replace}
		args := []string{"check", "--isolated", "--format", "concise", "."}
		if round%2 == 1 {
			args = append(args[:2:2], "--diff", ".")
		}
		code := run(a, args)
		if code > exitTrouble || strings.Contains(stderr.String(), "internal error") {
			t.Fatalf("exit code %d\n%s", code, stderr.String())
		}
		if round%2 == 0 && !strings.Contains(stdout.String(), "sound.py:1:8") {
			t.Fatalf("the sound file was not checked:\n%s%s", stdout.String(), stderr.String())
		}
		if strings.Contains(stdout.String()+stderr.String(), "root:") {
			t.Fatal("a line of /etc/passwd was shown")
		}
	}
}

// TestFixChanged holds that a fix is not written over a file, of any kind that has fixes, which somebody changed in the meantime.
func TestFixChanged(t *testing.T) {
	notebook := `{"cells":[{"cell_type":"code","source":["x = 1  # trainvet: ignore[syntax-error] gone\n"]}],"nbformat":4}`
	for name, before := range map[string]string{"a.py": unusedLine, "a.yaml": "lr: 1  # trainvet: ignore[syntax-error] gone\n", "a.toml": "lr = 1  # trainvet: ignore[syntax-error] gone\n",
		"a.json": "{\"train_batch_size\": 1} // trainvet: ignore[syntax-error] gone\n", "a.sh": "torchrun a.py  # trainvet: ignore[syntax-error] gone\n", "a.ipynb": notebook} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.WriteFile(name, []byte(before), 0o666); err != nil {
				t.Fatal(err)
			}
			newer := strings.Replace(before, "gone", "newer", 1)
			tries := 0
			var stdout, stderr bytes.Buffer
			a := &app{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, env: func(string) string { return "" }, rules: rules.All()}
			a.replace = func(file string, old, new []byte) error {
				tries++
				if err := os.WriteFile(file, []byte(newer), 0o666); err != nil {
					return err
				}
				return check.Replace(file, old, new)
			}
			code := run(a, []string{"check", "--isolated", "--fix", "."})
			if got, err := os.ReadFile(name); err != nil || string(got) != newer {
				t.Errorf("it holds %q (%v)", got, err)
			}
			if tries != 1 || code != exitTrouble || !strings.Contains(stderr.String(), name+": not fixed: it has changed since it was read; run again") {
				t.Errorf("%d tries, exit code %d: %s%s", tries, code, stdout.String(), stderr.String())
			}
			if left, _ := filepath.Glob(".trainvet-*"); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}
