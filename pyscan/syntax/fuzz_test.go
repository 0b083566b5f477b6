package syntax

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint/source"
)

// FuzzParse demands of any text what check does, that two parses give the same tree, and that a text with a fault put in before
// or behind it does not lose what was sound.
func FuzzParse(f *testing.F) {
	paths, _ := filepath.Glob("testdata/valid/*.py")
	for _, path := range append(paths, "testdata/train.py") {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		// Short pieces are better to mutate than whole files.
		for len(text) > 0 {
			piece := text[:min(len(text), 600)]
			if end := bytes.LastIndexByte(piece, '\n'); end > 0 {
				piece = piece[:end+1]
			}
			f.Add(piece)
			text = text[len(piece):]
		}
	}
	cases, err := os.ReadFile("testdata/invalid.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, part := range strings.Split(string(cases), " ==\n")[1:] {
		snippet, _, _ := strings.Cut(part, "---\n")
		f.Add([]byte(snippet))
	}
	for _, text := range pathological(40) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 64<<10 {
			return
		}
		file := &source.File{Path: "x.py", Kind: source.Python, Text: text}
		tree := Parse(file)
		check(t, tree)
		first := AppendDump(nil, "x.py", tree)
		if second := AppendDump(nil, "x.py", Parse(file)); !bytes.Equal(first, second) {
			t.Errorf("two parses differ:\n%s%s", first, second)
		}
		for offset := 0; offset <= len(text); offset += max(1, len(text)/16) {
			at := tree.Extent(uint32(offset))
			if at.Start < uint32(offset) || at.End < at.Start || at.End > uint32(len(text)) {
				t.Errorf("Extent(%d) is %v in a text of %d bytes", offset, at, len(text))
			}
		}
	})
}
