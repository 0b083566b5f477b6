package workspace

import (
	"bytes"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/trainvet/trainvet/lint/source"
)

// nameTable numbers names. It is a hash table of its own, because the hash is made while the end of an identifier is looked for, and
// most of the time that an index takes goes into it. The names lie one after another: as strings they would be all over the memory.
type nameTable struct {
	slots []int32 // open addressing: numbers, plus 1, or 0; as many as a power of two, half of them free at least
	bytes []byte  // of all names
	names []named // by number; and where the next name will start
}

// named is where a name starts in the bytes, and its hash.
type named struct{ start, hash uint32 }

// count is how many names there are.
func (t *nameTable) count() int { return max(0, len(t.names)-1) }

// room is how many names there can be before the table grows.
func (t *nameTable) room() int { return len(t.slots) / 2 }

// name is the one that has a number.
func (t *nameTable) name(number int32) []byte {
	return t.bytes[t.names[number].start:t.names[number+1].start]
}

// The hash of a name is FNV-1a with another start in each process, so that nobody can write names whose hashes are alike. Names are short:
// hashes that take more bytes at a time are slower.
const hashPrime = 16777619

const hashMix = 0x9E3779B1 // for hashes of numbers

var hashStart = rand.Uint32()

func hashOf(name string) uint32 {
	h := hashStart
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * hashPrime
	}
	return h
}

// find looks a name up.
func (t *nameTable) find(name string) (number int32, known bool) {
	return t.findHash(name, hashOf(name))
}

func (t *nameTable) findHash(name string, hash uint32) (number int32, known bool) {
	if len(t.slots) == 0 {
		return 0, false
	}
	for i := hash; ; i++ {
		switch n := t.slots[int(i)&(len(t.slots)-1)] - 1; {
		case n < 0:
			return 0, false
		case t.names[n].hash == hash && string(t.name(n)) == name:
			return n, true
		}
	}
}

// number is that of a name, a new one where it is new.
func (t *nameTable) number(name []byte, hash uint32) int32 {
	if t.count() >= t.room() {
		t.grow()
	}
	for i := hash; ; i++ {
		s := &t.slots[int(i)&(len(t.slots)-1)]
		n := *s - 1
		if n < 0 {
			if cap(t.bytes)-len(t.bytes) < len(name) {
				t.bytes = slices.Grow(t.bytes, len(t.bytes)+len(name))
			}
			t.bytes = append(t.bytes, name...)
			n = int32(t.count())
			t.names[n].hash = hash
			t.names = append(t.names, named{start: uint32(len(t.bytes))})
			*s = n + 1
			return n
		}
		if t.names[n].hash == hash && bytes.Equal(t.name(n), name) {
			return n
		}
	}
}

func (t *nameTable) grow() { t.make(max(128, 2*len(t.slots))) }

// namesInFile is how many names each of many files brings along that no other has, about: a table that is made for them need not grow.
const namesInFile = 12

// expect makes room for the names of so many files.
func (t *nameTable) expect(files int) {
	t.make(max(128, 1<<bits.Len(uint(2*namesInFile*files-1))))
	t.bytes = make([]byte, 0, 16*t.room())
}

// make gives the table so many slots.
func (t *nameTable) make(slots int) {
	t.slots = make([]int32, slots)
	t.names = slices.Grow(t.names, t.room()+1-len(t.names)) // append alone makes a list five times until it is there
	if len(t.names) == 0 {
		t.names = append(t.names, named{})
	}
	for n := range t.count() {
		i := int(t.names[n].hash) & (len(t.slots) - 1)
		for t.slots[i] != 0 {
			i = (i + 1) & (len(t.slots) - 1)
		}
		t.slots[i] = int32(n) + 1
	}
}

// fill makes the table of names that lie one after another, of which each is there once, by where each ends.
func (t *nameTable) fill(names []byte, ends []int32) {
	size := 128
	for size < 2*len(ends) {
		size *= 2
	}
	*t = nameTable{bytes: names, names: make([]named, len(ends)+1)}
	for number, end := range ends {
		t.names[number+1].start = uint32(end)
		_, t.names[number].hash = word(t.name(int32(number)), 0)
	}
	t.make(size)
}

// lists are one list of numbers for each name.
type lists struct {
	full  [][]pair // while they are collected: pieces, so that none is moved to make room
	pairs []pair   // the piece at hand
	start []int32
	flat  []int32
}

