package syntax

import "github.com/trainvet/trainvet/lint/source"

var startsPattern = setOf(kName, kNumber, kString, kFStart, kMinus, kNone, kTrue, kFalse, kLPar, kLSqb, kLBrace, kStar)

// topPattern is a pattern of a case, which may be a sequence without brackets.
func (p *parser) topPattern() Pattern {
	start := p.start()
	first := p.starPattern()
	if p.kind != kComma {
		if star, ok := first.(*MatchStar); ok {
			p.fail(star.At, "invalid syntax")
		}
		return first
	}
	mark := len(p.patterns.items)
	p.patterns.push(first)
	for p.accept(kComma) {
		if !startsPattern.has(p.kind) {
			break
		}
		p.patterns.push(p.starPattern())
	}
	n := &MatchSequence{Patterns: p.patterns.pop(mark)}
	n.Base = p.from(start)
	return n
}

func (p *parser) starPattern() Pattern {
	if p.kind != kStar {
		return p.pattern()
	}
	start := p.start()
	p.next()
	n := &MatchStar{}
	n.Name, _ = p.takeName("a name")
	if n.Name == "_" {
		n.Name = ""
	}
	n.Base = p.from(start)
	return n
}

// pattern is alternatives with an optional `as`.
func (p *parser) pattern() Pattern {
	start := p.start()
	if !p.deeper() {
		p.depth--
		return p.missingPattern()
	}
	first := p.closedPattern()
	if p.kind == kVBar {
		mark := len(p.patterns.items)
		p.patterns.push(first)
		for p.accept(kVBar) {
			p.patterns.push(p.closedPattern())
		}
		n := &MatchOr{Patterns: p.patterns.pop(mark)}
		n.Base = p.from(start)
		first = n
	}
	if p.accept(kAs) {
		n := &MatchAs{Pattern: first}
		var at source.Span
		n.Name, at = p.takeName("a name after 'as'")
		if n.Name == "_" {
			p.fail(at, "cannot use '_' as a target")
		} else if p.kind == kDot || p.kind == kLPar || p.kind == kAssign {
			p.fail(at, "invalid pattern target")
		}
		n.Base = p.from(start)
		first = n
	}
	p.depth--
	return first
}

func (p *parser) missingPattern() Pattern {
	return &MatchValue{Value: p.missing(), Base: Base{source.Span{Start: p.prevEnd, End: p.prevEnd}}}
}

func (p *parser) closedPattern() Pattern {
	start := p.start()
	switch p.kind {
	case kNumber, kMinus:
		n := &MatchValue{Value: p.signedNumber()}
		n.Base = p.from(start)
		return n
	case kString, kFStart:
		n := &MatchValue{Value: p.strings()}
		n.Base = p.from(start)
		return n
	case kNone, kTrue, kFalse:
		n := &MatchSingleton{Kind: singletonKind(p.kind)}
		p.next()
		n.Base = p.from(start)
		return n
	case kName:
		return p.namePattern()
	case kLPar, kLSqb:
		return p.sequencePattern()
	case kLBrace:
		return p.mappingPattern()
	}
	p.fail(p.here(), "invalid syntax")
	return p.missingPattern()
}

func singletonKind(k kind) ConstantKind {
	switch k {
	case kTrue:
		return TrueConstant
	case kFalse:
		return FalseConstant
	}
	return NoneConstant
}

// signedNumber is a number with an optional minus, or a sum of a real and an imaginary one.
func (p *parser) signedNumber() Expr {
	start := p.start()
	real := p.minusNumber()
	if p.kind != kPlus && p.kind != kMinus {
		return real
	}
	n := p.new.binOp.take()
	n.Left = real
	if p.kind == kMinus {
		n.Op = Sub
	}
	if numberKind(real) == ComplexConstant {
		p.fail(real.Span(), "real number required in complex literal")
	}
	p.next()
	right := p.start()
	if p.kind != kNumber {
		p.fail(p.here(), "invalid syntax")
		n.Right = p.missing()
	} else {
		n.Right = p.atom()
		if numberKind(n.Right) != ComplexConstant {
			p.fail(p.from(right).At, "imaginary number required in complex literal")
		}
	}
	n.Base = p.from(start)
	return n
}

func numberKind(e Expr) ConstantKind {
	if minus, ok := e.(*UnaryOp); ok {
		e = minus.Operand
	}
	if c, ok := e.(*Constant); ok {
		return c.Kind
	}
	return NoneConstant
}

func (p *parser) minusNumber() Expr {
	if p.kind != kMinus {
		return p.atom()
	}
	start := p.start()
	p.next()
	n := p.new.unaryOp.take()
	n.Op = USub
	if p.kind == kNumber {
		n.Operand = p.atom()
	} else {
		p.fail(p.here(), "invalid syntax")
		n.Operand = p.missing()
	}
	n.Base = p.from(start)
	return n
}

