package configs

import (
	"bytes"
	"fmt"
	"sort"
	"strings"

	"github.com/trainvet/trainvet/lint/source"
)

// jsonMode says how a reader guesses where text breaks the rules. The zero mode is HJSON to the letter; the others are
// tried only on a file that HJSON refuses, and the mode that explains the file with the fewest errors wins.
type jsonMode struct {
	cut    bool // a string without quotes ends at , ] or } as a JSON value would; HJSON takes the rest of the line
	indent bool // a key that is indented no deeper than the line of the { shows that its } is missing
	typo   bool // a closing bracket of the wrong kind closes all the same
}

const (
	maxRetry  = 1 << 18 // size in bytes up to which a damaged file is read in all modes
	maxFaults = 500     // after so many the rest of the file is not read
)

// ParseJSON reads JSON and its relaxed forms: comments, trailing commas, HJSON. Text that is strict JSON is read as such.
func ParseJSON(f *source.File) *Tree {
	best := readJSON(f, jsonMode{})
	if best.faults == 0 || len(f.Text) > maxRetry {
		return best.tree
	}
	for i := 1; i < 8; i++ {
		mode := jsonMode{cut: i&1 != 0, indent: i&2 != 0, typo: i&4 != 0}
		if other := readJSON(f, mode); other.faults < best.faults || other.faults == best.faults && !mode.typo {
			best = other
		}
	}
	return best.tree
}

type jsonReader struct {
	jsonMode
	file     *source.File
	text     []byte
	pos      int
	open     []byte // the brackets around the position
	nodes    int
	faults   int  // errors found, also those not kept
	blocks   bool // {% %} was seen: the order of what is written is not the order of what is loaded
	stopped  bool // a bound was passed
	unclosed bool // the last collection ended without its bracket: no comma is missed behind it
	tree     *Tree
}

func readJSON(f *source.File, mode jsonMode) *jsonReader {
	r := &jsonReader{jsonMode: mode, file: f, text: f.Text, tree: &Tree{Format: JSON}}
	r.root()
	r.tree.Lines = r.tree.Lines || labelled(r.text)
	if r.tree.Template {
		r.forgiveTemplate()
	}
	sortErrors(r.tree.Errors)
	sortErrors(r.tree.StrictErrors)
	return r
}

func sortErrors(errors []Error) {
	sort.SliceStable(errors, func(i, j int) bool { return errors[i].At.Span.Start < errors[j].At.Span.Start })
}

func (r *jsonReader) place(start, end int) source.Place {
	return r.file.At(source.Span{Start: uint32(start), End: uint32(end)})
}

func (r *jsonReader) fault(start, end int, fix *Fix, format string, args ...any) {
	r.faults++
	if len(r.tree.Errors) < MaxErrors {
		r.tree.Errors = append(r.tree.Errors, Error{At: r.place(start, end), Message: fmt.Sprintf(format, args...), Fix: fix})
	}
	r.stopped = r.stopped || r.faults >= maxFaults
}

func (r *jsonReader) strict(start, end int, fix *Fix, format string, args ...any) {
	if len(r.tree.StrictErrors) < MaxErrors {
		r.tree.StrictErrors = append(r.tree.StrictErrors, Error{At: r.place(start, end), Message: fmt.Sprintf(format, args...), Fix: fix})
	}
}

func (r *jsonReader) template(start, end int) {
	if !r.tree.Template {
		r.tree.Template, r.tree.TemplateAt = true, r.place(start, end)
	}
}

// node makes a value, or nil when there are too many.
func (r *jsonReader) node(kind Kind, style Style, start, end int, raw string) *Node {
	if r.nodes++; r.nodes > MaxNodes && !r.stopped {
		r.stop(start, fmt.Sprintf("more than %d values; the rest is not read", MaxNodes))
	}
	return &Node{Kind: kind, Style: style, At: r.place(start, end), Raw: raw}
}

