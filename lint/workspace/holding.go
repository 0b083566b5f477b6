package workspace

import (
	"bytes"
	"sort"
	"sync"
)

// Holding lists the Python files in a folder and below it whose text holds a word, sorted. The files of all the folder are read for it,
// once for each word: it is for questions that few projects raise.
func (v *View) Holding(folder, word string) []string {
	v.record(ReadHolding, folder+"\x00"+word)
	return v.Snapshot.holding(folder, word)
}

func (s *Snapshot) holding(folder, word string) []string {
	found := s.store.search("holding "+folder+"\x00"+word, func() []string { return s.searchWord(folder, []byte(word)) })
	if len(s.overlay) == 0 {
		return found
	}
	files := []string{}
	for _, file := range found {
		if s.overlay[file] == nil {
			files = append(files, file)
		}
	}
	for name, file := range s.overlay {
		if file.Kind.IsPython() && inside(folder, name) && bytes.Contains(file.Text, []byte(word)) {
			files = append(files, name)
		}
	}
	sort.Strings(files)
	return files
}

// search remembers, until its project is let go, what is found among the files as the FS holds them, by a key of a word and what it is about.
func (st *store) search(key string, find func() []string) []string {
	st.mu.Lock()
	search := st.naming[key]
	if search == nil {
		search = sync.OnceValue(func() map[string][]string { return map[string][]string{"": find()} })
		st.naming[key] = search
	}
	st.mu.Unlock()
	return search()[""]
}

// searchWord reads the files as the FS holds them.
func (s *Snapshot) searchWord(folder string, word []byte) []string {
	files := []string{}
	for _, name := range s.pythonFiles(folder, wholeCheckout) {
		if file, err := s.store.file(s.fs, name); err == nil && bytes.Contains(file.Text, word) {
			files = append(files, name)
		}
	}
	return files
}
