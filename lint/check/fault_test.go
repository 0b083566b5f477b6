package check

import (
	"context"
	"io/fs"
	"testing"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// faultyDisk makes whoever reads a file fail, as a fault of a decoder would.
type faultyDisk struct{}

func (faultyDisk) ReadFile(string) ([]byte, error)           { panic("read") }
func (faultyDisk) ReadDir(string) ([]fs.DirEntry, error)     { return nil, nil }
func (faultyDisk) Kind(string) workspace.EntryKind           { return workspace.RegularFile }
func (faultyDisk) AppendFile([]byte, string) ([]byte, error) { panic("read") }

// TestFaultyTelling holds that a file at which the search for words fails counts as one that has some: its check tells of the fault.
func TestFaultyTelling(t *testing.T) {
	c := &checker{snapshot: workspace.NewSnapshot(faultyDisk{})}
	if !c.anyTelling(context.Background(), []string{"a.py"}, newSieve(nil), func(int, *source.File) {}) {
		t.Error("the file was passed over")
	}
}
