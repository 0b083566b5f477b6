package workspace

import (
	"context"
	"io/fs"
	"testing"
)

// deep is a disk on which every folder holds another, and a Python file; it counts what is listed.
type deep struct{ listed int }

func (d *deep) ReadFile(string) ([]byte, error) { return []byte("import torch\n"), nil }
func (d *deep) Kind(name string) EntryKind {
	if name == "/x.py" {
		return RegularFile
	}
	return Absent
}
func (d *deep) ReadDir(string) ([]fs.DirEntry, error) {
	d.listed++
	return []fs.DirEntry{diskEntry{"inner", true}, diskEntry{"x.py", false}}, nil
}

type diskEntry struct {
	name   string
	folder bool
}

func (e diskEntry) Name() string               { return e.name }
func (e diskEntry) IsDir() bool                { return e.folder }
func (e diskEntry) Info() (fs.FileInfo, error) { return nil, nil }
func (e diskEntry) Type() fs.FileMode {
	if e.folder {
		return fs.ModeDir
	}
	return 0
}

// TestRootOfDisk holds that a file at the root of a disk does not make the whole disk its project.
func TestRootOfDisk(t *testing.T) {
	disk := &deep{}
	v := NewSnapshot(disk).View(context.Background())
	v.Mentioning("/x.py", "train")
	v.naming("/x.py")
	v.Holding("/", "npu")
	if disk.listed > 6 {
		t.Errorf("%d folders were listed", disk.listed)
	}
}