type pair struct{ name, value int32 }

// maxPiece bounds the pairs of a piece. The first is small: most indices are of one file.
const maxPiece = 1 << 14

func (l *lists) add(name, value int32) {
	if len(l.pairs) == cap(l.pairs) {
		if len(l.pairs) > 0 {
			l.full = append(l.full, l.pairs)
		}
		l.pairs = make([]pair, 0, min(max(64, 2*cap(l.pairs)), maxPiece))
	}
	l.pairs = append(l.pairs, pair{name, value})
}

// seal sorts what was collected by name; what belongs to a name stays in order, and is not repeated on the spot. The names and
// numbers are those of indexer.seal.
func (l *lists) seal(names int, numbers []int32) {
	l.start = make([]int32, names+2) // first moved by one place: while a list is filled, where it goes on stands where its end will
	pieces, count := append(l.full, l.pairs), 0
	for _, piece := range pieces {
		count += len(piece)
		for i, p := range piece {
			if numbers != nil {
				p.name = numbers[p.name]
				piece[i].name = p.name
			}
			l.start[p.name+2]++
		}
	}
	for i := range names {
		l.start[i+2] += l.start[i+1]
	}
	l.flat = make([]int32, count)
	for _, piece := range pieces {
		for _, p := range piece {
			at := &l.start[p.name+1]
			l.flat[*at] = p.value
			*at++
		}
	}
	l.full, l.pairs = nil, nil
}

func (l *lists) of(name int32) []int32 { return l.flat[l.start[name]:l.start[name+1]] }

// The first names of each index, which mean something to the indexer. Those up to lastKeyword stand for nothing of a project.
const (
	kwDef int32 = iota
	kwClass
	kwAsync
	kwImport
	kwFrom
	kwAs
	lastKeyword = kwAs + 31
	dunderName  = lastKeyword + 1
	lastGetter  = dunderName + 4
)

var keywords = [...]string{"def", "class", "async", "import", "from", "as",
	"False", "None", "True", "and", "assert", "await", "break", "continue", "del", "elif", "else", "except", "finally", "for", "global", "if", "in", "is",
	"lambda", "nonlocal", "not", "or", "pass", "raise", "return", "self", "try", "while", "with", "yield", "cls", "__name__",
	"getattr", "methodcaller", "attrgetter", "__getattribute__"}

// indexer reads files of an index. It numbers the names that it meets by itself.
type indexer struct {
	part
	names nameTable
	about []nameFlags
	file  int32
	seen  []seen   // by name
	open  []around // definitions around the place, outermost first
	count int32
	alias int32 // the name that is being assigned, or -1
	level int   // brackets open when it was

	property bool // the next def is one
	deriving bool // the bases of a class stand here

	plain      bool  // the line so far is names and dots
	annotated  int32 // the name whose annotation is being read, or -1
	annotation int   // brackets open where it stands
	getter     int   // brackets open in the arguments of a getattr; 0 outside of one

	imported int32 // the name that an import statement named last
	renames  bool  // `as` stands behind it

	noted [1 << notedBits]pair // uses that were noted lately, by a hash
}

// notedBits is how many uses are remembered, as a power of two: files of a project say much the same, and a third of their uses is among the
// last few thousand.
const notedBits = 12

// seen says where a name was noted last, so that it is not noted there again.
type seen struct{ definition, file sighting }

// sighting is a number, of a definition or of a file, and behind it bits for how a name was noted there.
type sighting int32

const (
	asHeld   sighting = 1
	asCalled sighting = 2

	inCall   sighting = 1
	inImport sighting = 2

	sightingBits = 2
)

// first reports whether a name is noted in some way for the first time at a place since it was noted elsewhere, and remembers that it was.
func (s *sighting) first(place int32, how sighting) bool {
	if int32(*s>>sightingBits) != place {
		*s = sighting(place) << sightingBits
	}
	is := *s&how != how
	*s |= how
	return is
}

// around is a def or class around a place.
type around struct {
	column int
	names  [2]int32 // its own; that of the class, for a method that runs when the class or an instance is called; or -1
	serial int32
	class  bool

	property bool // its name stands for what it gives
}

