package check

// mentions finds, in one pass over a text, which of many byte strings it contains: an Aho-Corasick automaton, written out as
// a table over the few byte values that occur in the strings at all.
type mentions struct {
	class   [256]uint8 // 0: a byte that no string holds
	classes int
	next    []uint16   // state*classes+class -> state
	ends    [][]uint16 // state -> the strings that end there
	count   int

	// The table that texts are run through: offset of a state + class -> offset of the next, plus one where strings end there.
	// Offsets are even.
	table []uint32
}

// mentionLimit bounds the states of the table; a set that needs more is not searched for, and every file counts as
// containing all of it.
const mentionLimit = 1 << 14

func newMentions(words []string) *mentions {
	m := &mentions{classes: 1, count: len(words)}
	size := 1
	for _, word := range words {
		size += len(word)
		for i := range len(word) {
			if m.class[word[i]] == 0 {
				m.class[word[i]] = uint8(m.classes)
				m.classes++
			}
		}
	}
	if size > mentionLimit || m.classes > 255 {
		return &mentions{count: len(words)}
	}
	m.next = make([]uint16, m.classes, size*m.classes)
	m.ends = make([][]uint16, 1, size)
	for number, word := range words {
		state := 0
		for i := range len(word) {
			at := state*m.classes + int(m.class[word[i]])
			if m.next[at] == 0 {
				m.next[at] = uint16(len(m.ends))
				m.ends = append(m.ends, nil)
				m.next = append(m.next, make([]uint16, m.classes)...)
			}
			state = int(m.next[at])
		}
		m.ends[state] = append(m.ends[state], uint16(number))
	}
	m.link()
	m.compile()
	return m
}

// link turns the tree of the strings into the automaton: where a string does not go on, the longest of its endings does.
func (m *mentions) link() {
	fall := make([]uint16, len(m.ends))
	var queue []uint16
	for c := 1; c < m.classes; c++ {
		if child := m.next[c]; child != 0 {
			queue = append(queue, child)
		}
	}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		m.ends[state] = append(m.ends[state], m.ends[fall[state]]...)
		for c := 1; c < m.classes; c++ {
			at := int(state)*m.classes + c
			onward := m.next[int(fall[state])*m.classes+c]
			if child := m.next[at]; child != 0 {
				fall[child] = onward
				queue = append(queue, child)
			} else {
				m.next[at] = onward
			}
		}
	}
}

// compile makes the table of the automaton.
func (m *mentions) compile() {
	width := (m.classes + 1) &^ 1
	m.table = make([]uint32, len(m.ends)*width)
	for state := range m.ends {
		for c := range m.classes {
			next := m.next[state*m.classes+c]
			offset := uint32(int(next) * width)
			if len(m.ends[next]) > 0 {
				offset++
			}
			m.table[state*width+c] = offset
		}
	}
}

// in reports for each string whether text contains it.
func (m *mentions) in(text []byte) []bool {
	found := make([]bool, m.count)
	if m.next == nil {
		for i := range found {
			found[i] = true
		}
		return found
	}
	missing := m.count
	for _, number := range m.ends[0] { // empty strings
		found[number] = true
		missing--
	}
	width := uint32((m.classes + 1) &^ 1)
	at := uint32(0)
	seen := make([]bool, len(m.ends)) // states whose strings are found already
	for _, b := range text {
		at = m.table[at+uint32(m.class[b])]
		if at&1 == 0 {
			continue
		}
		at--
		state := at / width
		if seen[state] {
			continue
		}
		seen[state] = true
		for _, number := range m.ends[state] {
			if !found[number] {
				found[number] = true
				if missing--; missing == 0 {
					return found
				}
			}
		}
	}
	return found
}
