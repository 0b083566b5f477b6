package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/trainvet/trainvet/lint/source"
)

// ParseYAML reads the documents of a YAML file, at least one. After a fault the broken block is left out and the rest is
// read; the collections that miss it are Open.
//
// The value of an alias is the value it stands for: At is where that is written, Via where the alias stands. What a
// merge key (<<) brings in precedes the written keys, as Items with Merge set.
func ParseYAML(f *source.File) []*Tree {
	var why string
	if len(f.Text) > maxYAML {
		why = fmt.Sprintf("larger than %d MB; not read", maxYAML>>20)
	} else if yamlValues(f.Text) > MaxNodes {
		why = fmt.Sprintf("more than %d values; not read", MaxNodes)
	}
	if why != "" {
		return []*Tree{{Format: YAML, Errors: []Error{{At: f.At(f.LineSpan(0)), Message: why, Bound: true}}}}
	}
	r := &yamlReader{file: f, text: f.Text, made: map[*yaml.Node]*Node{}, sizes: map[*Node]int{}}
	r.indexLines()
	r.load()
	return r.convert()
}

// maxYAML is the size in bytes up to which a YAML file is read: the library needs some 150 times as much memory.
const maxYAML = 8 << 20

// maxDocuments bounds the documents of a YAML file that are read. Manifests of a whole cluster hold some hundred; of each one follow
// the parts of runs, so that a file of tens of thousands costs minutes and gigabytes.
const maxDocuments = 1000

// yamlValues tells about how many values a text has by its separators: the library reads all of it before they can be counted.
// A key with its value are two. Comments, but not texts, are passed over; a text so dense with separators is no config.
func yamlValues(text []byte) int {
	commas, colons, dashes, quotes, opened := 0, 0, 0, 0, 0
	blankAfter := func(i int) bool { return i+1 == len(text) || text[i+1] <= ' ' }
	first := true // nothing but blanks since the line began
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n' || c == '\r':
			first = true
			continue
		case c == ' ' || c == '\t':
			continue
		case c == '#' && first:
			if end := bytes.IndexByte(text[i:], '\n'); end >= 0 {
				i += end
				continue
			}
			i = len(text)
		case c == ',':
			commas++
		case c == ':' && blankAfter(i):
			colons++
		case c == '-' && blankAfter(i):
			dashes++
		case c == '"' || c == '\'':
			quotes++
		case c == '[' || c == '{':
			opened++
		}
		first = false
	}
	return max(commas+colons, 2*colons+dashes, quotes/2+opened)
}

type yamlReader struct {
	file         *source.File
	text         []byte        // what the library reads: the file, with parts blanked that are no YAML
	blanked      []source.Span // parts left out because they are broken
	filled       []source.Span // template parts that a plain word stands for
	lines        []int         // offset of the first byte of each line, as the library counts them
	docs         []*yaml.Node
	beyond       *yaml.Node // the first document that is not read, for there are more than maxDocuments
	interpolated bool       // a scalar of the document at work is filled in by ${...}
	errors       []Error

	last    struct{ line, column, offset int } // of the offset computed last: columns count runes
	opaque  []source.Span                      // quoted and block scalars, in which no comment begins
	reach   int                                // end of what is converted
	made    map[*yaml.Node]*Node               // anchored values; nil while one is being made
	sizes   map[*Node]int                      // values below an anchored one
	nodes   int
	stopped bool
	sign    source.Place // the first sign of a template
	blocks  bool         // there are {% %} blocks
}

// indexLines finds the lines as libyaml does: NEL, LS and PS break lines as well.
func (r *yamlReader) indexLines() {
	r.lines = make([]int, 1, bytes.Count(r.text, []byte("\n"))+2)
	for i := 0; i < len(r.text); {
		size := lineBreak(r.text, i)
		if size == 0 {
			i++
			continue
		}
		i += size
		r.lines = append(r.lines, i)
	}
}

