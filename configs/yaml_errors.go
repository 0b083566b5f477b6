package configs

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/trainvet/trainvet/lint/source"
)

const (
	maxYAMLRounds = 40      // times that a damaged file is read
	maxYAMLRetry  = 1 << 20 // size in bytes above which only whole top-level blocks are left out, maxLargeRounds times
	maxLargeRound = 6
)

// load reads all documents. What the library refuses is explained, blanked out and read again.
func (r *yamlReader) load() {
	docs, fault := r.parse()
	if fault != nil {
		docs, fault = r.fillTemplate(docs, fault)
	}
	rounds := maxYAMLRounds
	if len(r.text) > maxYAMLRetry {
		rounds = maxLargeRound
	}
	for fault != nil && rounds > 0 {
		culprit := r.explain(fault)
		docs, fault = r.leaveOut(docs, fault, culprit, &rounds)
	}
	r.docs = docs
}

// leaveOut blanks the smallest block whose absence lets the library read on, from the faulty line outwards.
// culprit is the offset on that line when it is known to be wrong itself, else -1.
func (r *yamlReader) leaveOut(docs []*yaml.Node, fault *yaml.LoadError, culprit int, rounds *int) ([]*yaml.Node, *yaml.LoadError) {
	kept := r.text
	at := r.faultOffset(fault)
	for _, span := range r.blocksAround(at, culprit) {
		if *rounds--; *rounds < 0 {
			break
		}
		r.text = blank(kept, span)
		next, again := r.parse()
		if again == nil || r.faultOffset(again) > max(at, int(span.End)-1) {
			r.blanked = append(r.blanked, span)
			return next, again
		}
	}
	*rounds = 0
	lost := source.Span{Start: uint32(min(at, len(kept))), End: uint32(len(kept))}
	r.text = blank(kept, lost)
	r.blanked = append(r.blanked, lost)
	return docs, fault
}

// blank is the text with spaces in place of a span; line breaks stay.
func blank(text []byte, span source.Span) []byte {
	out := bytes.Clone(text)
	fill(out, span, ' ')
	return out
}

// fill writes a character over a span; line breaks stay.
func fill(text []byte, span source.Span, with byte) {
	for i := int(span.Start); i < int(span.End); i++ {
		if size := lineBreak(text, i); size > 0 {
			i += size - 1
			continue
		}
		text[i] = with
	}
}

func (r *yamlReader) markOffset(m yaml.Mark) int {
	if m.Line < 1 {
		return min(max(m.Index, 0), len(r.text))
	}
	return r.offset(m.Line, max(m.Column, 1))
}

func (r *yamlReader) faultOffset(fault *yaml.LoadError) int { return r.markOffset(fault.Mark) }

// lineOf is the number from 0 of the library's line that holds an offset.
func (r *yamlReader) lineOf(offset int) int {
	return sort.Search(len(r.lines), func(i int) bool { return r.lines[i] > offset }) - 1
}

// line is the text of a line without its break, and its offset.
func (r *yamlReader) line(n int) (string, int) {
	if n < 0 || n >= len(r.lines) {
		return "", len(r.text)
	}
	start, end := r.lines[n], len(r.text)
	if n+1 < len(r.lines) {
		end = r.lines[n+1]
	}
	return strings.TrimRight(string(r.text[start:end]), "\r\n\u0085\u2028\u2029"), start
}

// indent is the number of blanks before the content of a line, or -1 for a line without content.
func (r *yamlReader) indent(n int) int {
	text, _ := r.line(n)
	content := strings.TrimLeft(text, " \t")
	if content == "" || content[0] == '#' {
		return -1
	}
	return len(text) - len(content)
}

// previous is the last line with content before line n, or -1.
func (r *yamlReader) previous(n int) int {
	for n--; n >= 0 && r.indent(n) < 0; n-- {
	}
	return n
}

func isItem(text string) bool {
	text = strings.TrimLeft(text, " \t")
	return text == "-" || strings.HasPrefix(text, "- ")
}

// blocksAround are the spans to leave out for a fault, smallest first.
func (r *yamlReader) blocksAround(at, culprit int) []source.Span {
	own := culprit >= 0
	if own {
		at = culprit
	}
	line := r.lineOf(min(at, len(r.text)))
	if r.indent(line) < 0 {
		line = max(r.previous(line), 0)
	}
	var spans []source.Span
	add := func(first, end int) {
		span := source.Span{Start: uint32(r.lines[first]), End: uint32(len(r.text))}
		if end < len(r.lines) {
			span.End = uint32(r.lines[end])
		}
		if len(spans) == 0 || spans[len(spans)-1] != span {
			spans = append(spans, span)
		}
	}
	small := len(r.text) <= maxYAMLRetry
	if own && small {
		add(line, r.blockLines(line))
	}
	for {
		up := r.parent(line)
		if up < 0 {
			break
		}
		line = up
		if small {
			add(line, r.blockLines(line))
		}
	}
	add(line, r.blockLines(line))
	end := line + 1
	for end < len(r.lines) {
		if text, _ := r.line(end); strings.HasPrefix(text, "---") {
			break
		}
		end++
	}
	add(line, end)
	return spans
}

