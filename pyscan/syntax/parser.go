package syntax

import (
	"fmt"
	"slices"

	"github.com/trainvet/trainvet/lint/source"
)

// Bounds of the height of a tree, so that code that walks it recursively cannot run out of stack. CPython 3.13 has about the same.
const (
	maxDepth = 6_000  // nested expressions
	maxChain = 10_000 // operators, calls, attributes and subscripts on one left edge
	maxElifs = 6_000  // elif clauses of one if
)

// Parse makes the tree of a file. It never fails: what could not be parsed is in Errors, and the tree around it is kept. A file
// without errors is one that CPython 3.14 accepts, and its tree is CPython's in every node, field and position.
func Parse(f *source.File) *File {
	a := &attempt{text: f.Padded(), size: len(f.Text)}
	a.parse()
	if len(a.errors) > 0 {
		a = a.repaired()
	}
	file := &File{Source: f}
	a.finish(file)
	return file
}

type parser struct {
	text    string
	toks    []token
	i       int    // of the current token
	kind    kind   // of the current token
	prevEnd uint32 // end of the last token that is neither a line end nor indentation

	errors    []SyntaxError
	lexErrors []SyntaxError
	exprTexts []exprText
	quiet     bool // the current statement has an error already
	trial     bool // errors are only counted, not kept
	failed    bool // an error happened during a trial
	flufl     bool // `<>` is the operator and `!=` is not (PEP 401)
	prologue  bool // only a docstring and imports from __future__ were read
	depth     int
	height    int // of the highest left edge so far

	saved   []Node // parts of the statement at hand that have no place in its node
	scratch []byte

	exprs    stack[Expr]
	stmts    stack[Stmt]
	keywords stack[*Keyword]
	cmpOps   stack[CompareOperator]
	comps    stack[*Comprehension]
	args     stack[*Arg]
	aliases  stack[*Alias]
	items    stack[*WithItem]
	handlers stack[*ExceptHandler]
	cases    stack[*MatchCase]
	patterns stack[Pattern]
	types    stack[*TypeParam]
	names    stack[string]
	new      nodes
}

// start is where the current token starts, and so the node that does.
func (p *parser) start() uint32 {
	if p.kind <= kDedent {
		return p.prevEnd
	}
	return p.toks[p.i].start
}

// from is the span from start to the end of the last token.
func (p *parser) from(start uint32) Base {
	return Base{source.Span{Start: start, End: max(start, p.prevEnd)}}
}

// here is the span of the current token; line ends and the like have no length.
func (p *parser) here() source.Span {
	t := p.toks[p.i]
	if t.kind <= kDedent || t.flags&fVirtual != 0 && t.kind != kString {
		return source.Span{Start: p.prevEnd, End: p.prevEnd}
	}
	return source.Span{Start: t.start, End: t.end}
}

// next goes on to the next token. It must not be called on a line end, indentation or the end of the file.
func (p *parser) next() {
	p.prevEnd = p.toks[p.i].end
	p.i++
	p.kind = p.toks[p.i].kind
}

// skip is next for line ends and indentation.
func (p *parser) skip() {
	p.i++
	p.kind = p.toks[p.i].kind
}

func (p *parser) accept(k kind) bool {
	if p.kind != k {
		return false
	}
	p.next()
	return true
}

func (p *parser) peek() kind {
	if p.kind == kEOF {
		return kEOF
	}
	return p.toks[p.i+1].kind
}

// fail reports a fault, unless the statement has one already: the rest would only follow from it.
func (p *parser) fail(at source.Span, format string, args ...any) {
	if p.trial {
		p.failed = true
		return
	}
	if p.quiet {
		return
	}
	p.quiet = true
	if len(p.errors) >= maxErrors || p.lexerFailed() {
		return
	}
	p.errors = append(p.errors, SyntaxError{at, fmt.Sprintf(format, args...)})
}

// lexerFailed reports whether the lexer found a fault in the logical line at hand.
func (p *parser) lexerFailed() bool {
	if len(p.lexErrors) == 0 {
		return false
	}
	first, last := p.i, p.i
	for first > 0 && p.toks[first-1].kind != kNewline {
		first--
	}
	for last < len(p.toks)-1 && p.toks[last].kind != kNewline {
		last++
	}
	from, to := p.toks[first].start, p.toks[last].end
	for _, e := range p.lexErrors {
		if e.At.Start >= from && e.At.Start <= to {
			return true
		}
	}
	return false
}

func (p *parser) expect(k kind, message string) bool {
	if p.accept(k) {
		return true
	}
	p.fail(p.here(), "%s", message)
	return false
}

// save keeps a node that has no place in the statement at hand; it will be part of an Error beside it.
func (p *parser) save(n Node) {
	if e, ok := n.(*Error); ok && len(e.Parts) == 0 {
		return
	}
	p.saved = append(p.saved, n)
}

// flush puts what was saved into the list of statements.
func (p *parser) flush() {
	if len(p.saved) == 0 {
		return
	}
	e := &Error{Parts: slices.Clone(p.saved)}
	e.At = e.Parts[0].Span()
	for _, part := range e.Parts {
		e.At = e.At.Cover(part.Span())
	}
	p.saved = p.saved[:0]
	p.stmts.push(e)
}

// missing is an expression that is not there. It stands right before the current token, and what comes before ends there, so that
// it lies in whatever it is a part of.
func (p *parser) missing() *Error {
	if p.kind > kDedent {
		p.prevEnd = max(p.prevEnd, p.toks[p.i].start)
	}
	return &Error{Base: Base{source.Span{Start: p.prevEnd, End: p.prevEnd}}}
}

// junk goes over tokens up to one of stops or the line's end and saves the expressions among them.
func (p *parser) junk(stops ...kind) {
	for p.kind > kDedent && !slices.Contains(stops, p.kind) {
		if startsExpr.has(p.kind) {
			p.save(p.namedExpr())
		} else {
			p.next()
		}
	}
}

// identifier takes a name; what says which one is missing.
func (p *parser) takeName(what string) (string, source.Span) {
	if p.kind != kName {
		p.fail(p.here(), "expected %s", what)
		return "", source.Span{Start: p.prevEnd, End: p.prevEnd}
	}
	t := p.toks[p.i]
	p.next()
	return p.identifier(t), source.Span{Start: t.start, End: t.end}
}