// lineBreak is the length in bytes of the line break at an offset, or 0.
func lineBreak(text []byte, i int) int {
	switch c := text[i]; {
	case c == '\n':
		return 1
	case c == '\r':
		if i+1 < len(text) && text[i+1] == '\n' {
			return 2
		}
		return 1
	case c == 0xC2 && i+1 < len(text) && text[i+1] == 0x85:
		return 2
	case c == 0xE2 && i+2 < len(text) && text[i+1] == 0x80 && (text[i+2] == 0xA8 || text[i+2] == 0xA9):
		return 3
	}
	return 0
}

// offset converts a position of the library, line and column in runes from 1, to bytes.
func (r *yamlReader) offset(line, column int) int {
	if line < 1 {
		return 0
	}
	if line > len(r.lines) {
		return len(r.text)
	}
	at, seen := r.lines[line-1], 1
	if r.last.line == line && r.last.column <= column && r.last.column > 0 {
		at, seen = r.last.offset, r.last.column
	}
	for ; seen < column && at < len(r.text); seen++ {
		_, size := utf8.DecodeRune(r.text[at:])
		at += size
	}
	r.last.line, r.last.column, r.last.offset = line, column, at
	return at
}

// parse runs the library once over the text. A panic of it counts as a fault.
func (r *yamlReader) parse() (docs []*yaml.Node, fault *yaml.LoadError) {
	defer func() {
		if broken := recover(); broken != nil {
			fault = &yaml.LoadError{Message: fmt.Sprintf("the document cannot be read: %v", broken)}
		}
	}()
	r.last.line, r.beyond = 0, nil
	loader, err := yaml.NewLoader(bytes.NewReader(r.text))
	for err == nil {
		doc := &yaml.Node{}
		if err = loader.Load(doc); err != nil {
			break
		}
		if len(docs) == maxDocuments {
			r.beyond = doc
			return docs, nil
		}
		docs = append(docs, doc)
	}
	if err == io.EOF {
		return docs, nil
	}
	if !errors.As(err, &fault) {
		fault = &yaml.LoadError{Message: err.Error()}
	}
	return docs, fault
}

func (r *yamlReader) place(start, end int) source.Place {
	return r.file.At(source.Span{Start: uint32(start), End: uint32(end)})
}

func (r *yamlReader) fault(at source.Place, fix *Fix, format string, args ...any) {
	if len(r.errors) < MaxErrors {
		r.errors = append(r.errors, Error{At: at, Message: fmt.Sprintf(format, args...), Fix: fix})
	}
}

// convert makes the trees of what the library read.
func (r *yamlReader) convert() []*Tree {
	var trees []*Tree
	starts := []int{}
	for _, doc := range r.docs {
		tree := &Tree{Format: YAML}
		if len(doc.Content) > 0 && (doc.Content[0].Kind != yaml.ScalarNode || doc.Content[0].Value != "" || doc.Content[0].Tag != "!!null") {
			r.interpolated = false
			tree.Root = r.node(doc.Content[0], 0)
			tree.Interpolated = r.interpolated
			tree.Braced = tree.Root.Kind == Mapping && doc.Content[0].Style&yaml.FlowStyle != 0
		}
		starts = append(starts, r.offset(doc.Line, doc.Column))
		trees = append(trees, tree)
	}
	if len(trees) == 0 {
		trees, starts = []*Tree{{Format: YAML}}, []int{0}
	}
	of := func(offset int) *Tree { // the last that begins at or before the offset, else the first
		return trees[max(sort.Search(len(starts), func(i int) bool { return starts[i] > offset })-1, 0)]
	}
	if r.beyond != nil && !r.stopped {
		at := r.offset(r.beyond.Line, r.beyond.Column)
		r.errors = append(r.errors, Error{At: r.place(at, at), Message: fmt.Sprintf("more than %d documents; what follows line %d is not read", maxDocuments, r.lineOf(at)), Bound: true})
	}
	r.openAround(of)
	for _, span := range r.comments() {
		tree := of(int(span.Start))
		tree.comments = append(tree.comments, span)
	}
	if !r.sign.IsZero() {
		for _, tree := range trees {
			tree.Template, tree.TemplateAt = true, r.sign
		}
	}
	if !r.blocks {
		sortErrors(r.errors)
		for _, e := range r.errors {
			tree := of(int(e.At.Span.Start))
			tree.Errors = append(tree.Errors, e)
		}
	}
	return trees
}