// blockLines is the number of the line after the block that starts with a line: those indented deeper belong to it, and
// under a key the items of a list that is not indented, or the bracket that closes what the key opens.
func (r *yamlReader) blockLines(first int) int {
	text, _ := r.line(first)
	item, depth := isItem(text), r.indent(first)
	opens := strings.HasSuffix(text, "{") || strings.HasSuffix(text, "[")
	for n := first + 1; n < len(r.lines); n++ {
		text, _ := r.line(n)
		if strings.HasPrefix(text, "---") || strings.HasPrefix(text, "...") {
			return n
		}
		if i := r.indent(n); i >= 0 && i <= depth && (i < depth || item || !isItem(text)) {
			if i == depth && opens && strings.ContainsRune("}]", rune(text[i])) {
				return n + 1
			}
			return n
		}
	}
	return len(r.lines)
}

// parent is the line of the key or item that a line is below, or -1.
func (r *yamlReader) parent(line int) int {
	text, _ := r.line(line)
	item, depth := isItem(text), r.indent(line)
	for n := r.previous(line); n >= 0; n = r.previous(n) {
		text, _ := r.line(n)
		if strings.HasPrefix(text, "---") {
			return -1
		}
		if i := r.indent(n); i < depth || i == depth && item && !isItem(text) {
			return n
		}
	}
	return -1
}

// openAround marks the collections from which something was left out.
func (r *yamlReader) openAround(of func(int) *Tree) {
	for _, span := range r.blanked {
		tree := of(int(span.Start))
		if tree.Root == nil {
			if len(tree.Errors) == 0 {
				tree.Root = &Node{Kind: Mapping, Open: true, At: r.place(int(span.Start), int(span.Start))}
			}
			continue
		}
		indent := max(r.indentIn(int(span.Start)), 0)
		for n := tree.Root; n != nil; {
			n.Open = true
			if n.Kind == Scalar && n.Raw == "" && n.Style == Plain {
				n.Kind = Invalid
			}
			var next *Node
			for i := range n.Items {
				item := &n.Items[i]
				at := item.KeyAt
				if at.IsZero() {
					at = item.Value.At
				}
				if item.Merge || at.Span.Start > span.Start {
					continue
				}
				if r.columnOf(int(at.Span.Start)) < indent || n.Kind == Sequence {
					next = item.Value
				} else {
					next = nil
				}
			}
			if next != nil && !next.Via.IsZero() {
				next = nil
			}
			n = next
		}
	}
}

// indentIn is the indentation of the line that starts at an offset, in the file as it is.
func (r *yamlReader) indentIn(offset int) int {
	n := 0
	for offset+n < len(r.file.Text) && (r.file.Text[offset+n] == ' ' || r.file.Text[offset+n] == '\t') {
		n++
	}
	return n
}

func (r *yamlReader) columnOf(offset int) int { return offset - r.lines[r.lineOf(offset)] }

// fillTemplate puts a plain word for each `{{ x }}` and blanks for each `{% %}` and tries again. Where that gets
// further the file is a template.
func (r *yamlReader) fillTemplate(docs []*yaml.Node, fault *yaml.LoadError) ([]*yaml.Node, *yaml.LoadError) {
	at := r.faultOffset(fault)
	kept := r.text
	spans := templateParts(kept)
	if len(spans) == 0 {
		return docs, fault
	}
	r.text = bytes.Clone(kept)
	for _, span := range spans {
		with := byte('x')
		if kept[span.Start+1] != '{' && kept[span.Start] != '$' || alone(kept, span) {
			with = ' '
		}
		fill(r.text, span, with)
	}
	next, again := r.parse()
	if again != nil && r.faultOffset(again) <= at {
		r.text = kept
		return docs, fault
	}
	line := r.lineOf(at)
	sign := spans[0]
	for _, span := range spans {
		if r.lineOf(int(span.Start)) == line {
			sign = span
			break
		}
	}
	r.sign = r.file.At(sign)
	r.filled = spans
	for _, span := range spans {
		if r.text[span.Start] == ' ' {
			r.blocks = true
			r.blanked = append(r.blanked, span)
		}
	}
	return next, again
}

