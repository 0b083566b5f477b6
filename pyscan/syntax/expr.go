package syntax

import "github.com/trainvet/trainvet/lint/source"

// The binding power of operators, from the loosest.
const (
	precNone = iota
	precOr
	precAnd
	precNot
	precCompare
	precBitOr
	precBitXor
	precBitAnd
	precShift
	precSum
	precTerm
	precUnary
	precPower
)

var precedence = [nKinds]uint8{
	kOr: precOr, kAnd: precAnd,
	kEqEq: precCompare, kNotEq: precCompare, kLess: precCompare, kLessEq: precCompare, kGreater: precCompare,
	kGreaterEq: precCompare, kIs: precCompare, kIn: precCompare, kNot: precCompare,
	kVBar: precBitOr, kCaret: precBitXor, kAmp: precBitAnd, kLShift: precShift, kRShift: precShift,
	kPlus: precSum, kMinus: precSum, kStar: precTerm, kSlash: precTerm, kDoubleSlash: precTerm, kPercent: precTerm, kAt: precTerm,
	kDoubleStar: precPower,
}

var binaryOperator = [nKinds]Operator{
	kVBar: BitOr, kCaret: BitXor, kAmp: BitAnd, kLShift: LShift, kRShift: RShift, kPlus: Add, kMinus: Sub, kStar: Mult,
	kSlash: Div, kDoubleSlash: FloorDiv, kPercent: Mod, kAt: MatMult, kDoubleStar: Pow,
}

// deeper counts the nesting of expressions. At the bound it eats a token, so that callers get on, and reports false.
func (p *parser) deeper() bool {
	p.depth++
	if p.depth <= maxDepth {
		return true
	}
	p.fail(p.here(), "too many nested expressions")
	if p.kind > kDedent && !isCloser(p.kind) {
		p.next()
	}
	return false
}

func isCloser(k kind) bool { return k == kRPar || k == kRSqb || k == kRBrace || k == kFEnd }

// expression is CPython's rule of that name: no walrus, no star, no yield.
func (p *parser) expression() Expr {
	if p.kind == kLambda {
		return p.lambda()
	}
	start := p.start()
	e := p.binary(precOr)
	if p.kind != kIf {
		return e
	}
	return p.ternary(start, e)
}

func (p *parser) ternary(start uint32, body Expr) Expr {
	p.next()
	n := p.new.ifExp.take()
	n.Body = body
	n.Test = p.binary(precOr)
	if p.accept(kElse) {
		if p.deeper() {
			n.OrElse = p.expression()
		} else {
			n.OrElse = p.missing()
		}
		p.depth--
	} else {
		p.fail(n.Test.Span(), "expected 'else' after 'if' expression")
		n.OrElse = p.missing()
	}
	n.Base = p.from(start)
	return n
}

// namedExpr is an expression or an assignment expression.
func (p *parser) namedExpr() Expr {
	if p.kind == kName && p.peek() == kWalrus {
		start := p.start()
		target := p.nameNode(Store)
		p.next()
		n := &NamedExpr{Target: target, Value: p.expression()}
		n.Base = p.from(start)
		return n
	}
	start := p.start()
	e := p.expression()
	if p.kind == kWalrus {
		p.fail(p.from(start).At, "cannot use assignment expressions with %s", describe(e))
		p.next()
		p.save(p.expression())
	}
	return e
}

// starNamed is namedExpr or a starred operand.
func (p *parser) starNamed() Expr {
	if p.kind == kStar {
		return p.starred(precBitOr)
	}
	return p.namedExpr()
}

// starred parses `*` and an operand that binds at least as tightly as prec; precNone stands for any expression.
func (p *parser) starred(prec int) Expr {
	start := p.start()
	p.next()
	n := p.new.starred.take()
	if prec == precNone {
		n.Value = p.expression()
	} else {
		n.Value = p.binary(prec)
	}
	n.Base = p.from(start)
	return n
}

func (p *parser) starExpression() Expr {
	if p.kind == kStar {
		return p.starred(precBitOr)
	}
	return p.expression()
}

