package workspace

import (
	"maps"
	"math/bits"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// maxProject bounds the Python files that are searched for callers.
const maxProject = 20_000

// nameIndex says, for the Python files below a root, where names occur. It is made from the bytes of the files, in one pass that
// parses nothing, so that only files that matter to a question are parsed for it.
type nameIndex struct {
	files []string // sorted
	names nameTable
	about []nameFlags // by name
	parts []part
}

// part is what one goroutine read of the files of an index. Names go by their number in the index, and files by theirs.
type part struct {
	calls   lists   // name -> the files that call something of that name
	imports lists   // name -> the files in whose import statements it stands
	mains   []int32 // files that test __name__
	users   lists   // name -> what uses it: the name of a function, class or alias, and how (its last useBits)
}

// useKind says how a name is used where it stands.
type useKind int32

const (
	calledIn  useKind = iota // it is called in a function or class
	heldIn                   // it stands in a function or class as a value
	calledFor                // something else is bound to what a call of it gives, or a property calls it
	heldFor                  // something else is bound to what is made with it
	sameAs                   // something else is bound to it
)

const useBits = 3

type nameFlags uint8

const (
	defined  nameFlags = 1 << iota // by def or class, properties left out
	referred                       // as an attribute that is not called on the spot, or assigned to
	extended                       // a class is derived from something of that name
)

// maxDistance is how many calls away from words names are looked for.
const maxDistance = 6

// indexOf is the index of a root.
func (st *store) indexOf(s *Snapshot, root string) *nameIndex {
	st.mu.Lock()
	index := st.indices[root]
	if index == nil {
		index = sync.OnceValue(func() *nameIndex { return s.indexFiles(s.pythonFiles(rootDepth(root))) }) // which fails again where it failed
		st.indices[root] = index
	}
	st.mu.Unlock()
	return index()
}

// below is how many levels under a folder are looked into: none under the root of a disk, whose folders are no project.
func below(folder string, deepest int) int {
	if folder == "/" || len(folder) == 3 && folder[1:] == ":/" {
		return 0
	}
	return deepest
}

// pythonFiles are the files in a folder and so many levels below it that are taken as Python, as the FS holds them,
// sorted: one more than maxProject at most. Hidden folders are left out.
func (s *Snapshot) pythonFiles(root string, deepest int) []string {
	deepest = below(root, deepest)
	var files []string
	var walk func(folder string, depth int)
	walk = func(folder string, depth int) {
		for _, entry := range s.store.entries(s.fs, folder) {
			switch {
			case strings.HasPrefix(entry.Name, "."), depth > deepest, len(files) > maxProject:
			case entry.Kind == Folder:
				walk(source.Join(folder, entry.Name), depth+1)
			case s.isPython(folder, entry):
				files = append(files, source.Join(folder, entry.Name))
			}
		}
	}
	walk(root, 0)
	sort.Strings(files)
	return files
}

// isPython reports whether an entry of a folder is taken as Python.
func (s *Snapshot) isPython(folder string, entry Entry) bool {
	if strings.HasSuffix(entry.Name, ".py") {
		return true
	}
	if ext := path.Ext(entry.Name); len(ext) > 1 && ext[1]|0x20 != 'p' && ext[1]|0x20 != 'i' {
		return false // most files, told without a closer look
	}
	return s.kindIn(folder, entry).IsPython()
}

// indexFiles reads the files as the FS holds them.
func (s *Snapshot) indexFiles(files []string) *nameIndex {
	ins := newIndexers(len(files))
	s.store.glanceAll(s.fs, files, func(reader, n int, file *source.File) {
		ins[reader].take(int32(n), file)
	})
	return joined(files, ins)
}

// newIndexers are those that so many files are worth.
func newIndexers(files int) []*indexer {
	ins := make([]*indexer, readers(files))
	for i := range ins {
		expected := files / len(ins)
		if i == 0 { // which takes in the names of the others in the end
			expected = files
		}
		ins[i] = newIndexer(expected)
	}
	return ins
}

// joined makes one index of what was read: the first numbers the names of all, and the lists of each are made side by side.
func joined(files []string, ins []*indexer) *nameIndex {
	index := &nameIndex{files: files, names: ins[0].names, about: ins[0].about, parts: make([]part, len(ins))}
	numbers := make([][]int32, len(ins)) // by those that an indexer gave
	for i, in := range ins[1:] {
		numbers[i+1] = make([]int32, in.names.count())
		for own := range numbers[i+1] {
			n := index.names.number(in.names.name(int32(own)), in.names.names[own].hash)
			if int(n) == len(index.about) {
				index.about = append(index.about, 0)
			}
			index.about[n] |= in.about[own]
			numbers[i+1][own] = n
		}
	}
	var sealing crew
	for i, in := range ins {
		sealing.Go(func() {
			in.seal(index.names.count(), numbers[i])
			index.parts[i] = in.part
		})
	}
	sealing.Wait()
	return index
}

// indexFile is an index of one text alone: that of a file that an editor has open.
func indexFile(text []byte) *nameIndex {
	in := newIndexer(1)
	in.read(0, text)
	return joined([]string{""}, []*indexer{in})
}

// with are the files that the index has under a key, in order: the name that they call, or a key of importKeyword or guardedMain.
func (ix *nameIndex) with(key string) (files []int32) {
	name, imported := strings.CutPrefix(key, importKeyword)
	n, known := ix.names.find(name)
	if !known && key != guardedMain {
		return nil
	}
	for i := range ix.parts {
		part := &ix.parts[i]
		switch {
		case key == guardedMain:
			files = append(files, part.mains...)
		case imported:
			files = append(files, part.imports.of(n)...)
		default:
			files = append(files, part.calls.of(n)...)
		}
	}
	slices.Sort(files)
	return files
}

// flags say what the files of the index have of a name.
func (ix *nameIndex) flags(name string) nameFlags {
	if n, known := ix.names.find(name); known {
		return ix.about[n]
	}
	return 0
}

// mentioning looks a key up in the index of a root. The index is of the files as the FS holds them; what an editor has open is
// read anew.
func (s *Snapshot) mentioning(root, key string) []string {
	var files []string
	index := s.store.indexOf(s, root)
	for _, i := range index.with(key) {
		if file := index.files[i]; s.overlay[file] == nil {
			files = append(files, file)
		}
	}
	if len(s.overlay) == 0 {
		return files
	}
	folder, deepest := rootDepth(root)
	for name, file := range s.overlay {
		if file.Kind.IsPython() && within(folder, name, deepest) && len(s.store.traitsOf(file).index().with(key)) > 0 {
			files = append(files, name)
		}
	}
	sort.Strings(files)
	return slices.Compact(files)
}

// callingFrom is mentioning without the tests, where those are not asked for; few is false where it would give more files than most.
func (s *Snapshot) callingFrom(root, name string, tests bool, most int) (files []string, few bool) {
	add := func(file string) (on bool) {
		if tests || !IsTest(file) {
			files = append(files, file)
		}
		return len(files) <= most
	}
	if len(s.overlay) > 0 {
		for _, file := range s.mentioning(root, name) {
			if !add(file) {
				return nil, false
			}
		}
		return files, true
	}
	index := s.store.indexOf(s, root)
	n, known := index.names.find(name)
	if !known {
		return nil, true
	}
	for i := range index.parts {
		for _, file := range index.parts[i].calls.of(n) {
			if !add(index.files[file]) {
				return nil, false
			}
		}
	}
	slices.Sort(files) // as the index has them
	return files, true
}

// distances say for names how many calls away from one of a few words they may be. Names beyond maxDistance have none.
type distances struct {
	names *nameTable     // of the index in which they were measured
	far   []far          // by its numbers; nil where few names are reached, which are all among more
	more  map[string]far // of names that it has not, and of those that are nearer by what an editor has open
	may   []uint64       // a bit for the hash of each name that has one: most names that are asked for have none
}

// far are two distances, of four bits each, plus 1; 0 is none. Any is how far away what a call of the name runs is; itself is that where the
// name is known to stand for a function and not for what a call of one gave, so that handing it to somebody who calls it counts as calling it.
// Where only what stands for the words is looked for, any is how far away that is, and itself how far away what a call of the name may give is.
type far uint8

func farOf(any, itself uint8) far { return far(any | itself<<4) }

func (f far) any() uint8    { return uint8(f & 15) }
func (f far) itself() uint8 { return uint8(f >> 4) }

// shorten takes a distance where it is smaller than what is known.
func (f *far) shorten(reaches, itself bool, distance uint8) {
	any, its := f.any(), f.itself()
	if reaches && (any == 0 || any > distance) {
		any = distance
	}
	if itself && (its == 0 || its > distance) {
		its = distance
	}
	*f = farOf(any, its)
}

func (d *distances) at(name string) far {
	hash := hashOf(name)
	if word, bit := d.bit(hash); *word&bit == 0 {
		return 0
	}
	if known, is := d.more[name]; is {
		return known
	}
	if n, known := d.names.findHash(name, hash); known && d.far != nil {
		return d.far[n]
	}
	return 0
}

// bit is where may has the bit of a hash.
func (d *distances) bit(hash uint32) (word *uint64, bit uint64) {
	return &d.may[int(hash>>6)&(len(d.may)-1)], 1 << (hash & 63)
}

func (d *distances) of(name string) int {
	if far := d.at(name).any(); far > 0 {
		return int(far) - 1
	}
	return maxDistance + 1
}

// farthest is how many calls away from words names are looked for.
func farthest(words *pyscan.Words) uint8 {
	if words.Far == 0 {
		return maxAliases
	}
	return uint8(min(words.Far, maxDistance))
}

// through says of a use of a name that was reached in some senses in which it reaches what uses it: those of far. What was called or bound to
// a name was reached with the first of the senses in which the name was.
func (use useKind) through(any, itself bool) (reaches, its bool) {
	switch use {
	case calledIn:
		return any, any
	case calledFor:
		return any, false
	case sameAs:
		return true, itself
	}
	return itself, itself && use == heldIn
}

// throughNames is through where only what stands for the words is looked for. A call of one of them gives none, so that what calls it is not
// reached, and a function never stands for one, but may give it. Something else that is bound to what has to do with one may do both: it may
// be a lambda.
func (use useKind) throughNames(is, gives bool) (reaches, its bool) {
	switch use {
	case calledIn:
		return false, gives
	case heldIn:
		return false, is || gives
	case calledFor:
		return gives, gives
	case sameAs:
		return is, is || gives
	}
	return is || gives, is || gives
}

// ways are the senses in which a name is reached by each use of one that was reached in the senses of a number: bit 0 for any, 1 for itself.
type ways [1 << useBits][4]struct{ any, itself bool }

var callWays, nameWays = waysOf(useKind.through), waysOf(useKind.throughNames)

func waysOf(through func(use useKind, any, itself bool) (bool, bool)) *ways {
	var w ways
	for use := calledIn; use <= sameAs; use++ {
		for senses := range 4 {
			if senses > 0 {
				w[use][senses].any, w[use][senses].itself = through(use, senses&1 != 0, senses&2 != 0)
			}
		}
	}
	return &w
}

// waysFor are the ways by which words are looked for, and what is known of one of the words.
func waysFor(words *pyscan.Words) (w *ways, word far) {
	if words.Alias {
		return nameWays, farOf(1, 0)
	}
	return callWays, farOf(1, 1)
}

// senses are those in which a name was reached at a distance.
func (f far) senses(distance uint8) (senses uint8) {
	if f.any() == distance {
		senses = 1
	}
	if f.itself() == distance {
		senses |= 2
	}
	return senses
}

// measure goes from the words to what names them, breadth first: in each round the names that the round before reached are found by their
// distance, which takes less than a list of them.
func measure(words *pyscan.Words, index *nameIndex) *distances {
	if words.Alias {
		return measureFew(words, index)
	}
	d := &distances{names: &index.names, far: make([]far, index.names.count())}
	ways, itself := waysFor(words)
	for word := range words.Names {
		if n, has := index.names.find(word); has {
			d.far[n] = itself
		}
	}
	for distance := uint8(1); distance <= farthest(words); distance++ {
		for name := range d.far {
			senses := d.far[name].senses(distance)
			if senses == 0 {
				continue
			}
			for i := range index.parts {
				for _, u := range index.parts[i].users.of(int32(name)) {
					way := &ways[u&(1<<useBits-1)][senses]
					d.far[u>>useBits].shorten(way.any, way.itself, distance+1)
				}
			}
		}
	}
	d.sift()
	for word := range words.Names {
		if _, has := index.names.find(word); !has {
			d.nearer(word, itself)
		}
	}
	return d
}

// measureFew is measure where few names are reached: it keeps nothing for the others, and lists those of a round.
func measureFew(words *pyscan.Words, index *nameIndex) *distances {
	ways, word := waysFor(words)
	reached := make(map[int32]far, 4*len(words.Names))
	var list []int32 // names whose distance became smaller: those of the round before, and behind them those of this one
	for name := range words.Names {
		if n, has := index.names.find(name); has {
			list = append(list, n)
		}
	}
	for _, n := range list {
		reached[n] = word
	}
	for distance := uint8(1); distance <= farthest(words); distance++ {
		round := list
		list = nil
		for _, name := range round {
			senses := reached[name].senses(distance)
			for i := range index.parts {
				for _, u := range index.parts[i].users.of(name) {
					way := &ways[u&(1<<useBits-1)][senses]
					if !way.any && !way.itself {
						continue
					}
					before := reached[u>>useBits]
					known := before
					if known.shorten(way.any, way.itself, distance+1); known != before {
						reached[u>>useBits] = known
						list = append(list, u>>useBits)
					}
				}
			}
		}
	}
	d := &distances{names: &index.names, more: make(map[string]far, len(reached)), may: make([]uint64, 1<<bits.Len(uint((len(reached)+len(words.Names))/16)))}
	for n, known := range reached {
		d.nearer(string(index.names.name(n)), known)
	}
	for name := range words.Names {
		if _, has := index.names.find(name); !has {
			d.nearer(name, word)
		}
	}
	return d
}

// sift makes may for what was measured.
func (d *distances) sift() {
	count := 0
	for _, far := range d.far {
		if far > 0 {
			count++
		}
	}
	d.may = make([]uint64, 1<<bits.Len(uint(count/16))) // four bits or more for each
	for n, far := range d.far {
		if far > 0 {
			word, bit := d.bit(d.names.names[n].hash)
			*word |= bit
		}
	}
}

// nearer sets a distance besides those that were measured.
func (d *distances) nearer(name string, known far) {
	if d.more == nil {
		d.more = map[string]far{}
	}
	d.more[name] = known
	word, bit := d.bit(hashOf(name))
	*word |= bit
}

// with are the distances when indices come on top of the one that d was measured in: what an editor changes is little beside a project. An
// index of a file that an editor has open comes on top of what is known of the same file on disk, which can only make a distance smaller
// than it is.
func (d *distances) with(words *pyscan.Words, more []*nameIndex, all *nameIndex) *distances {
	d = &distances{names: d.names, far: d.far, more: maps.Clone(d.more), may: slices.Clone(d.may)}
	ways, _ := waysFor(words)
	var changed []string
	spread := func(index *nameIndex, name string) {
		n, known := index.names.find(name)
		if !known {
			return
		}
		from := d.at(name)
		for i := range index.parts {
			for _, u := range index.parts[i].users.of(n) {
				user := string(index.names.name(u >> useBits))
				known, before := d.at(user), d.at(user)
				for _, distance := range [...]uint8{from.any(), from.itself()} {
					if distance > 0 && distance <= farthest(words) {
						way := ways[u&(1<<useBits-1)][from.senses(distance)]
						known.shorten(way.any, way.itself, distance+1)
					}
				}
				if known != before {
					d.nearer(user, known)
					changed = append(changed, user)
				}
			}
		}
	}
	for _, index := range more {
		for n := range index.names.count() {
			spread(index, string(index.names.name(int32(n))))
		}
	}
	for len(changed) > 0 {
		name := changed[len(changed)-1]
		changed = changed[:len(changed)-1]
		for _, index := range append(more[:len(more):len(more)], all) {
			spread(index, name)
		}
	}
	return d
}

type distanceKey struct {
	root  string
	words *pyscan.Words
}

// distancesOf are the distances in the files below a root as the FS holds them. They are measured while nobody else waits: two sets of
// words side by side.
func (st *store) distancesOf(key distanceKey, index *nameIndex) *distances {
	st.mu.Lock()
	d := st.distances[key]
	if d == nil {
		d = sync.OnceValue(func() *distances { return measure(key.words, index) })
		st.distances[key] = d
	}
	st.mu.Unlock()
	return d()
}

// distancesOf are the distances in the files below a root.
func (s *Snapshot) distancesOf(root string, words *pyscan.Words) *distances {
	key := distanceKey{root, words}
	index := s.store.indexOf(s, root)
	d := s.store.distancesOf(key, index)
	if len(s.overlay) == 0 {
		return d
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.distances[key]; known != nil {
		return known
	}
	if edited := s.edited(root); len(edited) > 0 {
		d = d.with(words, edited, index)
	}
	if s.distances == nil {
		s.distances = map[distanceKey]*distances{}
	}
	s.distances[key] = d
	return d
}

// edited are the indices of the files below a root that an editor has open.
func (s *Snapshot) edited(root string) []*nameIndex {
	if len(s.overlay) == 0 {
		return nil
	}
	var list []*nameIndex
	folder, deepest := rootDepth(root)
	for name, file := range s.overlay {
		if file.Kind.IsPython() && within(folder, name, deepest) {
			list = append(list, s.store.traitsOf(file).index())
		}
	}
	return list
}

// named says what in the files below a root has a name.
func (s *Snapshot) named(root, name string) nameFlags {
	flags := s.store.indexOf(s, root).flags(name)
	for _, index := range s.edited(root) {
		flags |= index.flags(name)
	}
	return flags
}

// nearest is what was asked for last: the root of the index that speaks of a module, and distances in it.
type nearest struct {
	m     *pyscan.Module
	root  string
	words *pyscan.Words
	d     *distances
}

// near is nearest for a module; nil where the index does not speak of it, since a name may stand for anything.
func (v *View) near(m *pyscan.Module) *nearest {
	if v.eval.near.m != m {
		if v.thorough || len(v.knownIn(m)) > 0 {
			return nil
		}
		v.eval.near = nearest{m: m, root: v.rootOf(m)}
	}
	return &v.eval.near
}

// Distance implements loop.Linker.
func (v *View) Distance(m *pyscan.Module, words *pyscan.Words, name string) int {
	near := v.near(m)
	if near == nil {
		return 0
	}
	if near.words != words {
		key := distanceKey{near.root, words}
		d := v.eval.distances[key]
		if d == nil {
			d = v.distancesOf(key.root, words)
			v.eval.distances[key] = d
		}
		near.words, near.d = words, d
	}
	if v.reads != nil {
		key := distanceKey{near.root, words}
		if v.eval.far[key] == nil {
			v.eval.far[key] = map[string]bool{}
		}
		v.eval.far[key][name] = true
	}
	return near.d.of(name)
}

// Near reports whether what an expression names may be one of the words, perhaps by another name. It is the cheap question before the
// expression is read.
func (v *View) Near(m *pyscan.Module, words *pyscan.Words, e syntax.Expr) bool {
	name := pyscan.LastName(e)
	return name == "" || v.Distance(m, words, name) <= maxAliases
}

// CallsNear are the calls of a module whose callee may be one of the words, perhaps by another name, in the order of the text.
func (v *View) CallsNear(m *pyscan.Module, words *pyscan.Words) []pyscan.Call {
	var list []pyscan.Call
	for _, call := range m.Calls {
		if v.Near(m, words, call.Func) {
			list = append(list, call)
		}
	}
	return list
}

// HasName implements loop.Linker: otherwise only things of a library are called by the name.
func (v *View) HasName(m *pyscan.Module, name string) bool { return v.about(m, name) != 0 }

// Defined implements loop.Linker.
func (v *View) Defined(m *pyscan.Module, name string) bool { return v.about(m, name)&defined != 0 }

// Bound reports whether something may be bound to a name other than by def or class.
func (v *View) Bound(m *pyscan.Module, name string) bool { return v.about(m, name)&referred != 0 }

// Extended implements loop.Linker.
func (v *View) Extended(m *pyscan.Module, name string) bool { return v.about(m, name)&extended != 0 }

func (v *View) about(m *pyscan.Module, name string) nameFlags {
	near := v.near(m)
	if near == nil {
		return defined | referred | extended // it may stand for anything
	}
	key := nameKey{near.root, name}
	flags, asked := v.eval.named[key]
	if !asked {
		flags = v.Snapshot.named(key.root, name)
		v.eval.named[key] = flags
	}
	return flags
}

type nameKey struct{ root, name string }

// rootOf is the project root of a module.
func (v *View) rootOf(m *pyscan.Module) string {
	root, known := v.eval.roots[m]
	if !known {
		root = v.projectRoot(m.File.Path)
		v.eval.roots[m] = root
	}
	return root
}
