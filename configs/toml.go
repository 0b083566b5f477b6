package configs

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/trainvet/trainvet/lint/source"
)

// maxTOMLRounds bounds how often a damaged file is judged again, without the entry at fault.
// A text above maxTOMLRetry bytes is judged only maxLargeRound times.
const (
	maxTOMLRounds = 24
	maxTOMLRetry  = 1 << 20
)

// Bounds of keys. The library handles the whole path of a table for every key in it, and for every part of a dotted key.
const (
	maxTOMLParts = 64        // names of a key, those of the tables around it included
	maxTOMLWork  = 256 << 20 // bytes of all paths, each as often as its key has parts
)

// ParseTOML reads a TOML file. The library judges what is valid; it tells no places, so keys, values and comments are
// found by a scanner of our own, which goes on behind a line it cannot read.
func ParseTOML(f *source.File) *Tree {
	r := newTOMLReader(f)
	r.scan()
	if len(r.root.Items) > 0 || r.root.Open {
		r.tree.Root = r.root
	}
	if !r.stopped { // else the library would need too long, and see only a part
		r.judge()
	}
	sortErrors(r.tree.Errors)
	return r.tree
}

func newTOMLReader(f *source.File) *tomlReader {
	root := &Node{Kind: Mapping, At: f.At(source.Span{})}
	return &tomlReader{file: f, text: f.Text, tree: &Tree{Format: TOML}, root: root, owners: []*Node{root}, index: map[*Node]map[string]int{}}
}

type tomlReader struct {
	file       *source.File
	text       []byte
	pos        int
	tree       *Tree
	root       *Node
	owners     []*Node                  // the table of the last header and those around it
	index      map[*Node]map[string]int // where in Items a key of a table is
	statements []source.Span            // headers and entries, each with its whole value
	faulty     map[int]bool             // statements that the scanner found wrong
	list       func(path string)        // if set, called with each key in document order, as the library lists them
	nodes      int
	work       int // counts up to maxTOMLWork
	depth      int
	stopped    bool
}

func (r *tomlReader) place(start, end int) source.Place {
	return r.file.At(source.Span{Start: uint32(start), End: uint32(end)})
}

func (r *tomlReader) fault(start, end int, fix *Fix, format string, args ...any) {
	if r.stopped {
		return // what follows from not reading on
	}
	if r.faulty == nil {
		r.faulty = map[int]bool{}
	}
	r.faulty[len(r.statements)] = true
	if len(r.tree.Errors) < MaxErrors {
		r.tree.Errors = append(r.tree.Errors, Error{At: r.place(start, end), Message: fmt.Sprintf(format, args...), Fix: fix})
	}
}

// judge lets the library read the file, and again without each entry that it refuses.
func (r *tomlReader) judge() {
	text := bytes.Clone(r.text)
	for at, span := range r.statements {
		if r.faulty[at] {
			fill(text, span, ' ')
		}
	}
	rounds := maxTOMLRounds
	if len(text) > maxTOMLRetry {
		rounds = maxLargeRound
	}
	for range rounds {
		err := decodeTOML(string(text))
		if err == nil {
			return
		}
		var fault toml.ParseError
		if !errors.As(err, &fault) {
			r.tree.Errors = append(r.tree.Errors, Error{At: r.place(0, 0), Message: err.Error()})
			return
		}
		start := min(max(fault.Position.Start, 0), len(text))
		end := min(start+max(fault.Position.Len, 1), len(text))
		span, found := r.statementAt(start)
		if !found {
			line := r.file.LineSpan(r.file.Line(uint32(start)))
			if span = line; len(bytes.TrimSpace(text[span.Start:span.End])) == 0 {
				span = source.Span{Start: 0, End: uint32(len(text))}
			}
		}
		if len(templateParts(text[span.Start:span.End])) > 0 {
			r.template(int(span.Start), int(span.End))
		} else if len(r.tree.Errors) < MaxErrors {
			r.tree.Errors = append(r.tree.Errors, Error{At: r.place(start, end), Message: fault.Message})
		}
		fill(text, span, ' ')
	}
}

