package workspace

import (
	"maps"
	"path"
	"runtime"
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
	names nameTable
	files []string // sorted

	calls   lists   // name -> the files that call something of that name
	imports lists   // name -> the files in whose import statements it stands
	mains   []int32 // files that test __name__
	about   []nameFlags
	users   lists // name -> what uses it: the name of a function, class or alias, and how (its last useBits)
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

// indices are those of the files below a root, in order: one for each of a few runs of files, which are read side by side.
type indices struct {
	read  func() // fills the parts at its first call
	parts []*nameIndex
}

// indexOf are the indices of a root.
func (st *store) indexOf(s *Snapshot, root string) []*nameIndex {
	st.mu.Lock()
	index := st.indices[root]
	if index == nil {
		index = &indices{}
		index.read = sync.OnceFunc(func() { index.fill(s, root) }) // which fails again where it failed
		st.indices[root] = index
	}
	st.mu.Unlock()
	index.read()
	return index.parts
}

// below is how many levels under a folder are looked into: none under the root of a disk, whose folders are no project.
func below(folder string, deepest int) int {
	if folder == "/" || len(folder) == 3 && folder[1:] == ":/" {
		return 0
	}
	return deepest
}

// pythonFiles are the Python files in a folder and so many levels below it, as the FS holds them, sorted: one more than maxProject at
// most. Hidden folders are left out.
func (s *Snapshot) pythonFiles(root string, deepest int) []string {
	deepest = below(root, deepest)
	var files []string
	var walk func(folder string, depth int)
	walk = func(folder string, depth int) {
		for _, name := range s.store.list(s.fs, folder) {
			full := path.Join(folder, name)
			switch {
			case strings.HasPrefix(name, "."), depth > deepest, len(files) > maxProject:
			case strings.HasSuffix(name, "/"):
				walk(full, depth+1)
			case strings.HasSuffix(name, ".py"):
				files = append(files, full)
			}
		}
	}
	walk(root, 0)
	sort.Strings(files)
	return files
}

// fewFiles is how many files are not worth a second goroutine.
const fewFiles = 64

func (ix *indices) fill(s *Snapshot, root string) {
	files := s.pythonFiles(rootDepth(root))
	var readers crew
	for run := range slices.Chunk(files, max(fewFiles, (len(files)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))) {
		in := newIndexer(run)
		ix.parts = append(ix.parts, in.nameIndex)
		readers.Go(func() {
			for i, full := range run {
				if file, err := s.store.file(s.fs, full); err == nil && file.Kind == source.Python {
					in.read(int32(i), file.Text)
				}
			}
			in.seal()
		})
	}
	readers.Wait()
}

// indexFile is an index of one text alone: that of a file that an editor has open.
func indexFile(text []byte) *nameIndex {
	in := newIndexer([]string{""})
	in.read(0, text)
	in.seal()
	return in.nameIndex
}

// with are the files that the index has under a key: the name that they call, or a key of importKeyword or guardedMain.
func (ix *nameIndex) with(key string) []int32 {
	if key == guardedMain {
		return ix.mains
	}
	name, imported := strings.CutPrefix(key, importKeyword)
	n, known := ix.names.find(name)
	switch {
	case !known:
		return nil
	case imported:
		return ix.imports.of(n)
	}
	return ix.calls.of(n)
}

// mentioning looks a key up in the index of a root. The index is of the files as the FS holds them; what an editor has open is
// read anew.
func (s *Snapshot) mentioning(root, key string) []string {
	var files []string
	for _, index := range s.store.indexOf(s, root) {
		for _, i := range index.with(key) {
			if file := index.files[i]; s.overlay[file] == nil {
				files = append(files, file)
			}
		}
	}
	if len(s.overlay) == 0 {
		return files
	}
	folder, deepest := rootDepth(root)
	for name, file := range s.overlay {
		if file.Kind == source.Python && within(folder, name, deepest) && len(s.store.traitsOf(file).index().with(key)) > 0 {
			files = append(files, name)
		}
	}
	sort.Strings(files)
	return slices.Compact(files)
}

// distances say for names how many calls away from one of a few words they may be. Names beyond maxDistance have none.
type distances map[string]far

// far are distances, plus 1; 0 is none. Any is how far away what a call of the name runs is; itself is that where the name is known to
// stand for a function and not for what a call of one gave, so that handing it to somebody who calls it counts as calling it.
type far struct{ any, itself uint8 }

// shorten takes a distance where it is smaller than what is known, and says in which of the senses it is.
func (f *far) shorten(itself bool, distance uint8) (any, its bool) {
	if any = f.any == 0 || f.any > distance; any {
		f.any = distance
	}
	if its = itself && (f.itself == 0 || f.itself > distance); its {
		f.itself = distance
	}
	return any, its
}

func (d distances) of(name string) int {
	if far := d[name].any; far > 0 {
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

// reached is a name whose distance was found, and in which of the two senses.
type reached struct {
	name   string
	itself bool
}

// note records a distance where it is smaller than what is known, and adds what became nearer to a list.
func (d distances) note(nearer []reached, name string, itself bool, distance uint8) []reached {
	known := d[name]
	any, its := known.shorten(itself, distance)
	if any {
		nearer = append(nearer, reached{name, false})
	}
	if its {
		nearer = append(nearer, reached{name, true})
	}
	if any || its {
		d[name] = known
	}
	return nearer
}

// spread notes what uses a name, one step further away.
func (d distances) spread(nearer []reached, from reached, index *nameIndex) []reached {
	n, known := index.names.find(from.name)
	if !known {
		return nearer
	}
	distance := d[from.name].any + 1
	if from.itself {
		distance = d[from.name].itself + 1
	}
	for _, u := range index.users.of(n) {
		user, use := index.names.text[u>>useBits], useKind(u&(1<<useBits-1))
		switch use {
		case calledIn:
			nearer = d.note(nearer, user, true, distance)
		case calledFor:
			nearer = d.note(nearer, user, false, distance)
		case sameAs:
			nearer = d.note(nearer, user, from.itself, distance)
		case heldIn, heldFor:
			if from.itself {
				nearer = d.note(nearer, user, use == heldIn, distance)
			}
		}
	}
	return nearer
}

// measure goes from the words to what names them, breadth first. An index of a file that an editor has open comes on top of that of the
// same file on disk, which can only make a distance smaller than it is.
func measure(words *pyscan.Words, all []*nameIndex) distances {
	m := measuring{all: all, far: make([][]far, len(all))}
	for i, index := range all {
		m.far[i] = make([]far, len(index.names.text))
	}
	d := distances{}
	for word := range words.Names {
		d.note(nil, word, true, 1)
		m.elsewhere(-1, word, true, 1)
	}
	for distance := uint8(1); distance <= farthest(words); distance++ {
		from := m.nearer
		m.nearer = nil
		for _, one := range from {
			m.spread(one)
		}
	}
	for i, index := range all {
		for n, far := range m.far[i] {
			if far.any > 0 {
				d[index.names.text[n]] = far
			}
		}
	}
	return d
}

// measuring is a measure at work. It goes by the numbers that names have in an index, which takes far less than to look each up; a name
// that is reached in one index is looked for in the others.
type measuring struct {
	all    []*nameIndex
	far    [][]far // by index and number of the name
	nearer []numbered
}

// numbered is a reached name of an index.
type numbered struct {
	index, name int32
	itself      bool
}

// note is distances.note for a name of an index.
func (m *measuring) note(index, name int32, itself bool, distance uint8) {
	if m.here(index, name, itself, distance) && len(m.all) > 1 {
		m.elsewhere(index, m.all[index].names.text[name], itself, distance)
	}
}

// elsewhere notes a name in all indices that have it, but for one in which it is known.
func (m *measuring) elsewhere(but int32, name string, itself bool, distance uint8) {
	for i, index := range m.all {
		if int32(i) == but {
			continue
		}
		if n, has := index.names.find(name); has {
			m.here(int32(i), n, itself, distance)
		}
	}
}

// here notes a name in one index, and reports whether it became nearer.
func (m *measuring) here(index, name int32, itself bool, distance uint8) bool {
	any, its := m.far[index][name].shorten(itself, distance)
	if any {
		m.nearer = append(m.nearer, numbered{index, name, false})
	}
	if its {
		m.nearer = append(m.nearer, numbered{index, name, true})
	}
	return any || its
}

// spread is distances.spread in the index of a name.
func (m *measuring) spread(from numbered) {
	index, distance := m.all[from.index], m.far[from.index][from.name].any+1
	if from.itself {
		distance = m.far[from.index][from.name].itself + 1
	}
	for _, u := range index.users.of(from.name) {
		user := u >> useBits
		switch use := useKind(u & (1<<useBits - 1)); use {
		case calledIn:
			m.note(from.index, user, true, distance)
		case calledFor:
			m.note(from.index, user, false, distance)
		case sameAs:
			m.note(from.index, user, from.itself, distance)
		case heldIn, heldFor:
			if from.itself {
				m.note(from.index, user, use == heldIn, distance)
			}
		}
	}
}

// with are the distances when indices come on top of those that d was measured in: what an editor changes is little beside a project.
func (d distances) with(words *pyscan.Words, more, all []*nameIndex) distances {
	d = maps.Clone(d)
	within := func(one reached) bool {
		if one.itself {
			return d[one.name].itself > 0 && d[one.name].itself <= farthest(words)
		}
		return d[one.name].any > 0 && d[one.name].any <= farthest(words)
	}
	var nearer []reached
	for _, index := range more {
		for _, name := range index.names.text {
			for _, itself := range []bool{false, true} {
				if one := (reached{name, itself}); within(one) {
					nearer = d.spread(nearer, one, index)
				}
			}
		}
	}
	for len(nearer) > 0 {
		one := nearer[len(nearer)-1]
		nearer = nearer[:len(nearer)-1]
		if !within(one) {
			continue
		}
		for _, indices := range [][]*nameIndex{more, all} {
			for _, index := range indices {
				nearer = d.spread(nearer, one, index)
			}
		}
	}
	return d
}

// distancesOf are the distances in the files below a root as the FS holds them.
func (st *store) distancesOf(key distanceKey, all []*nameIndex) distances {
	st.mu.Lock()
	defer st.mu.Unlock()
	d := st.distances[key]
	if d == nil {
		d = measure(key.words, all)
		if st.distances == nil {
			st.distances = map[distanceKey]distances{}
		}
		st.distances[key] = d
	}
	return d
}

type distanceKey struct {
	root  string
	words *pyscan.Words
}

// distancesOf are the distances in the files below a root.
func (s *Snapshot) distancesOf(root string, words *pyscan.Words) distances {
	key := distanceKey{root, words}
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.distances[key]; d != nil {
		return d
	}
	all := s.store.indexOf(s, root)
	d := s.store.distancesOf(key, all)
	edited := s.edited(root)
	if len(edited) == 0 {
		return d
	}
	d = d.with(words, edited, all)
	if s.distances == nil {
		s.distances = map[distanceKey]distances{}
	}
	s.distances[key] = d
	return d
}

// edited are the indices of the files below a root that an editor has open.
func (s *Snapshot) edited(root string) []*nameIndex {
	var list []*nameIndex
	folder, deepest := rootDepth(root)
	for name, file := range s.overlay {
		if file.Kind == source.Python && within(folder, name, deepest) {
			list = append(list, s.store.traitsOf(file).index())
		}
	}
	return list
}

// named says what in the files below a root has a name.
func (s *Snapshot) named(root, name string) (flags nameFlags) {
	for _, index := range append(s.edited(root), s.store.indexOf(s, root)...) {
		if n, known := index.names.find(name); known {
			flags |= index.about[n]
		}
	}
	return flags
}

// nearest are the distances in the project of a module.
type nearest struct {
	m     *pyscan.Module
	words *pyscan.Words
	d     distances
}

// Distance implements loop.Linker.
func (v *View) Distance(m *pyscan.Module, words *pyscan.Words, name string) int {
	if v.thorough || len(v.knownIn(m)) > 0 {
		return 0 // a name may stand for anything
	}
	if v.eval.near.m == m && v.eval.near.words == words && v.reads == nil {
		return v.eval.near.d.of(name)
	}
	key := distanceKey{v.rootOf(m), words}
	d := v.eval.distances[key]
	if d == nil {
		d = v.distancesOf(key.root, words)
		v.eval.distances[key], v.eval.far[key] = d, map[string]bool{}
	}
	if v.reads != nil {
		v.eval.far[key][name] = true
	}
	v.eval.near = nearest{m, words, d}
	return d.of(name)
}

// Near reports whether what an expression names may be one of the words, perhaps by another name. It is the cheap question before the
// expression is read.
func (v *View) Near(m *pyscan.Module, words *pyscan.Words, e syntax.Expr) bool {
	name := pyscan.LastName(e)
	return name == "" || words.Names[name] || v.Distance(m, words, name) <= maxAliases
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

// Extended implements loop.Linker.
func (v *View) Extended(m *pyscan.Module, name string) bool { return v.about(m, name)&extended != 0 }

func (v *View) about(m *pyscan.Module, name string) nameFlags {
	if v.thorough || len(v.knownIn(m)) > 0 {
		return defined | referred | extended // it may stand for anything
	}
	key := nameKey{v.rootOf(m), name}
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
