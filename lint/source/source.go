// Package source holds the text of one input file and everything about positions in it.
//
// Text is always UTF-8 without a byte order mark, and every span in trainvet counts bytes of that text. This is the only
// package that converts them: to lines and columns in Unicode code points (the command line), to UTF-16 (editors), to
// bytes of the file on disk (fixes, JSON offsets) and to notebook cells.
package source

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
	"sync"
	"unsafe"
)

// MaxSize bounds the size in bytes of a file that is read. Larger files are reported as unreadable.
const MaxSize = 64 << 20

// Bounds of the text of some kinds, bytes: their trees may take a hundred times as much. Other kinds bound their values and depth. The
// largest sources that people write are a tenth of this.
const (
	MaxPython = 5 << 20 // of a notebook, the text of its code cells
	MaxScript = 4 << 20 // shell, Dockerfile and requirements
)

// maxText is the bound of the text of a kind, bytes.
func maxText(kind Kind) int {
	switch kind {
	case Python, Notebook:
		return MaxPython
	case Shell, Dockerfile, Requirements:
		return MaxScript
	}
	return MaxSize
}

// Span is the half-open range [Start, End) of bytes in File.Text.
type Span struct{ Start, End uint32 }

// Len is the length of the span in bytes.
func (s Span) Len() int { return int(s.End) - int(s.Start) }

// Contains reports whether other lies wholly inside s.
func (s Span) Contains(other Span) bool { return s.Start <= other.Start && other.End <= s.End }

// Cover is the smallest span that holds both.
func (s Span) Cover(other Span) Span {
	return Span{min(s.Start, other.Start), max(s.End, other.End)}
}

// Place is a span in a named file. Path is the path as given, with forward slashes.
type Place struct {
	Path string
	Span Span
}

// IsZero reports whether the place names no file.
func (p Place) IsZero() bool { return p.Path == "" }

// Kind says which reader a file is for. It is guessed from the name and, for scripts, from the first line.
type Kind uint8

// The kinds of files that trainvet reads.
const (
	Other Kind = iota // read only when named explicitly, by its content
	Python
	Notebook
	JSON
	YAML
	TOML
	Shell
	Requirements // the packages that a project asks for, in pip's form or that of setup.cfg
	Dockerfile
)

var kindNames = [...]string{"other", "python", "notebook", "json", "yaml", "toml", "shell", "requirements", "dockerfile"}

func (k Kind) String() string { return kindNames[k] }

// IsPython holds for Python, in cells or not.
func (k Kind) IsPython() bool { return k == Python || k == Notebook }

// Segment maps a stretch of Text to the bytes it came from. Inside a segment both sides have the same length unless the
// bytes were recoded, in which case each text rune stands for one raw byte, or for two.
type Segment struct {
	Text, Raw Span
	Cell      int32 // notebook cell, from 1; 0 outside notebooks
}

// File is one decoded input. It is immutable.
type File struct {
	Path     string // as given, with forward slashes
	Kind     Kind
	Text     []byte
	Segments []Segment // empty: text and raw bytes are the same
	Latin1   bool      // the raw bytes are Latin-1 or read as if: each rune stands for one byte, or for two
	pairs    bool      // of a file with Latin1: two bytes may be one rune
	Raw      []byte    // the bytes on disk; shares memory with Text where they are equal
	Commands []byte    // of a notebook with commands for a shell: these at their places, and blanks in place of all else
	Fault    string    // of a notebook that does not parse: why; its Text is empty
	padded   string    // what Padded gives, where that lies in Raw

	linesOnce sync.Once
	lines     []uint32 // offset of the first byte of each line
	marksOnce sync.Once
	marks     []mark
	wholeOnce sync.Once
	whole     *File // of a notebook, the JSON around the cells

	asked   sync.Mutex
	number  map[string]int // words that were looked for at once
	found   Numbers        // those that are there
	answers []answer       // of Has, for other words

	meanings string // of its names, where settings give them some
}

// Doc is what suppression comments need to know of a parsed file.
type Doc interface {
	// Comments are the spans of all comments, marker included, in file order.
	Comments() []Span
	// Extent is the span of the next statement or key at or after offset, with its whole block or value.
	Extent(offset uint32) Span
}

// Position is a place in the terms of a person: line and column from 1, the column in code points, Offset in raw bytes
// from 0. Cell is the notebook cell from 1, or 0; in a notebook the line counts within the cell.
type Position struct{ Line, Column, Offset, Cell int }

// Lines gives the offset of the first byte of each line. A line ends after \n, \r\n or a lone \r.
func (f *File) Lines() []uint32 {
	f.linesOnce.Do(func() {
		starts := make([]uint32, 1, 1+len(f.Text)/32)
		for i := 0; i < len(f.Text); i++ {
			switch f.Text[i] {
			case '\n':
				starts = append(starts, uint32(i+1))
			case '\r':
				if i+1 < len(f.Text) && f.Text[i+1] == '\n' {
					i++
				}
				starts = append(starts, uint32(i+1))
			}
		}
		f.lines = starts
	})
	return f.lines
}

// Line is the number from 0 of the line that holds offset.
func (f *File) Line(offset uint32) int {
	lines := f.Lines()
	return sort.Search(len(lines), func(i int) bool { return lines[i] > offset }) - 1
}

// LineSpan is the span of line n (from 0) without its line end.
func (f *File) LineSpan(n int) Span {
	lines := f.Lines()
	if n < 0 || n >= len(lines) {
		end := uint32(len(f.Text))
		return Span{end, end}
	}
	end := uint32(len(f.Text))
	if n+1 < len(lines) {
		end = lines[n+1]
	}
	for end > lines[n] && (f.Text[end-1] == '\n' || f.Text[end-1] == '\r') {
		end--
	}
	return Span{lines[n], end}
}

