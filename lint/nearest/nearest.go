// Package nearest finds the known word that a misspelt one most likely meant.
package nearest

import (
	"cmp"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// Of gives the one of words that is closest to word, or "" when none is close: at most two slips (a letter wrong, missing,
// added, or two neighbours exchanged), or a third of the word's length where that is more; never more than half of it.
// Upper and lower case, '-' and '_' are alike. Of equally close words the first counts.
func Of(word string, words []string) string {
	length := utf8.RuneCountInString(word)
	return Within(word, words, min(max(2, length/3), length/2))
}

// Within is Of for at most limit slips.
func Within(word string, words []string, limit int) string { return within(word, words, nil, limit) }

// List is words that many others are compared with.
type List struct {
	Words    []string
	letters  []letters
	byLength []int // numbers of the words, shorter ones first; nil where not all are ASCII
}

// NewList is a list of words, which are not changed from then on.
func NewList(words []string) *List {
	l := &List{Words: words, letters: make([]letters, len(words))}
	ascii := true
	for i, word := range words {
		l.letters[i] = lettersOf(word)
		ascii = ascii && l.letters[i].ascii
		l.byLength = append(l.byLength, i)
	}
	slices.SortStableFunc(l.byLength, func(a, b int) int { return cmp.Compare(len(words[a]), len(words[b])) })
	if !ascii {
		l.byLength = nil
	}
	return l
}

// Within is the function of that name.
func (l *List) Within(word string, limit int) string {
	own := lettersOf(word)
	if l.byLength == nil || !own.ascii {
		return within(word, l.Words, l.letters, limit)
	}
	var m matcher
	var given []rune
	best := -1
	first, _ := slices.BinarySearchFunc(l.byLength, len(word)-limit, func(i, length int) int { return cmp.Compare(len(l.Words[i]), length) })
	for _, i := range l.byLength[first:] {
		if len(l.Words[i]) > len(word)+limit {
			break
		}
		if !own.near(l.letters[i], limit) {
			continue
		}
		if given == nil {
			given = plain(nil, word)
		}
		m.other = plain(m.other[:0], l.Words[i])
		if d := m.distance(given, limit); d < limit || d == limit && (best < 0 || i < best) { // of equally close words the first counts
			best, limit = i, d
		}
	}
	if best < 0 {
		return ""
	}
	return l.Words[best]
}

func within(word string, words []string, known []letters, limit int) string {
	var m matcher
	given := plain(nil, word)
	own := lettersOf(word)
	best := ""
	for i, candidate := range words {
		if limit < 0 {
			break
		}
		// A rune is at most four bytes long, so that this leaves out no word that is close.
		if len(candidate) < len(given)-limit || len(candidate) > utf8.UTFMax*(len(given)+limit) {
			continue
		}
		var theirs letters
		if known != nil {
			theirs = known[i]
		} else {
			theirs = lettersOf(candidate)
		}
		if own.ascii && theirs.ascii && !own.near(theirs, limit) {
			continue
		}
		m.other = plain(m.other[:0], candidate)
		if d := m.distance(given, limit); d <= limit {
			best, limit = candidate, d-1
		}
	}
	return best
}

// letters are the set of the letters of a word in their compared form, some alike; ascii is false for a word with others than ASCII.
type letters struct {
	set   uint64
	ascii bool
}

// near is false for words that so many slips do not make of each other: each takes away or brings in one letter at most.
func (l letters) near(other letters, slips int) bool {
	return bits.OnesCount64(l.set&^other.set) <= slips && bits.OnesCount64(other.set&^l.set) <= slips
}

func lettersOf(word string) (l letters) {
	for i := range len(word) {
		c := word[i]
		switch {
		case c >= utf8.RuneSelf:
			return letters{}
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case c == '_':
			c = '-'
		}
		l.set |= 1 << (c & 63)
	}
	l.ascii = true
	return l
}

// plain appends the compared form of a word: lower case of ASCII, with '-' for '_'.
func plain(runes []rune, word string) []rune {
	for _, r := range word {
		switch {
		case 'A' <= r && r <= 'Z':
			r += 'a' - 'A'
		case r == '_':
			r = '-'
		}
		runes = append(runes, r)
	}
	return runes
}

// matcher compares one word with many, in memory that it uses again.
type matcher struct {
	other             []rune
	before, last, row []int
}

// distance is the optimal string alignment distance of a to the other word, or any number above limit where it is more.
func (m *matcher) distance(a []rune, limit int) int {
	b := m.other
	if abs(len(a)-len(b)) > limit {
		return limit + 1
	}
	if cap(m.row) <= len(b) {
		m.before, m.last, m.row = make([]int, 2*len(b)+1), make([]int, 2*len(b)+1), make([]int, 2*len(b)+1)
	}
	before, last, row := m.before[:len(b)+1], m.last[:len(b)+1], m.row[:len(b)+1]
	for j := range last {
		last[j] = j
	}
	leastBefore := 0
	for i := 1; i <= len(a); i++ {
		// Cells further than limit from the diagonal are above it whatever the letters are.
		from, to := max(1, i-limit), min(len(b), i+limit)
		row[0] = i
		if from > 1 {
			row[from-1] = limit + 1
		}
		least := limit + 1
		for j := from; j <= to; j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(row[j-1]+1, last[j-1]+cost)
			if j < i+limit {
				d = min(d, last[j]+1)
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, before[j-2]+1)
			}
			row[j] = d
			least = min(least, d)
		}
		if from == 1 {
			least = min(least, i)
		}
		if least > limit && leastBefore > limit {
			return limit + 1 // a step goes back one row, or two for an exchange
		}
		leastBefore = least
		before, last, row = last, row, before
	}
	return last[len(b)]
}

func abs(n int) int { return max(n, -n) }
