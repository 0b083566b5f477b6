package workspace

import (
	"context"
	"crypto/sha256"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// ReadKind says what a View was told about a name.
type ReadKind uint8

// The kinds of recorded reads.
const (
	ReadFacts     ReadKind = iota // what a file says, comments and blank lines left out
	ReadPlaces                    // where in a file something stands
	ReadPresence                  // whether a path is a file, a folder or absent
	ReadListing                   // the names in a folder
	ReadMention                   // which files mention a name
	ReadNaming                    // which settings files and scripts hold the name of a settings file
	ReadWord                      // whether a Python file of a project holds a word
	ReadHolding                   // which Python files of a folder hold a word
	ReadAbout                     // what in the Python files of a project has some names
	ReadDistances                 // how many calls away from a set of words some names are
)

type readKey struct {
	kind ReadKind
	name string
}

// Read is one recorded answer, by fingerprint.
type Read struct {
	Kind  ReadKind
	Name  string
	Print [16]byte
}

// View is one reader of a snapshot. It is for one goroutine at a time.
type View struct {
	*Snapshot
	ctx      context.Context
	reads    map[readKey]bool
	eval     evaluator
	modules  map[string]*pyscan.Module
	settings settings
	kept     kept
}

// Context is done when nobody waits for the answer any more.
func (v *View) Context() context.Context { return v.ctx }

// Reads lists everything that this view was told, in no order.
func (v *View) Reads() []Read {
	reads := make([]Read, 0, len(v.reads))
	for key := range v.reads { // the snapshot does not change, so now is as good as then
		reads = append(reads, Read{key.kind, key.name, v.print(key.kind, key.name)})
	}
	return append(reads, v.eval.indexReads(v.Snapshot)...)
}

// Holds reports whether each of these reads would be answered the same by this snapshot.
func (s *Snapshot) Holds(reads []Read) bool {
	for _, read := range reads {
		if s.print(read.Kind, read.Name) != read.Print {
			return false
		}
	}
	return true
}

// print is the fingerprint of an answer.
func (s *Snapshot) print(kind ReadKind, name string) [16]byte {
	if kind == ReadAbout || kind == ReadDistances { // each is asked by one reader
		return s.newPrint(kind, name)
	}
	key := readKey{kind, name}
	if known, is := s.told.Load(key); is {
		return known.([16]byte)
	}
	print := s.newPrint(kind, name)
	s.told.Store(key, print)
	return print
}

func (s *Snapshot) newPrint(kind ReadKind, name string) [16]byte {
	switch kind {
	case ReadFacts, ReadPlaces:
		file, err := s.File(name)
		if err != nil {
			return digest("unreadable: " + err.Error())
		}
		prints := s.store.traitsOf(file).prints()
		if kind == ReadFacts {
			return prints.facts
		}
		return prints.places
	case ReadPresence:
		return [16]byte{1, byte(s.Kind(name))}
	case ReadListing:
		return digest(strings.Join(s.List(name), "\n"))
	case ReadMention:
		root, called, _ := strings.Cut(name, "\x00")
		return digest(strings.Join(s.mentioning(root, called), "\n"))
	case ReadNaming:
		area, base, _ := strings.Cut(name, "\x00")
		return digest(strings.Join(s.naming(area, base), "\n"))
	case ReadWord:
		root, word, _ := strings.Cut(name, "\x00")
		return [16]byte{2, map[bool]byte{true: 1}[s.spells(root, word)]}
	case ReadHolding:
		folder, word, _ := strings.Cut(name, "\x00")
		return digest(strings.Join(s.holding(folder, word), "\n"))
	}
	if kind == ReadAbout || kind == ReadDistances {
		return s.indexPrint(kind, name)
	}
	return [16]byte{}
}

func digest(text string) (print [16]byte) {
	sum := sha256.Sum256([]byte(text))
	copy(print[:], sum[:])
	return print
}

// Forgetful is the view without the record of its reads: nobody will ask for it.
func (v *View) Forgetful() *View {
	v.reads = nil
	return v
}

// manyAnswers is how many answers a view may hold that is used again: clearing a map takes as long as it ever was large.
const manyAnswers = 1 << 15

// Reset makes the view as it was when it was opened, for the next files. What is held for its answers is used again: of one view after
// another, making maps anew took a tenth of a check. It is for a view that records nothing.
func (v *View) Reset() {
	if len(v.eval.memo) > manyAnswers {
		v.eval = newEvaluator()
	} else {
		v.eval.reset()
	}
	v.modules, v.settings = map[string]*pyscan.Module{}, settings{}
}

func (v *View) record(kind ReadKind, name string) {
	if v.reads == nil {
		return
	}
	v.reads[readKey{kind, name}] = true
}

// Text is the decoded file; nil when it cannot be read.
func (v *View) Text(name string) *source.File {
	v.record(ReadPlaces, name)
	file, err := v.Snapshot.File(name)
	if err != nil {
		return nil
	}
	return file
}

// Placed records that a finding will point into the named file, so that it is made anew when lines there move.
func (v *View) Placed(name string) { v.record(ReadPlaces, name) }

// Module is the Python file of that name; nil when there is none or it cannot be read.
func (v *View) Module(name string) *pyscan.Module {
	if m, known := v.modules[name]; known { // a module is one thing for the whole life of a view
		return m
	}
	v.record(ReadFacts, name)
	var m *pyscan.Module
	if file, err := v.Snapshot.File(name); err == nil && file.Kind.IsPython() {
		m = v.store.parse(file).module()
		if v.known != nil {
			file.Mean(Meanings(v.known(name)))
		}
	}
	v.modules[name] = m
	return m
}

// Syntax is the tree of the Python file of that name, for who asks nothing about its names; nil when there is none or it cannot be read.
func (v *View) Syntax(name string) *syntax.File {
	v.record(ReadFacts, name)
	file, err := v.Snapshot.File(name)
	if err != nil || !file.Kind.IsPython() {
		return nil
	}
	return v.store.parse(file).tree()
}

// Trees are the documents of the config of that name; none when it cannot be read.
func (v *View) Trees(name string) []*configs.Tree {
	v.record(ReadFacts, name)
	file, err := v.Snapshot.File(name)
	if err != nil {
		return nil
	}
	return v.store.parse(file).trees()
}

// Script is the launch script of that name, or what the file of a container image or of a job runs; nil when there is none.
func (v *View) Script(name string) *configs.Script {
	v.record(ReadFacts, name)
	file, err := v.Snapshot.File(name)
	if err != nil || file.Kind != source.Shell && file.Kind != source.Dockerfile && file.Kind != source.YAML {
		return nil
	}
	return v.store.parse(file).script()
}

// Is reports what a path names.
func (v *View) Is(name string) EntryKind {
	v.record(ReadPresence, name)
	return v.Snapshot.Kind(name)
}

// Names lists a folder: names sorted, folders with a slash at the end.
func (v *View) Names(folder string) []string {
	v.record(ReadListing, folder)
	return v.Snapshot.List(folder)
}