// Position converts a byte offset in Text for people and for the JSON contract.
func (f *File) Position(offset uint32) Position {
	offset = min(offset, uint32(len(f.Text)))
	line := f.Line(offset)
	before, _ := f.counted(f.Lines()[line], offset)
	at := Position{Line: line + 1, Column: before + 1, Offset: f.RawOffset(offset)}
	if seg := f.segment(offset); seg != nil && seg.Cell > 0 {
		first := sort.Search(len(f.Segments), func(i int) bool { return f.Segments[i].Cell >= seg.Cell })
		at.Cell = int(seg.Cell)
		at.Line = line - f.Line(f.Segments[first].Text.Start) + 1
	}
	return at
}

// UTF16 converts a byte offset to a line and a column in UTF-16 units, both from 0, as editors count.
func (f *File) UTF16(offset uint32) (line, column int) {
	offset = min(offset, uint32(len(f.Text)))
	line = f.Line(offset)
	runes, pairs := f.counted(f.Lines()[line], offset)
	return line, runes + pairs
}

// segment is the segment that holds the byte at offset, or the last one; nil where text and raw bytes are the same.
func (f *File) segment(offset uint32) *Segment {
	if len(f.Segments) == 0 {
		return nil
	}
	i := sort.Search(len(f.Segments), func(i int) bool { return f.Segments[i].Text.End > offset })
	if i == len(f.Segments) {
		i--
	}
	return &f.Segments[i]
}

// RawOffset converts the offset of a byte in Text to one in the file on disk. Where one byte on disk became several, or
// several one, it is the start of what they came from.
func (f *File) RawOffset(offset uint32) int {
	seg := f.segment(offset)
	switch {
	case seg == nil:
		return int(offset)
	case offset <= seg.Text.Start:
		return int(seg.Raw.Start)
	case offset >= seg.Text.End:
		return int(seg.Raw.End)
	case f.Latin1:
		return int(seg.Raw.Start + f.rawLen(seg.Text.Start, offset))
	case seg.Text.Len() != seg.Raw.Len():
		return int(seg.Raw.Start)
	}
	return int(seg.Raw.Start) + int(offset-seg.Text.Start)
}

// RawSpan converts a span of Text to bytes of the file on disk.
func (f *File) RawSpan(s Span) Span {
	start := uint32(f.RawOffset(s.Start))
	if s.End <= s.Start || len(f.Segments) == 0 {
		return Span{start, uint32(f.RawOffset(s.End))}
	}
	seg := f.segment(s.End - 1) // the end belongs to the last byte of the span, not to the one behind it
	switch {
	case s.End >= seg.Text.End, seg.Text.Len() != seg.Raw.Len() && !f.Latin1:
		return Span{start, seg.Raw.End}
	case f.Latin1:
		return Span{start, seg.Raw.Start + f.rawLen(seg.Text.Start, s.End)}
	}
	return Span{start, seg.Raw.Start + s.End - seg.Text.Start}
}

// Padding is how many zero bytes Padded has behind the text.
const Padding = 4

// Padded is the text with zero bytes behind it, for a scanner that looks ahead without asking for the end. It is a copy, unless Decode was given
// room for them.
func (f *File) Padded() string {
	if f.padded != "" {
		return f.padded
	}
	var text strings.Builder
	text.Grow(len(f.Text) + Padding)
	text.Write(f.Text)
	text.Write(make([]byte, Padding))
	return text.String()
}

// pad makes Padded of the bytes of a file without a copy, where zero bytes lie behind them: a copy of all texts is a twentieth of the memory of
// a check. Nothing can be appended to them from then on.
func (f *File) pad() {
	n := len(f.Raw)
	if cap(f.Raw)-n < Padding {
		return
	}
	for _, b := range f.Raw[n : n+Padding] {
		if b != 0 {
			return
		}
	}
	start := n - len(f.Text)
	f.padded = unsafe.String(&f.Raw[start : n+Padding][0], len(f.Text)+Padding)
	f.Raw = f.Raw[:n:n]
	f.Text = f.Raw[start:]
}

// Has reports whether the text holds a word, without copying the text; or what its names mean (Mean) holds it.
func (f *File) Has(word string) bool {
	f.asked.Lock()
	defer f.asked.Unlock()
	if f.meanings != "" && strings.Contains(f.meanings, word) {
		return true
	}
	if i, known := f.number[word]; known {
		return f.found.Has(i)
	}
	for _, known := range f.answers {
		if known.word == word {
			return known.has
		}
	}
	has := bytes.Contains(f.Text, []byte(word))
	f.answers = append(f.answers, answer{word, has})
	return has
}

// Mean tells the file what its names may stand for besides what they say: Has is true for each word in that.
func (f *File) Mean(meanings string) {
	f.asked.Lock()
	defer f.asked.Unlock()
	f.meanings = meanings
}

// Know tells the file which of many words it holds, by their numbers, so that Has need not look for them. Neither is changed from then on.
func (f *File) Know(number map[string]int, found Numbers) {
	f.asked.Lock()
	defer f.asked.Unlock()
	f.number, f.found = number, found
}

// answer is one of Has, kept because the same few words are asked for again and again.
type answer struct {
	word string
	has  bool
}

// Slice is the text of a span.
func (f *File) Slice(s Span) string {
	end := min(s.End, uint32(len(f.Text)))
	return string(f.Text[min(s.Start, end):end])
}

// At is the place of a span in this file.
func (f *File) At(s Span) Place { return Place{f.Path, s} }

func (p Position) String() string {
	if p.Cell > 0 {
		return fmt.Sprintf("cell %d:%d:%d", p.Cell, p.Line, p.Column)
	}
	return fmt.Sprintf("%d:%d", p.Line, p.Column)
}