// decodeTOML is the library's judgement. A panic of it counts as an error.
func decodeTOML(text string) (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("the file cannot be read: %v", broken)
		}
	}()
	var into map[string]any
	_, err = toml.Decode(text, &into)
	return err
}

// statementAt is the entry or header that holds an offset, or the last before it on the same line.
func (r *tomlReader) statementAt(offset int) (source.Span, bool) {
	best, found := source.Span{}, false
	line := r.file.Line(uint32(offset))
	for _, span := range r.statements {
		if int(span.Start) > offset {
			break
		}
		if offset <= int(span.End) || r.file.Line(span.End) == line {
			best, found = span, true
		}
	}
	return best, found
}

func (r *tomlReader) template(start, end int) {
	if !r.tree.Template {
		r.tree.Template, r.tree.TemplateAt = true, r.place(start, end)
	}
}

// scan reads the file line by line: headers, entries, comments.
func (r *tomlReader) scan() {
	table := r.root
	path := ""
	for {
		r.blanks(true)
		if r.pos >= len(r.text) || r.stopped {
			return
		}
		start := r.pos
		errors := len(r.tree.Errors)
		switch {
		case bytes.HasPrefix(r.text[r.pos:], []byte("{%")), bytes.HasPrefix(r.text[r.pos:], []byte("{{")), bytes.HasPrefix(r.text[r.pos:], []byte("{#")):
			r.pos = templateEnd(r.text, r.pos)
			r.template(start, r.pos)
			r.root.Open = true
			continue
		case r.text[r.pos] == '[':
			if next, full, ok := r.header(); ok {
				table, path = next, full
			}
		default:
			r.entry(table, path, '\n')
		}
		end := max(r.lineRest(start, len(r.tree.Errors) > errors), start+1)
		r.statements = append(r.statements, source.Span{Start: uint32(start), End: uint32(min(end, len(r.text)))})
	}
}

// lineRest passes over what follows a statement on its line, where only a comment may stand, and gives the end of the
// statement.
func (r *tomlReader) lineRest(start int, faulty bool) int {
	end := r.pos
	r.blanks(false)
	if r.pos >= len(r.text) || lineBreak(r.text, r.pos) > 0 {
		return end
	}
	line := r.lineEnd(r.pos)
	if !faulty {
		r.fault(r.pos, line, nil, "text after the value")
	}
	r.root.Open = true
	r.pos = max(line, start+1)
	return r.pos
}

func (r *tomlReader) lineEnd(i int) int {
	for i < len(r.text) && r.text[i] != '\n' && r.text[i] != '\r' {
		i++
	}
	return i
}

// blanks passes over blanks and comments, and over line breaks if lines is set.
func (r *tomlReader) blanks(lines bool) {
	for r.pos < len(r.text) {
		switch c := r.text[r.pos]; {
		case c == ' ' || c == '\t':
			r.pos++
		case c == '#':
			end := r.lineEnd(r.pos)
			// After a bracket that is never closed the scanner steps back, and passes a comment twice
			if n := len(r.tree.comments); n == 0 || r.tree.comments[n-1].End <= uint32(r.pos) {
				r.tree.comments = append(r.tree.comments, source.Span{Start: uint32(r.pos), End: uint32(end)})
			}
			r.pos = end
		case lines && (c == '\n' || c == '\r'):
			r.pos++
		default:
			return
		}
	}
}

// part is one name of a dotted key.
type part struct {
	name string
	at   source.Place
}