// newIndexer is one for about so many files.
func newIndexer(files int) *indexer {
	ix := &indexer{}
	ix.names.expect(files)
	for _, word := range keywords {
		ix.number([]byte(word), hashOf(word))
	}
	return ix
}

// seal ends the reading. The index has so many names, and these numbers for those of the indexer; nil where they are the same.
func (ix *indexer) seal(names int, numbers []int32) {
	ix.calls.seal(names, numbers)
	ix.imports.seal(names, numbers)
	ix.users.seal(names, numbers)
	if numbers != nil {
		for i, u := range ix.users.flat {
			ix.users.flat[i] = numbers[u>>useBits]<<useBits | u&(1<<useBits-1)
		}
	}
}

func (ix *indexer) number(name []byte, hash uint32) int32 {
	n := ix.names.number(name, hash)
	if int(n) == len(ix.about) {
		if room := ix.names.room() - len(ix.about); len(ix.about) == cap(ix.about) {
			ix.about, ix.seen = slices.Grow(ix.about, room), slices.Grow(ix.seen, room)
		}
		ix.about, ix.seen = append(ix.about, 0), append(ix.seen, seen{})
	}
	return n
}

// runsOnCall are the methods of a class that run when the class or its instance is called.
func runsOnCall(name string) bool {
	return name == "__init__" || name == "forward" || name == "__call__" || name == "__new__" || name == "__post_init__"
}

// note records that a name stands in the definitions around the place, and in what is being assigned.
func (ix *indexer) note(name int32, called bool, depth int) {
	if ix.alias >= 0 && ix.alias != name {
		switch {
		case called:
			ix.use(name, ix.alias, calledFor)
		case depth > ix.level:
			ix.use(name, ix.alias, heldFor)
		default:
			ix.use(name, ix.alias, sameAs)
		}
	}
	if len(ix.open) == 0 {
		return
	}
	how, property, as := heldIn, heldFor, asHeld
	if called {
		how, property, as = calledIn, calledFor, asCalled
	}
	if !ix.seen[name].definition.first(ix.open[len(ix.open)-1].serial, as) {
		return
	}
	for i := range ix.open {
		for _, user := range ix.open[i].names {
			switch {
			case user < 0 || user == name && called || ix.open[i].class:
			case ix.open[i].property:
				ix.use(name, user, property)
			default:
				ix.use(name, user, how)
			}
		}
	}
}

// use notes that a name is used by another, where that is not among what was noted lately.
func (ix *indexer) use(name, user int32, how useKind) {
	value := user<<useBits | int32(how)
	if last := &ix.noted[(uint32(name)*hashMix^uint32(value)*hashPrime)>>(32-notedBits)]; *last != (pair{name, value}) {
		*last = pair{name, value}
		ix.users.add(name, value)
	}
}

// The kinds of bytes that the indexer tells apart.
const (
	other = iota
	letter
	digit
	blank
	newline
	comment
	quote
	opening
	closing
	ending // what ends an assignment: a comma, a semicolon
)

var kindOf = kindsOfBytes()

func kindsOfBytes() (kinds [256]uint8) {
	for c := range 256 {
		switch c := byte(c); {
		case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80:
			kinds[c] = letter
		case c >= '0' && c <= '9':
			kinds[c] = digit
		case c == ' ' || c == '\t':
			kinds[c] = blank
		}
	}
	for kind, some := range map[uint8]string{newline: "\n", comment: "#", quote: "\"'", opening: "([{", closing: ")]}", ending: ",;"} {
		for _, c := range []byte(some) {
			kinds[c] = kind
		}
	}
	return kinds
}

func isLetter(c byte) bool { return kindOf[c] == letter }

// word is the end of the identifier that begins at i, and its hash.
func word(text []byte, i int) (end int, hash uint32) {
	hash = hashStart
	for i < len(text) && kindOf[text[i]]-letter <= digit-letter {
		hash = (hash ^ uint32(text[i])) * hashPrime
		i++
	}
	return i, hash
}

// take takes in a file, if it is Python.
func (ix *indexer) take(number int32, file *source.File) {
	if file.Kind.IsPython() {
		ix.read(number, file.Text)
	}
}

