package configs

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/trainvet/trainvet/lint/source"
)

func (r *jsonReader) peek() byte {
	if r.pos < len(r.text) {
		return r.text[r.pos]
	}
	return 0
}

func (r *jsonReader) at(prefix string) bool {
	return r.pos < len(r.text) && bytes.HasPrefix(r.text[r.pos:], []byte(prefix))
}

func (r *jsonReader) lineEnd(from int) int {
	if i := bytes.IndexAny(r.text[from:], "\r\n"); i >= 0 {
		return from + i
	}
	return len(r.text)
}

// isWord reports whether a byte can begin an unquoted key. Most of ASCII can in HJSON; quotes and brackets have cases
// of their own.
func isWord(c byte) bool {
	return c > ' ' && c < 0x7F && !strings.ContainsRune("{}[],:=\"'", rune(c))
}

// isDelimiter reports whether the text at an offset ends a JSON literal for HJSON.
func (r *jsonReader) isDelimiter(i int) bool {
	if i >= len(r.text) {
		return true
	}
	switch r.text[i] {
	case ',', '}', ']', '#', '\n', '\r':
		return true
	case '/':
		return i+1 < len(r.text) && (r.text[i+1] == '/' || r.text[i+1] == '*')
	case '{':
		return i+1 < len(r.text) && r.text[i+1] == '%' // a template block
	}
	return false
}

// invisible are characters that look like a blank and are none for a JSON loader.
var invisible = []string{"\u00A0", "\u200B", "\u2003", "\u202F", "\u3000", "\uFEFF"}

// space passes over blanks, comments and template blocks, and gives the position behind them.
func (r *jsonReader) space() int {
	if r.stopped {
		r.pos = len(r.text)
	}
	for r.pos < len(r.text) {
		switch c := r.text[r.pos]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			r.pos++
		case c == '#' || r.at("//"):
			r.comment(r.lineEnd(r.pos))
		case r.at("/*"):
			end := bytes.Index(r.text[r.pos+2:], []byte("*/"))
			if end < 0 {
				r.fault(r.pos, r.pos+2, nil, "this comment is never closed")
				r.comment(len(r.text))
				return r.pos
			}
			r.comment(r.pos + 2 + end + 2)
		case r.at("{%"), r.at("{#") && bytes.Contains(r.text[r.pos:r.lineEnd(r.pos)], []byte("#}")):
			start := r.pos
			r.blocks = true
			r.pos = templateEnd(r.text, r.pos)
			r.template(start, r.pos)
		case c >= 0x80:
			before := r.pos
			for _, blank := range invisible {
				if r.at(blank) {
					r.pos += len(blank)
					r.fault(before, r.pos, &Fix{"Write a space", source.Span{Start: uint32(before), End: uint32(r.pos)}, " "}, "an invisible character (%+q) is no blank in JSON", blank)
					break
				}
			}
			if r.pos == before {
				return r.pos
			}
		default:
			return r.pos
		}
	}
	return r.pos
}

func (r *jsonReader) comment(end int) {
	// After a fault the reader steps back, and may pass a comment twice
	if n := len(r.tree.comments); n == 0 || r.tree.comments[n-1].End <= uint32(r.pos) {
		r.tree.Syntax |= HasComments
		r.strict(r.pos, end, nil, "JSON has no comments")
		r.tree.comments = append(r.tree.comments, source.Span{Start: uint32(r.pos), End: uint32(end)})
	}
	r.pos = end
}

// skipQuoted is the end of the quoted string at an offset if it is closed on its line, else the offset.
func (r *jsonReader) skipQuoted(start int) int {
	if start >= len(r.text) || r.text[start] != '"' && r.text[start] != '\'' {
		return start
	}
	for i := start + 1; i < len(r.text); i++ {
		switch r.text[i] {
		case '\n', '\r':
			return start
		case '\\':
			i++
		case r.text[start]:
			return i + 1
		}
	}
	return start
}