// starExpressions is a tuple without parentheses, or one expression; stars are allowed.
func (p *parser) starExpressions() Expr {
	start := p.start()
	first := p.starExpression()
	if p.kind != kComma {
		return first
	}
	mark := len(p.exprs.items)
	p.exprs.push(first)
	for p.accept(kComma) {
		if p.kind != kStar && !startsExpr.has(p.kind) {
			break
		}
		p.exprs.push(p.starExpression())
	}
	n := p.new.tuple.take()
	n.Elts = p.exprs.pop(mark)
	n.Base = p.from(start)
	return n
}

// yieldOrStar is what may stand behind `=` and in a replacement field.
func (p *parser) yieldOrStar() Expr {
	if p.kind == kYield {
		return p.yield()
	}
	return p.starExpressions()
}

func (p *parser) yield() Expr {
	start := p.start()
	p.next()
	if p.accept(kFrom) {
		n := &YieldFrom{Value: p.expression()}
		n.Base = p.from(start)
		return n
	}
	n := &Yield{}
	if p.kind == kStar || startsExpr.has(p.kind) {
		n.Value = p.starExpressions()
	}
	n.Base = p.from(start)
	return n
}

// binary parses operators that bind at least as tightly as prec.
func (p *parser) binary(prec int) Expr {
	outer := p.height
	p.height = 0
	start := p.start()
	left := p.prefix(prec)
	links := 0
	for {
		k := p.kind
		power := int(precedence[k])
		if power < prec || power == precNone {
			break
		}
		switch power {
		case precOr, precAnd:
			mark := len(p.exprs.items)
			p.exprs.push(left)
			for p.accept(k) {
				p.exprs.push(p.binary(power + 1))
			}
			n := p.new.boolOp.take()
			if k == kOr {
				n.Op = Or
			}
			n.Values = p.exprs.pop(mark)
			n.Base = p.from(start)
			left = n
			continue
		case precCompare:
			if k == kNot && p.peek() != kIn {
				p.height = max(outer, p.height+links)
				return left
			}
			left = p.comparison(start, left)
			continue
		}
		links++
		if p.height+links > maxChain {
			p.fail(p.here(), "too many operators in one expression")
			break
		}
		p.next()
		n := p.new.binOp.take()
		n.Left = left
		n.Op = binaryOperator[k]
		if k == kDoubleStar {
			if p.deeper() {
				n.Right = p.binary(precUnary)
			} else {
				n.Right = p.missing()
			}
			p.depth--
		} else {
			n.Right = p.binary(power + 1)
		}
		n.Base = p.from(start)
		left = n
	}
	p.height = max(outer, p.height+links)
	return left
}

func (p *parser) comparison(start uint32, left Expr) Expr {
	mark, opMark := len(p.exprs.items), len(p.cmpOps.items)
	for {
		var op CompareOperator
		switch p.kind {
		case kEqEq:
			op = Eq
		case kNotEq:
			op = NotEq
			if (p.text[p.start()] == '<') != p.flufl {
				p.fail(p.here(), "invalid syntax")
			}
		case kLess:
			op = Lt
		case kLessEq:
			op = LtE
		case kGreater:
			op = Gt
		case kGreaterEq:
			op = GtE
		case kIs:
			op = Is
			if p.peek() == kNot {
				op = IsNot
				p.next()
			}
		case kIn:
			op = In
		case kNot:
			if p.peek() == kIn {
				op = NotIn
				p.next()
				break
			}
			fallthrough
		default:
			n := p.new.compare.take()
			n.Left = left
			n.Ops = p.cmpOps.pop(opMark)
			n.Comparators = p.exprs.pop(mark)
			n.Base = p.from(start)
			return n
		}
		p.next()
		p.cmpOps.push(op)
		p.exprs.push(p.binary(precBitOr))
	}
}

// prefix parses an operand with the operators before it.
func (p *parser) prefix(prec int) Expr {
	var op UnaryOperator
	power := precUnary
	switch p.kind {
	case kNot:
		op, power = Not, precNot
		if prec > precNot {
			p.fail(p.here(), "'not' after an operator must be parenthesized")
		}
	case kMinus:
		op = USub
	case kPlus:
		op = UAdd
	case kTilde:
		op = Invert
	case kAwait:
		start := p.start()
		p.next()
		n := &Await{Value: p.primary()}
		n.Base = p.from(start)
		return n
	default:
		return p.primary()
	}
	start := p.start()
	p.next()
	n := p.new.unaryOp.take()
	n.Op = op
	if p.deeper() {
		n.Operand = p.binary(power)
	} else {
		n.Operand = p.missing()
	}
	p.depth--
	n.Base = p.from(start)
	return n
}

