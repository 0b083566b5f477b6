package configs

import (
	"math/big"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/lint/source"
)

// run is a stretch of the text of a word and where it is written.
type run struct {
	text  string
	at    source.Span
	via   *passage // what it came through; nil when it is written in the word itself
	exact bool     // text is the source at this place, byte for byte
	spare bool     // the fallback of an expansion whose variable the script does not set
	open  bool     // not known: text is the expansion as it is written
	many  bool     // open, and may be any number of words: "$@", $EXTRA_ARGS
}

// passage is one use of a variable, or of one element of an array, in a word.
type passage struct {
	from     *variable
	use      source.Span
	home     source.Span // place of the value
	homeText string
}

// field is one word of a command after expansion.
type field struct {
	runs  []run
	word  source.Span // in the command
	style Style
	bare  bool // no quotes: what is not known in it may be several words
}

// open reports whether a part is not known.
func (f field) open() bool { return f.has(func(part run) bool { return part.open }) }

// many reports whether the field may be any number of words.
func (f field) many() bool { return f.has(func(part run) bool { return part.many }) }

func (f field) has(is func(run) bool) bool {
	for _, part := range f.runs {
		if is(part) {
			return true
		}
	}
	return false
}

// name is the variable that the whole field is, and whose value is not known; or "".
func (f field) name() string {
	if len(f.runs) != 1 || !f.runs[0].open {
		return ""
	}
	name, isUse := strings.CutPrefix(f.runs[0].text, "$")
	if inner, braced := strings.CutPrefix(name, "{"); braced {
		name = strings.TrimSuffix(inner, "}")
	}
	if !isUse || !isName(name) {
		return ""
	}
	return name
}

// variable is what a name holds. It is never changed.
type variable struct {
	fields   []field // one, or the elements of an array
	array    bool
	unknown  bool
	exported bool
	at       source.Span // of the value
	either   []*variable // the values that it may have, one of which it has; nil when they are not known
}

func (f field) text() string {
	if len(f.runs) == 1 {
		return f.runs[0].text
	}
	var out strings.Builder
	for _, part := range f.runs {
		out.WriteString(part.text)
	}
	return out.String()
}

// cut is the part of a field from byte n of its text.
func (f field) cut(n int) field {
	rest := f
	rest.runs = nil
	for _, part := range f.runs {
		switch {
		case n >= len(part.text):
			n -= len(part.text)
			continue
		case n > 0:
			part.text = part.text[n:]
			if part.exact {
				part.at.Start += uint32(n)
			}
			n = 0
		}
		rest.runs = append(rest.runs, part)
	}
	return rest
}

// head is the part of a field up to byte n of its text.
func (f field) head(n int) field {
	front := f
	front.runs = nil
	for _, part := range f.runs {
		if n <= 0 {
			break
		}
		if n < len(part.text) {
			part.text = part.text[:n]
			if part.exact {
				part.at.End = part.at.Start + uint32(n)
			}
		}
		n -= len(part.text)
		front.runs = append(front.runs, part)
	}
	return front
}

const shellBlanks = " \t\n"

// blanks is how many stretches of blanks a text has.
func blanks(text string) (n int) {
	before := false
	for i := range len(text) {
		c := text[i]
		blank := c == ' ' || c == '\t' || c == '\n'
		if blank && !before {
			n++
		}
		before = blank
	}
	return n
}

// split cuts a field at its blanks, as the shell splits what is not quoted.
func (f field) split() []field {
	count := len(f.runs)
	for _, part := range f.runs {
		count += blanks(part.text)
	}
	count = min(count, maxShellFields)
	fields, runs := make([]field, 0, count), make([]run, 0, count)
	current := f
	current.runs = nil
	flush := func() {
		if len(runs) > 0 {
			current.runs = slices.Clip(runs)
			current.word = current.site()
			fields = append(fields, current)
		}
		runs = runs[len(runs):]
	}
	for _, part := range f.runs {
		if part.open {
			runs = append(runs, part)
			continue
		}
		for part.text != "" && len(fields) < maxShellFields {
			blank := len(part.text) - len(strings.TrimLeft(part.text, shellBlanks))
			if blank > 0 {
				flush()
			}
			word := part
			word.text = part.text[blank:]
			if end := strings.IndexAny(word.text, shellBlanks); end >= 0 {
				word.text = word.text[:end]
			}
			if part.exact {
				word.at.Start = part.at.Start + uint32(blank)
				word.at.End = word.at.Start + uint32(len(word.text))
				part.at.Start = word.at.End
			}
			if word.text != "" {
				runs = append(runs, word)
			}
			part.text = part.text[blank+len(word.text):]
		}
	}
	flush()
	return fields
}

