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
	names map[string]int32
	text  []string // name by number
	files []string // sorted

	calls   [][]int32 // name -> the files that call something of that name
	imports [][]int32 // name -> the files in whose import statements it stands
	mains   []int32   // files that test __name__
	about   []nameFlags
	users   [][]int32 // name -> the functions, classes and aliases (by name) in which it stands
}

type nameFlags uint8

const (
	defined  nameFlags = 1 << iota // by def or class
	referred                       // as an attribute that is not called on the spot, or assigned to
)

// maxDistance is how many calls away words are looked for.
const maxDistance = 6

func (ix *nameIndex) number(name []byte) int32 {
	n, known := ix.names[string(name)] // does not allocate
	if !known {
		n = int32(len(ix.text))
		text := string(name)
		ix.names[text] = n
		ix.text = append(ix.text, text)
		ix.calls, ix.imports, ix.users, ix.about = append(ix.calls, nil), append(ix.imports, nil), append(ix.users, nil), append(ix.about, 0)
	}
	return n
}

// add puts a number at the end of a list, unless it stands there already.
func add(list []int32, n int32) []int32 {
	if len(list) > 0 && list[len(list)-1] == n {
		return list
	}
	return append(list, n)
}

// indexer reads the files of an index.
type indexer struct {
	*nameIndex
	file   int32
	before []int32  // name -> the last definition that it was noted for, plus 1
	open   []around // definitions around the place, outermost first
	count  int32
	alias  int32 // the name that is being assigned, or -1
	level  int   // brackets open when it was

	imported int32 // the name that an import statement named last
	renames  bool  // `as` stands behind it
}

// around is a def or class around a place.
type around struct {
	column int
	names  [2]int32 // its own; that of the class, for a method that runs when the class or an instance is called; or -1
	serial int32
	class  bool
}

// runsOnCall are the methods of a class that run when the class or its instance is called.
func runsOnCall(name string) bool {
	return name == "__init__" || name == "forward" || name == "__call__" || name == "__new__" || name == "__post_init__"
}

// note records that a name stands in the definitions around the place, and in what is being assigned.
func (ix *indexer) note(name int32) {
	if ix.alias >= 0 && ix.alias != name {
		ix.users[name] = add(ix.users[name], ix.alias)
	}
	if len(ix.open) == 0 {
		return
	}
	inner := &ix.open[len(ix.open)-1]
	for len(ix.before) < len(ix.text) {
		ix.before = append(ix.before, 0)
	}
	if ix.before[name] == inner.serial {
		return
	}
	ix.before[name] = inner.serial
	for i := range ix.open {
		for _, user := range ix.open[i].names {
			if user >= 0 && user != name && !ix.open[i].class {
				ix.users[name] = add(ix.users[name], user)
			}
		}
	}
}

func isLetter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// word is the end of the identifier that begins at i.
func word(text []byte, i int) int {
	for i < len(text) && (isLetter(text[i]) || isDigit(text[i])) {
		i++
	}
	return i
}

// read takes in one file.
func (ix *indexer) read(file int32, text []byte) {
	ix.file, ix.open, ix.alias = file, ix.open[:0], -1
	depth, lineStart, column := 0, true, 0
	importing, testsName, dotted := false, false, false
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '\n':
			i++
			column = 0
			if depth == 0 && !(i > 1 && text[i-2] == '\\') {
				importing = false
			}
			if depth <= ix.level {
				ix.alias = -1
			}
			lineStart, testsName, dotted = true, false, false
		case c == ' ' || c == '\t':
			if lineStart {
				column++
			}
			i++
		case c == '#':
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case c == '"' || c == '\'':
			end, inner := quoted(text, i)
			if testsName && string(inner) == "__main__" {
				ix.mains = add(ix.mains, file)
			}
			if len(inner) > 0 && len(inner) < 64 && isLetter(inner[0]) && word(inner, 0) == len(inner) {
				ix.note(ix.number(inner)) // getattr(loss, "backward"), {"train": train}
			}
			i, lineStart, dotted = end, false, false
		case isDigit(c):
			i = word(text, i)
			lineStart, dotted = false, false
		case isLetter(c):
			end := word(text, i)
			if end < len(text) && (text[end] == '"' || text[end] == '\'') && end-i <= 2 { // the prefix of a string
				i = end
				continue
			}
			if lineStart && column == 0 && depth > 0 { // brackets left open above
				if id := string(text[i:end]); id == "def" || id == "class" {
					depth = 0
				}
			}
			i = ix.identifier(text, i, end, column, lineStart, depth, dotted, &importing)
			testsName = testsName || string(text[end-min(8, end):end]) == "__name__"
			lineStart, dotted = false, false
		default:
			dotted = c == '.'
			switch c {
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				depth = max(0, depth-1)
				if depth < ix.level {
					ix.alias = -1
				}
			case ',', ';':
				if depth <= ix.level {
					ix.alias = -1
				}
			}
			i++
			lineStart = false
		}
	}
}

