package source

import (
	"strings"
	"testing"
)

func TestOwnLines(t *testing.T) {
	const text = "if x:\n\tstep(\n\t\ta,  # one\n\t)  # two\n\tstep(); other()\nx = 1 # three"
	file, err := New("a.py", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	at := func(part string) Span {
		start := uint32(strings.Index(text, part))
		return Span{start, start + uint32(len(part))}
	}
	for _, c := range []struct {
		stmt, lines, indent, rest string
		ok                        bool
	}{
		{"step(\n\t\ta,  # one\n\t)", "\tstep(\n\t\ta,  # one\n\t)  # two\n", "\t", "  # two", true},
		{"step()", "", "", "; other()", false},
		{"other()", "", "", "", false},
		{"x = 1", "x = 1 # three", "", " # three", true},
	} {
		stmt := at(c.stmt)
		lines, indent, ok := file.OwnLines(stmt)
		if file.Slice(lines) != c.lines || indent != c.indent || ok != c.ok {
			t.Errorf("%q: %q %q %v, want %q %q %v", c.stmt, file.Slice(lines), indent, ok, c.lines, c.indent, c.ok)
		}
		if end := file.LineEnd(stmt); text[stmt.End:end] != c.rest {
			t.Errorf("%q: the rest of its line is %q, want %q", c.stmt, text[stmt.End:end], c.rest)
		}
	}
}
