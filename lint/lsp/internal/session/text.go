package session

import (
	"sort"
	"unicode/utf8"

	"go.lsp.dev/protocol"
)

// Encoding is the unit in which an editor counts the columns of a line.
type Encoding uint8

// The encodings. Editors that do not say which one they want mean UTF-16.
const (
	UTF16 Encoding = iota
	UTF8
	UTF32
)

// Kind is the name of the encoding in the protocol.
func (e Encoding) Kind() protocol.PositionEncodingKind {
	return [...]protocol.PositionEncodingKind{UTF16: protocol.PositionEncodingKindUTF16, UTF8: protocol.PositionEncodingKindUTF8, UTF32: protocol.PositionEncodingKindUTF32}[e]
}

// width is how many units of the encoding a character takes that has size bytes.
func (e Encoding) width(r rune, size int) int {
	switch {
	case e == UTF8:
		return size
	case e == UTF16 && r > 0xFFFF:
		return 2
	}
	return 1
}

// Text is a text as an editor counts in it. It is immutable.
type Text struct {
	content string
	lines   []int // offset of the first byte of each line; \n, \r\n and a lone \r end one
}

// NewText prepares a text for counting.
func NewText(content string) *Text {
	lines := make([]int, 1, 1+len(content)/32)
	for i := 0; i < len(content); i++ {
		switch content[i] {
		case '\r':
			if i+1 < len(content) && content[i+1] == '\n' {
				i++
			}
			lines = append(lines, i+1)
		case '\n':
			lines = append(lines, i+1)
		}
	}
	return &Text{content, lines}
}

// String is the text itself.
func (t *Text) String() string { return t.content }

// line is the span in bytes of line n without its end.
func (t *Text) line(n int) (start, end int) {
	start, end = t.lines[n], len(t.content)
	if n+1 < len(t.lines) {
		end = t.lines[n+1]
		if end > start && t.content[end-1] == '\n' {
			end--
		}
		if end > start && t.content[end-1] == '\r' {
			end--
		}
	}
	return start, end
}

// Offset is the byte at a position. What lies beyond the end of a line is the end of the line, and what lies beyond the last
// line the end of the text; a position inside of a character is that character's start.
func (t *Text) Offset(at protocol.Position, encoding Encoding) int {
	if uint64(at.Line) >= uint64(len(t.lines)) {
		return len(t.content)
	}
	offset, end := t.line(int(at.Line))
	for left := int64(at.Character); left > 0 && offset < end; {
		r, size := utf8.DecodeRuneInString(t.content[offset:end])
		left -= int64(encoding.width(r, size))
		if left < 0 {
			break
		}
		offset += size
	}
	return offset
}

// Position is where a byte stands.
func (t *Text) Position(offset int, encoding Encoding) protocol.Position {
	offset = max(0, min(offset, len(t.content)))
	n := sort.SearchInts(t.lines, offset+1) - 1
	start, end := t.line(n)
	column := 0
	for at := start; at < min(offset, end); {
		r, size := utf8.DecodeRuneInString(t.content[at:])
		if at+size > offset { // inside of a character
			break
		}
		column += encoding.width(r, size)
		at += size
	}
	return protocol.Position{Line: uint32(n), Character: uint32(column)}
}

// Range is the range of a span of bytes.
func (t *Text) Range(start, end int, encoding Encoding) protocol.Range {
	return protocol.Range{Start: t.Position(start, encoding), End: t.Position(max(start, end), encoding)}
}

// Change is one edit of a text: all of it, or a range.
type Change struct {
	Range *protocol.Range // nil: the whole text
	Text  string
}

// Apply makes changes one after another, each to the result of the one before.
func (t *Text) Apply(changes []Change, encoding Encoding) *Text {
	for _, change := range changes {
		if change.Range == nil {
			t = NewText(change.Text)
			continue
		}
		start, end := t.Offset(change.Range.Start, encoding), t.Offset(change.Range.End, encoding)
		if end < start {
			start, end = end, start
		}
		t = NewText(t.content[:start] + change.Text + t.content[end:])
	}
	return t
}
