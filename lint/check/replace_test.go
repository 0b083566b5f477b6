package check

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.py"), []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	return dir
}

// contains reports what stands in a folder that holds one file.
func contains(t *testing.T, dir, want string) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(dir, "a.py"))
	if err != nil || string(got) != want {
		t.Errorf("the file holds %q, want %q (%v)", got, want, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("more than the file lies in its folder: %v (%v)", entries, err)
	}
}

func TestReplace(t *testing.T) {
	dir := folder(t)
	name := filepath.Join(dir, "a.py")
	if err := os.Chmod(name, 0o751); err != nil {
		t.Fatal(err)
	}
	if err := Replace(name, []byte("old"), []byte("new")); err != nil {
		t.Fatal(err)
	}
	contains(t, dir, "new")
	if info, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o751 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	if err := Replace(name, []byte("old"), []byte("newer")); !errors.Is(err, ErrChanged) {
		t.Errorf("a file that others wrote to: %v", err)
	}
	contains(t, dir, "new")
	if err := Replace(dir, nil, nil); err == nil {
		t.Error("a folder was replaced")
	}
	if err := Replace(filepath.Join(dir, "none"), nil, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestReplaceLinks(t *testing.T) {
	dir, links := folder(t), t.TempDir()
	name, link := filepath.Join(dir, "a.py"), filepath.Join(links, "link.py")
	if err := os.Symlink(name, link); err != nil {
		t.Skip("no links here: ", err)
	}
	if err := Replace(link, []byte("old"), []byte("new")); err != nil {
		t.Fatal(err)
	}
	contains(t, dir, "new")
	if to, err := os.Readlink(link); err != nil || to != name {
		t.Errorf("the link leads to %q (%v)", to, err)
	}
	// what another hard link names stays: it may be a cache from which this folder was filled
	other := filepath.Join(links, "hard.py")
	if err := os.Link(name, other); err != nil {
		t.Skip("no hard links here: ", err)
	}
	if err := Replace(name, []byte("new"), []byte("newer")); err != nil {
		t.Fatal(err)
	}
	contains(t, dir, "newer")
	if got, _ := os.ReadFile(other); string(got) != "new" {
		t.Errorf("the other link names %q", got)
	}
}

// broken is a temporary file of which one step fails.
type broken struct {
	tempFile
	step string
}

func (b broken) fails(step string) error {
	if b.step == step {
		return &fs.PathError{Op: step, Path: b.Name(), Err: syscall.ENOSPC}
	}
	return nil
}

func (b broken) Write(text []byte) (int, error) {
	if err := b.fails("write"); err != nil {
		n, _ := b.tempFile.Write(text[:len(text)/2])
		return n, err
	}
	return b.tempFile.Write(text)
}

func (b broken) Chmod(mode fs.FileMode) error {
	return errors.Join(b.tempFile.Chmod(mode), b.fails("chmod"))
}
func (b broken) Sync() error  { return errors.Join(b.tempFile.Sync(), b.fails("sync")) }
func (b broken) Close() error { return errors.Join(b.tempFile.Close(), b.fails("close")) }

// TestReplaceFails lets each step fail: the file stays as it was, and nothing is left beside it.
func TestReplaceFails(t *testing.T) {
	for _, step := range []string{"create", "write", "chmod", "sync", "close", "rename"} {
		t.Run(step, func(t *testing.T) {
			dir := folder(t)
			r := replacer{
				create: func(folder string) (tempFile, error) {
					if step == "create" {
						return nil, &fs.PathError{Op: "open", Path: folder, Err: syscall.EACCES}
					}
					file, err := os.CreateTemp(folder, "t")
					return broken{file, step}, err
				},
				rename: func(from, to string) error {
					if step == "rename" {
						return syscall.EXDEV
					}
					return os.Rename(from, to)
				},
			}
			err := r.replace(filepath.Join(dir, "a.py"), []byte("old"), []byte("new and longer"))
			if err == nil {
				t.Fatal("no error")
			}
			if step == "create" && !strings.HasPrefix(err.Error(), "no file can be made in its folder: permission denied") {
				t.Errorf("the error is %q", err)
			}
			contains(t, dir, "old")
		})
	}
}
