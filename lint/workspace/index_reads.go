package workspace

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/trainvet/trainvet/pyscan"
)

// indexReads are what an evaluation was told by the index of names: one read for each project and set of words, over all names that were
// asked for, since there are many.
func (ev *evaluator) indexReads(s *Snapshot) (reads []Read) {
	about := map[string][]string{}
	for key := range ev.named {
		about[key.root] = append(about[key.root], key.name)
	}
	add := func(kind ReadKind, name string) { reads = append(reads, Read{kind, name, s.print(kind, name)}) }
	for root, names := range about {
		slices.Sort(names)
		add(ReadAbout, root+"\x00"+strings.Join(names, "\x00"))
	}
	for key, names := range ev.far {
		add(ReadDistances, key.root+"\x00"+s.store.words.id(key.words)+"\x00"+strings.Join(slices.Sorted(maps.Keys(names)), "\x00"))
	}
	return reads
}

// indexPrint is the fingerprint of one of the reads of indexReads.
func (s *Snapshot) indexPrint(kind ReadKind, name string) [16]byte {
	root, rest, _ := strings.Cut(name, "\x00")
	var answers strings.Builder
	if kind == ReadAbout {
		for one := range strings.SplitSeq(rest, "\x00") {
			answers.WriteByte(byte(s.named(root, one)))
		}
		return digest(answers.String())
	}
	id, names, _ := strings.Cut(rest, "\x00")
	words := s.store.words.of(id)
	if words == nil {
		return [16]byte{}
	}
	d := s.distancesOf(root, words)
	for one := range strings.SplitSeq(names, "\x00") {
		answers.WriteByte(d.at(one).any())
	}
	return digest(answers.String())
}

// wordSets gives sets of words names, by which recorded reads tell them.
type wordSets struct {
	mu   sync.Mutex
	sets map[string]*pyscan.Words
}

func (w *wordSets) id(words *pyscan.Words) string {
	id := fmt.Sprintf("%p", words)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sets == nil {
		w.sets = map[string]*pyscan.Words{}
	}
	w.sets[id] = words // held, so that no other set comes to lie there
	return id
}

func (w *wordSets) of(id string) *pyscan.Words {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sets[id]
}