// namePattern is a capture, a wildcard, a dotted value or a class pattern.
func (p *parser) namePattern() Pattern {
	start := p.start()
	following := p.peek()
	wildcard := p.text[p.start():p.toks[p.i].end] == "_"
	if wildcard || following != kDot && following != kLPar {
		n := &MatchAs{}
		if n.Name, _ = p.takeName(""); n.Name == "_" {
			n.Name = ""
		}
		n.Base = p.from(start)
		if p.kind == kAssign {
			p.fail(p.here(), "invalid syntax")
		}
		return n
	}
	value := p.dottedName()
	if p.kind == kLPar {
		return p.classPattern(start, value)
	}
	n := &MatchValue{Value: value}
	n.Base = p.from(start)
	if p.kind == kAssign {
		p.fail(p.here(), "invalid syntax")
	}
	return n
}

// dottedName is a name or attributes of one.
func (p *parser) dottedName() Expr {
	start := p.start()
	var value Expr = p.nameNode(Load)
	for links := 0; p.kind == kDot; links++ {
		if links > maxChain {
			p.fail(p.here(), "too many attributes in one expression")
			break
		}
		p.next()
		n := p.new.attribute.take()
		n.Value = value
		n.Attr, _ = p.takeName("a name after '.'")
		n.Base = p.from(start)
		value = n
	}
	return value
}

// patternList pushes patterns separated by commas up to closer, and takes it.
func (p *parser) patternList(closer kind) (trailing bool) {
	for p.kind != closer && p.kind > kDedent {
		trailing = false
		if !startsPattern.has(p.kind) {
			p.fail(p.here(), "invalid syntax")
			p.next()
			continue
		}
		p.patterns.push(p.starPattern())
		if p.accept(kComma) {
			trailing = true
		} else if p.kind != closer {
			p.fail(p.here(), "invalid syntax. Perhaps you forgot a comma?")
		}
	}
	p.accept(closer)
	return trailing
}

// sequencePattern is a sequence in brackets, or a group.
func (p *parser) sequencePattern() Pattern {
	start := p.start()
	group := p.kind == kLPar
	p.next()
	mark := len(p.patterns.items)
	closer := kRSqb
	if group {
		closer = kRPar
	}
	trailing := p.patternList(closer)
	if group && len(p.patterns.items) == mark+1 && !trailing {
		inner := p.patterns.items[mark]
		p.patterns.items = p.patterns.items[:mark]
		if star, ok := inner.(*MatchStar); ok {
			p.fail(star.At, "invalid syntax")
		}
		return inner
	}
	n := &MatchSequence{Patterns: p.patterns.pop(mark)}
	n.Base = p.from(start)
	return n
}

func (p *parser) mappingPattern() Pattern {
	start := p.start()
	p.next()
	n := &MatchMapping{}
	mark, keyMark := len(p.patterns.items), len(p.exprs.items)
	for p.kind != kRBrace && p.kind > kDedent {
		if n.Rest != "" {
			p.fail(p.here(), "double star pattern must be the last (right-most) subpattern in the mapping pattern")
		}
		switch p.kind {
		case kDoubleStar:
			p.next()
			var at source.Span
			if n.Rest, at = p.takeName("a name after '**'"); n.Rest == "_" {
				p.fail(at, "invalid syntax")
			}
		case kNumber, kMinus, kString, kFStart, kNone, kTrue, kFalse, kName:
			p.exprs.push(p.mappingKey())
			if p.expect(kColon, "expected ':'") && startsPattern.has(p.kind) && p.kind != kStar {
				p.patterns.push(p.pattern())
			} else {
				p.fail(p.here(), "invalid syntax")
				p.patterns.push(p.missingPattern())
			}
		default:
			p.fail(p.here(), "invalid syntax")
			p.next()
			continue
		}
		if !p.accept(kComma) && p.kind != kRBrace {
			p.fail(p.here(), "invalid syntax. Perhaps you forgot a comma?")
		}
	}
	p.accept(kRBrace)
	n.Keys, n.Patterns = p.exprs.pop(keyMark), p.patterns.pop(mark)
	n.Base = p.from(start)
	return n
}

func (p *parser) mappingKey() Expr {
	switch p.kind {
	case kNumber, kMinus:
		return p.signedNumber()
	case kName:
		e := p.dottedName()
		if _, bare := e.(*Name); bare {
			p.fail(e.Span(), "mapping pattern keys may only match literals and attribute lookups")
		}
		return e
	}
	return p.atom()
}

func (p *parser) classPattern(start uint32, class Expr) Pattern {
	p.next()
	n := &MatchClass{Cls: class}
	mark, nameMark := len(p.patterns.items), len(p.names.items)
	var positional []Pattern
	for p.kind != kRPar && p.kind > kDedent {
		switch {
		case p.kind == kName && p.peek() == kAssign:
			if len(p.names.items) == nameMark {
				positional = p.patterns.pop(mark)
			}
			name, _ := p.takeName("")
			p.names.push(name)
			p.next()
			p.patterns.push(p.pattern())
		case startsPattern.has(p.kind) && p.kind != kStar:
			if len(p.names.items) > nameMark {
				p.fail(p.here(), "positional patterns follow keyword patterns")
				p.pattern()
			} else {
				p.patterns.push(p.pattern())
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
	if len(p.names.items) == nameMark {
		positional = p.patterns.pop(mark)
	}
	n.Patterns = positional
	n.KwdAttrs, n.KwdPatterns = p.names.pop(nameMark), p.patterns.pop(mark)
	n.Base = p.from(start)
	return n
}
