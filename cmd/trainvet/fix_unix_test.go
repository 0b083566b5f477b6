//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fixFails runs --fix where it must fail: one clear line, the file as it was, and nothing left beside it.
func fixFails(t *testing.T, file string, reason string, command *exec.Cmd) {
	t.Helper()
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	command.Dir = filepath.Dir(file)
	output, _ := command.CombinedOutput()
	if code := command.ProcessState.ExitCode(); code != exitTrouble || !strings.Contains(string(output), "trainvet: a.py: not fixed: "+reason) {
		t.Errorf("exit code %d\n%s", code, output)
	}
	after, err := os.ReadFile(file)
	if err != nil || string(after) != string(before) {
		t.Errorf("the file changed (%v)", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
		t.Errorf("beside it lies %v (%v)", entries, err)
	}
}

const fixedLater = unusedLine + "y = 2\n"

// TestFixFileLimit runs into the limit of a process for the size of files.
func TestFixFileLimit(t *testing.T) {
	bash := need(t, "bash")
	file := filepath.Join(t.TempDir(), "a.py")
	if err := os.WriteFile(file, []byte(unusedLine+strings.Repeat("y = 2\n", 2000)), 0o666); err != nil {
		t.Fatal(err)
	}
	fixFails(t, file, "file too large", exec.Command(bash, "-c", "ulimit -f 4 && exec trainvet check --isolated --fix --format concise a.py"))
}

// TestFixDiskFull fills a real file system.
func TestFixDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT root: no full disk is made")
	}
	dir := t.TempDir()
	if output, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d", 3*os.Getpagesize()), "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("NO mount: no full disk is made: %s", output)
	}
	t.Cleanup(func() {
		if output, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %s", output)
		}
	})
	file := filepath.Join(dir, "a.py")
	text := unusedLine + strings.Repeat("y = 2\n", os.Getpagesize()*3/10) // two of its three pages
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	fixFails(t, file, "no space left on device", exec.Command("trainvet", "check", "--isolated", "--fix", "--format", "concise", "a.py"))
}

// openToAll lets every user get to a file or folder that lies in the folder for temporary files. No other one is changed.
func openToAll(t *testing.T, name string) {
	t.Helper()
	temp := filepath.Clean(os.TempDir())
	for ; strings.HasPrefix(name, temp+string(filepath.Separator)); name = filepath.Dir(name) {
		if err := os.Chmod(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, err := filepath.EvalSymlinks(name); ; name = filepath.Dir(name) {
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode()&0o001 == 0 {
			t.Skipf("NO other user can get to %s: set TMPDIR to a folder that is open to all", name)
		}
		if name == filepath.Dir(name) {
			return
		}
	}
}

// TestFixReadOnlyFolder holds that a folder in which no file can be made is told as such, though the file itself could be written.
func TestFixReadOnlyFolder(t *testing.T) {
	command := exec.Command("trainvet", "check", "--isolated", "--fix", "--format", "concise", "a.py")
	dir := t.TempDir()
	if os.Geteuid() == 0 { // root writes to every folder, so let somebody else do it
		program, err := exec.LookPath("trainvet")
		if err != nil {
			t.Fatal(err)
		}
		openToAll(t, program)
		openToAll(t, dir)
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	file := filepath.Join(dir, "a.py")
	if err := os.WriteFile(file, []byte(fixedLater), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o755) })
	fixFails(t, file, "no file can be made in its folder: permission denied", command)
}
