package syntax

import "github.com/trainvet/trainvet/lint/source"

// colon ends the head of a block. Where it is missing, everything up to the last colon of the line, or up to the end of the line
// when a block follows, is taken for damaged parts of the head.
func (p *parser) colon() {
	if p.accept(kColon) {
		return
	}
	if p.kind == kAssign {
		p.fail(p.here(), "invalid syntax. Maybe you meant '==' or ':=' instead of '='?")
	} else {
		p.fail(p.here(), "expected ':'")
	}
	last := p.lastColon()
	i := p.i
	for p.toks[i].kind > kDedent {
		i++
	}
	if p.toks[i].kind == kNewline && last < i-1 && p.toks[i+1].kind != kIndent {
		if startsSimple.has(p.kind) || last < 0 && startsExpr.has(p.kind) {
			return // a body on the same line
		}
	}
	for p.kind > kDedent && p.i != last {
		if startsExpr.has(p.kind) {
			p.save(p.namedExpr())
			if last >= 0 && p.i > last {
				return
			}
		} else {
			p.next()
		}
	}
	p.accept(kColon)
}

// lastColon is the index of the last colon of the logical line outside brackets, or -1.
func (p *parser) lastColon() int {
	last, depth := -1, 0
	for i := p.i; p.toks[i].kind > kDedent; i++ {
		switch p.toks[i].kind {
		case kLPar, kLSqb, kLBrace, kFStart:
			depth++
		case kRPar, kRSqb, kRBrace, kFEnd:
			depth--
		case kColon:
			if depth == 0 {
				last = i
			}
		}
	}
	return last
}

// block parses the statements behind a head. what is for the message when they are missing.
func (p *parser) block(what string) []Stmt {
	mark := len(p.stmts.items)
	p.flush()
	if p.kind != kNewline {
		if p.kind <= kDedent || p.kind == kSemi {
			p.fail(p.here(), "expected a statement after %s", what)
			if p.kind != kSemi {
				return p.stmts.pop(mark)
			}
		}
		p.simpleLine()
		return p.stmts.pop(mark)
	}
	p.skip()
	if p.kind != kIndent {
		p.fail(p.place(), "expected an indented block after %s", what)
		return p.stmts.pop(mark)
	}
	p.skip()
	for p.kind != kDedent && p.kind != kEOF {
		p.statement()
	}
	if p.kind == kDedent {
		p.skip()
	}
	return p.stmts.pop(mark)
}

// orElse is an else clause, if there is one.
func (p *parser) orElse() []Stmt {
	if p.kind != kElse {
		return nil
	}
	p.quiet = false
	p.next()
	p.colon()
	return p.block("'else' statement")
}

func (p *parser) ifStmt() {
	var first, last *If
	count := 0
	for {
		n := p.new.ifStmt.take()
		n.At.Start = p.start()
		what := "'if' statement"
		if first != nil {
			what = "'elif' statement"
			p.stmts.push(n)
			last.OrElse = p.stmts.pop(len(p.stmts.items) - 1)
			p.quiet = false
		} else {
			first = n
		}
		last = n
		p.next()
		n.Test = p.namedExpr()
		p.colon()
		n.Body = p.block(what)
		count++
		if p.kind != kElif || count > maxElifs {
			break
		}
	}
	if p.kind == kElif {
		p.quiet = false
		p.fail(p.here(), "too many elif clauses")
	}
	last.OrElse = p.orElse()
	for n := first; ; n = n.OrElse[0].(*If) {
		n.At.End = p.prevEnd
		if n == last {
			break
		}
	}
	p.stmts.push(first)
}

func (p *parser) whileStmt() {
	start := p.start()
	p.next()
	n := &While{}
	n.Test = p.namedExpr()
	p.colon()
	n.Body = p.block("'while' statement")
	n.OrElse = p.orElse()
	n.Base = p.from(start)
	p.stmts.push(n)
}

