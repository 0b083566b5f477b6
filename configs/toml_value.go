package configs

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/trainvet/trainvet/lint/source"
)

// value reads one value. end closes the text it stands in, unless the value is in brackets of its own.
func (r *tomlReader) value(path string, end byte) *Node {
	start := r.pos
	r.count(start)
	if r.pos >= len(r.text) || r.stopped {
		start = min(start, len(r.text))
		r.fault(start, start, nil, "no value after the =")
		return &Node{Kind: Invalid, At: r.place(start, start)}
	}
	switch c := r.text[r.pos]; {
	case bytes.HasPrefix(r.text[r.pos:], []byte("{{")), bytes.HasPrefix(r.text[r.pos:], []byte("{%")), bytes.HasPrefix(r.text[r.pos:], []byte("${")):
		return r.placeholder()
	case c == '"' || c == '\'':
		raw, style := r.quoted()
		return &Node{Kind: Scalar, Style: style, Raw: raw, At: r.place(start, r.pos), Open: style != Block && isInterpolated(raw)}
	case c == '[' || c == '{':
		if r.depth >= MaxDepth {
			r.stop(start, "nested deeper than %d levels; the rest is not read", MaxDepth)
			return &Node{Kind: Invalid, At: r.place(start, start)}
		}
		r.depth++
		defer func() { r.depth-- }()
		if c == '[' {
			return r.array(path)
		}
		return r.inline(path)
	}
	return r.bare(end)
}

// array reads [a, b]; line breaks and comments may stand inside.
func (r *tomlReader) array(path string) *Node {
	start := r.pos
	n := &Node{Kind: Sequence, Style: Flow}
	r.pos++
	for {
		r.blanks(true)
		if r.pos >= len(r.text) || r.looksNew() {
			r.fault(start, start+1, nil, "this [ is never closed")
			n.Open = true
			break
		}
		if r.text[r.pos] == ']' {
			r.pos++
			break
		}
		if r.text[r.pos] == ',' {
			r.fault(r.pos, r.pos+1, nil, "a value is expected before this comma")
			r.pos++
			continue
		}
		before := r.pos
		n.Items = append(n.Items, Item{Value: r.value(path, ']')})
		at := r.pos
		r.blanks(true)
		switch {
		case r.pos >= len(r.text) || r.text[r.pos] == ']':
		case r.text[r.pos] == ',':
			r.pos++
		case r.pos == before || r.text[r.pos] == '}':
			r.fault(r.pos, r.pos+1, nil, "%q is not expected in an array", r.text[r.pos:r.pos+1])
			r.pos++
		case !r.looksNew():
			r.fault(at, at, &Fix{"Add the comma", source.Span{Start: uint32(at), End: uint32(at)}, ","}, "a comma is missing after this value")
		}
	}
	end := r.pos
	if n.Open {
		end = start + 1
		if len(n.Items) > 0 {
			end = int(n.Items[len(n.Items)-1].Value.At.Span.End)
		}
		r.pos = end
	}
	n.At = r.place(start, end)
	return n
}

var newStatement = source.Pattern(`^(?:[A-Za-z_][A-Za-z0-9_.-]*[ \t]*=|\[\[?[A-Za-z_][A-Za-z0-9_.-]*\]\]?[ \t]*(?:#|\r?\n|$))`)

// looksNew reports whether a new entry or header begins a line at the position, though a bracket is still open.
func (r *tomlReader) looksNew() bool {
	if r.pos == 0 || lineBreak(r.text, r.pos-1) == 0 {
		return false
	}
	return newStatement().Match(r.text[r.pos:r.lineEnd(r.pos)])
}

