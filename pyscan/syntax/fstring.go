package syntax

import (
	"slices"
	"strings"
	"unicode"

	"github.com/trainvet/trainvet/lint/source"
)

// strings parses adjacent string literals, which are one expression.
func (p *parser) strings() Expr {
	t := p.toks[p.i]
	if t.kind == kString {
		if following := p.toks[p.i+1].kind; following != kString && following != kFStart {
			return p.stringNode()
		}
	}
	start := t.start
	mark := len(p.exprs.items)
	formatted, template, plain, bytes := false, false, false, 0
	count := 0
	for ; p.kind == kString || p.kind == kFStart; count++ {
		if p.kind == kFStart {
			if p.toks[p.i].flags&fTemplate != 0 {
				template = true
			} else {
				formatted = true
			}
			p.fstring()
			continue
		}
		plain = true
		c := p.stringNode()
		if c.Kind == BytesConstant {
			bytes++
		}
		p.exprs.push(c)
	}
	at := p.from(start)
	switch {
	case bytes > 0 && (bytes < count || formatted || template):
		p.fail(at.At, "cannot mix bytes and nonbytes literals")
	case template && (formatted || plain):
		p.fail(at.At, "cannot mix t-string literals with string or bytes literals")
	}
	if !formatted && !template {
		n := p.join(p.exprs.items[mark:])
		n.Base = at
		p.exprs.items = p.exprs.items[:mark]
		return n
	}
	p.fold(mark)
	if template {
		n := &TemplateStr{Values: p.exprs.pop(mark)}
		n.Base = at
		return n
	}
	n := p.new.joinedStr.take()
	n.Values = p.exprs.pop(mark)
	n.Base = at
	return n
}

// stringNode makes the constant of one string token.
func (p *parser) stringNode() *Constant {
	t := p.toks[p.i]
	n := p.new.constant.take()
	n.At = source.Span{Start: t.start, End: t.end}
	n.Kind = StrConstant
	if t.flags&fBytes != 0 {
		n.Kind = BytesConstant
	} else if p.text[t.start] == 'u' {
		n.U = true
	}
	var problem string
	n.Text, problem = p.unquote(t)
	if problem != "" {
		p.fail(n.At, "%s", problem)
	}
	p.next()
	return n
}

// join makes one constant of several; the first says what it is.
func (p *parser) join(parts []Expr) *Constant {
	first := parts[0].(*Constant)
	n := p.new.constant.take()
	n.Kind, n.U = first.Kind, first.U
	n.At = source.Span{Start: first.At.Start, End: parts[len(parts)-1].(*Constant).At.End}
	p.scratch = p.scratch[:0]
	for _, part := range parts {
		p.scratch = append(p.scratch, part.(*Constant).Text...)
	}
	n.Text = string(p.scratch)
	return n
}

// fold joins neighbouring constants on the stack from mark on, and drops the empty ones.
func (p *parser) fold(mark int) {
	parts := p.exprs.items[mark:]
	kept := parts[:0]
	for i := 0; i < len(parts); {
		c, ok := parts[i].(*Constant)
		if !ok {
			kept = append(kept, parts[i])
			i++
			continue
		}
		end := i + 1
		for end < len(parts) {
			if _, ok := parts[end].(*Constant); !ok {
				break
			}
			end++
		}
		if end > i+1 {
			c = p.join(parts[i:end])
		}
		if c.Text != "" {
			kept = append(kept, c)
		}
		i = end
	}
	p.exprs.items = p.exprs.items[:mark+len(kept)]
}

// fstring pushes the values of one f-string or t-string.
func (p *parser) fstring() {
	template := p.toks[p.i].flags&fTemplate != 0
	if !p.deeper() {
		p.depth--
		for depth := 0; p.kind > kDedent; p.next() {
			switch p.kind {
			case kFStart:
				depth++
			case kFEnd:
				depth--
			}
			if depth < 0 {
				break
			}
		}
		return
	}
	p.next()
	for p.kind != kFEnd && p.kind > kDedent {
		switch p.kind {
		case kFMiddle:
			p.fstringText(p.toks[p.i].flags)
		case kLBrace:
			p.field(template)
		default:
			p.fail(p.here(), "invalid syntax")
			p.next()
		}
	}
	p.accept(kFEnd)
	p.depth--
}

// fstringText pushes a piece of literal text, if there is any after decoding.
func (p *parser) fstringText(flags uint8) {
	t := p.toks[p.i]
	text, problem := p.text[t.start:t.end], ""
	if flags&fDoubled != 0 {
		text = text[:len(text)-1]
	}
	if flags&(fEscape|fReturn) != 0 {
		text, problem = p.decode(text, flags&^fDoubled)
	}
	if problem != "" {
		p.fail(source.Span{Start: t.start, End: t.end}, "%s", problem)
	}
	if text != "" {
		n := p.new.constant.take()
		n.Kind, n.Text = StrConstant, text
		n.At = source.Span{Start: t.start, End: t.end}
		p.exprs.push(n)
	}
	p.next()
}