// stringValue reads the quoted string at the position, as a value.
func (r *jsonReader) stringValue() string {
	start := r.pos
	end := r.skipQuoted(start)
	closed := end > start
	inner := end - 1
	if closed && r.pos+1 < end && end < len(r.text) && isWord(r.text[end]) && r.text[end] != '/' && r.text[end] != '#' {
		// `"AdamW, "params": ...`: the quote found is the first of the next key
		if comma := len(bytes.TrimRight(r.text[start+1:inner], " \t")); comma > 0 && r.text[start+comma] == ',' {
			closed, inner = false, start+comma
		}
	} else if !closed {
		inner = r.lineEnd(start)
		inner = start + len(bytes.TrimRight(r.text[start:inner], " \t,"))
		for depth := bytes.Count(r.text[start:inner], []byte("{")) - bytes.Count(r.text[start:inner], []byte("}")); depth < 0 && inner > start+1 && strings.IndexByte("} \t", r.text[inner-1]) >= 0; {
			if inner--; r.text[inner] == '}' {
				depth++
			}
		}
		inner = max(inner, start+1)
	}
	if closed {
		r.pos = end
	} else {
		r.pos = inner
		r.fault(start, inner, &Fix{"Close the string", source.Span{Start: uint32(inner), End: uint32(inner)}, string(r.text[start])}, "this string is not closed")
	}
	return r.unescape(start+1, inner)
}

// keyString reads the quoted string at the position, as a key.
func (r *jsonReader) keyString() string {
	start := r.pos
	end := r.skipQuoted(start)
	limit := end
	if end == start {
		limit = r.lineEnd(start)
	} else if next := bytes.TrimLeft(r.text[end:], " \t\r\n"); len(next) > 0 && next[0] == ':' {
		r.pos = end
		return r.unescape(start+1, end-1)
	}
	// Closed too late or never: a colon inside shows where the key ends.
	if colon := bytes.IndexByte(r.text[start:limit], ':'); colon > 0 {
		inner := start + len(bytes.TrimRight(r.text[start:start+colon], " \t"))
		r.pos = inner
		r.fault(start, inner, &Fix{"Close the string", source.Span{Start: uint32(inner), End: uint32(inner)}, string(r.text[start])}, "this key is not closed")
		return r.unescape(start+1, inner)
	}
	if end > start {
		r.pos = end
		return r.unescape(start+1, end-1)
	}
	r.pos = max(start+1, start+len(bytes.TrimRight(r.text[start:limit], " \t,}")))
	r.fault(start, r.pos, nil, "this key is not closed")
	return r.unescape(start+1, r.pos)
}

