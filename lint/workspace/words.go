package workspace

import (
	"bytes"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
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
		if file.Kind.IsPython() && within(root, file.Path, wholeCheckout) && holdsWord(file.Text, word) {
			return true
		}
	}
	first := s.store.search("spells "+root+"/\x00"+word, func() []string { return s.firstSpelling(root, word, nil) })
	if len(first) > 0 && s.overlay[first[0]] != nil {
		first = s.firstSpelling(root, word, s.overlay)
	}
	return len(first) > 0
}

// firstSpelling is the first Python file that holds a word as the FS holds it, but for some; the folder itself where the files are too many.
func (s *Snapshot) firstSpelling(root, word string, but map[string]*source.File) []string {
	files := s.store.search("python "+root, func() []string { return s.pythonFiles(root, wholeCheckout) })
	if len(files) > maxProject {
		return []string{root}
	}
	for i, name := range files {
		if but[name] != nil {
			continue
		}
		if file, err := s.store.file(s.fs, name); err == nil && file.Kind.IsPython() && holdsWord(file.Text, word) {
			return files[i : i+1]
		}
	}
	return nil
}

// holdsWord reports whether a text holds a word in either spelling: micro_batch_size, micro-batch-size. It may be a part of a
// longer one.
func holdsWord(text []byte, word string) bool {
	return bytes.Contains(text, []byte(word)) || strings.Contains(word, "_") && bytes.Contains(text, []byte(strings.ReplaceAll(word, "_", "-")))
}

// Looks are the byte strings that a view asks of many files (source.File.Has), so that whoever searches for words can search for them too.
var Looks = slices.Concat(argumentNames, assignmentNames)

// ReadsAttribute reports whether the project around a file may read an attribute of that name from anything: by a dot, or by a text
// that holds no more than the name, as getattr, hasattr and __dict__ take it. It looks at all files that hold the word.
func (v *View) ReadsAttribute(from, name string) bool {
	files := v.Holding(v.projectRoot(from), name)
	if !slices.Contains(files, from) { // a notebook
		files = append(files[:len(files):len(files)], from)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		m := v.Module(file)
		if m == nil {
			return true
		}
		written := map[syntax.Node]bool{}
		for node := range m.Tree.All() {
			switch n := node.(type) {
			case *syntax.Call:
				if pyscan.Path(n.Func) == "setattr" && len(n.Args) > 1 {
					written[n.Args[1]] = true
				}
			case *syntax.Attribute:
				if n.Attr == name && n.Ctx == syntax.Load {
					return true
				}
			case *syntax.AugAssign:
				if pyscan.LastName(n.Target) == name {
					return true
				}
			case *syntax.Constant:
				if n.Kind == syntax.StrConstant && n.Text == name && !written[n] {
					return true
				}
			}
		}
		return false
	})
}