// key reads a dotted key, or gives nil.
func (r *tomlReader) key() []part {
	var parts []part
	for {
		r.blanks(false)
		start := r.pos
		name := ""
		switch {
		case r.pos >= len(r.text):
		case r.text[r.pos] == '"' || r.text[r.pos] == '\'':
			name, _ = r.quoted()
		default:
			for r.pos < len(r.text) && r.text[r.pos] > ' ' && bytes.IndexByte([]byte(".=:[]{}#,\"'"), r.text[r.pos]) < 0 {
				r.pos++
			}
			name = string(r.text[start:r.pos])
		}
		if r.pos == start {
			return nil
		}
		parts = append(parts, part{name, r.place(start, r.pos)})
		if len(parts) > maxTOMLParts {
			return parts // name says so
		}
		r.blanks(false)
		if r.pos >= len(r.text) || r.text[r.pos] != '.' {
			return parts
		}
		r.pos++
	}
}

// join adds the names to a path, each behind a NUL.
func join(path string, parts []part) string {
	var out strings.Builder
	out.WriteString(path)
	for _, p := range parts {
		out.WriteByte(0)
		out.WriteString(p.name)
	}
	return out.String()
}

// name is the path of a key in a table with a path, "" beyond the bounds.
func (r *tomlReader) name(path string, parts []part) string {
	at := int(parts[0].at.Span.Start)
	if len(parts)+strings.Count(path, "\x00") > maxTOMLParts {
		r.stop(at, "a key of more than %d parts, those of the tables around it included; the rest is not read", maxTOMLParts)
		return ""
	}
	if r.work += (len(path) + int(parts[len(parts)-1].at.Span.End) - at) * len(parts); r.work > maxTOMLWork {
		r.stop(at, "paths of keys of more than %d MB in all; the rest is not read", maxTOMLWork>>20)
		return ""
	}
	full := join(path, parts)
	if r.list != nil {
		r.list(full[1:])
	}
	return full
}

// stop gives up on the rest of the file.
func (r *tomlReader) stop(at int, format string, args ...any) {
	if !r.stopped {
		r.fault(at, min(at+1, len(r.text)), nil, format, args...)
		if n := len(r.tree.Errors); n == MaxErrors {
			r.tree.Errors[n-1] = Error{At: r.place(at, min(at+1, len(r.text))), Message: fmt.Sprintf(format, args...)}
		}
		r.tree.Errors[len(r.tree.Errors)-1].Bound = true
		r.stopped, r.root.Open = true, true
	}
	r.pos = len(r.text)
}

// header reads [a.b] or [[a.b]] and gives the table that follows.
func (r *tomlReader) header() (table *Node, path string, ok bool) {
	start := r.pos
	array := bytes.HasPrefix(r.text[r.pos:], []byte("[["))
	r.pos++
	if array {
		r.pos++
	}
	parts := r.key()
	closer := "]"
	if array {
		closer = "]]"
	}
	if len(parts) == 0 {
		r.fault(start, r.lineEnd(start), nil, "a table header without a name")
		return nil, "", false
	}
	if !bytes.HasPrefix(r.text[r.pos:], []byte(closer)) {
		at := source.Span{Start: uint32(r.pos), End: uint32(r.pos)}
		r.fault(start, max(r.pos, start+1), &Fix{"Close the header", at, closer}, "%s is missing after the name of this table", closer)
	} else {
		r.pos += len(closer)
	}
	span := source.Span{Start: uint32(start), End: uint32(r.pos)}
	if path = r.name("", parts); path == "" {
		return nil, "", false
	}
	last := parts[len(parts)-1]
	chain := r.descend(r.root, parts[:len(parts)-1])
	owner := chain[len(chain)-1]
	existing := r.find(owner, last.name)
	switch {
	case array && existing != nil && existing.Value.Kind == Sequence && existing.Value.Style != Flow:
		table = r.table(span)
		existing.Value.Items = append(existing.Value.Items, Item{Value: table})
		chain = append(chain, existing.Value)
	case array:
		table = r.table(span)
		list := &Node{Kind: Sequence, At: r.file.At(span), Items: []Item{{Value: table}}}
		r.add(owner, Item{Key: last.name, KeyAt: last.at, Value: list})
		chain = append(chain, list)
	case existing != nil && existing.Value.Kind == Mapping:
		table = existing.Value
	case existing != nil && existing.Value.Kind == Sequence && len(existing.Value.Items) > 0:
		table = existing.Value.Items[len(existing.Value.Items)-1].Value
		chain = append(chain, existing.Value)
	default:
		table = r.table(span)
		r.add(owner, Item{Key: last.name, KeyAt: last.at, Value: table})
	}
	r.owners = append(chain, table)
	r.cover(r.owners, span)
	return table, path, true
}