// alone reports whether nothing but the span is on its line.
func alone(text []byte, span source.Span) bool {
	before := text[bytes.LastIndexByte(text[:span.Start], '\n')+1 : span.Start]
	after := text[span.End:]
	if end := bytes.IndexByte(after, '\n'); end >= 0 {
		after = after[:end]
	}
	return len(bytes.TrimSpace(before)) == 0 && len(bytes.TrimSpace(after)) == 0
}

// templateParts are the spans of `{{ }}`, `{% %}`, `{# #}` and `${ }`.
func templateParts(text []byte) []source.Span {
	var spans []source.Span
	for i := 0; i+1 < len(text); i++ {
		end := i
		switch two := string(text[i : i+2]); two {
		case "{{", "{%", "{#":
			end = templateEnd(text, i)
			if closed := string(text[max(end-2, i):end]); closed != "}}" && closed != "%}" && closed != "#}" {
				end = i
			}
		case "${":
			if closing := bytes.IndexAny(text[i:], "}\n"); closing > 0 && text[i+closing] == '}' {
				end = i + closing + 1
			}
		}
		if end > i {
			spans = append(spans, source.Span{Start: uint32(i), End: uint32(end)})
			i = end - 1
		}
	}
	return spans
}

// isFilled reports whether a template part lies in the span.
func (r *yamlReader) isFilled(span source.Span) bool {
	i := sort.Search(len(r.filled), func(i int) bool { return r.filled[i].End > span.Start })
	return i < len(r.filled) && r.filled[i].Start < span.End && r.text[r.filled[i].Start] == 'x'
}

var (
	noBlank   = source.Pattern(`^\s*(?:- +)?[A-Za-z_][\w.-]*:[^\s/]`)
	noColon   = source.Pattern(`^(\s*(?:- +)?[A-Za-z_][\w.-]*) +\S+\s*$`)
	keyInLine = source.Pattern(`^\s*(?:- +)?[^\s#:'"]+:(?:\s|$)`)
)