// stop gives up on the rest of the file.
func (r *jsonReader) stop(at int, why string) {
	if !r.stopped {
		r.stopped = true
		r.fault(at, min(at+1, len(r.text)), nil, "%s", why)
		if len(r.tree.Errors) < MaxErrors || r.faults == MaxErrors {
			r.tree.Errors[len(r.tree.Errors)-1].Bound = true
		}
	}
	r.pos = len(r.text)
}

func (r *jsonReader) root() {
	start := r.space()
	switch c := r.peek(); {
	case c == 0:
		r.strict(start, start, nil, "the file is empty; JSON wants a value")
		return
	case c == '{', c == '[':
		r.tree.Root = r.value()
	case r.loneValue():
		r.tree.Root = r.value()
	default:
		r.tree.Syntax |= HasHJSON
		r.strict(start, start+1, nil, "JSON wants { before the first key")
		r.tree.Root = r.node(Mapping, Plain, start, start, "")
		r.members(r.tree.Root, -1)
		r.tree.Root.At.Span.End = uint32(r.lastEnd(r.tree.Root, start))
	}
	r.trailing()
	if r.stopped {
		r.tree.Root.Open = true
	}
}

// labelled reports whether the first two lines are one object each behind the same word, as logs have it: no reader of JSON takes that, and
// no program its settings from it.
func labelled(text []byte) bool {
	word := func(line []byte) []byte {
		name, rest, _ := bytes.Cut(line, []byte(" "))
		if rest = bytes.TrimSpace(rest); len(name) > 0 && isWord(name[0]) && !bytes.ContainsAny(name, ":={[\"") && len(rest) > 1 && rest[0] == '{' && rest[len(rest)-1] == '}' {
			return name
		}
		return nil
	}
	first, rest, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	label := word(first)
	if label == nil {
		return false
	}
	second, _, _ := bytes.Cut(rest, []byte("\n"))
	return bytes.Equal(label, word(second))
}

// loneValue reports whether the file is one value that is no collection. HJSON reads `key: value` lines without braces,
// so text counts as a lone value only when no colon follows it.
func (r *jsonReader) loneValue() bool {
	saved := *r
	tree := *r.tree
	defer func() { *r = saved; *r.tree = tree }()
	if end := r.skipQuoted(r.pos); end > r.pos {
		r.pos = end
	} else if r.pos = r.literalEnd(r.pos); r.pos == saved.pos {
		line := r.text[r.pos:r.lineEnd(r.pos)]
		return !bytes.ContainsAny(line[:1], "{}[],") && !bytes.ContainsAny(line, ":=")
	}
	r.space()
	return r.peek() == 0
}

// trailing reads what follows the root. Members after the closing brace are kept as the root's own: then a } above is
// one too many.
func (r *jsonReader) trailing() {
	root := r.tree.Root
	for !r.stopped {
		start := r.space()
		if r.peek() == 0 {
			return
		}
		if c := r.peek(); c == '}' || c == ']' {
			r.fault(start, start+1, &Fix{"Delete it", source.Span{Start: uint32(start), End: uint32(start + 1)}, ""}, "%c without an opening bracket", c)
			r.pos++
			continue
		}
		if root.Kind == Mapping && (r.peek() == ',' || r.keyAhead()) {
			r.fault(start, start+1, nil, "text after the end of the object: a closing bracket above is one too many, or this one is misplaced")
			if r.peek() == ',' {
				r.pos++
				r.space()
			}
			r.members(root, int(root.At.Span.Start))
			root.At.Span.End = uint32(max(int(root.At.Span.End), r.pos))
			continue
		}
		r.tree.Lines = r.peek() == '{' && root.Kind == Mapping && len(r.tree.Errors) == 0
		r.fault(start, r.lineEnd(start), nil, "text after the end of the document")
		root.Open = true
		r.pos = len(r.text)
	}
}

// keyAhead reports whether a key and its colon stand at the position.
func (r *jsonReader) keyAhead() bool {
	saved := *r
	tree := *r.tree
	defer func() { *r = saved; *r.tree = tree }()
	switch c := r.peek(); {
	case c == '"' || c == '\'':
		end := r.skipQuoted(r.pos)
		if end == r.pos {
			return false
		}
		r.pos = end
	case isWord(c):
		r.bareKey()
	default:
		return false
	}
	r.space()
	return r.peek() == ':'
}