func (r *tomlReader) table(span source.Span) *Node {
	r.count(int(span.Start))
	return &Node{Kind: Mapping, At: r.file.At(span)}
}

// count bounds the values of a file.
func (r *tomlReader) count(at int) {
	if r.nodes++; r.nodes > MaxNodes {
		r.stop(at, "more than %d values; the rest is not read", MaxNodes)
	}
}

func (r *tomlReader) find(table *Node, name string) *Item {
	if i, ok := r.index[table][name]; ok {
		return &table.Items[i]
	}
	return nil
}

func (r *tomlReader) add(table *Node, item Item) {
	if r.index[table] == nil {
		r.index[table] = map[string]int{}
	}
	r.index[table][item.Key] = len(table.Items)
	table.Items = append(table.Items, item)
}

// cover makes the collections reach over a span that was added to them.
func (r *tomlReader) cover(chain []*Node, span source.Span) {
	for _, n := range chain {
		if n.At.Span.Len() == 0 {
			n.At.Span = span
		}
		n.At.Span = n.At.Span.Cover(span)
	}
}

// descend is the tables on the way along a dotted key, which are made where they are missing; of an array of tables the
// last one counts.
func (r *tomlReader) descend(from *Node, parts []part) []*Node {
	chain := []*Node{from}
	for _, p := range parts {
		table := chain[len(chain)-1]
		item := r.find(table, p.name)
		if item != nil && item.Value.Kind == Sequence && len(item.Value.Items) > 0 {
			if last := item.Value.Items[len(item.Value.Items)-1].Value; last.Kind == Mapping {
				chain = append(chain, item.Value, last)
				continue
			}
		}
		if item == nil || item.Value.Kind != Mapping {
			r.count(int(p.at.Span.Start))
			r.add(table, Item{Key: p.name, KeyAt: p.at, Value: &Node{Kind: Mapping, At: p.at}})
			item = r.find(table, p.name)
		}
		chain = append(chain, item.Value)
	}
	return chain
}

// entry reads `key = value` into a table. end is what closes the text it stands in: a line end or }.
func (r *tomlReader) entry(table *Node, path string, end byte) {
	start := r.pos
	parts := r.key()
	if len(parts) == 0 {
		line := r.lineEnd(start)
		r.fault(start, max(line, start+1), nil, "a key is expected here")
		r.root.Open = true
		r.pos = max(line, start+1)
		return
	}
	full := r.name(path, parts)
	if full == "" {
		return
	}
	last := parts[len(parts)-1]
	chain := r.descend(table, parts[:len(parts)-1])
	var value *Node
	switch {
	case r.pos < len(r.text) && r.text[r.pos] == '=':
		r.pos++
		r.blanks(false)
		value = r.value(full, end)
	default:
		at := source.Span{Start: uint32(r.pos), End: uint32(r.pos)}
		after := int(last.at.Span.End)
		line := r.lineEnd(after)
		if r.pos < len(r.text) && r.text[r.pos] == ':' {
			at.End++
			r.fault(after, r.pos+1, &Fix{"Write =", at, "="}, ": where = is expected after the key")
			r.pos++
			r.blanks(false)
			value = r.value(full, end)
			break
		}
		r.fault(int(parts[0].at.Span.Start), after, nil, "no = after this key")
		r.pos = line
		value = &Node{Kind: Invalid, At: r.place(after, after)}
	}
	r.add(chain[len(chain)-1], Item{Key: last.name, KeyAt: last.at, Value: value})
	span := source.Span{Start: uint32(start), End: max(last.at.Span.End, value.At.Span.End)}
	r.cover(chain, span)
	if end == '\n' {
		r.cover(r.owners, span)
	}
}
