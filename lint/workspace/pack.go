package workspace

import (
	"encoding/binary"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
)

// The form of what a shelf keeps: a mark, then lists of numbers and of bytes, each with its length before it, and a checksum over all. Numbers
// have 4 bytes, stamps 32, the lowest byte first.
const (
	shelfMark  = "trainvet names 2\n"
	maxShelved = 256 << 20 // bytes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// packer writes that form.
type packer struct{ data []byte }

func (p *packer) number(n int) { p.data = binary.LittleEndian.AppendUint32(p.data, uint32(n)) }

func (p *packer) bytes(b []byte) {
	p.number(len(b))
	p.data = append(p.data, b...)
}

func (p *packer) numbers(list []int32) {
	p.number(len(list))
	for _, n := range list {
		p.number(int(n))
	}
}

// strings writes strings without zero bytes, as names of files are.
func (p *packer) strings(list []string) { p.bytes([]byte(strings.Join(list, "\x00"))) }

// lists writes the numbers that belong to each name, each once.
func (p *packer) lists(names int, of func(name int32) []int32) {
	start, flat := make([]int32, 1, names+1), []int32(nil)
	for name := range names {
		numbers := of(int32(name))
		slices.Sort(numbers)
		flat = append(flat, slices.Compact(numbers)...)
		start = append(start, int32(len(flat)))
	}
	p.numbers(start)
	p.numbers(flat)
}

// pack gives what is known of a project the form in which it is kept.
func pack(k *known) []byte {
	p := &packer{data: []byte(shelfMark)}
	p.strings(k.files)
	for _, stamp := range k.stamps {
		for _, n := range [...]int64{stamp.Size, stamp.Modified, stamp.Changed, stamp.Node} {
			p.data = binary.LittleEndian.AppendUint64(p.data, uint64(n))
		}
	}
	number := make(map[string]int32, len(k.files))
	for i, name := range k.files {
		number[name] = int32(i)
	}
	numbers := func(files []string) (list []int32) {
		for _, name := range files {
			list = append(list, number[name])
		}
		return list
	}
	bases := slices.Sorted(maps.Keys(k.naming))
	p.strings(bases)
	p.lists(len(bases), func(base int32) []int32 { return numbers(k.naming[bases[base]]) })

	index, names := k.index, k.index.names.count()
	p.numbers(numbers(index.files))
	ends := make([]int32, names)
	for name := range ends {
		ends[name] = int32(index.names.names[name+1].start)
	}
	p.numbers(ends)
	p.bytes(index.names.bytes)
	about := make([]byte, names)
	for i, flags := range index.about {
		about[i] = byte(flags)
	}
	p.bytes(about)
	var mains []int32
	for _, part := range index.parts {
		mains = append(mains, part.mains...)
	}
	p.numbers(mains)
	for _, which := range listsOf {
		p.lists(names, func(name int32) (all []int32) {
			for i := range index.parts {
				all = append(all, which(&index.parts[i]).of(name)...)
			}
			return all
		})
	}
	return binary.LittleEndian.AppendUint32(p.data, crc32.Checksum(p.data, castagnoli))
}

// listsOf are the lists of a part.
var listsOf = [...]func(p *part) *lists{
	func(p *part) *lists { return &p.calls },
	func(p *part) *lists { return &p.imports },
	func(p *part) *lists { return &p.users },
}

// unpacker reads what packer wrote. After the first thing that does not fit all else is empty.
type unpacker struct {
	data []byte
	bad  bool
}

// take gives so many bytes.
func (u *unpacker) take(n int) []byte {
	if u.bad || n < 0 || n > len(u.data) {
		u.bad = true
		return nil
	}
	taken := u.data[:n]
	u.data = u.data[n:]
	return taken
}

func (u *unpacker) number() int {
	if b := u.take(4); b != nil {
		return int(binary.LittleEndian.Uint32(b))
	}
	return 0
}

func (u *unpacker) bytes() []byte { return u.take(u.number()) }

// numbers reads a list of numbers below a bound.
func (u *unpacker) numbers(bound int) []int32 {
	n := u.number()
	b := u.take(4 * n)
	if u.bad {
		return nil
	}
	list := make([]int32, n)
	var highest uint32
	for i := range list {
		number := binary.LittleEndian.Uint32(b[4*i:])
		highest = max(highest, number)
		list[i] = int32(number)
	}
	if n > 0 && int64(highest) >= int64(bound) {
		u.bad = true
		return nil
	}
	return list
}

func (u *unpacker) strings() []string {
	text := string(u.bytes())
	if u.bad || text == "" {
		return nil
	}
	return strings.Split(text, "\x00")
}

// lists reads the numbers of so many names.
func (u *unpacker) lists(names, bound int) lists {
	l := lists{start: u.numbers(maxShelved), flat: u.numbers(bound)}
	if u.bad || len(l.start) != names+1 || l.start[0] != 0 || int(l.start[names]) != len(l.flat) || !slices.IsSorted(l.start) {
		u.bad = true
		return lists{}
	}
	return l
}

// unpack reads what is kept of a project; nil where it is not as pack writes it.
func unpack(data []byte) *known {
	if len(data) < len(shelfMark)+4 || string(data[:len(shelfMark)]) != shelfMark {
		return nil
	}
	body := data[:len(data)-4]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(data[len(body):]) {
		return nil
	}
	u := &unpacker{data: body[len(shelfMark):]}
	k := &known{files: u.strings(), naming: map[string][]string{}}
	k.stamps = make([]Stamp, len(k.files))
	for i := range k.stamps {
		if b := u.take(32); b != nil {
			at := func(i int) int64 { return int64(binary.LittleEndian.Uint64(b[8*i:])) }
			k.stamps[i] = Stamp{at(0), at(1), at(2), at(3)}
		}
	}
	named := func(numbers []int32) []string {
		list := make([]string, len(numbers))
		for i, n := range numbers {
			list[i] = k.files[n]
		}
		return list
	}
	bases := u.strings()
	namers := u.lists(len(bases), len(k.files))
	for i, base := range bases {
		if !u.bad {
			k.naming[base] = named(namers.of(int32(i)))
		}
	}
	k.index = u.index(len(k.files), named)
	if u.bad || len(u.data) > 0 {
		return nil
	}
	return k
}

// index reads an index of names. Named are the files that have such numbers, of which there are so many.
func (u *unpacker) index(files int, named func([]int32) []string) *nameIndex {
	ix := &nameIndex{files: named(u.numbers(files)), parts: make([]part, 1)}
	ends := u.numbers(maxShelved)
	text := u.bytes()
	about := u.bytes()
	if u.bad || len(about) != len(ends) || !slices.IsSorted(ends) || len(ends) > 0 && int(ends[len(ends)-1]) != len(text) {
		u.bad = true
		return nil
	}
	ix.names.fill(text, ends)
	ix.about = make([]nameFlags, len(about))
	for i, flags := range about {
		ix.about[i] = nameFlags(flags)
	}
	part := &ix.parts[0]
	part.mains = u.numbers(len(ix.files))
	part.calls = u.lists(len(ends), len(ix.files))
	part.imports = u.lists(len(ends), len(ix.files))
	part.users = u.lists(len(ends), len(ends)<<useBits)
	for _, use := range part.users.flat {
		if useKind(use&(1<<useBits-1)) > sameAs {
			u.bad = true
		}
	}
	return ix
}