// through is the runs of a field of a variable, with its text, as they appear where it is used.
func (r *shellReader) through(v *variable, f field, text string, use source.Span) []run {
	home := v.at
	if v.array {
		at, _ := r.place(f, false)
		home = at.Span
	}
	runs := slices.Clone(f.runs)
	via := &passage{v, use, home, text}
	for i := range runs {
		runs[i].via = via
	}
	return runs
}

// place is where the text of a field is written, and where a variable stands for all of it. part says that the field is
// the rest of a word after a `=`.
func (r *shellReader) place(f field, part bool) (at, via source.Place) {
	if len(f.runs) == 0 {
		end := f.word
		if part {
			end.Start = end.End
		}
		return r.file.At(end), source.Place{}
	}
	first := f.runs[0]
	same, joined := true, true
	for i, part := range f.runs {
		same = same && part.via.same(first.via)
		joined = joined && part.exact && (i == 0 || part.at.Start >= f.runs[i-1].at.End && first.via != nil && first.via.home.Contains(part.at))
	}
	span := first.at.Cover(f.runs[len(f.runs)-1].at)
	switch {
	case same && first.via != nil:
		if first.via.homeText == f.text() || !joined {
			span = first.via.home
		}
		return r.file.At(span), r.file.At(first.via.use)
	case !part:
		return r.file.At(f.word), source.Place{}
	}
	start := first.at.Start
	if first.via != nil {
		start = first.via.use.Start
	}
	if start > f.word.Start && (r.file.Text[start-1] == '"' || r.file.Text[start-1] == '\'') {
		start--
	}
	return r.file.At(source.Span{Start: start, End: max(start, f.word.End)}), source.Place{}
}

func (p *passage) variable() *variable {
	if p == nil {
		return nil
	}
	return p.from
}

// same reports whether two runs came the same way. One passage is made for each use, but a use may be followed twice.
func (p *passage) same(q *passage) bool {
	return p == q || p != nil && q != nil && p.from == q.from && p.use == q.use && p.home == q.home
}

func (v *variable) whole() string {
	if len(v.fields) == 1 {
		return v.fields[0].text()
	}
	return ""
}

// value is a field as a scalar.
func (r *shellReader) value(f field, part bool) *Node {
	n := &Node{Kind: Scalar, Style: f.style, Raw: f.text(), Open: f.open(), Spare: f.has(func(part run) bool { return part.spare })}
	n.At, n.Via = r.place(f, part)
	return n
}

// expansion builds the fields of words.
type expansion struct {
	r      *shellReader
	fields []field
	first  int // of the fields of this word
	now    field
	begun  bool
	joined bool // one field whatever is in it: an assignment, a here-document
}

// expand is the words that a word of the script stands for.
func (r *shellReader) expand(word *syntax.Word) []field {
	return r.expandAll([]*syntax.Word{word})
}

// expandAll is the words that some of the script stand for together, up to maxShellFields.
func (r *shellReader) expandAll(words []*syntax.Word) []field {
	x := &expansion{r: r, fields: make([]field, 0, len(words))}
	for _, word := range words {
		x.word(word)
		if len(x.fields) > maxShellFields {
			return x.fields[:maxShellFields]
		}
	}
	return x.fields
}

// expandOne is the one text that a word stands for on the right of an assignment.
func (r *shellReader) expandOne(word *syntax.Word) field {
	if word == nil {
		return field{}
	}
	x := &expansion{r: r, joined: true}
	x.word(word)
	if len(x.fields) == 0 {
		return field{word: r.span(word)}
	}
	return x.fields[0]
}