func (p *parser) forStmt(start uint32, async bool) {
	p.next()
	n := p.new.forStmt.take()
	n.Async = async
	n.Target = p.targets()
	if p.expect(kIn, "'in' expected after for-loop variables") || startsExpr.has(p.kind) {
		n.Iter = p.starExpressions()
	} else {
		n.Iter = p.missing()
	}
	p.colon()
	n.Body = p.block("'for' statement")
	n.OrElse = p.orElse()
	n.Base = p.from(start)
	p.stmts.push(n)
}

func (p *parser) withStmt(start uint32, async bool) {
	p.next()
	n := p.new.with.take()
	n.Async = async
	mark := len(p.items.items)
	if p.kind != kLPar || !p.withParens() {
		for {
			p.withItem()
			comma := p.here()
			if !p.accept(kComma) {
				break
			}
			if p.kind == kColon {
				p.fail(comma, "the last 'with' item has a trailing comma")
				break
			}
		}
	}
	n.Items = p.items.pop(mark)
	p.colon()
	n.Body = p.block("'with' statement")
	n.Base = p.from(start)
	p.stmts.push(n)
}

// withParens tries `with (a as b, c as d):` and reports whether it was one.
func (p *parser) withParens() bool {
	depth := 0
	end := p.i
	for ; ; end++ {
		switch p.toks[end].kind {
		case kLPar, kLSqb, kLBrace, kFStart:
			depth++
		case kRPar, kRSqb, kRBrace, kFEnd:
			depth--
		case kNewline, kEOF:
			return false
		}
		if depth == 0 {
			break
		}
	}
	if following := p.toks[end+1].kind; following != kColon && following != kNewline {
		return false
	}
	i, prevEnd, kind, saved, mark := p.i, p.prevEnd, p.kind, len(p.saved), len(p.items.items)
	trial, failed := p.trial, p.failed
	p.trial, p.failed = true, false
	p.next()
	for p.kind != kRPar && p.i < end && !p.failed {
		p.withItem()
		if !p.accept(kComma) {
			break
		}
	}
	ok := !p.failed && p.i == end && len(p.items.items) > mark
	p.trial, p.failed = trial, failed
	if ok {
		p.next()
		return true
	}
	p.i, p.prevEnd, p.kind = i, prevEnd, kind
	p.saved, p.items.items = p.saved[:saved], p.items.items[:mark]
	return false
}

func (p *parser) withItem() {
	start := p.start()
	n := p.new.withItem.take()
	n.Context = p.expression()
	if p.accept(kAs) {
		n.Vars = p.starTarget()
	}
	n.Base = p.from(start)
	p.items.push(n)
}

func (p *parser) tryStmt() {
	start := p.start()
	p.next()
	n := p.new.try.take()
	p.colon()
	n.Body = p.block("'try' statement")
	mark := len(p.handlers.items)
	for p.kind == kExcept {
		p.quiet = false
		p.except(n, len(p.handlers.items) == mark)
	}
	n.Handlers = p.handlers.pop(mark)
	if len(n.Handlers) > 0 {
		n.OrElse = p.orElse()
	}
	if p.kind == kFinally {
		p.quiet = false
		p.next()
		p.colon()
		n.Final = p.block("'finally' statement")
	} else if len(n.Handlers) == 0 {
		p.fail(p.place(), "expected 'except' or 'finally' block")
	}
	n.Base = p.from(start)
	p.stmts.push(n)
}

// except parses a clause of n.
func (p *parser) except(n *Try, first bool) {
	start := p.start()
	h := p.new.handler.take()
	p.next()
	star := p.accept(kStar)
	what := "'except' statement"
	if star {
		what = "'except*' statement"
	}
	if first {
		n.Star = star
	} else if star != n.Star {
		p.fail(source.Span{Start: start, End: p.prevEnd}, "cannot have both 'except' and 'except*' on the same 'try'")
	}
	p.exceptHead(h, star)
	p.colon()
	h.Body = p.block(what)
	h.Base = p.from(start)
	p.handlers.push(h)
}