// node converts one node of the library with all below it.
func (r *yamlReader) node(y *yaml.Node, depth int) *Node {
	start := r.offset(y.Line, y.Column)
	if y.Kind == yaml.AliasNode {
		return r.alias(y, start)
	}
	if y.Anchor != "" {
		r.made[y] = nil
	}
	n := &Node{Tag: explicitTag(y)}
	if r.nodes++; r.nodes > MaxNodes || depth > MaxDepth || r.stopped {
		r.stop(start, depth)
		n.At, n.Open = r.place(start, start), true
		r.reach = max(r.reach, start)
		return n
	}
	before := r.nodes
	switch y.Kind {
	case yaml.ScalarNode:
		r.scalar(n, y, start)
	case yaml.SequenceNode:
		n.Kind = Sequence
		start = r.properties(start, y.Anchor, false)
		n.Items = room(len(y.Content))
		for i, child := range y.Content {
			n.Items = append(n.Items, Item{Value: r.node(child, depth+1)})
			release(y, i)
		}
		r.extend(n, y, start)
	case yaml.MappingNode:
		n.Kind = Mapping
		if y.Style&yaml.FlowStyle != 0 || len(y.Content) == 0 {
			start = r.properties(start, y.Anchor, false)
		} else {
			start = r.offset(y.Content[0].Line, y.Content[0].Column)
		}
		if !r.templateNode(n, y, start) {
			r.mapping(n, y, depth)
			r.extend(n, y, start)
		}
	}
	if y.Anchor != "" {
		r.made[y] = n
		r.sizes[n] = r.nodes - before + 1
	}
	return n
}

func (r *yamlReader) stop(at, depth int) {
	if r.stopped {
		return
	}
	r.stopped = true
	message := fmt.Sprintf("more than %d values, those repeated by aliases included; the rest is not read", MaxNodes)
	if depth > MaxDepth {
		message = fmt.Sprintf("nested deeper than %d levels; the rest is not read", MaxDepth)
	}
	r.errors = append(r.errors, Error{At: r.place(at, at), Message: message, Bound: true}) // once, so above MaxErrors too
}

// explicitTag is the tag written in the file, or "".
func explicitTag(y *yaml.Node) string {
	if y.Style&yaml.TaggedStyle != 0 {
		return y.Tag
	}
	return ""
}

func (r *yamlReader) alias(y *yaml.Node, start int) *Node {
	at := r.place(start, min(start+1+len(y.Value), len(r.text)))
	r.reach = max(r.reach, int(at.Span.End))
	target, known := r.made[y.Alias]
	switch {
	case target == nil && known:
		r.fault(at, nil, "the anchor `%s` contains itself", y.Value)
		return &Node{At: at, Open: true}
	case target == nil:
		return &Node{At: at, Open: true}
	}
	if r.nodes += r.sizes[target]; r.nodes > MaxNodes {
		r.stop(start, 0)
		return &Node{At: at, Open: true}
	}
	n := *target
	n.Via = at
	return &n
}

// mapping converts the entries: what merge keys bring in first, then the written ones in their order.
func (r *yamlReader) mapping(n *Node, y *yaml.Node, depth int) {
	var merged []Item
	written := room(len(y.Content) / 2)
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.Tag == "!!merge" {
			at := r.node(key, depth+1).At
			v := r.node(value, depth+1)
			release(y, i+1)
			merged = append(merged, r.merge(v, at)...)
			if v.Open && v.Kind == Invalid {
				n.Open = true
			}
			continue
		}
		k := r.node(key, depth+1)
		item := Item{Key: k.Raw, KeyAt: k.At}
		if !k.Via.IsZero() {
			item.KeyAt = k.Via
		}
		if k.Kind != Scalar {
			item.Key = r.file.Slice(k.At.Span)
		}
		item.Value = r.node(value, depth+1)
		if item.Value.Kind == Invalid {
			item.Value.Open = true
		}
		written = append(written, item)
		release(y, i)
		release(y, i+1)
	}
	if n.Items = written; len(merged) > 0 {
		n.Items = append(merged, written...)
	}
}