// unescape is the meaning of the inside of a quoted string. What neither JSON nor HJSON takes is a fault and stays as
// it is.
func (r *jsonReader) unescape(start, end int) string {
	if start >= end {
		return ""
	}
	raw := r.text[start:end]
	if bytes.IndexByte(raw, '\\') < 0 && bytes.IndexFunc(raw, func(c rune) bool { return c < 0x20 }) < 0 {
		return string(raw)
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		c := raw[i]
		if c < 0x20 {
			r.fault(start+i, start+i+1, &Fix{"Escape it", source.Span{Start: uint32(start + i), End: uint32(start + i + 1)}, strings.Trim(quoteJSON(string(c)), `"`)},
				"a control character (%q) inside a string", rune(c))
		}
		if c != '\\' || i+1 >= len(raw) {
			out = append(out, c)
			i++
			continue
		}
		if simple := strings.IndexByte(`"'\/bfnrt`, raw[i+1]); simple >= 0 {
			if raw[i+1] == '\'' {
				r.tree.Syntax |= HasHJSON
				r.strict(start+i, start+i+2, nil, `\' is no escape in JSON`)
			}
			out = append(out, "\"'\\/\b\f\n\r\t"[simple])
			i += 2
			continue
		}
		if unit, ok := hex4(raw[i:]); ok {
			i += 6
			if low, ok := hex4(raw[min(i, len(raw)):]); ok && utf16.IsSurrogate(unit) {
				if both := utf16.DecodeRune(unit, low); both != utf8.RuneError {
					unit = both
					i += 6
				}
			}
			out = utf8.AppendRune(out, unit)
			continue
		}
		_, size := utf8.DecodeRune(raw[i+1:])
		r.fault(start+i, start+i+1+size, &Fix{"Write a backslash", source.Span{Start: uint32(start + i), End: uint32(start + i)}, `\`},
			"%s is no escape in JSON; a backslash itself is written \\\\", raw[i:i+1+size])
		out = append(out, raw[i:i+1+size]...)
		i += 1 + size
	}
	return string(out)
}

// hex4 reads \uXXXX.
func hex4(raw []byte) (rune, bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 32)
	return rune(n), err == nil
}

func quoteJSON(s string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(s) != nil {
		return strconv.Quote(s)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// bareKey passes over an unquoted key and gives its text.
func (r *jsonReader) bareKey() string {
	start := r.pos
	for r.pos < len(r.text) && r.text[r.pos] > ' ' && strings.IndexByte("{}[],:=", r.text[r.pos]) < 0 {
		r.pos++
	}
	return string(r.text[start:r.pos])
}

// spacedKey extends an unquoted key with blanks inside, which HJSON refuses, to its colon on the same line, and gives
// its end.
func (r *jsonReader) spacedKey(start int) int {
	line := r.text[r.pos:r.lineEnd(r.pos)]
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 || bytes.ContainsAny(line[:colon], "\"'{}[],=#") || len(bytes.TrimSpace(line[:colon])) == 0 {
		return r.pos
	}
	r.pos += len(bytes.TrimRight(line[:colon], " \t"))
	key := source.Span{Start: uint32(start), End: uint32(r.pos)}
	r.fault(start, r.pos, &Fix{"Quote the key", key, quoteJSON(string(r.text[start:r.pos]))}, "a key with blanks needs quotes")
	return r.pos
}

// bareKeyName is the name that an unquoted key gives; a quote in it is a quote whose partner is missing.
func (r *jsonReader) bareKeyName(at source.Span) string {
	written := string(r.text[at.Start:at.End])
	name := strings.Trim(written, "\"'“”‘’`")
	if name != written {
		r.fault(int(at.Start), int(at.End), &Fix{"Quote the key", at, quoteJSON(name)}, "a quote is missing or is not \" in this key")
		return name
	}
	r.hjson(int(at.Start), int(at.End), &Fix{"Quote the key", at, quoteJSON(name)}, "JSON keys are written in \" quotes")
	return name
}

// skipWord passes over text that is nothing known, at least one character.
func (r *jsonReader) skipWord() int {
	if r.pos < len(r.text) {
		_, size := utf8.DecodeRune(r.text[r.pos:])
		r.pos += size
	}
	for r.pos < len(r.text) && r.text[r.pos] > ' ' && strings.IndexByte("{}[],:\"", r.text[r.pos]) < 0 {
		r.pos++
	}
	return r.pos
}

// literalEnd is the end of the number, true, false or null at an offset when nothing else stands before the next
// delimiter, else the offset. NaN and the infinities count: json.load takes them.
func (r *jsonReader) literalEnd(start int) int {
	rest := r.text[start:]
	end := start + numberLength(rest)
	if end == start {
		for _, word := range [...]string{"true", "false", "null", "NaN", "Infinity", "-Infinity"} {
			if bytes.HasPrefix(rest, []byte(word)) {
				end = start + len(word)
			}
		}
	}
	if end == start {
		return start
	}
	next := end
	for next < len(r.text) && (r.text[next] == ' ' || r.text[next] == '\t') {
		next++
	}
	if r.isDelimiter(next) || r.cut && next < len(r.text) && (next > end || r.text[next] == '"') {
		return end
	}
	return start
}

// numberLength is the length of the JSON number that text begins with, or 0.
func numberLength(text []byte) int {
	i := 0
	digits := func() int {
		from := i
		for i < len(text) && text[i] >= '0' && text[i] <= '9' {
			i++
		}
		return i - from
	}
	if i < len(text) && text[i] == '-' {
		i++
	}
	if i < len(text) && text[i] == '0' {
		i++
	} else if digits() == 0 {
		return 0
	}
	whole := i
	if i < len(text) && text[i] == '.' {
		if i++; digits() == 0 {
			return whole
		}
		whole = i
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		if i++; i < len(text) && (text[i] == '-' || text[i] == '+') {
			i++
		}
		if digits() == 0 {
			return whole
		}
	}
	return i
}

// isLiteral reports whether text as a whole is a number, true, false or null.
func isLiteral(text string) bool {
	return text == "true" || text == "false" || text == "null" || text != "" && numberLength([]byte(text)) == len(text)
}

// plain reads a value without quotes.
func (r *jsonReader) plain() *Node {
	start := r.pos
	if end := r.literalEnd(start); end > start {
		r.pos = end
		if !isLiteral(string(r.text[start:end])) {
			r.tree.Syntax |= HasNonFinite
		}
		return r.node(Scalar, Plain, start, end, string(r.text[start:end]))
	}
	if r.placeholderAhead() {
		return r.placeholder()
	}
	return r.quoteless()
}

// maxQuoteless bounds the text without quotes, bytes, that is looked at for what was meant.
const maxQuoteless = 64 << 10

// quoteless reads text without quotes, which is a string for HJSON: up to the end of the line, comments included.
func (r *jsonReader) quoteless() *Node {
	start := r.pos
	line := r.lineEnd(start)
	end := line
	word := start
	for word < line && !r.isDelimiter(word) && r.text[word] > ' ' {
		word++
	}
	whole := start + len(bytes.TrimRight(r.text[start:line], " \t"))
	meant := whole-start > maxQuoteless || !isSuspicious(r.text[start:whole], r.text[start:word])
	if r.cut {
		end = r.cutEnd(start, line)
		meant = meant && end == line
	}
	end = start + len(bytes.TrimRight(r.text[start:end], " \t"))
	if end == start {
		_, size := utf8.DecodeRune(r.text[start:])
		end = start + max(size, 1)
		r.pos = end
		r.fault(start, end, nil, "a value is expected, found %s", clip(r.text[start:end]))
		return r.node(Invalid, Plain, start, end, string(r.text[start:end]))
	}
	r.pos = end
	node := r.node(Scalar, Unquoted, start, end, string(r.text[start:end]))
	if end-start > maxQuoteless {
		r.hjson(start, end, nil, "text without quotes")
		node.Open = true
		return node
	}
	message, text := describeWord(node.Raw)
	fix := &Fix{"Write " + text, node.At.Span, text}
	if text == "" {
		fix = nil
	}
	if meant {
		r.hjson(start, end, fix, "%s", message)
	} else {
		r.tree.Syntax |= HasHJSON
		r.fault(start, end, fix, "%s", message)
		node.Open = fix == nil // no reader takes it, and nobody knows what was meant
	}
	return node
}

// cutEnd is where a JSON value without its quotes ends: before the next comma, comment or closing bracket that is not
// opened in the text itself.
func (r *jsonReader) cutEnd(start, line int) int {
	depth := 0
	for i := start; i < line; i++ {
		switch c := r.text[i]; {
		case c == '{' || c == '[' || c == '(':
			depth++
		case (c == '}' || c == ']' || c == ')') && depth > 0:
			depth--
		case c == '"' && i > start && depth == 0 && r.skipQuoted(i) > i:
			return i
		case depth == 0 && r.isDelimiter(i):
			return i
		}
	}
	return line
}

var (
	hidesKey  = source.Pattern(`["']\s*:|[,}\]]\s*["'{\[]`)
	wrongWord = source.Pattern(`^(?:True|False|None|TRUE|FALSE|NULL|Null|nil|undefined|[Nn]a[Nn]|NAN|[-+]?[Ii]nf(?:inity)?|[-+.]?[0-9][0-9a-zA-Z_.+-]*)$`)
)

// isSuspicious reports whether text to the end of the line, a string for HJSON, cannot be meant as one: it swallows a
// comma, a bracket or the next key. word is its first word.
func isSuspicious(whole, word []byte) bool {
	if bytes.HasSuffix(whole, []byte(",")) || hidesKey().Match(whole) {
		return true
	}
	opened := bytes.Count(whole, []byte("{")) + bytes.Count(whole, []byte("["))
	if opened < bytes.Count(whole, []byte("}"))+bytes.Count(whole, []byte("]")) {
		return true
	}
	return len(whole) > len(word) && wrongWord().Match(word) && bytes.IndexByte(whole[len(word):], ',') >= 0
}

// JSONNumber writes a number as JSON does that Python's float takes, as 1_000, +1, .5 or 5. are; "" for all else, and for one with zeros in
// front, which may be octal.
func JSONNumber(word string) string {
	clean := strings.ReplaceAll(strings.TrimPrefix(word, "+"), "_", "")
	if strings.HasPrefix(clean, ".") {
		clean = "0" + clean
	} else if strings.HasPrefix(clean, "-.") {
		clean = "-0" + clean[1:]
	}
	clean = strings.Replace(strings.Replace(clean, ".e", ".0e", 1), ".E", ".0E", 1)
	if strings.HasSuffix(clean, ".") {
		clean += "0"
	}
	if numberLength([]byte(clean)) != len(clean) {
		return ""
	}
	return clean
}

// describeWord says what is wrong with an unquoted word for JSON, and what to write instead.
func describeWord(word string) (message, text string) {
	switch word {
	case "True", "TRUE":
		return word + " is not JSON; write true", "true"
	case "False", "FALSE":
		return word + " is not JSON; write false", "false"
	case "None", "NULL", "Null", "nil", "undefined":
		return word + " is not JSON; write null", "null"
	}
	if clean := JSONNumber(word); clean != "" {
		return clip([]byte(word)) + " is not a JSON number; write " + clean, clean
	}
	if wrongWord().MatchString(word) && strings.ContainsAny(word[:min(2, len(word))], "0123456789") {
		return clip([]byte(word)) + " is not a JSON number", ""
	}
	quoted := quoteJSON(strings.Trim(word, "\"'“”‘’`"))
	return "text without quotes; JSON wants " + string(clip([]byte(quoted))), quoted
}

// multiline reads an HJSON string in three single quotes: the indentation of its first line is taken from every line.
func (r *jsonReader) multiline() string {
	start := r.pos
	indent := start - (bytes.LastIndexByte(r.text[:start], '\n') + 1)
	end := bytes.Index(r.text[start+3:], []byte("'''"))
	body := r.text[start+3:]
	if end < 0 {
		r.fault(start, start+3, nil, "this ''' string is never closed")
		r.pos = len(r.text)
	} else {
		body = body[:end]
		r.pos = start + 3 + end + 3
	}
	text := strings.TrimLeft(strings.ReplaceAll(string(body), "\r", ""), " \t")
	lines := strings.Split(strings.TrimPrefix(text, "\n"), "\n")
	for i, line := range lines {
		cut := 0
		for cut < len(line) && cut < indent && (line[cut] == ' ' || line[cut] == '\t') {
			cut++
		}
		lines[i] = line[cut:]
	}
	return strings.TrimSuffix(strings.Join(lines, "\n"), "\n")
}

// conflict passes over a line with which git marks two versions that it could not merge. Without it HEAD would be taken for a word that is
// filled in later.
func (r *jsonReader) conflict() bool {
	if r.pos > 0 && r.text[r.pos-1] != '\n' {
		return false
	}
	for _, marker := range [...]string{"<<<<<<<", "|||||||", "=======", ">>>>>>>"} {
		rest := r.text[r.pos:r.lineEnd(r.pos)]
		if after, is := bytes.CutPrefix(rest, []byte(marker)); is && (len(after) == 0 || after[0] == ' ' || after[0] == '\r') {
			end := r.pos + len(bytes.TrimRight(rest, " \t\r"))
			r.fault(r.pos, end, nil, "a merge conflict that is not resolved")
			r.pos = end
			return true
		}
	}
	return false
}