// primary parses an atom and the calls, attributes and subscripts behind it.
func (p *parser) primary() Expr {
	start := p.start()
	e := p.atom()
	links := 0
	for ; ; links++ {
		if p.height+links > maxChain {
			p.fail(p.here(), "too many calls and attributes in one expression")
			break
		}
		switch p.kind {
		case kDot:
			p.next()
			n := p.new.attribute.take()
			n.Value = e
			n.Attr, _ = p.takeName("a name after '.'")
			n.Base = p.from(start)
			e = n
			continue
		case kLPar:
			n := p.new.call.take()
			n.Func = e
			n.Args, n.Keywords = p.arguments(true)
			n.Base = p.from(start)
			e = n
			continue
		case kLSqb:
			p.next()
			n := p.new.subscript.take()
			n.Value = e
			n.Slice = p.slices()
			p.close(kRSqb)
			n.Base = p.from(start)
			e = n
			continue
		}
		break
	}
	p.height += links
	return e
}

// close takes a closing bracket, and before it whatever stands in its way.
func (p *parser) close(k kind) {
	if p.kind != k {
		p.fail(p.here(), "invalid syntax")
		p.junk(k)
	}
	p.accept(k)
}

func (p *parser) nameNode(ctx Context) *Name {
	t := p.toks[p.i]
	n := p.new.name.take()
	n.At = source.Span{Start: t.start, End: t.end}
	n.ID = p.identifier(t)
	n.Ctx = ctx
	p.next()
	return n
}

func (p *parser) atom() Expr {
	t := p.toks[p.i]
	switch t.kind {
	case kName:
		n := p.new.name.take()
		n.At = source.Span{Start: t.start, End: t.end}
		n.ID = p.identifier(t)
		p.next()
		return n
	case kNumber:
		n := p.new.constant.take()
		n.At = source.Span{Start: t.start, End: t.end}
		number(p.text[t.start:t.end], n)
		p.next()
		return n
	case kString, kFStart:
		return p.strings()
	case kNone, kTrue, kFalse, kEllipsis:
		n := p.new.constant.take()
		n.At = source.Span{Start: t.start, End: t.end}
		switch t.kind {
		case kNone:
			n.Kind = NoneConstant
		case kTrue:
			n.Kind = TrueConstant
		case kFalse:
			n.Kind = FalseConstant
		default:
			n.Kind = EllipsisConstant
		}
		p.next()
		return n
	case kLPar:
		return p.parenthesized()
	case kLSqb:
		return p.listDisplay()
	case kLBrace:
		return p.braces()
	case kLambda:
		p.fail(p.here(), "invalid syntax")
		return p.lambda()
	}
	p.fail(p.here(), "%s", p.unexpected())
	return p.missing()
}

func (p *parser) unexpected() string {
	if p.kind == kIndent {
		return "unexpected indent"
	}
	return "invalid syntax"
}

// parenthesized is a group, a tuple or a generator expression.
func (p *parser) parenthesized() Expr {
	start := p.start()
	p.next()
	if !p.deeper() {
		p.depth--
		p.junkFlat(kRPar)
		return &Error{Base: p.from(start)}
	}
	defer func() { p.depth-- }()
	switch {
	case p.kind == kRPar:
		p.next()
		n := p.new.tuple.take()
		n.Base = p.from(start)
		return n
	case p.kind == kYield:
		e := p.yield()
		p.close(kRPar)
		return e
	case p.kind == kDoubleStar:
		p.fail(p.here(), "cannot use double starred expression here")
		p.next()
	}
	first := p.starNamed()
	switch {
	case p.kind == kRPar:
		if first, ok := first.(*Starred); ok {
			p.fail(first.At, "cannot use starred expression here")
		}
		p.next()
		return first
	case p.kind == kFor || p.kind == kAsync && p.peek() == kFor:
		return p.generators(start, GeneratorExp, first, nil, kRPar)
	case p.kind != kComma:
		// In `("a" "b" c)` a comma is missing, in `(a b)` too; what follows is kept as elements.
		p.fail(p.here(), "invalid syntax. Perhaps you forgot a comma?")
	}
	mark := len(p.exprs.items)
	p.exprs.push(first)
	p.accept(kComma)
	p.elements(kRPar)
	n := p.new.tuple.take()
	n.Elts = p.exprs.pop(mark)
	p.accept(kRPar)
	n.Base = p.from(start)
	return n
}