// field pushes a replacement field, and before it its source text when it has an `=`.
func (p *parser) field(template bool) {
	start := p.start()
	p.next()
	var value Expr
	switch p.kind {
	case kRBrace, kBang, kColon, kAssign:
		p.fail(p.here(), "f-string: valid expression required before '%s'", p.text[p.start():p.start()+1])
		value = p.missing()
	default:
		value = p.yieldOrStar()
	}
	debug := p.accept(kAssign)
	if p.kind != kBang && p.kind != kColon && p.kind != kRBrace {
		p.fail(p.here(), "f-string: expecting '=', or '!', or ':', or '}'")
		p.junk(kBang, kColon, kRBrace, kFEnd)
	}
	end := p.i // of the source text: `!`, `:` or `}`
	conversion := -1
	if debug {
		conversion = 'r'
	}
	if p.kind == kBang {
		conversion = p.conversion()
	}
	var spec *JoinedStr
	if p.kind == kColon {
		if end == p.i && debug {
			conversion = -1
		}
		spec = p.formatSpec()
	}
	if p.kind != kRBrace {
		p.fail(p.here(), "f-string: expecting '}'")
		p.junk(kRBrace, kFEnd)
	}
	textEnd := p.toks[end].start
	p.accept(kRBrace)
	at := p.from(start)
	var text string
	if debug || template {
		text = p.exprText(end, start+1, textEnd)
	}
	if debug {
		c := p.new.constant.take()
		c.Kind, c.Text = StrConstant, text
		c.At = source.Span{Start: start + 1, End: max(textEnd, start+1)}
		p.exprs.push(c)
	}
	if template {
		n := &Interpolation{Base: at, Value: value, Conversion: conversion, FormatSpec: spec}
		n.Str = strings.TrimRightFunc(text, func(r rune) bool { return r == '=' || isPythonSpace(r) })
		p.exprs.push(n)
		return
	}
	n := p.new.formattedValue.take()
	n.Base, n.Value, n.Conversion, n.FormatSpec = at, value, conversion, spec
	p.exprs.push(n)
}

// isPythonSpace is str.isspace.
func isPythonSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1C && r <= 0x1F }

func (p *parser) conversion() int {
	bang := p.here()
	p.next()
	if p.kind != kName {
		p.fail(p.here(), "f-string: invalid conversion character")
		return -1
	}
	name, at := p.takeName("")
	if at.Start != bang.End {
		p.fail(at, "f-string: conversion type must come right after the exclamation mark")
	}
	if name != "s" && name != "r" && name != "a" {
		p.fail(at, "f-string: invalid conversion character '%s': expected 's', 'r', or 'a'", name)
		return -1
	}
	return int(name[0])
}

// formatSpec parses a colon and what follows it in a replacement field.
func (p *parser) formatSpec() *JoinedStr {
	n := p.new.joinedStr.take()
	start := p.start()
	p.next()
	mark := len(p.exprs.items)
	items, allText := 0, true
	for p.kind == kFMiddle || p.kind == kLBrace {
		before := len(p.exprs.items)
		if p.kind == kFMiddle {
			p.fstringText(p.toks[p.i].flags)
			if len(p.exprs.items) == before {
				continue
			}
		} else {
			p.field(false)
			allText = false
		}
		items++
	}
	if items > 1 || !allText {
		p.fold(mark)
	}
	n.Values = p.exprs.pop(mark)
	n.folded = items > 1 && allText
	n.At = source.Span{Start: start, End: max(p.prevEnd, start+1)}
	return n
}

// exprText is the source text that CPython keeps of the expression in a replacement field, without comments.
func (p *parser) exprText(end int, from, to uint32) string {
	i, ok := slices.BinarySearchFunc(p.exprTexts, end, func(e exprText, token int) int { return e.token - token })
	if ok {
		from, to = p.exprTexts[i].text.Start, p.exprTexts[i].text.End
	}
	text := p.text[from:max(from, to)]
	if strings.IndexByte(text, '\r') >= 0 {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	}
	if !holdsComment(text) {
		return text
	}
	// Unlike the search, the removal takes a backslash for any other character, in CPython too.
	var out []byte
	var quote byte
	comment := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case comment:
			if c != '\n' {
				continue
			}
			comment = false
		case c == '"' || c == '\'':
			if quote == 0 {
				quote = c
			} else if quote == c {
				quote = 0
			}
		case c == '#' && quote == 0:
			comment = true
			continue
		}
		out = append(out, c)
	}
	return string(out)
}

func holdsComment(text string) bool {
	var quote byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == '"' || c == '\'':
			if quote == 0 {
				quote = c
			} else if quote == c {
				quote = 0
			}
		case c == '#' && quote == 0:
			return true
		}
	}
	return false
}
