package syntax

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainvet/trainvet/lint/source"
)

// parseFile reads and parses a file below testdata.
func parseFile(t testing.TB, path string) *File {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := source.Decode(path, source.Python, raw)
	if err != nil {
		t.Fatal(err)
	}
	return Parse(file)
}

// parseText parses a text that is given as such.
func parseText(text string) *File {
	return Parse(&source.File{Path: "test.py", Kind: source.Python, Text: []byte(text)})
}

// goldens are the lines of a file by their path.
func goldens(t *testing.T, name string) map[string][]byte {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := map[string][]byte{}
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, 16<<20)
	for scan.Scan() {
		var head struct{ Path string }
		if err := json.Unmarshal(scan.Bytes(), &head); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		lines[head.Path] = bytes.Clone(scan.Bytes())
	}
	if err := scan.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

// TestTrees compares the trees of testdata/valid with those that CPython 3.14 made, byte for byte. testdata/dump.py says how to
// make them again.
func TestTrees(t *testing.T) {
	paths, err := filepath.Glob("testdata/valid/*.py")
	if err != nil || len(paths) < 20 {
		t.Fatalf("found %d files: %v", len(paths), err)
	}
	want := goldens(t, "testdata/valid.json")
	if len(want) != len(paths) {
		t.Errorf("testdata/valid.json has %d trees for %d files", len(want), len(paths))
	}
	for _, path := range paths {
		name := filepath.ToSlash(path[len("testdata/"):])
		t.Run(filepath.Base(path), func(t *testing.T) {
			file := parseFile(t, path)
			got := bytes.TrimSuffix(AppendDump(nil, name, file), []byte("\n"))
			if !bytes.Equal(got, want[name]) {
				t.Errorf("tree differs at\n got %s\nwant %s", around(got, want[name]), around(want[name], got))
			}
			check(t, file)
		})
	}
}

// around is the part of a where it starts to differ from b.
func around(a, b []byte) []byte {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return a[max(0, i-120):min(len(a), i+120)]
}
