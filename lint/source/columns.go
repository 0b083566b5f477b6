package source

import "unicode/utf8"

// A file may be one line, and hold a finding for every few bytes of it: the characters before an offset are counted from the last mark on,
// not from the start of the line.
const markStep = 1 << 12

// mark holds how many characters there are, those of two UTF-16 units among them, and those of three bytes and more, before a multiple of
// markStep in the text.
type mark struct{ runes, pairs, wide uint32 }

// counted counts the characters that begin in f.Text[from:to], and those of two UTF-16 units among them.
func (f *File) counted(from, to uint32) (runes, pairs int) {
	m := f.marked(from, to)
	return int(m.runes), int(m.pairs)
}

// rawLen is how many bytes of a recoded file f.Text[from:to] stands for: what stands for two is a character of three bytes.
func (f *File) rawLen(from, to uint32) uint32 {
	m := f.marked(from, to)
	return m.runes + m.wide
}

func (f *File) marked(from, to uint32) mark {
	if to <= from {
		return mark{}
	}
	if to-from < 2*markStep {
		return count(mark{}, f.Text[from:to])
	}
	f.marksOnce.Do(func() {
		f.marks = make([]mark, 1, 1+len(f.Text)/markStep)
		for at := 0; at+markStep <= len(f.Text); at += markStep {
			f.marks = append(f.marks, count(f.marks[len(f.marks)-1], f.Text[at:at+markStep]))
		}
	})
	before := func(offset uint32) mark {
		n := offset / markStep
		return count(f.marks[n], f.Text[n*markStep:offset])
	}
	start, end := before(from), before(to)
	return mark{end.runes - start.runes, end.pairs - start.pairs, end.wide - start.wide}
}

// count adds the characters that begin in a text, which is valid UTF-8 but for its ends.
func count(m mark, text []byte) mark {
	for _, b := range text {
		if utf8.RuneStart(b) {
			m.runes++
		}
		if b >= 0xF0 {
			m.pairs++
		}
		if b >= 0xE0 {
			m.wide++
		}
	}
	return m
}