func (r *jsonReader) value() *Node {
	start := r.pos
	switch c := r.peek(); {
	case r.at("{{"), r.at("${"):
		return r.placeholder()
	case c == '{' || c == '[':
		if len(r.open) >= MaxDepth {
			r.stop(start, fmt.Sprintf("nested deeper than %d levels; the rest is not read", MaxDepth))
			return r.node(Invalid, Plain, start, start, "")
		}
		r.open = append(r.open, c)
		defer func() { r.open = r.open[:len(r.open)-1] }()
		r.pos++
		if c == '{' {
			node := r.node(Mapping, Flow, start, start, "")
			r.members(node, start)
			return node
		}
		node := r.node(Sequence, Flow, start, start, "")
		r.elements(node, start)
		return node
	case r.at("'''"):
		raw := r.multiline()
		r.hjson(start, r.pos, nil, "''' strings are HJSON, not JSON")
		return r.node(Scalar, Block, start, r.pos, raw)
	case c == '"':
		return r.node(Scalar, DoubleQuoted, start, r.pos, "").fill(r, r.stringValue)
	case c == '\'':
		node := r.node(Scalar, SingleQuoted, start, r.pos, "").fill(r, r.stringValue)
		r.hjson(start, r.pos, r.requote(node), "JSON strings are written with \" quotes")
		return node
	}
	return r.plain()
}

// fill sets raw text and end of a scalar by reading it. A value beyond the bound is not there to be read.
func (n *Node) fill(r *jsonReader, read func() string) *Node {
	if r.stopped && r.pos >= len(r.text) {
		n.Kind, n.Open = Invalid, true
		return n
	}
	n.Raw = read()
	n.At.Span.End = uint32(r.pos)
	n.Open = isInterpolated(n.Raw)
	return n
}

func (r *jsonReader) hjson(start, end int, fix *Fix, format string, args ...any) {
	r.tree.Syntax |= HasHJSON
	r.strict(start, end, fix, format, args...)
}

func (r *jsonReader) requote(n *Node) *Fix {
	return &Fix{"Write it with double quotes", n.At.Span, quoteJSON(n.Raw)}
}

// members reads the entries of an object up to and with its }. open is the offset of its {, or -1 for a root without
// braces.
func (r *jsonReader) members(node *Node, open int) {
	r.space()
	if r.peek() == ',' {
		r.fault(r.pos, r.pos+1, nil, "a comma before the first key")
		r.pos++
	}
	for {
		before := r.space()
		switch c := r.peek(); {
		case c == 0:
			if open >= 0 && !r.stopped {
				r.fault(open, open+1, nil, "this { is never closed")
				node.Open = true
			}
			r.close(node, open, r.lastEnd(node, open+1))
			return
		case c == '}' && open >= 0:
			r.pos++
			r.close(node, open, r.pos)
			return
		case c == '}', c == ']':
			if open >= 0 {
				r.mismatch(node, open, '}', '[')
				return
			}
			r.fault(r.pos, r.pos+1, nil, "%c without an opening bracket", c)
			r.pos++
			continue
		}
		if r.indent && open >= 0 && r.dedented(node, open) {
			r.fault(open, open+1, nil, "this { is not closed before the key on line %d", r.file.Line(uint32(r.pos))+1)
			r.unclosed = true
			r.close(node, open, r.lastEnd(node, open+1))
			return
		}
		if r.member(node); r.stopped {
			continue
		}
		r.separator(node, '}')
		if r.pos == before {
			r.fault(r.pos, r.pos+1, nil, "%q is not expected here", r.text[r.pos:r.pos+1])
			r.pos++
		}
	}
}

// mismatch ends a collection at a closing bracket of the other kind. That is either mistyped, or belongs to an outer
// collection and the right one before it is missing.
func (r *jsonReader) mismatch(node *Node, open int, want, other byte) {
	r.fault(r.pos, r.pos+1, nil, "%c where %c closes the bracket opened on line %d", r.peek(), want, r.file.Line(uint32(open))+1)
	if r.typo || bytes.IndexByte(r.open, other) < 0 {
		r.pos++
		r.close(node, open, r.pos)
		return
	}
	r.unclosed = true
	r.close(node, open, r.lastEnd(node, open+1))
}