// read takes in the text of one file.
func (ix *indexer) read(file int32, text []byte) {
	ix.file, ix.open, ix.alias, ix.annotated, ix.getter, ix.plain, ix.deriving = file, ix.open[:0], -1, -1, 0, true, false
	depth, lineStart, column := 0, true, 0
	importing, testsName, dotted, continued := false, false, false, false
	for i := 0; i < len(text); {
		c := text[i]
		if lineStart && depth == 0 && !continued && len(ix.open) > 0 && column <= ix.open[len(ix.open)-1].column {
			if kind := kindOf[c]; kind != blank && kind != newline && kind != comment {
				ix.leave(column)
			}
		}
		switch kindOf[c] {
		case letter:
			end, hash := word(text, i)
			if end-i <= 2 && end < len(text) && kindOf[text[end]] == quote { // the prefix of a string
				i = end
				continue
			}
			name := ix.number(text[i:end], hash)
			if lineStart && column == 0 && depth > 0 && name <= kwClass { // brackets left open above
				depth = 0
			}
			i = ix.identifier(text, name, end, column, lineStart, depth, dotted, &importing)
			testsName = testsName || name == dunderName
			lineStart, dotted = false, false
		case blank:
			start := i
			for i++; i < len(text) && kindOf[text[i]] == blank; i++ {
			}
			if lineStart {
				column += i - start
			}
		case newline:
			i++
			column = 0
			continued = i > 1 && text[i-2] == '\\'
			if depth == 0 && !continued {
				importing, ix.deriving = false, false
			}
			if depth <= ix.level {
				ix.alias = -1
			}
			if depth == 0 {
				ix.plain, ix.annotated, ix.getter = true, -1, 0
			}
			lineStart, testsName, dotted = true, false, false
		case comment:
			length := bytes.IndexByte(text[i:], '\n')
			if length < 0 {
				return
			}
			i += length
		case quote:
			end, inner := quoted(text, i)
			if testsName && string(inner) == "__main__" {
				ix.mains = add(ix.mains, file)
			}
			if ix.getter > 0 && depth >= ix.getter && len(inner) > 0 && len(inner) < 64 && isLetter(inner[0]) {
				if stop, hash := word(inner, 0); stop == len(inner) { // getattr(loss, "backward"), which may be called on the spot
					n := ix.number(inner, hash)
					ix.note(n, false, depth)
					ix.note(n, true, depth)
				}
			}
			i, lineStart, dotted, ix.plain = end, false, false, false
		case digit:
			i, _ = word(text, i)
			lineStart, dotted, ix.plain = false, false, false
		case opening:
			depth++
			i, lineStart, dotted, ix.plain = i+1, false, false, false
		case closing:
			depth = max(0, depth-1)
			if depth < ix.level {
				ix.alias = -1
			}
			if depth < ix.annotation {
				ix.annotated = -1
			}
			if depth < ix.getter {
				ix.getter = 0
			}
			i, lineStart, dotted, ix.plain = i+1, false, false, false
		case ending:
			if depth <= ix.level {
				ix.alias = -1
			}
			if depth <= ix.annotation {
				ix.annotated = -1
			}
			i, lineStart, dotted, ix.plain = i+1, false, false, false
		default:
			switch c {
			case '@':
				ix.property = ix.property || lineStart && isPropertyText(text[i+1:])
			case '=':
				if ix.annotated >= 0 && depth == ix.annotation && i+1 < len(text) && text[i+1] != '=' && kindOf[text[i-1]] != other { // x: List[int] = ...
					ix.assign(ix.annotated, depth)
				}
			}
			ix.plain = ix.plain && c == '.'
			i, lineStart, dotted = i+1, false, c == '.'
		}
	}
}

// isPropertyText reports whether what follows an @ makes a property of a method.
func isPropertyText(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte("functools."))
	text = bytes.TrimPrefix(text, []byte("cached_"))
	end, _ := word(text, 0)
	if end < len(text) && text[end] == '.' { // @name.setter
		last, _ := word(text, end+1)
		text, end = text[end+1:], last-end-1
	}
	switch string(text[:end]) {
	case "property", "setter", "getter", "deleter":
		return true
	}
	return false
}

// add puts a number at the end of a list, unless it stands there already.
func add(list []int32, n int32) []int32 {
	if len(list) > 0 && list[len(list)-1] == n {
		return list
	}
	return append(list, n)
}