func (p *parser) exceptHead(h *ExceptHandler, star bool) {
	if startsExpr.has(p.kind) {
		start := p.start()
		h.Type = p.expression()
		several := p.kind == kComma
		if several {
			mark := len(p.exprs.items)
			p.exprs.push(h.Type)
			for p.accept(kComma) {
				if !startsExpr.has(p.kind) {
					break
				}
				p.exprs.push(p.expression())
			}
			t := p.new.tuple.take()
			t.Elts = p.exprs.pop(mark)
			t.Base = p.from(start)
			h.Type = t
		}
		if p.kind == kAs {
			if several {
				p.fail(h.Type.Span(), "multiple exception types must be parenthesized when using 'as'")
			}
			p.next()
			h.Name, _ = p.takeName("a name after 'as'")
		}
	} else if star {
		p.fail(p.here(), "expected one or more exception types")
	}
}

// orphan is a clause without its statement: what it holds is kept in an Error.
func (p *parser) orphan() {
	start := p.start()
	p.fail(p.here(), "invalid syntax")
	e := &Error{}
	k := p.kind
	mark := len(p.stmts.items)
	p.next()
	switch k {
	case kElif:
		e.Parts = append(e.Parts, p.namedExpr())
	case kExcept:
		p.accept(kStar)
		var h ExceptHandler
		p.exceptHead(&h, false)
		if h.Type != nil {
			e.Parts = append(e.Parts, h.Type)
		}
	case kName: // case
		p.topPattern()
		if p.accept(kIf) {
			e.Parts = append(e.Parts, p.namedExpr())
		}
	}
	p.colon()
	for _, s := range p.block("this clause") {
		e.Parts = append(e.Parts, s)
	}
	p.stmts.items = p.stmts.items[:mark]
	e.Base = p.from(start)
	p.stmts.push(e)
}

func (p *parser) decorated() {
	at := p.start()
	mark := len(p.exprs.items)
	for p.kind == kAt {
		p.next()
		p.exprs.push(p.namedExpr())
		if p.kind == kNewline {
			p.skip()
			continue
		}
		p.fail(p.here(), "invalid syntax")
		p.junk()
		if p.kind == kNewline {
			p.skip()
		}
	}
	decorators := p.exprs.pop(mark)
	switch p.kind {
	case kDef:
		p.def(p.start(), decorators, at, false)
	case kClass:
		p.class(decorators, at)
	case kAsync:
		p.async(decorators, at)
	default:
		p.fail(p.here(), "invalid syntax")
		for _, d := range decorators {
			p.save(d)
		}
		p.flush()
	}
}

func (p *parser) async(decorators []Expr, at uint32) {
	start := p.start()
	p.next()
	switch {
	case p.kind == kDef:
		p.def(start, decorators, at, true)
	case p.kind == kFor && decorators == nil:
		p.forStmt(start, true)
	case p.kind == kWith && decorators == nil:
		p.withStmt(start, true)
	default:
		p.fail(p.here(), "invalid syntax")
		for _, d := range decorators {
			p.save(d)
		}
		p.flush()
		p.simpleLine()
	}
}

// def parses a function from `def` on; start is that of the statement, at that of its first decorator.
func (p *parser) def(start uint32, decorators []Expr, at uint32, async bool) {
	p.next()
	n := p.new.functionDef.take()
	n.Async, n.Decorators, n.decoratorsAt = async, decorators, at
	n.Name, n.NameAt = p.takeName("a function name")
	n.TypeParams = p.typeParams()
	if p.accept(kLPar) {
		n.Args = p.parameters(kRPar)
		p.accept(kRPar)
	} else {
		p.fail(p.here(), "expected '('")
		n.Args = p.looseParameters()
	}
	if p.accept(kArrow) {
		n.Returns = p.expression()
	}
	p.colon()
	n.Body = p.block("function definition")
	n.Base = p.from(start)
	p.stmts.push(n)
}

