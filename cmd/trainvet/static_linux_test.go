package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestStatic holds that the binary needs no loader, so that it runs on every Linux, and in an image with nothing else in it.
func TestStatic(t *testing.T) {
	slow(t)
	root := t.TempDir()
	file := filepath.Join(root, "trainvet")
	build := exec.Command("go", "build", "-o", file, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+runtime.GOARCH)
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	binary, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	for _, part := range binary.Progs {
		if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
			t.Errorf("the binary has a segment %s", part.Type)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("NOT root: the binary is not run in an empty root")
	}
	code := filepath.Join(root, "code")
	if err := os.Mkdir(code, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(code, "a.py"), []byte(unusedLine+unknownLine), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{root, file} { // for another user
		if err := os.Chmod(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const nobody = 65534 // as in Dockerfile
	for _, name := range []string{code, filepath.Join(code, "a.py")} {
		if err := os.Chown(name, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"check --format concise .", "a.py:2:8: warning[unknown-suppression]", exitFindings},
		{"check --fix --format concise .", "a.py:2:8: warning[unknown-suppression]", exitFindings},
		{"check --new-from-rev HEAD .", "git is not installed", exitTrouble},
		{"fit --device h100-80g --model llama-3-8b --world-size 8 --seq-len 4096 a.py", "", exitTrouble},
		{"rule unknown-suppression", "unknown-suppression", exitClean},
	} {
		command := exec.Command("/trainvet", strings.Fields(c.args)...)
		command.Dir, command.Env = "/code", []string{}
		command.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		output, err := command.CombinedOutput()
		if command.ProcessState == nil {
			t.Fatal(err)
		}
		if got := command.ProcessState.ExitCode(); got != c.code || !strings.Contains(string(output), c.want) {
			t.Errorf("%s: exit code %d, want %d\n%s", c.args, got, c.code, output)
		}
	}
	if text, err := os.ReadFile(filepath.Join(code, "a.py")); err != nil || string(text) != "x = 1\n"+unknownLine {
		t.Errorf("fixed there: %q (%v)", text, err)
	}
}