// junkFlat goes over tokens up to the closer that matches an open bracket, without recursion, and takes it.
func (p *parser) junkFlat(closer kind) {
	for depth := 0; p.kind > kDedent; p.next() {
		switch p.kind {
		case kLPar, kLSqb, kLBrace:
			depth++
		case kRPar, kRSqb, kRBrace:
			if depth == 0 && p.kind == closer {
				p.next()
				return
			}
			depth--
		}
	}
}

// elements pushes comma-separated elements up to closer, which it leaves.
func (p *parser) elements(closer kind) {
	for p.kind != closer && p.kind > kDedent {
		switch {
		case p.kind == kStar || startsExpr.has(p.kind):
			p.exprs.push(p.starNamed())
			if p.kind == kComma {
				p.next()
			} else if p.kind != closer {
				p.fail(p.here(), "invalid syntax. Perhaps you forgot a comma?")
			}
		default:
			p.fail(p.here(), "invalid syntax")
			p.next()
		}
	}
}

func (p *parser) listDisplay() Expr {
	start := p.start()
	p.next()
	if !p.deeper() {
		p.depth--
		p.junkFlat(kRSqb)
		return &Error{Base: p.from(start)}
	}
	defer func() { p.depth-- }()
	mark := len(p.exprs.items)
	if p.kind == kStar || startsExpr.has(p.kind) {
		first := p.starNamed()
		if p.kind == kFor || p.kind == kAsync && p.peek() == kFor {
			return p.generators(start, ListComp, first, nil, kRSqb)
		}
		p.exprs.push(first)
		if !p.accept(kComma) && p.kind != kRSqb {
			p.fail(p.here(), "invalid syntax. Perhaps you forgot a comma?")
		}
	}
	p.elements(kRSqb)
	n := p.new.list.take()
	n.Elts = p.exprs.pop(mark)
	p.accept(kRSqb)
	n.Base = p.from(start)
	return n
}

// braces is a dict, a set or a comprehension of one.
func (p *parser) braces() Expr {
	start := p.start()
	p.next()
	if !p.deeper() {
		p.depth--
		p.junkFlat(kRBrace)
		return &Error{Base: p.from(start)}
	}
	defer func() { p.depth-- }()
	if p.kind == kStar || startsExpr.has(p.kind) {
		firstStart := p.start()
		first := p.starNamed()
		switch {
		case p.kind == kColon:
			return p.dictFrom(start, firstStart, first)
		case p.kind == kFor || p.kind == kAsync && p.peek() == kFor:
			return p.generators(start, SetComp, first, nil, kRBrace)
		}
		mark := len(p.exprs.items)
		p.exprs.push(first)
		if !p.accept(kComma) && p.kind != kRBrace {
			p.fail(p.here(), "invalid syntax. Perhaps you forgot a comma?")
			if startsExpr.has(p.kind) {
				// `{"a" 1, "b": 2}` is a dict that lost a colon.
				p.exprs.pop(mark)
				return p.dictFrom(start, firstStart, first)
			}
		}
		p.elements(kRBrace)
		n := &Set{Elts: p.exprs.pop(mark)}
		p.accept(kRBrace)
		n.Base = p.from(start)
		return n
	}
	return p.dictFrom(start, start, nil)
}