// inline reads {a = 1, b = 2}.
func (r *tomlReader) inline(path string) *Node {
	start := r.pos
	n := &Node{Kind: Mapping, Style: Flow}
	r.pos++
	for {
		r.blanks(true)
		if r.pos >= len(r.text) {
			r.fault(start, start+1, nil, "this { is never closed")
			n.Open = true
			break
		}
		if c := r.text[r.pos]; c == '}' {
			r.pos++
			break
		} else if c == ',' || c == ']' {
			r.fault(r.pos, r.pos+1, nil, "an entry is expected before this %c", c)
			r.pos++
			continue
		}
		before := r.pos
		r.entry(n, path, '}')
		at := r.pos
		r.blanks(true)
		switch {
		case r.pos >= len(r.text) || r.text[r.pos] == '}':
		case r.text[r.pos] == ',':
			r.pos++
		case r.pos == before:
			r.pos++
		default:
			r.fault(start, start+1, nil, "this { is never closed, or a comma is missing in it")
			n.Open = true
			r.pos = max(r.lineEnd(before), at)
		}
		if n.Open {
			break
		}
	}
	n.At = r.place(start, min(max(r.pos, start+1), len(r.text)))
	return n
}

var (
	tomlScalar = source.Pattern(`^(?:true|false|[-+]?(?:0|[1-9](?:_?[0-9])*)|0x[0-9a-fA-F](?:_?[0-9a-fA-F])*|0o[0-7](?:_?[0-7])*|0b[01](?:_?[01])*` +
		`|[-+]?(?:0|[1-9](?:_?[0-9])*)(?:\.[0-9](?:_?[0-9])*)?(?:[eE][-+]?[0-9](?:_?[0-9])*)?|[-+]?(?:inf|nan)` +
		`|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[Tt ][0-9]{2}:[0-9]{2}.*)?|[0-9]{2}:[0-9]{2}.*)$`)
	tomlWords = map[string]string{"True": "true", "TRUE": "true", "yes": "true", "on": "true", "False": "false", "FALSE": "false", "no": "false", "off": "false"}
)

// bare reads a number, truth value or date, or text whose quotes are missing.
func (r *tomlReader) bare(end byte) *Node {
	start := r.pos
	stops := "#\r\n"
	if end == ']' || end == '}' {
		stops += ",]}"
	}
	for r.pos < len(r.text) && strings.IndexByte(stops, r.text[r.pos]) < 0 {
		r.pos++
	}
	r.pos = start + len(bytes.TrimRight(r.text[start:r.pos], " \t"))
	raw := string(r.text[start:r.pos])
	at := r.place(start, r.pos)
	n := &Node{Kind: Scalar, Raw: raw, At: at}
	switch word := tomlWords[raw]; {
	case raw == "":
		n.Kind = Invalid
		r.fault(start, start, nil, "no value after the =")
	case tomlScalar().MatchString(raw):
	case word != "":
		n.Style = Unquoted
		r.fault(start, r.pos, &Fix{"Write " + word, at.Span, word}, "%s is not TOML; write %s", raw, word)
	case raw == "None" || raw == "null" || raw == "nil" || raw == "~":
		n.Kind = Invalid
		r.fault(start, r.pos, nil, "TOML has no null; leave the key out")
	case strings.IndexByte("0123456789.+-", raw[0]) >= 0 && !strings.ContainsAny(raw, " /"):
		n.Style = Unquoted
		_, clean := describeWord(raw)
		var fix *Fix
		if clean != "" && clean[0] != '"' {
			fix = &Fix{"Write " + clean, at.Span, clean}
		}
		r.fault(start, r.pos, fix, "`%s` is no number in TOML", raw)
	default:
		n.Style = Unquoted
		quoted := quoteJSON(raw)
		r.fault(start, r.pos, &Fix{"Put it in quotes", at.Span, quoted}, "text without quotes; TOML wants %s", quoted)
	}
	return n
}

// placeholder reads a value that is filled in before the file is loaded, to the end of the line or the next comma.
func (r *tomlReader) placeholder() *Node {
	start := r.pos
	for r.pos < len(r.text) && strings.IndexByte("#,\r\n", r.text[r.pos]) < 0 {
		switch {
		case bytes.HasPrefix(r.text[r.pos:], []byte("{{")), bytes.HasPrefix(r.text[r.pos:], []byte("{%")):
			r.pos = templateEnd(r.text, r.pos)
		default:
			r.pos++
		}
	}
	r.pos = max(start+len(bytes.TrimRight(r.text[start:r.pos], " \t\r\n")), start+1)
	r.template(start, r.pos)
	r.faulted()
	return &Node{Kind: Scalar, Style: Unquoted, Raw: string(r.text[start:r.pos]), Open: true, At: r.place(start, r.pos)}
}