// room is for so many items: a list that grows holds, and leaves behind, several times as much.
func room(items int) []Item {
	if items == 0 {
		return nil
	}
	return make([]Item, 0, items)
}

// release lets go of what is converted below a node of the library, but for the first, which says where the node begins.
func release(y *yaml.Node, i int) {
	if i > 0 {
		y.Content[i] = nil
	}
}

// merge is what the value of a merge key brings in. Of a list the first mapping wins, so it comes last.
func (r *yamlReader) merge(v *Node, at source.Place) []Item {
	var items []Item
	switch v.Kind {
	case Mapping:
		for _, item := range v.Items {
			item.Merge = true
			items = append(items, item)
		}
		// Each merge is a copy: count it, or merges of merges would grow without bound
		if r.nodes += len(items); r.nodes > MaxNodes {
			r.stop(int(at.Span.Start), 0)
			return nil
		}
	case Sequence:
		for i := len(v.Items) - 1; i >= 0; i-- {
			if v.Items[i].Value.Kind == Sequence {
				r.fault(at, nil, "a merge key (<<) wants a mapping or a list of mappings")
				continue
			}
			items = append(items, r.merge(v.Items[i].Value, at)...)
		}
	case Scalar:
		if !v.Open {
			r.fault(at, nil, "a merge key (<<) wants a mapping or a list of mappings")
		}
	}
	return items
}

func (r *yamlReader) scalar(n *Node, y *yaml.Node, start int) {
	n.Kind, n.Raw = Scalar, y.Value
	if start+1 < len(r.text) && r.text[start] == '!' && isBlankAt(r.text, start+1) > 0 {
		n.Tag = "!" // text, whatever it looks like
	}
	start = r.properties(start, y.Anchor, y.Value == "" && y.Style&^yaml.TaggedStyle == 0)
	end, body := start, start
	switch {
	case y.Style&yaml.DoubleQuotedStyle != 0:
		n.Style = DoubleQuoted
		end = r.quotedEnd(start)
	case y.Style&yaml.SingleQuotedStyle != 0:
		n.Style = SingleQuoted
		end = r.quotedEnd(start)
	case y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		n.Style = Block
		body, end = r.blockEnd(start, y.Value)
	default:
		end = r.matchEnd(start, y.Value)
	}
	n.At = r.place(start, end)
	r.reach = max(r.reach, end)
	if end > body && n.Style != Plain {
		r.opaque = append(r.opaque, source.Span{Start: uint32(body), End: uint32(end)})
	}
	if r.isFilled(n.At.Span) {
		n.Open = true
		n.Raw = r.file.Slice(n.At.Span)
		if n.Style != Plain && len(n.Raw) >= 2 {
			n.Raw = n.Raw[1 : len(n.Raw)-1]
		}
	}
	if n.Style != Block && isInterpolated(n.Raw) {
		n.Open, r.interpolated = true, true
	}
	n.Open = n.Open || n.Style == Plain && n.Raw == mandatory
}

// mandatory stands, in files of OmegaConf and Hydra, for a value that the command line has to give.
const mandatory = "???"

// templateNode reads `{{ x }}`, which is a mapping with a mapping for a key to YAML, as the placeholder it is.
func (r *yamlReader) templateNode(n *Node, y *yaml.Node, start int) bool {
	if y.Style&yaml.FlowStyle == 0 || !bytes.HasPrefix(r.text[start:], []byte("{{")) {
		return false
	}
	end := templateEnd(r.text, start)
	if !strings.HasSuffix(string(r.text[start:end]), "}}") {
		return false
	}
	if r.sign.IsZero() {
		r.sign = r.place(start, end)
	}
	n.Kind, n.Open, n.At = Scalar, true, r.place(start, end)
	n.Raw = string(r.text[start:end])
	r.opaque = append(r.opaque, n.At.Span)
	r.reach = max(r.reach, end)
	return true
}