// parameters parses the parameters of a def, up to its closing parenthesis, or of a lambda, up to its colon.
func (p *parser) parameters(closer kind) *Arguments {
	n := p.new.arguments.take()
	start := p.start()
	argMark, mark := len(p.args.items), len(p.exprs.items)
	star, slash := false, false
	defaults := false // a parameter with a default was seen before the star
	bare := source.Span{}
	for p.kind != closer && p.kind > kDedent {
		switch p.kind {
		case kName:
			a := p.parameter(closer, false)
			if n.KwArg != nil {
				p.fail(a.At, "parameters cannot follow var-keyword parameter")
			}
			var value Expr
			if p.accept(kAssign) {
				if !startsExpr.has(p.kind) {
					p.fail(p.here(), "expected default value expression")
				} else {
					value = p.expression()
					defaults = true
				}
			} else if defaults && !star {
				p.fail(a.At, "parameter without a default follows parameter with a default")
			}
			p.args.push(a)
			if star || value != nil {
				p.exprs.push(value)
			}
		case kSlash:
			switch {
			case n.KwArg != nil:
				p.fail(p.here(), "parameters cannot follow var-keyword parameter")
			case star:
				p.fail(p.here(), "/ must be ahead of *")
			case slash:
				p.fail(p.here(), "/ may appear only once")
			case len(p.args.items) == argMark:
				p.fail(p.here(), "at least one parameter must precede /")
			default:
				n.PosOnly = p.args.pop(argMark)
			}
			slash = true
			p.next()
		case kStar:
			at := p.here()
			p.next()
			if star || n.KwArg != nil {
				p.fail(at, "* may appear only once")
			} else {
				n.Args, n.Defaults = p.args.pop(argMark), p.exprs.pop(mark)
			}
			star = true
			if p.kind == kName {
				n.VarArg = p.parameter(closer, true)
				if p.kind == kAssign {
					p.fail(p.here(), "var-positional parameter cannot have default value")
					p.next()
					p.save(p.expression())
				}
			} else {
				bare = at
			}
		case kDoubleStar:
			if n.KwArg != nil {
				p.fail(p.here(), "parameters cannot follow var-keyword parameter")
			}
			p.next()
			if p.kind != kName {
				p.fail(p.here(), "invalid syntax")
				continue
			}
			n.KwArg = p.parameter(closer, false)
			if p.kind == kAssign {
				p.fail(p.here(), "var-keyword parameter cannot have default value")
				p.next()
				p.save(p.expression())
			}
		default:
			p.fail(p.here(), "invalid syntax")
			if closer == kColon && p.kind == kComma {
				p.next()
				continue
			}
			if startsExpr.has(p.kind) {
				p.save(p.namedExpr())
			} else {
				p.next()
			}
			continue
		}
		if !p.accept(kComma) && p.kind != closer {
			p.fail(p.here(), "invalid syntax")
			if closer == kColon {
				break
			}
		} else if closer == kColon && p.kind == kColon && p.toks[p.i-1].kind == kComma && p.toks[p.i-2].kind == kSlash {
			continue
		}
	}
	if star {
		n.KwOnly, n.KwDefaults = p.args.pop(argMark), p.exprs.pop(mark)
	} else {
		n.Args, n.Defaults = p.args.pop(argMark), p.exprs.pop(mark)
	}
	if bare.End > 0 && len(n.KwOnly) == 0 {
		p.fail(bare, "named parameters must follow bare *")
	}
	n.Base = p.from(start)
	return n
}

// looseParameters are those of a def that lost its opening parenthesis: everything up to the last colon of the line.
func (p *parser) looseParameters() *Arguments {
	last := p.lastColon()
	if last < 0 {
		n := p.new.arguments.take()
		n.Base = p.from(p.start())
		return n
	}
	p.toks[last].kind = kRPar
	if p.i == last {
		p.kind = kRPar
	}
	if p.kind == kColon { // the annotation of a parameter whose name is part of the function's
		p.next()
		p.save(p.expression())
		p.accept(kComma)
	}
	n := p.parameters(kRPar)
	p.toks[last].kind = kColon
	p.kind = p.toks[p.i].kind
	return n
}

// parameter is a name with its annotation; a lambda has none, and only that of *args may be starred.
func (p *parser) parameter(closer kind, star bool) *Arg {
	start := p.start()
	a := p.new.arg.take()
	a.Name, _ = p.takeName("")
	if closer == kRPar && p.accept(kColon) {
		if star && p.kind == kStar {
			a.Annotation = p.starExpression()
		} else {
			a.Annotation = p.expression()
		}
	}
	a.Base = p.from(start)
	return a
}

