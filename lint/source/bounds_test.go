package source

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestBounds holds what is read of each kind, and that the message says how much that is.
func TestBounds(t *testing.T) {
	code := func(n int) []byte {
		cell := `{"cell_type":"code","source":"` + strings.Repeat("x", MaxPython/4) + `"},`
		return []byte(`{"cells":[` + strings.Repeat(cell, n) + `{"cell_type":"markdown","source":""}]}`)
	}
	for _, c := range []struct {
		name, message string
		raw           []byte
	}{
		{"a.py", "larger than 5 MB, not read", bytes.Repeat([]byte("x"), MaxPython+1)},
		{"a.py", "", bytes.Repeat([]byte("x"), MaxPython)},
		{"a.sh", "larger than 4 MB, not read", bytes.Repeat([]byte("x"), MaxScript+1)},
		{"Dockerfile", "larger than 4 MB, not read", bytes.Repeat([]byte("x"), MaxScript+1)},
		{"requirements.txt", "larger than 4 MB, not read", bytes.Repeat([]byte("x"), MaxScript+1)},
		{"a.json", "", bytes.Repeat([]byte("x"), MaxPython+1)},
		{"a.json", "larger than 64 MB, not read", make([]byte, MaxSize+1)},
		{"a.ipynb", "cell 4: more than 5 MB of code, not read", code(5)},
		{"a.ipynb", "", code(3)},
		{"a.ipynb", fmt.Sprintf("line 1: more than %d cells, not read", maxCells), []byte(`{"cells":[` + strings.Repeat(`{},`, maxCells+1) + `{}]}`)},
		{"a.ipynb", fmt.Sprintf("line 1: nested more than %d deep, not read", maxNotebookDepth), []byte(`{"metadata":` + strings.Repeat("[", maxNotebookDepth+2))},
	} {
		_, err := Decode(c.name, KindOf(c.name, nil), c.raw)
		switch {
		case err == nil && c.message == "":
		case err == nil || c.message == "" || err.Error() != c.name+": "+c.message:
			t.Errorf("%s of %d bytes: %v, want %q", c.name, len(c.raw), err, c.message)
		}
	}
}