// identifier takes in one identifier and gives where reading goes on.
func (ix *indexer) identifier(text []byte, name int32, end, column int, lineStart bool, depth int, dotted bool, importing *bool) int {
	if name <= lastKeyword {
		ix.plain = false
		switch {
		case lineStart && depth == 0 && (name == kwImport || name == kwFrom):
			*importing = true
		case !dotted && depth == 0 && name <= kwClass:
			at := end
			for at < len(text) && kindOf[text[at]] == blank {
				at++
			}
			if stop, hash := word(text, at); stop > at && isLetter(text[at]) {
				ix.define(ix.number(text[at:stop], hash), column, name == kwClass)
				return stop
			}
		case *importing && name == kwAs:
			ix.renames = true
		}
		return end
	}
	if *importing {
		if ix.seen[name].file.first(ix.file+1, inImport) {
			ix.imports.add(name, ix.file)
		}
		if ix.renames && ix.imported != name { // `import checkpoint as ckpt`
			ix.use(ix.imported, name, sameAs)
			ix.about[name] |= referred
		}
		ix.imported, ix.renames = name, false
		return end
	}
	if ix.deriving {
		ix.about[name] |= extended
	}
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
	case after == '.': // what follows is used
		if dotted {
			ix.about[name] |= referred
		}
	case after == '(':
		ix.note(name, true, depth)
		if name > dunderName && name <= lastGetter && ix.getter == 0 {
			ix.getter = depth + 1
		}
		if ix.seen[name].file.first(ix.file+1, inCall) {
			ix.calls.add(name, ix.file)
		}
	case after == '=' && second != '=', after == ':' && second == '=':
		if ix.annotated >= 0 && depth == ix.annotation && after == '=' { // x: int = ...
			name = ix.annotated
		}
		ix.assign(name, depth)
	case after == ':':
		if depth > 0 || ix.plain {
			ix.annotated, ix.annotation = name, depth
		}
		ix.note(name, false, depth)
		ix.about[name] |= referred
	default:
		ix.note(name, false, depth)
		if dotted {
			ix.about[name] |= referred
		}
	}
	return end
}

// assign notes that what follows is bound to a name.
func (ix *indexer) assign(name int32, depth int) {
	ix.alias, ix.level, ix.annotated = name, depth, -1
	ix.about[name] |= referred
}

// leave closes the definitions in which a line that begins in a column does not stand.
func (ix *indexer) leave(column int) {
	for len(ix.open) > 0 && ix.open[len(ix.open)-1].column >= column {
		ix.open = ix.open[:len(ix.open)-1]
	}
}

// define opens a def or class.
func (ix *indexer) define(name int32, column int, class bool) {
	property := ix.property && !class
	ix.property, ix.deriving = false, class
	if property {
		ix.about[name] |= referred
	} else {
		ix.about[name] |= defined
	}
	ix.note(name, false, 0) // a nested function may be returned or handed on
	ix.count++
	d := around{column: column, names: [2]int32{name, -1}, serial: ix.count, class: class, property: property}
	if !class && len(ix.open) > 0 && ix.open[len(ix.open)-1].class && runsOnCall(string(ix.names.name(name))) {
		d.names[1] = ix.open[len(ix.open)-1].names[0]
		if text := string(ix.names.name(name)); text == "__init__" || text == "__call__" {
			d.names[0] = -1 // a call by its own name is one of the base's, and says nothing of this class
		}
	}
	ix.open = append(ix.open, d)
}

// quoted is the end of the string that begins at i, and what is in it. A string of one line ends with the line at the latest.
func quoted(text []byte, i int) (end int, inner []byte) {
	mark := text[i]
	if i+2 < len(text) && text[i+1] == mark && text[i+2] == mark {
		for at := i + 3; ; at++ {
			length := bytes.IndexByte(text[at:], mark)
			if length < 0 {
				return len(text), nil
			}
			at += length
			escapes := at
			for escapes > i+3 && text[escapes-1] == '\\' {
				escapes--
			}
			if (at-escapes)%2 == 0 && at+2 < len(text) && text[at+1] == mark && text[at+2] == mark {
				return at + 3, nil
			}
		}
	}
	for at := i + 1; at < len(text); at++ {
		switch text[at] {
		case '\\':
			at++
		case mark:
			return at + 1, text[i+1 : at]
		case '\n':
			return at, nil
		}
	}
	return len(text), nil
}
