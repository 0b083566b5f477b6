package check

import (
	"bytes"
	"encoding/binary"
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
			m.short = append(m.short, tail{word: word, number: number})
			continue
		}
		m.add(word, number, 2)
	}
	return m
}

// in reports for each string whether text contains it.
func (m *mentions) in(text []byte) []bool {
	found := make([]bool, m.count)
	for _, t := range m.short {
		found[t.number] = bytes.Contains(text, []byte(t.word))
	}
	at := 0
	for ; at+8 <= len(text); at += 6 { // three places at a time
		eight := binary.LittleEndian.Uint64(text[at:])
		one, two, three := hashThree(uint32(eight)&0xFFFFFF), hashThree(uint32(eight>>16)&0xFFFFFF), hashThree(uint32(eight>>32)&0xFFFFFF)
		if (m.may[one/64]>>(one%64)|m.may[two/64]>>(two%64)|m.may[three/64]>>(three%64))&1 == 0 {
			continue
		}
		for i, hash := range [...]uint32{one, two, three} {
			if m.may[hash/64]>>(hash%64)&1 != 0 {
				m.mark(found, text, at+2*i, hash)
			}
		}
	}
	for ; at+3 <= len(text); at += 2 {
		m.mark(found, text, at, hashThree(uint32(text[at])|uint32(text[at+1])<<8|uint32(text[at+2])<<16))
	}
	return found
}

// mark notes the strings around a place where three bytes of them may stand, going by their hash.
func (m *mentions) mark(found []bool, text []byte, at int, hash uint32) {
	for _, t := range m.words[m.slots[hash]] {
		if !found[t.number] && t.at(text, at) {
			found[t.number] = true
		}
	}
}