func (r *jsonReader) close(node *Node, open, end int) {
	if open >= 0 {
		node.At.Span.End = uint32(max(end, open+1))
	}
}

// lastEnd is the end of the last entry of a collection, or otherwise.
func (r *jsonReader) lastEnd(node *Node, otherwise int) int {
	if n := len(node.Items); n > 0 {
		return int(max(node.Items[n-1].Value.At.Span.End, node.Items[n-1].KeyAt.Span.End))
	}
	return otherwise
}

// dedented reports whether the key at the position starts a line that is indented no deeper than the line of the {,
// in an object whose earlier keys are indented deeper.
func (r *jsonReader) dedented(node *Node, open int) bool {
	column, first := r.indentOf(r.pos)
	if !first || len(node.Items) == 0 || len(r.open) <= 1 {
		return false
	}
	outer, _ := r.indentOf(open)
	inner, first := r.indentOf(int(node.Items[0].KeyAt.Span.Start))
	return first && inner > outer && column <= outer
}

// indentOf is the indentation in bytes of the line that holds an offset, and whether the offset is where its text begins.
func (r *jsonReader) indentOf(offset int) (int, bool) {
	start := bytes.LastIndexByte(r.text[:offset], '\n') + 1
	i := start
	for i < len(r.text) && (r.text[i] == ' ' || r.text[i] == '\t') {
		i++
	}
	return i - start, i == offset
}

// separator reads the comma after an entry, or finds that it is missing or one too many.
func (r *jsonReader) separator(node *Node, closer byte) {
	end := r.pos
	unclosed := r.unclosed
	r.unclosed = false
	r.space()
	if r.peek() == ',' {
		comma := r.pos
		r.pos++
		r.space()
		if c := r.peek(); c == closer || c == 0 && len(r.open) == 0 {
			r.tree.Syntax |= HasTrailingCommas
			r.strict(comma, comma+1, &Fix{"Delete the comma", source.Span{Start: uint32(comma), End: uint32(comma + 1)}, ""}, "a comma after the last entry is not JSON")
		}
		for r.peek() == ',' {
			r.fault(r.pos, r.pos+1, &Fix{"Delete the comma", source.Span{Start: uint32(r.pos), End: uint32(r.pos + 1)}, ""}, "a second comma")
			r.pos++
			r.space()
		}
		return
	}
	if c := r.peek(); c == 0 || c == '}' || c == ']' || len(node.Items) == 0 {
		return
	}
	last := node.Items[len(node.Items)-1].Value
	fix := &Fix{"Add the comma", source.Span{Start: uint32(end), End: uint32(end)}, ","}
	sameLine := bytes.IndexByte(r.text[end:r.pos], '\n') < 0
	if last.Kind == Invalid || unclosed {
		return
	}
	r.tree.Syntax |= HasHJSON
	if sameLine && last.Kind == Scalar && last.Style != DoubleQuoted && last.Style != SingleQuoted {
		// HJSON takes such a value and the rest of the line for one string
		r.fault(end, end, fix, "a comma is missing after this value")
		return
	}
	r.strict(end, end, fix, "a comma is missing after this value")
}

