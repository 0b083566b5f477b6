//go:build !unix

package workspace

import (
	"errors"
	"io"
	"os"
	"slices"

	"github.com/trainvet/trainvet/lint/source"
)

// appendRegular reads a file that was a regular one a moment ago. A file that grows is read up to the bound.
func appendRegular(to []byte, on string) ([]byte, error) {
	file, err := os.OpenFile(on, os.O_RDONLY|NoWait, 0)
	if err != nil {
		return to, plain(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil {
		err = readable(info)
	}
	if err != nil {
		return to, plain(err)
	}
	before := len(to)
	to = slices.Grow(to, int(info.Size())+1)
	for {
		n, err := file.Read(to[len(to):cap(to)])
		to = to[:len(to)+n]
		switch {
		case errors.Is(err, io.EOF):
			return to, nil
		case err != nil:
			return to[:before], plain(err)
		case len(to)-before > source.MaxSize:
			return to[:before], errLarge
		case len(to) == cap(to):
			to = slices.Grow(to, len(to))
		}
	}
}

// appendPlain is for systems on which a file can be opened without following what it may have become since.
func appendPlain(to []byte, on string) ([]byte, error) { return to, errors.ErrUnsupported }

// openFolder is for systems on which a folder can be opened without following what it may have become since.
func openFolder(on string) (*os.File, error) { return nil, errors.ErrUnsupported }
