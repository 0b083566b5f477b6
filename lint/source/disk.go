package source

import (
	"bytes"
	"unicode/utf8"
)

// Spot is a place as a tool counts it that reads the file itself: line and columns from 1, Column in code points, Byte in bytes of
// UTF-8. A byte order mark counts for no column.
type Spot struct{ Line, Column, Byte int }

// OnDisk gives both ends of a span in the file as it lies on disk. It differs from Position in notebooks: there the line is one of the
// JSON, not of the cell.
func (f *File) OnDisk(s Span) (start, end Spot) {
	if f.Kind != Notebook {
		return f.spot(s.Start), f.spot(max(s.Start, s.End))
	}
	f.wholeOnce.Do(func() { f.whole = &File{Path: f.Path, Kind: JSON, Text: bytes.TrimPrefix(f.Raw, bom)} })
	raw, skipped := f.RawSpan(s), uint32(len(f.Raw)-len(f.whole.Text))
	from := max(raw.Start, skipped) - skipped
	return f.whole.spot(from), f.whole.spot(max(from, max(raw.End, skipped)-skipped))
}

func (f *File) spot(offset uint32) Spot {
	offset = min(offset, uint32(len(f.Text)))
	line := f.Line(offset)
	before := f.Text[f.Lines()[line]:offset]
	return Spot{Line: line + 1, Column: utf8.RuneCount(before) + 1, Byte: len(before) + 1}
}