// member reads one key, its colon and its value.
func (r *jsonReader) member(node *Node) {
	start := r.pos
	var key string
	c := r.peek()
	switch {
	case r.conflict():
		node.Open = true
		return
	case r.at("{{"), r.at("${"):
		r.placeholder()
		if r.space(); r.peek() != ':' {
			node.Open = true
			return
		}
		node.Open = true
		key = string(r.text[start:r.pos])
	case c == '"' || c == '\'':
		key = r.keyString()
	case isWord(c) || c >= 0x80:
		key = r.bareKey()
	case c == '{' || c == '[':
		r.fault(start, start+1, nil, "a value without a key")
		node.Open = true
		r.value()
		return
	default:
		end := r.skipWord()
		r.fault(start, end, nil, "expected a key, found %s", clip(r.text[start:end]))
		node.Open = true
		return
	}
	item := Item{Key: key, KeyAt: r.place(start, r.pos)}
	switch {
	case c == '"' || c == '{' || c == '$':
	case c == '\'':
		r.hjson(start, r.pos, &Fix{"Write it with double quotes", item.KeyAt.Span, quoteJSON(key)}, "JSON keys are written with \" quotes")
	default:
		item.KeyAt.Span.End = uint32(r.spacedKey(start))
		item.Key = r.bareKeyName(item.KeyAt.Span)
	}
	end := r.pos
	r.space()
	switch c := r.peek(); {
	case c == ':':
		r.pos++
	case c == '=':
		r.fault(r.pos, r.pos+1, &Fix{"Write :", source.Span{Start: uint32(r.pos), End: uint32(r.pos + 1)}, ":"}, "= where : is expected after the key")
		r.pos++
	case c == ',' || c == '}' || c == 0 || bytes.IndexByte(r.text[end:r.pos], '\n') >= 0:
		r.fault(end, end, nil, "key %s has no colon and no value", clip([]byte(item.Key)))
		item.Value = r.node(Invalid, Plain, end, end, "")
		node.Items = append(node.Items, item)
		r.pos = end
		return
	default:
		r.fault(end, end, &Fix{"Add the colon", source.Span{Start: uint32(end), End: uint32(end)}, ":"}, "a colon is missing after this key")
	}
	item.Value = r.memberValue(item.Key)
	node.Items = append(node.Items, item)
}

// memberValue reads the value after a colon, if there is one.
func (r *jsonReader) memberValue(key string) *Node {
	colon := r.pos
	if r.stopped {
		return r.node(Invalid, Plain, colon, colon, "")
	}
	r.space()
	c := r.peek()
	none := c == ',' || c == '}' || c == ']' || c == 0
	if !none && bytes.IndexByte(r.text[colon:r.pos], '\n') >= 0 && (c == '"' || c == '\'') {
		none = r.keyAhead()
	}
	if none && !r.stopped {
		r.fault(colon, colon, nil, "no value for key %s", clip([]byte(key)))
		r.pos = colon
		return r.node(Invalid, Plain, colon, colon, "")
	}
	if c == ':' {
		r.fault(r.pos, r.pos+1, nil, "a second colon")
		r.pos++
		return r.memberValue(key)
	}
	return r.value()
}

// elements reads the entries of an array up to and with its ].
func (r *jsonReader) elements(node *Node, open int) {
	r.space()
	for r.peek() == ',' {
		r.fault(r.pos, r.pos+1, nil, "a comma before the first value")
		r.pos++
		r.space()
	}
	for {
		before := r.space()
		switch c := r.peek(); {
		case c == 0:
			if !r.stopped {
				r.fault(open, open+1, nil, "this [ is never closed")
				node.Open = true
			}
			r.close(node, open, r.lastEnd(node, open+1))
			return
		case c == ']':
			r.pos++
			r.close(node, open, r.pos)
			return
		case c == '}':
			r.mismatch(node, open, ']', '{')
			return
		case c == '"' && bytes.IndexByte(r.open, '{') >= 0 && r.keyAhead():
			r.fault(open, open+1, nil, "this [ is not closed before the key on line %d", r.file.Line(uint32(r.pos))+1)
			r.unclosed = true
			r.close(node, open, r.lastEnd(node, open+1))
			return
		case c == ':':
			r.fault(r.pos, r.pos+1, nil, "a colon inside an array")
			r.pos++
			continue
		case r.conflict():
			node.Open = true
			continue
		}
		node.Items = append(node.Items, Item{Value: r.value()})
		if r.stopped {
			continue
		}
		r.separator(node, ']')
		if r.pos == before {
			r.fault(r.pos, r.pos+1, nil, "%q is not expected here", r.text[r.pos:r.pos+1])
			r.pos++
		}
	}
}

// clip is a short quotation for a message.
func clip(text []byte) string {
	const most = 40
	s := strings.TrimSpace(string(text))
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most]) + "…"
	}
	return "`" + s + "`"
}