// identifier takes in one identifier and gives where reading goes on.
func (ix *indexer) identifier(text []byte, start, end, column int, lineStart bool, depth int, dotted bool, importing *bool) int {
	id := text[start:end]
	if lineStart && depth == 0 {
		switch string(id) {
		case "import", "from":
			*importing = true
			return end
		case "async":
			return end
		}
	}
	if !dotted && depth == 0 && (string(id) == "def" || string(id) == "class") {
		at := end
		for at < len(text) && (text[at] == ' ' || text[at] == '\t') {
			at++
		}
		if stop := word(text, at); stop > at && isLetter(text[at]) {
			ix.define(text[at:stop], column, string(id) == "class")
			return stop
		}
	}
	name := ix.number(id)
	if *importing {
		ix.imports[name] = add(ix.imports[name], ix.file)
		if string(id) == "as" {
			ix.renames = true
			return end
		}
		if ix.renames && ix.imported != name { // `import checkpoint as ckpt`
			ix.users[ix.imported] = add(ix.users[ix.imported], name)
			ix.about[name] |= referred
		}
		ix.imported, ix.renames = name, false
	}
	ix.note(name)
	next := end
	for next < len(text) && text[next] == ' ' {
		next++
	}
	var after, second byte
	if next < len(text) {
		after = text[next]
	}
	if next+1 < len(text) {
		second = text[next+1]
	}
	switch {
	case after == '(':
		ix.calls[name] = add(ix.calls[name], ix.file)
	case after == '=' && second != '=', after == ':' && second == '=':
		ix.alias, ix.level = name, depth
		ix.about[name] |= referred
	case dotted || after == ':':
		ix.about[name] |= referred
	}
	return end
}

// define opens a def or class, and closes those that it does not stand in.
func (ix *indexer) define(id []byte, column int, class bool) {
	name := ix.number(id)
	ix.about[name] |= defined
	for len(ix.open) > 0 && ix.open[len(ix.open)-1].column >= column {
		ix.open = ix.open[:len(ix.open)-1]
	}
	ix.note(name) // a nested function may be returned or handed on
	ix.count++
	d := around{column: column, names: [2]int32{name, -1}, serial: ix.count, class: class}
	if !class && len(ix.open) > 0 && ix.open[len(ix.open)-1].class && runsOnCall(string(id)) {
		d.names[1] = ix.open[len(ix.open)-1].names[0]
	}
	ix.open = append(ix.open, d)
}

// quoted is the end of the string that begins at i, and what is in it. A string of one line ends with the line at the latest.
func quoted(text []byte, i int) (end int, inner []byte) {
	quote := text[i]
	if i+2 < len(text) && text[i+1] == quote && text[i+2] == quote {
		for at := i + 3; at < len(text); at++ {
			switch {
			case text[at] == '\\':
				at++
			case text[at] == quote && at+2 < len(text) && text[at+1] == quote && text[at+2] == quote:
				return at + 3, nil
			}
		}
		return len(text), nil
	}
	for at := i + 1; at < len(text); at++ {
		switch text[at] {
		case '\\':
			at++
		case quote:
			return at + 1, text[i+1 : at]
		case '\n':
			return at, nil
		}
	}
	return len(text), nil
}

// indices are those of the files below a root, in order: one for each of a few runs of files, which are read side by side.
type indices struct {
	once  sync.Once
	parts []*nameIndex
}

// indexOf are the indices of a root.
func (st *store) indexOf(s *Snapshot, root string) []*nameIndex {
	st.mu.Lock()
	index := st.indices[root]
	if index == nil {
		index = &indices{}
		st.indices[root] = index
	}
	st.mu.Unlock()
	index.once.Do(func() {
		index.fill(s, root)
	})
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
	var readers sync.WaitGroup
	for run := range slices.Chunk(files, max(fewFiles, (len(files)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))) {
		part := &nameIndex{names: map[string]int32{}, files: run}
		ix.parts = append(ix.parts, part)
		readers.Go(func() {
			in := indexer{nameIndex: part}
			for i, full := range run {
				if file, err := s.store.file(s.fs, full); err == nil && file.Kind == source.Python {
					in.read(int32(i), file.Text)
				}
			}
		})
	}
	readers.Wait()
}

