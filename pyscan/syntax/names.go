package syntax

import (
	"bytes"
	"compress/flate"
	_ "embed" // for the names
	"io"
	"sort"
	"strconv"
	"strings"
	"sync"
)

// nameData is deflated text, sorted, a line for each character that has a name or alias of its own: NAME;HEX. It was
// written by testdata/names.py on CPython 3.14 (Unicode 16.0).
//
//go:embed names.flate
var nameData []byte

// runeNames unpacks nameData when the first \N{...} is met: about a megabyte, and the offset of each line.
var runeNames = sync.OnceValue(func() (names struct {
	text  string
	lines []uint32
}) {
	var text bytes.Buffer
	if _, err := io.Copy(&text, flate.NewReader(bytes.NewReader(nameData))); err != nil {
		return names // cannot be: the data is part of the program, and a test reads it
	}
	names.text = text.String()
	for at := 0; at < len(names.text); at += strings.IndexByte(names.text[at:], '\n') + 1 {
		names.lines = append(names.lines, uint32(at))
	}
	return names
})

// derivedNames are the names that end with the code point.
var derivedNames = []struct {
	prefix string
	ranges [][2]rune
}{
	{"CJK UNIFIED IDEOGRAPH-", [][2]rune{{0x3400, 0x4DBF}, {0x4E00, 0x9FFF}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B739}, {0x2B740, 0x2B81D},
		{0x2B820, 0x2CEA1}, {0x2CEB0, 0x2EBE0}, {0x2EBF0, 0x2EE5D}, {0x30000, 0x3134A}, {0x31350, 0x323AF}}},
	{"CJK COMPATIBILITY IDEOGRAPH-", [][2]rune{{0xF900, 0xFA6D}, {0xFA70, 0xFAD9}, {0x2F800, 0x2FA1D}}},
	{"EGYPTIAN HIEROGLYPH-", [][2]rune{{0x13460, 0x143FA}}},
	{"KHITAN SMALL SCRIPT CHARACTER-", [][2]rune{{0x18B00, 0x18CD5}, {0x18CFF, 0x18CFF}}},
	{"NUSHU CHARACTER-", [][2]rune{{0x1B170, 0x1B2FB}}},
}

// The parts of the names of Hangul syllables, in the order of their code points.
var (
	hangulLeads  = []string{"G", "GG", "N", "D", "DD", "R", "M", "B", "BB", "S", "SS", "", "J", "JJ", "C", "K", "T", "P", "H"}
	hangulVowels = []string{"A", "AE", "YA", "YAE", "EO", "E", "YEO", "YE", "O", "WA", "WAE", "OE", "YO", "U", "WEO", "WE", "WI", "YU", "EU", "YI", "I"}
	hangulTails  = []string{"", "G", "GG", "GS", "N", "NJ", "NH", "D", "L", "LG", "LM", "LB", "LS", "LT", "LP", "LH", "M", "B", "BS", "S", "SS", "NG", "J", "C", "K", "T", "P", "H"}
)

// runeNamed finds the character that \N{name} stands for.
func runeNamed(name string) (rune, bool) {
	if len(name) > 128 {
		return 0, false
	}
	if rest, ok := strings.CutPrefix(name, "HANGUL SYLLABLE "); ok {
		return hangulNamed(rest)
	}
	name = strings.ToUpper(name)
	for _, family := range derivedNames {
		if digits, ok := strings.CutPrefix(name, family.prefix); ok {
			code, err := strconv.ParseInt(digits, 16, 32)
			for _, r := range family.ranges {
				if err == nil && rune(code) >= r[0] && rune(code) <= r[1] {
					return rune(code), true
				}
			}
		}
	}
	names := runeNames()
	key := name + ";"
	i := sort.Search(len(names.lines), func(i int) bool {
		line := names.text[names.lines[i]:]
		line = line[:strings.IndexByte(line, ';')]
		return line >= name
	})
	if i == len(names.lines) || !strings.HasPrefix(names.text[names.lines[i]:], key) {
		return 0, false
	}
	digits := names.text[int(names.lines[i])+len(key):]
	code, err := strconv.ParseInt(digits[:strings.IndexByte(digits, '\n')], 16, 32)
	return rune(code), err == nil
}

func hangulNamed(name string) (rune, bool) {
	for lead, l := range hangulLeads {
		afterLead, ok := strings.CutPrefix(name, l)
		if !ok {
			continue
		}
		for vowel, v := range hangulVowels {
			tail, ok := strings.CutPrefix(afterLead, v)
			if !ok {
				continue
			}
			for i, t := range hangulTails {
				if t == tail {
					return 0xAC00 + rune((lead*len(hangulVowels)+vowel)*len(hangulTails)+i), true
				}
			}
		}
	}
	return 0, false
}
