package check

import (
	"bytes"
	"encoding/binary"

	"github.com/trainvet/trainvet/lint/source"
)

// mentions finds, in one pass over a text, which of many byte strings it contains. It looks at every other place of the text: wherever a string
// of at least minSifted bytes stands, one of two neighbouring trigrams of it begins at such a place. Those are taken of each string that text
// has seldom. The few strings that are shorter are looked for one by one.
type mentions struct {
	sieve
	count int
	short []tail
}

// minSifted is the length of two neighbouring trigrams.
const minSifted = 4 // bytes

func newMentions(words []string) *mentions {
	m := &mentions{count: len(words)}
	m.words = make([][]tail, 1)
	for number, word := range words {
		if len(word) < minSifted {
			m.short = append(m.short, newTail(word, number, 0))
			continue
		}
		m.add(word, number, 2)
	}
	return m
}

// in gives the numbers of the strings that text contains.
func (m *mentions) in(text []byte) source.Numbers {
	found := source.NewNumbers(m.count)
	for _, t := range m.short {
		if bytes.Contains(text, []byte(t.word)) {
			found.Add(t.number)
		}
	}
	at := 0
	for ; at+8 <= len(text); at += 6 { // three places at a time
		eight := binary.LittleEndian.Uint64(text[at : at+8])
		one, two, three := m.slots[hashThree(uint32(eight))], m.slots[hashThree(uint32(eight>>16))], m.slots[hashThree(uint32(eight>>32))]
		if one|two|three == 0 {
			continue
		}
		for i, slot := range [...]uint16{one, two, three} {
			if slot != 0 {
				m.mark(found, text, at+2*i, slot)
			}
		}
	}
	for ; at+3 <= len(text); at += 2 {
		m.mark(found, text, at, m.slots[hashThree(uint32(text[at])|uint32(text[at+1])<<8|uint32(text[at+2])<<16)])
	}
	return found
}

// mark notes the strings of a slot that stand around a place.
func (m *mentions) mark(found source.Numbers, text []byte, at int, slot uint16) {
	tails := m.words[slot]
	for i := range tails {
		if t := &tails[i]; !found.Has(t.number) && t.at(text, at) {
			found.Add(t.number)
		}
	}
}