// explain turns a fault of the library into an Error in the words of the file. It gives the offset of a line that is
// wrong itself, or -1 where the line shows only that something above is.
func (r *yamlReader) explain(fault *yaml.LoadError) int {
	offset := r.faultOffset(fault)
	context := offset
	if fault.ContextMark.Line > 0 {
		context = r.markOffset(fault.ContextMark)
	}
	line := r.lineOf(offset)
	text, start := r.line(line)
	say := func(at int, fix *Fix, format string, args ...any) int {
		r.fault(r.word(at), fix, format, args...)
		return at
	}
	message := fault.Message
	has := func(part string) bool { return strings.Contains(message, part) }
	switch {
	case has("tab") || has("cannot start") && offset < len(r.text) && r.text[offset] == '\t':
		return say(offset, nil, "a tab is used for indentation; YAML wants spaces")
	case has("control characters") || has("Unicode"):
		return say(offset, nil, "%s", message)
	case strings.Contains(fault.ContextMsg, "quoted scalar") && (has("end of stream") || has("document indicator")):
		return say(context, nil, "this quote is never closed")
	case has("mapping values are not allowed"), has("could not find expected ':'"), has("did not find expected key"):
		if at := r.openQuote(line); at >= 0 {
			return say(at, nil, "this quote is not closed on its line")
		}
		if has("mapping values") {
			return r.explainColon(text, start, line, offset, say)
		}
		if has("could not find") {
			if at, fix := r.missingBlank(r.lineOf(context)); at >= 0 {
				return say(at, fix, "%s", "this line is no `key: value`")
			}
			return say(context, nil, "this line has no colon after its key")
		}
		if isItem(text) {
			return say(offset, nil, "a list item where a key is expected; check the indentation")
		}
		return say(offset, nil, "this line fits none of the indentations above it")
	case has("'-' indicator"):
		return say(offset, nil, "a key where the next item of the list is expected; check the indentation")
	case has("cannot start any token"):
		end := max(start+len(strings.TrimRight(text, " \t")), offset)
		found, _ := utf8.DecodeRune(r.text[min(offset, len(r.text)):])
		return say(offset, quoteYAML(r.text, offset, end), "%c cannot begin a value; put the value in quotes", found)
	case has("expected ',' or"):
		below := offset >= len(r.text) || r.lineOf(context) < line && keyInLine().MatchString(text) && r.indent(line) <= r.indent(r.lineOf(context))
		if below && context < len(r.text) {
			return say(context, nil, "this %c is never closed", r.text[context])
		}
		say(offset, nil, "a comma or %s is expected here", message[len(message)-2:len(message)-1])
		return context
	case has("node content"):
		return say(offset, nil, "a value is expected here")
	case has("unknown anchor"):
		name := strings.TrimSuffix(strings.TrimPrefix(message, "unknown anchor '"), "' referenced")
		return say(offset, nil, "the anchor `%s` is not defined above this line", name)
	case has("block sequence entries"):
		return say(offset, nil, "a list with - cannot begin here; start it on a new line below its key")
	case has("unknown escape") && offset < len(r.text):
		slash := max(bytes.LastIndexByte(r.text[:offset+1], '\\'), 0)
		_, size := utf8.DecodeRune(r.text[slash+1:])
		r.fault(r.place(slash, slash+1+size), &Fix{"Write a backslash", source.Span{Start: uint32(slash), End: uint32(slash)}, `\`},
			"%s is no escape in a string with double quotes; a backslash itself is written \\\\", r.text[slash:slash+1+size])
		return slash
	}
	if fault.ContextMsg != "" {
		message = fmt.Sprintf("%s, %s", message, fault.ContextMsg)
	}
	say(offset, nil, "%s", message)
	return -1
}

// quoteYAML puts a value in double quotes, where that needs no escapes.
func quoteYAML(text []byte, start, end int) *Fix {
	value := string(text[start:end])
	if value == "" || strings.ContainsAny(value, "\"\\#") {
		return nil
	}
	return &Fix{"Put it in quotes", source.Span{Start: uint32(start), End: uint32(end)}, `"` + value + `"`}
}

// word is the place of the text at an offset, up to a blank.
func (r *yamlReader) word(offset int) source.Place {
	offset = min(offset, len(r.text))
	if rest := len(bytes.TrimRight(r.text, " \t\r\n")); offset > rest {
		offset = rest
	}
	end := offset
	for end < len(r.text) && isBlankAt(r.text, end) == 0 {
		end++
	}
	if end == offset && end < len(r.text) && lineBreak(r.text, end) == 0 {
		end++
	}
	return r.place(offset, end)
}

// missingBlank finds `key:value` or `key value` on a line: the offset of the key and the repair, or -1.
func (r *yamlReader) missingBlank(line int) (int, *Fix) {
	text, start := r.line(line)
	insert := func(at int, title, what string) (int, *Fix) {
		return start + max(r.indent(line), 0), &Fix{title, source.Span{Start: uint32(at), End: uint32(at)}, what}
	}
	if noBlank().MatchString(text) {
		return insert(start+strings.IndexByte(text, ':')+1, "Add the blank after the colon", " ")
	}
	if match := noColon().FindStringSubmatch(text); match != nil {
		return insert(start+len(match[1]), "Add the colon after the key", ":")
	}
	return -1, nil
}

func missing(fix *Fix) string {
	if fix.Text == " " {
		return "a blank is missing after the colon"
	}
	return "a colon is missing after the key"
}

func (r *yamlReader) explainColon(text string, start, line, offset int, say func(int, *Fix, string, ...any) int) int {
	before := text[:min(max(offset-start, 0), len(text))]
	if first := strings.Index(before, ": "); first >= 0 {
		value := strings.TrimSpace(text[first+2:])
		at := start + first + 2 + strings.Index(text[first+2:], value)
		return say(offset, quoteYAML(r.text, at, at+len(value)), "a second colon on the line; put the value in quotes")
	}
	above := r.previous(line)
	if above >= 0 && r.indent(above) == r.indent(line) {
		if at, fix := r.missingBlank(above); at >= 0 {
			return say(at, fix, "%s", missing(fix))
		}
	}
	content := start + max(r.indent(line), 0)
	if above >= 0 && r.indent(above) < r.indent(line) {
		say(content, nil, "indented deeper than the line above, which already has a value")
	} else {
		say(content, nil, "a key is not allowed here; check the indentation and the line above")
	}
	return -1
}

// openQuote finds the quote that was left open a few lines above: the fault shows only where the next quote closes it.
func (r *yamlReader) openQuote(line int) int {
	const reach = 3
	if text, _ := r.line(line); !strings.ContainsAny(text, `"'`) {
		return -1
	}
	for n := line - 1; n >= 0 && n >= line-reach; n-- {
		text, start := r.line(n)
		for _, opening := range []string{`: "`, `: '`} {
			at := strings.Index(text, opening)
			if at >= 0 && strings.Count(text, opening[2:]) == 1 {
				return start + at + 2
			}
		}
	}
	return -1
}