func (x *expansion) word(word *syntax.Word) {
	x.first = len(x.fields)
	span := x.r.span(word)
	x.now = field{word: span, bare: true}
	if len(word.Parts) == 1 {
		switch word.Parts[0].(type) {
		case *syntax.SglQuoted:
			x.now.style = SingleQuoted
		case *syntax.DblQuoted:
			x.now.style = DoubleQuoted
		}
	}
	style := x.now.style
	for _, part := range word.Parts {
		x.part(part, false)
	}
	x.end()
	made := x.fields[x.first:]
	if len(made) != 1 {
		style = Plain
	}
	for i := range made {
		made[i].word, made[i].style = span, style
	}
}

func (x *expansion) end() {
	if x.begun && len(x.fields)-x.first < maxShellFields {
		x.fields = append(x.fields, x.now)
	}
	x.now.runs, x.begun = nil, false
}

func (x *expansion) add(one run) {
	x.now.runs = append(x.now.runs, one)
	x.begun = true
}

// addAll adds runs that are never changed: where the field has none before, it shares them.
func (x *expansion) addAll(runs []run) {
	if len(x.now.runs) == 0 {
		x.now.runs = slices.Clip(runs)
	} else {
		x.now.runs = append(x.now.runs, runs...)
	}
	x.begun = true
}

// unknown adds an expansion whose text is not known, as it is written.
func (x *expansion) unknown(span source.Span, many bool) {
	x.add(run{text: x.r.source(span), at: span, exact: true, open: true, many: many})
}

func (x *expansion) part(part syntax.WordPart, quoted bool) {
	r := x.r
	span := r.span(part)
	switch part := part.(type) {
	case *syntax.Lit:
		x.literal(span, quoted)
	case *syntax.SglQuoted:
		if part.Dollar {
			x.add(run{text: part.Value, at: span})
			break
		}
		inner := source.Span{Start: span.Start + 1, End: max(span.End-1, span.Start+1)}
		x.add(run{text: r.source(inner), at: inner, exact: true})
	case *syntax.DblQuoted:
		x.begun = true
		x.now.bare = false
		for _, inner := range part.Parts {
			x.part(inner, true)
		}
	case *syntax.ParamExp:
		x.param(part, span, quoted)
	case *syntax.ArithmExp:
		if v, ok := r.arithmetic(part.X, 0); ok {
			x.add(run{text: v.String(), at: span})
		} else {
			x.unknown(span, false)
		}
	case *syntax.CmdSubst:
		x.substitution(part, span, quoted)
	default:
		x.unknown(span, false)
	}
}

// literal adds text with its backslashes resolved; line continuations vanish.
func (x *expansion) literal(span source.Span, quoted bool) {
	r := x.r
	raw := r.source(span)
	x.begun = true
	start := 0
	flush := func(end int) {
		if end > start {
			x.add(run{text: raw[start:end], at: source.Span{Start: span.Start + uint32(start), End: span.Start + uint32(end)}, exact: true})
		}
	}
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' || quoted && strings.IndexByte("$`\"\\\n", raw[i+1]) < 0 {
			continue
		}
		flush(i)
		i++
		start = i
		if raw[i] == '\n' {
			start = i + 1
		}
	}
	end := len(raw)
	if end > start && raw[end-1] == '\\' && int(span.End) < len(r.whole) && r.whole[span.End] == '\n' {
		end-- // the parser ends a text at such a line end
	}
	flush(end)
}

// use puts the fields of a variable into the word: split unless quoted.
func (x *expansion) use(v *variable, fields []field, span source.Span, quoted bool) {
	for i, f := range fields {
		if i > 0 {
			if x.joined {
				x.add(run{text: " ", at: span})
			} else {
				x.end()
			}
		}
		text := f.text()
		f.runs = x.r.through(v, f, text, span)
		if quoted || x.joined || len(f.runs) == 1 && text != "" && strings.IndexAny(text, shellBlanks) < 0 {
			x.addAll(f.runs)
			continue
		}
		if text != "" && strings.IndexByte(shellBlanks, text[0]) >= 0 {
			x.end()
		}
		pieces := f.split()
		if len(pieces) == 0 {
			continue
		}
		for j, piece := range pieces {
			if j > 0 {
				x.end()
			}
			x.addAll(piece.runs)
		}
		if text != "" && strings.IndexByte(shellBlanks, text[len(text)-1]) >= 0 {
			x.end()
		}
	}
	if quoted && (!v.array || len(fields) > 0) {
		x.begun = true
	}
}