// dictFrom parses a dict whose first key, if not nil, was read at keyStart.
func (p *parser) dictFrom(start, keyStart uint32, key Expr) Expr {
	mark := len(p.exprs.items)
	first := true
	for key != nil || p.kind != kRBrace && p.kind > kDedent {
		switch {
		case key != nil:
		case p.kind == kDoubleStar:
			at := p.here()
			p.next()
			p.exprs.push(nil)
			p.exprs.push(p.binary(precBitOr))
			if first && p.kind == kFor {
				p.fail(at, "dict unpacking cannot be used in dict comprehension")
			}
			first = false
			p.dictComma()
			continue
		case p.kind == kStar || startsExpr.has(p.kind):
			keyStart = p.start()
			key = p.starNamed()
		default:
			p.fail(p.here(), "invalid syntax")
			p.next()
			continue
		}
		switch k := key.(type) {
		case *Starred:
			p.fail(k.At, "cannot use a starred expression in a dictionary key")
		case *NamedExpr:
			if k.At.Start == keyStart {
				p.fail(k.At, "invalid syntax")
			}
		}
		if !p.accept(kColon) {
			p.fail(p.here(), "':' expected after dictionary key")
			if !startsExpr.has(p.kind) {
				p.exprs.push(key)
				p.exprs.push(p.missing())
				key = nil
				p.dictComma()
				continue
			}
		}
		if p.kind == kStar || p.kind == kDoubleStar {
			p.fail(p.here(), "cannot use a starred expression in a dictionary value")
			p.next()
		}
		value := p.expression()
		if first && (p.kind == kFor || p.kind == kAsync && p.peek() == kFor) {
			p.exprs.pop(mark)
			return p.generators(start, DictComp, key, value, kRBrace)
		}
		first = false
		p.exprs.push(key)
		p.exprs.push(value)
		key = nil
		p.dictComma()
	}
	n := p.new.dict.take()
	pairs := p.exprs.items[mark:]
	half := len(pairs) / 2
	both := p.exprs.lists.copy(pairs)
	for i := range half {
		both[i], both[half+i] = pairs[2*i], pairs[2*i+1]
	}
	p.exprs.items = p.exprs.items[:mark]
	if half > 0 {
		n.Keys, n.Values = both[:half:half], both[half:]
	}
	p.accept(kRBrace)
	n.Base = p.from(start)
	return n
}

func (p *parser) dictComma() {
	if !p.accept(kComma) && p.kind != kRBrace {
		p.fail(p.here(), "invalid syntax. Perhaps you forgot a comma?")
	}
}

// generators parses the clauses of a comprehension and its closing bracket.
func (p *parser) generators(start uint32, kind CompKind, elt, value Expr, closer kind) Expr {
	n := p.new.comp.take()
	n.Kind, n.Elt, n.Value = kind, elt, value
	if elt, ok := elt.(*Starred); ok {
		p.fail(elt.At, "iterable unpacking cannot be used in comprehension")
	}
	n.Generators = p.clauses()
	p.close(closer)
	n.Base = p.from(start)
	return n
}

// clauses are the `for` and `if` parts of a comprehension.
func (p *parser) clauses() []*Comprehension {
	mark := len(p.comps.items)
	for p.kind == kFor || p.kind == kAsync && p.peek() == kFor {
		c := p.new.comprehension.take()
		from := p.start()
		c.Async = p.accept(kAsync)
		p.next()
		c.Target = p.targets()
		if p.expect(kIn, "'in' expected after for-loop variables") || startsExpr.has(p.kind) {
			c.Iter = p.binary(precOr)
		} else {
			c.Iter = p.missing()
		}
		exprs := len(p.exprs.items)
		for p.accept(kIf) {
			p.exprs.push(p.binary(precOr))
		}
		c.Ifs = p.exprs.pop(exprs)
		c.Base = p.from(from)
		p.comps.push(c)
	}
	return p.comps.pop(mark)
}