// faulted marks the statement as one that the library need not judge.
func (r *tomlReader) faulted() {
	if r.faulty == nil {
		r.faulty = map[int]bool{}
	}
	r.faulty[len(r.statements)] = true
}

// quoted reads a string in one of the four forms. One that is not closed ends with its line.
func (r *tomlReader) quoted() (string, Style) {
	start := r.pos
	quote := r.text[start]
	style := DoubleQuoted
	if quote == '\'' {
		style = SingleQuoted
	}
	triple := strings.Repeat(string(quote), 3)
	if bytes.HasPrefix(r.text[start:], []byte(triple)) {
		return r.multiline(triple), Block
	}
	for i := start + 1; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case c == '\\' && quote == '"':
			i++
		case c == quote:
			r.pos = i + 1
			return r.unescape(start+1, i, quote == '"', false), style
		case c == '\n' || c == '\r':
			return r.unclosed(start), style
		}
	}
	return r.unclosed(start), style
}

func (r *tomlReader) unclosed(start int) string {
	end := start + len(bytes.TrimRight(r.text[start:r.lineEnd(start)], " \t,"))
	end = max(end, start+1)
	quote := string(r.text[start])
	r.fault(start, end, &Fix{"Close the string", source.Span{Start: uint32(end), End: uint32(end)}, quote}, "this string is not closed")
	r.pos = end
	return string(r.text[start+1 : end])
}

// multiline reads a string in three quotes. Up to two quotes more may stand before the last three.
func (r *tomlReader) multiline(triple string) string {
	start := r.pos
	i := start + 3
	for ; i < len(r.text); i++ {
		if triple[0] == '"' && r.text[i] == '\\' {
			i++
			continue
		}
		if bytes.HasPrefix(r.text[i:], []byte(triple)) {
			break
		}
	}
	if i >= len(r.text) {
		r.fault(start, start+3, nil, "this %s string is never closed", triple)
		r.pos = len(r.text)
		return string(r.text[start+3:])
	}
	end := i
	for extra := 0; extra < 2 && end+3 < len(r.text) && r.text[end+3] == triple[0]; extra++ {
		end++
	}
	r.pos = end + 3
	body := start + 3
	if size := newline(r.text, body); size > 0 {
		body += size
	}
	return strings.ReplaceAll(r.unescape(body, max(end, body), triple[0] == '"', true), "\r\n", "\n")
}

// newline is the length of the line break of TOML at an offset, or 0.
func newline(text []byte, i int) int {
	switch {
	case i < len(text) && text[i] == '\n':
		return 1
	case i+1 < len(text) && text[i] == '\r' && text[i+1] == '\n':
		return 2
	}
	return 0
}

// unescape is the meaning of the inside of a string.
func (r *tomlReader) unescape(start, end int, escapes, lines bool) string {
	raw := r.text[start:end]
	if !escapes || bytes.IndexByte(raw, '\\') < 0 {
		return string(raw)
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' || i+1 >= len(raw) {
			out = append(out, raw[i])
			continue
		}
		i++
		if simple := strings.IndexByte(`btnfre"\`, raw[i]); simple >= 0 {
			out = append(out, "\b\t\n\f\r\x1b\"\\"[simple])
			continue
		}
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[raw[i]]
		if digits > 0 && i+digits < len(raw) {
			if c, err := strconv.ParseUint(string(raw[i+1:i+1+digits]), 16, 32); err == nil {
				out = utf8.AppendRune(out, rune(c))
				i += digits
				continue
			}
		}
		if rest := bytes.TrimLeft(raw[i:], " \t"); lines && len(rest) > 0 && (rest[0] == '\n' || rest[0] == '\r') {
			i = len(raw) - len(bytes.TrimLeft(rest, " \t\r\n")) - 1
			continue
		}
		_, size := utf8.DecodeRune(raw[i:])
		at := source.Span{Start: uint32(start + i - 1), End: uint32(start + i - 1)}
		r.fault(start+i-1, start+i+size, &Fix{"Write a backslash", at, `\`}, "%s is no escape in TOML; a backslash itself is written \\\\", raw[i-1:i+size])
		out = append(out, raw[i-1:i+size]...)
		i += size - 1
	}
	return string(out)
}
