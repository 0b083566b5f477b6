//go:build unix

package workspace

import (
	"os"
	"slices"
	"syscall"

	"github.com/trainvet/trainvet/lint/source"
)

// appendRegular reads a file that was a regular one a moment ago. What took its place since is not waited for, and a file that grows is read
// up to the bound. It asks the system for no more than it must, which is a third less than os.ReadFile does.
func appendRegular(to []byte, on string) ([]byte, error) { return appendOpened(to, on, 0) }

// appendPlain is appendRegular for a file that was no link a moment ago, and fails where it is one now.
func appendPlain(to []byte, on string) ([]byte, error) {
	return appendOpened(to, on, syscall.O_NOFOLLOW)
}

// openFolder opens what was a folder and no link a moment ago, and fails where it is neither now.
func openFolder(on string) (*os.File, error) {
	var folder int
	err := again(func() (err error) {
		folder, err = syscall.Open(on, syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(folder), on), nil
}

func appendOpened(to []byte, on string, how int) ([]byte, error) {
	var file int
	if err := again(func() (err error) {
		file, err = syscall.Open(on, syscall.O_RDONLY|syscall.O_CLOEXEC|NoWait|how, 0)
		return err
	}); err != nil {
		return to, err
	}
	defer syscall.Close(file)
	var info syscall.Stat_t
	if err := again(func() error { return syscall.Fstat(file, &info) }); err != nil {
		return to, err
	}
	switch {
	case info.Mode&syscall.S_IFMT == syscall.S_IFDIR:
		return to, errFolder
	case info.Mode&syscall.S_IFMT != syscall.S_IFREG:
		return to, errSpecial
	case info.Size > source.MaxSize:
		return to, errLarge
	}
	before := len(to)
	to = slices.Grow(to, int(info.Size)+source.Padding) // more than the file, so that the end shows in the first read
	for {
		room := to[len(to):cap(to)]
		var n int
		if err := again(func() (err error) {
			n, err = syscall.Read(file, room)
			return err
		}); err != nil {
			return to[:before], err
		}
		to = to[:len(to)+max(n, 0)]
		switch read := len(to) - before; {
		case read > source.MaxSize:
			return to[:before], errLarge
		case n <= 0, n < len(room) && read == int(info.Size):
			return to, nil
		case len(to) == cap(to): // it has grown meanwhile
			to = slices.Grow(to, len(to))
		}
	}
}

// again repeats a call that a signal broke off.
func again(call func() error) error {
	for {
		if err := call(); err != syscall.EINTR {
			return err
		}
	}
}