// arguments parses the arguments of a call, with their parentheses, or of a class when generator is false.
func (p *parser) arguments(generator bool) ([]Expr, []*Keyword) {
	open := p.start()
	p.next()
	if p.kind == kRPar {
		p.next()
		return nil, nil
	}
	if !p.deeper() {
		p.depth--
		p.junkFlat(kRPar)
		return nil, nil
	}
	mark, keyMark := len(p.exprs.items), len(p.keywords.items)
	unpacked := false // a ** argument was seen
	for p.kind != kRPar && p.kind > kDedent {
		start := p.start()
		switch {
		case p.kind == kName && p.peek() == kAssign:
			n := p.new.keyword.take()
			n.Arg, _ = p.takeName("")
			p.next()
			n.Value = p.expression()
			n.Base = p.from(start)
			p.keywords.push(n)
			if p.kind == kFor {
				p.fail(n.At, "invalid syntax. Maybe you meant '==' or ':=' instead of '='?")
			}
		case p.kind == kDoubleStar:
			p.next()
			n := p.new.keyword.take()
			n.Value = p.expression()
			n.Base = p.from(start)
			p.keywords.push(n)
			unpacked = true
		case p.kind == kStar:
			if unpacked {
				p.fail(p.here(), "iterable argument unpacking follows keyword argument unpacking")
			}
			p.exprs.push(p.starred(precNone))
		case startsExpr.has(p.kind):
			e := p.namedExpr()
			if p.kind == kFor || p.kind == kAsync && p.peek() == kFor {
				alone := generator && len(p.exprs.items) == mark && len(p.keywords.items) == keyMark
				at := start
				if alone {
					at = open
				}
				e = p.argGenerator(at, e)
				if !alone || p.kind != kRPar {
					p.fail(e.Span(), "Generator expression must be parenthesized")
				}
				if alone && p.kind == kRPar {
					p.next()
					e.(*Comp).At.End = p.prevEnd
					p.exprs.push(e)
					p.depth--
					return p.exprs.pop(mark), p.keywords.pop(keyMark)
				}
				if alone {
					e.(*Comp).At.Start = start
				}
			} else if len(p.keywords.items) > keyMark {
				if unpacked {
					p.fail(e.Span(), "positional argument follows keyword argument unpacking")
				} else {
					p.fail(e.Span(), "positional argument follows keyword argument")
				}
			}
			p.exprs.push(e)
			if p.kind == kAssign {
				p.fail(e.Span(), "expression cannot contain assignment, perhaps you meant \"==\"?")
				p.next()
				continue
			}
		default:
			p.fail(p.here(), "invalid syntax")
			p.next()
			continue
		}
		if !p.accept(kComma) && p.kind != kRPar {
			p.fail(p.here(), "invalid syntax. Perhaps you forgot a comma?")
		}
	}
	p.accept(kRPar)
	p.depth--
	return p.exprs.pop(mark), p.keywords.pop(keyMark)
}

// argGenerator parses the clauses of a generator expression among the arguments of a call, up to where they end.
func (p *parser) argGenerator(start uint32, elt Expr) Expr {
	n := p.new.comp.take()
	n.Kind, n.Elt = GeneratorExp, elt
	n.Generators = p.clauses()
	n.Base = p.from(start)
	return n
}

// slices is what stands in the brackets of a subscript.
func (p *parser) slices() Expr {
	start := p.start()
	if p.kind == kRSqb {
		p.fail(p.here(), "invalid syntax")
		return p.missing()
	}
	if !p.deeper() {
		p.depth--
		p.junk(kRSqb)
		return p.missing()
	}
	defer func() { p.depth-- }()
	first := p.sliceItem()
	if _, starred := first.(*Starred); p.kind != kComma && !starred {
		return first
	}
	mark := len(p.exprs.items)
	p.exprs.push(first)
	for p.accept(kComma) {
		if p.kind == kRSqb {
			break
		}
		p.exprs.push(p.sliceItem())
	}
	n := p.new.tuple.take()
	n.Elts = p.exprs.pop(mark)
	n.Base = p.from(start)
	return n
}

func (p *parser) sliceItem() Expr {
	if p.kind == kStar {
		return p.starred(precNone)
	}
	start := p.start()
	var lower Expr
	if p.kind != kColon {
		lower = p.namedExpr()
		if p.kind != kColon {
			return lower
		}
		if _, named := lower.(*NamedExpr); named && p.toks[p.i-1].kind != kRPar {
			p.fail(lower.Span(), "invalid syntax")
		}
	}
	n := p.new.slice.take()
	n.Lower = lower
	p.next()
	if startsExpr.has(p.kind) {
		n.Upper = p.expression()
	}
	if p.accept(kColon) && startsExpr.has(p.kind) {
		n.Step = p.expression()
	}
	n.Base = p.from(start)
	return n
}

func (p *parser) lambda() Expr {
	start := p.start()
	p.next()
	n := p.new.lambda.take()
	n.Args = p.parameters(kColon)
	if p.deeper() {
		if p.expect(kColon, "expected ':'") && p.kind == kFMiddle {
			p.fail(p.here(), "f-string: lambda expressions are not allowed without parentheses")
			n.Body = p.missing()
		} else if p.toks[p.i-1].kind == kColon || startsExpr.has(p.kind) {
			n.Body = p.expression()
		} else {
			n.Body = p.missing()
		}
	} else {
		n.Body = p.missing()
	}
	p.depth--
	n.Base = p.from(start)
	return n
}
