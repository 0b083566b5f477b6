package workspace

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint/source"
)

// TestTrim drops all trees but those that were used last; what is asked for again is parsed again, and says the same.
func TestTrim(t *testing.T) {
	var files []*source.File
	for i := range 10 {
		text := fmt.Appendf(nil, "def f%d():\n    return %q\n", i, strings.Repeat("x", 1000))
		files = append(files, &source.File{Path: fmt.Sprintf("m%d.py", i), Kind: source.Python, Text: text, Raw: text})
	}
	s := NewSnapshot(Disk{}).With(files...)
	v := s.View(context.Background())
	for _, file := range files {
		v.Module(file.Path)
	}
	held := s.store.bytes
	keep := 2 * len(files[0].Text)
	if gone := s.Trim(keep); gone != held-s.store.bytes || s.store.bytes > keep || s.store.bytes == 0 {
		t.Errorf("%d of %d bytes went, %d are left; at most %d were to be", gone, held, s.store.bytes, keep)
	}
	if s.store.held(files[9]) == nil || s.store.held(files[0]) != nil {
		t.Error("the trees that were used last are to stay, and only those")
	}
	if gone := s.Trim(keep); gone != 0 {
		t.Errorf("%d bytes went once more", gone)
	}
	m := s.View(context.Background()).Module("m0.py")
	if m == nil || len(m.Tree.Body) != 1 {
		t.Error("a dropped tree is not made anew")
	}
	NewSnapshot(Disk{}).Trim(0) // nothing to drop
}