// indexFile is an index of one text alone: that of a file that an editor has open.
func indexFile(text []byte) *nameIndex {
	ix := &nameIndex{names: map[string]int32{}, files: []string{""}}
	in := indexer{nameIndex: ix}
	in.read(0, text)
	return ix
}

// with are the files that the index has under a key: the name that they call, or a key of importKeyword or guardedMain.
func (ix *nameIndex) with(key string) []int32 {
	if key == guardedMain {
		return ix.mains
	}
	name, imported := strings.CutPrefix(key, importKeyword)
	n, known := ix.names[name]
	switch {
	case !known:
		return nil
	case imported:
		return ix.imports[n]
	}
	return ix.calls[n]
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

// distances say for names how many calls away from one of a few words they may be, at least, plus 1. Names beyond maxDistance have none.
type distances map[string]uint8

func (d distances) of(name string) int {
	if far := d[name]; far > 0 {
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

// measure goes from the words to what names them, breadth first. An index of a file that an editor has open comes on top of that of the
// same file on disk, which can only make a distance smaller than it is.
func measure(words *pyscan.Words, all []*nameIndex) distances {
	d := distances{}
	var reached []string
	reach := func(name string, distance uint8) {
		if d[name] == 0 {
			d[name] = distance
			reached = append(reached, name)
		}
	}
	for word := range words.Names {
		reach(word, 1)
	}
	for distance := uint8(2); distance <= farthest(words)+1; distance++ {
		from := reached
		reached = nil
		for _, name := range from {
			for _, index := range all {
				if n, known := index.names[name]; known {
					for _, user := range index.users[n] {
						reach(index.text[user], distance)
					}
				}
			}
		}
	}
	return d
}

// with are the distances when indices come on top of those that d was measured in: what an editor changes is little beside a project.
func (d distances) with(words *pyscan.Words, more, all []*nameIndex) distances {
	d = maps.Clone(d)
	var nearer []string
	reach := func(index *nameIndex, name string, far uint8) {
		n, known := index.names[name]
		if !known || far > farthest(words) {
			return
		}
		for _, user := range index.users[n] {
			if text := index.text[user]; d[text] == 0 || d[text] > far+1 {
				d[text] = far + 1
				nearer = append(nearer, text)
			}
		}
	}
	for _, index := range more {
		for _, name := range index.text {
			if far := d[name]; far > 0 {
				reach(index, name, far)
			}
		}
	}
	for len(nearer) > 0 {
		name := nearer[len(nearer)-1]
		nearer = nearer[:len(nearer)-1]
		for _, indices := range [][]*nameIndex{more, all} {
			for _, index := range indices {
				reach(index, name, d[name])
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
		if n, known := index.names[name]; known {
			flags |= index.about[n]
		}
	}
	return flags
}

// Distance implements loop.Linker.
func (v *View) Distance(m *pyscan.Module, words *pyscan.Words, name string) int {
	if v.thorough || len(v.knownIn(m)) > 0 {
		return 0 // a name may stand for anything
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
	return d.of(name)
}

// Near reports whether what an expression names may be one of the words, perhaps by another name. It is the cheap question before the
// expression is read.
func (v *View) Near(m *pyscan.Module, words *pyscan.Words, e syntax.Expr) bool {
	return v.near(m, words, e, maxAliases)
}

// near reports whether what an expression names may be one of the words by another name, or a function that uses one, so many
// steps away.
func (v *View) near(m *pyscan.Module, words *pyscan.Words, e syntax.Expr, steps int) bool {
	name := pyscan.LastName(e)
	return name == "" || words.Names[name] || v.Distance(m, words, name) <= steps
}

// HasName implements loop.Linker: otherwise only things of a library are called by the name.
func (v *View) HasName(m *pyscan.Module, name string) bool { return v.about(m, name) != 0 }

// Defined implements loop.Linker.
func (v *View) Defined(m *pyscan.Module, name string) bool { return v.about(m, name)&defined != 0 }

func (v *View) about(m *pyscan.Module, name string) nameFlags {
	if v.thorough || len(v.knownIn(m)) > 0 {
		return defined | referred // it may stand for anything
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