// listName are names of variables that hold flags rather than one value.
func listName(name string) bool {
	name = strings.ToUpper(name)
	for _, part := range []string{"ARG", "OPT", "FLAG", "EXTRA", "PARAM", "CMD", "CONF_", "OVERRIDE"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

func (x *expansion) param(p *syntax.ParamExp, span source.Span, quoted bool) {
	r := x.r
	if p.Param != nil && p.Slice != nil && p.Exp == nil {
		many := p.Param.Value == "@" || p.Param.Value == "*" || p.Index != nil
		x.unknown(span, many)
		return
	}
	if p.Param == nil || p.Excl || p.Width || p.Slice != nil || p.Repl != nil || p.Names != 0 || p.NestedParam != nil || len(p.Modifiers) > 0 {
		x.unknown(span, false)
		return
	}
	name := p.Param.Value
	v, all := r.lookup(name), false
	switch {
	case name == "@" || name == "*":
		if r.params == nil {
			x.unknown(span, true)
			return
		}
		v, all = &variable{fields: r.params, array: true}, true
	case p.Index != nil:
		index, literal := r.index1(p.Index)
		all = index == "@" || index == "*"
		if v != nil && !all {
			v = v.element(index, literal)
		}
	}
	if p.Length {
		r.length(x, v, all, span)
		return
	}
	empty := v != nil && !v.unknown && (len(v.fields) == 0 || !v.array && v.fields[0].text() == "" && !v.fields[0].open())
	if p.Exp != nil {
		switch p.Exp.Op {
		case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
			if v == nil && strings.HasPrefix(name, "SLURM_") { // the default is for a run by hand; a job has another
				x.unknown(span, false)
				return
			}
			if v == nil || empty && (p.Exp.Op == syntax.DefaultUnsetOrNull || p.Exp.Op == syntax.AssignUnsetOrNull) {
				unset := v == nil
				v = r.variable(p.Exp.Word, span)
				for i := range v.fields[0].runs {
					v.fields[0].runs[i].spare = v.fields[0].runs[i].spare || unset
				}
				if p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull {
					r.set(name, v)
				}
			}
		case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
			switch {
			case v == nil || v.unknown:
				x.unknown(span, true)
				return
			case empty:
				return
			}
			v = r.variable(p.Exp.Word, span)
		case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		default:
			if v = r.trimmed(v, p.Exp, span); v == nil {
				x.unknown(span, false)
				return
			}
		}
	}
	switch {
	case v == nil || v.unknown:
		x.unknown(span, !quoted && listName(name) || all)
	case v.array && !all && p.Index == nil && len(v.fields) > 0:
		x.use(v, v.fields[:1], span, quoted)
	default:
		x.use(v, v.fields, span, quoted)
	}
}

// lookup is what a name holds, or nil when the script does not say.
func (r *shellReader) lookup(name string) *variable {
	if len(name) == 1 && name[0] >= '1' && name[0] <= '9' && r.params != nil {
		if i := int(name[0] - '1'); i < len(r.params) {
			return &variable{fields: r.params[i : i+1], at: r.params[i].word}
		}
		return &variable{fields: []field{{}}}
	}
	return r.vars[name]
}

// index1 is the text of a subscript, and whether it is known.
func (r *shellReader) index1(x syntax.ArithmExpr) (string, bool) {
	if word, ok := x.(*syntax.Word); ok {
		if lit := word.Lit(); lit != "" {
			if _, bound := r.vars[lit]; !bound {
				return lit, true
			}
		}
	}
	if v, ok := r.arithmetic(x, 0); ok {
		return v.String(), true
	}
	return "", false
}

// element is one element of an array, or nil when it cannot be told.
func (v *variable) element(index string, known bool) *variable {
	i, ok := new(big.Int).SetString(index, 10)
	if !known || !ok || !i.IsInt64() || v.unknown || !v.array {
		return nil
	}
	n := int(i.Int64())
	if n < 0 {
		n += len(v.fields)
	}
	if n < 0 || n >= len(v.fields) {
		return nil
	}
	return &variable{fields: v.fields[n : n+1], at: v.fields[n].word}
}

// length is ${#name} or ${#name[@]}.
func (r *shellReader) length(x *expansion, v *variable, all bool, span source.Span) {
	if v == nil || v.unknown {
		x.unknown(span, false)
		return
	}
	n := len(v.fields)
	for _, f := range v.fields {
		if f.open() {
			x.unknown(span, false)
			return
		}
	}
	if !all {
		n = len(v.whole())
	}
	x.add(run{text: constant.MakeInt(int64(n)).String(), at: span})
}

// variable is a value that an expansion itself writes: the default in ${N:-8}.
func (r *shellReader) variable(word *syntax.Word, span source.Span) *variable {
	f := r.expandOne(word)
	v := &variable{fields: []field{f}, at: span}
	if word != nil {
		at, _ := r.place(f, false)
		v.at = at.Span
	}
	return v
}

// trimmed applies ${N#x}, ${N%x}, ${N^^} and the like to a known value.
func (r *shellReader) trimmed(v *variable, e *syntax.Expansion, span source.Span) *variable {
	const longest = 4096
	if v == nil || v.unknown || v.array || v.fields[0].open() || len(v.whole()) > longest {
		return nil
	}
	text := v.whole()
	pattern := ""
	if e.Word != nil {
		f := r.expandOne(e.Word)
		if f.open() {
			return nil
		}
		pattern = f.text()
	}
	match := func(s string) bool {
		ok, err := path.Match(pattern, strings.ReplaceAll(s, "/", "\x00"))
		return err == nil && ok
	}
	pattern = strings.ReplaceAll(pattern, "/", "\x00")
	switch e.Op {
	case syntax.UpperAll:
		text = strings.ToUpper(text)
	case syntax.LowerAll:
		text = strings.ToLower(text)
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		for i := range len(text) + 1 {
			n := len(text) - i
			if e.Op == syntax.RemLargeSuffix {
				n = i
			}
			if match(text[n:]) {
				text = text[:n]
				break
			}
		}
	case syntax.RemSmallPrefix, syntax.RemLargePrefix:
		for i := range len(text) + 1 {
			n := i
			if e.Op == syntax.RemLargePrefix {
				n = len(text) - i
			}
			if match(text[:n]) {
				text = text[n:]
				break
			}
		}
	default:
		return nil
	}
	return &variable{at: v.at, fields: []field{{word: span, runs: []run{{text: text, at: v.at}}}}}
}

// substitution is $(...): of `echo` and `expr` the result, of all else not known.
func (x *expansion) substitution(c *syntax.CmdSubst, span source.Span, quoted bool) {
	r := x.r
	var args []field
	if len(c.Stmts) == 1 && len(c.Stmts[0].Redirs) == 0 {
		if call, ok := c.Stmts[0].Cmd.(*syntax.CallExpr); ok && len(call.Assigns) == 0 {
			for _, word := range call.Args {
				args = append(args, r.expand(word)...)
			}
		}
	}
	known := len(args) > 1
	var texts []string
	for _, f := range args {
		known = known && !f.open()
		texts = append(texts, f.text())
	}
	if known && texts[0] == "expr" {
		if v, ok := constant.Eval(strings.ReplaceAll(strings.Join(texts[1:], " "), " / ", " // "), nil); ok && v.Kind() == constant.Int {
			x.add(run{text: v.String(), at: span})
			return
		}
	}
	if known && texts[0] == "echo" && !strings.HasPrefix(texts[1], "-") {
		f := field{runs: []run{{text: strings.Join(texts[1:], " "), at: span}}}
		x.use(&variable{fields: []field{f}, at: span}, []field{f}, span, quoted)
		return
	}
	x.unknown(span, false)
}
