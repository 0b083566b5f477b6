package check

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrChanged is the reason why a file was not replaced: somebody else wrote to it after it was read.
var ErrChanged = errors.New("it has changed since it was read; run again")

// tempFile is where the new content of a file is written, beside it.
type tempFile interface {
	io.WriteCloser
	Name() string
	Chmod(fs.FileMode) error
	Sync() error
}

// replacer has the steps of a replacement that can fail for want of rights or room.
type replacer struct {
	create func(folder string) (tempFile, error)
	rename func(from, to string) error
}

// Replace gives a file new content, all or nothing: whoever reads it, and whoever comes after a crash, finds the old bytes or the new
// ones. Mode and, where that is allowed, owner stay; of a symbolic link the file that it leads to is replaced, while another hard link
// keeps the old content. A file that no longer holds the bytes of before is left alone.
func Replace(name string, before, after []byte) error {
	return replacer{
		create: func(folder string) (tempFile, error) { return os.CreateTemp(folder, ".trainvet-*.tmp") },
		rename: os.Rename,
	}.replace(name, before, after)
}

func (r replacer) replace(name string, before, after []byte) (err error) {
	real, err := filepath.EvalSymlinks(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("is not a file")
	}
	// A rename needs no right to write to the file itself; who took that right away meant it.
	if probe, err := os.OpenFile(real, os.O_WRONLY, 0); err != nil {
		return err
	} else if err := probe.Close(); err != nil {
		return err
	}
	temp, err := r.create(filepath.Dir(real))
	if err != nil {
		return fmt.Errorf("no file can be made in its folder: %w", innermost(err))
	}
	open := true
	defer func() {
		if open {
			temp.Close()
		}
		if err != nil {
			os.Remove(temp.Name())
		}
	}()
	if _, err := temp.Write(after); err != nil {
		return err
	}
	keepOwner(temp.Name(), info)
	if err := temp.Chmod(info.Mode()); err != nil {
		return err
	}
	if err := temp.Sync(); err != nil {
		return err
	}
	open = false
	if err := temp.Close(); err != nil {
		return err
	}
	now, err := os.ReadFile(real)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, before) {
		return ErrChanged
	}
	return r.rename(temp.Name(), real)
}

// innermost is what went wrong, without the operation and the names.
func innermost(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
