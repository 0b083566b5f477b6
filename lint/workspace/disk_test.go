package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// TestSizeBound holds that a file above the bound is told with the bound, and not read. The file is sparse.
func TestSizeBound(t *testing.T) {
	name := filepath.Join(t.TempDir(), "huge.py")
	if err := os.WriteFile(name, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, source.MaxSize+1); err != nil {
		t.Fatal(err)
	}
	if _, err := workspace.NewSnapshot(workspace.Disk{}).File(filepath.ToSlash(name)); err == nil || !strings.Contains(err.Error(), "larger than 64 MB") {
		t.Errorf("got %v", err)
	}
}
