package feature

import (
	"io/fs"

	"github.com/trainvet/trainvet/lint/workspace"
)

// nowhere is a file system without files: for a snapshot that is asked about one text alone.
type nowhere struct{}

func (nowhere) ReadFile(string) ([]byte, error)       { return nil, fs.ErrNotExist }
func (nowhere) ReadDir(string) ([]fs.DirEntry, error) { return nil, fs.ErrNotExist }
func (nowhere) Kind(string) workspace.EntryKind       { return workspace.Absent }
