package source

import "strings"

// OwnLines are the lines of a Python statement with their line break, and its indentation, where nothing else but a
// comment stands on them.
func (f *File) OwnLines(stmt Span) (lines Span, indent string, ok bool) {
	if stmt.End <= stmt.Start {
		return Span{}, "", false
	}
	first, last := f.LineSpan(f.Line(stmt.Start)), f.LineSpan(f.Line(stmt.End-1))
	indent = f.Slice(Span{first.Start, stmt.Start})
	rest := strings.TrimLeft(f.Slice(Span{stmt.End, last.End}), " \t")
	if strings.Trim(indent, " \t") != "" || rest != "" && rest[0] != '#' {
		return Span{}, "", false
	}
	lines = Span{first.Start, uint32(len(f.Text))}
	if next := f.Line(stmt.End-1) + 1; next < len(f.Lines()) {
		lines.End = f.Lines()[next]
	}
	return lines, indent, true
}

// LineEnd is the end of the line on which a span ends, comment included and line break left out.
func (f *File) LineEnd(s Span) uint32 {
	last := s.Start
	if s.End > s.Start {
		last = s.End - 1
	}
	return f.LineSpan(f.Line(last)).End
}