func (p *parser) class(decorators []Expr, at uint32) {
	start := p.start()
	p.next()
	n := p.new.classDef.take()
	n.Decorators, n.decoratorsAt = decorators, at
	n.Name, n.NameAt = p.takeName("a class name")
	n.TypeParams = p.typeParams()
	if p.kind == kLPar {
		n.Bases, n.Keywords = p.arguments(false)
	}
	p.colon()
	n.Body = p.block("class definition")
	n.Base = p.from(start)
	p.stmts.push(n)
}

// startsMatch decides whether a line that begins with `match` is a match statement: it is when a block that begins with `case`
// follows.
func (p *parser) startsMatch() bool {
	switch k := p.peek(); {
	case k == kStar || startsExpr.has(k):
	default:
		return false
	}
	i := p.i
	for p.toks[i].kind > kDedent {
		i++
	}
	if p.toks[i].kind != kNewline || p.toks[i+1].kind != kIndent {
		return false
	}
	t := p.toks[i+2]
	return t.kind == kName && p.text[t.start:t.end] == "case"
}

// startsCase decides whether a line that begins with `case` is a clause: it is when it ends with a colon and a block follows.
func (p *parser) startsCase() bool {
	if !startsPattern.has(p.peek()) {
		return false
	}
	i := p.i
	for p.toks[i].kind > kDedent {
		i++
	}
	return p.toks[i].kind == kNewline && p.toks[i+1].kind == kIndent
}

func (p *parser) match() {
	start := p.start()
	p.next()
	n := &Match{}
	from := p.start()
	n.Subject = p.starNamed()
	if _, starred := n.Subject.(*Starred); p.kind == kComma || starred {
		mark := len(p.exprs.items)
		p.exprs.push(n.Subject)
		if p.kind != kComma {
			p.fail(p.here(), "invalid syntax")
		}
		for p.accept(kComma) {
			if p.kind != kStar && !startsExpr.has(p.kind) {
				break
			}
			p.exprs.push(p.starNamed())
		}
		t := p.new.tuple.take()
		t.Elts = p.exprs.pop(mark)
		t.Base = p.from(from)
		n.Subject = t
	}
	p.colon()
	if p.kind != kNewline {
		p.fail(p.here(), "invalid syntax")
		p.junk()
	}
	p.flush()
	mark := len(p.cases.items)
	stmts := len(p.stmts.items)
	p.skip() // the line's end
	p.skip() // the indent; startsMatch has seen both
	for p.kind != kDedent && p.kind != kEOF {
		t := p.toks[p.i]
		if t.kind != kName || p.text[t.start:t.end] != "case" || !startsPattern.has(p.peek()) {
			// A damaged clause: its statements go into the clause before.
			p.quiet = false
			p.fail(p.here(), "expected 'case'")
			p.statement()
			continue
		}
		if len(p.cases.items) == mark {
			stmts = len(p.stmts.items) // what came before stays in front of the match
		}
		p.lost(stmts)
		p.matchCase()
	}
	if len(p.cases.items) > mark {
		p.lost(stmts)
	}
	if p.kind == kDedent {
		p.skip()
	}
	n.Cases = p.cases.pop(mark)
	n.Base = p.from(start)
	p.stmts.push(n)
}

// lost moves statements from between the clauses of a match into the clause before them.
func (p *parser) lost(stmts int) {
	if len(p.stmts.items) == stmts {
		return
	}
	c := p.cases.items[len(p.cases.items)-1]
	c.Body = append(c.Body[:len(c.Body):len(c.Body)], p.stmts.pop(stmts)...)
	c.At.End = p.prevEnd
}

func (p *parser) matchCase() {
	p.quiet = false
	start := p.start()
	c := &MatchCase{}
	p.next()
	c.Pattern = p.topPattern()
	if p.accept(kIf) {
		c.Guard = p.namedExpr()
	}
	p.colon()
	c.Body = p.block("'case' statement")
	c.Base = p.from(start)
	p.cases.push(c)
}
