package workspace

import (
	"bytes"
	"path"
	"strings"

	"github.com/trainvet/trainvet/lint/source"
)

// Spells reports whether a Python file of the project around a file holds a word: whether the project may have an argument or a
// key of that name itself. It is for what is suspected already, since it looks at all files; where they are too many it is true.
func (v *View) Spells(from, word string) bool {
	root := v.projectRoot(from)
	v.record(ReadWord, root+"\x00"+word)
	return v.Snapshot.spells(root, word)
}

func (s *Snapshot) spells(root, word string) bool {
	for _, file := range s.overlay {
		if file.Kind == source.Python && within(root, file.Path, wholeCheckout) && holdsWord(file.Text, word) {
			return true
		}
	}
	count, found := 0, false
	var walk func(folder string, depth int)
	walk = func(folder string, depth int) {
		for _, name := range s.store.list(s.fs, folder) {
			full := path.Join(folder, name)
			switch {
			case found || strings.HasPrefix(name, ".") || depth > wholeCheckout:
			case strings.HasSuffix(name, "/"):
				walk(full, depth+1)
			case strings.HasSuffix(name, ".py") && s.overlay[full] == nil:
				if count++; count > maxProject {
					found = true
					return
				}
				if file, err := s.store.file(s.fs, full); err == nil && file.Kind == source.Python {
					found = holdsWord(file.Text, word)
				}
			}
		}
	}
	walk(root, 0)
	return found
}

// holdsWord reports whether a text holds a word in either spelling: micro_batch_size, micro-batch-size. It may be a part of a
// longer one.
func holdsWord(text []byte, word string) bool {
	return bytes.Contains(text, []byte(word)) || strings.Contains(word, "_") && bytes.Contains(text, []byte(strings.ReplaceAll(word, "_", "-")))
}
