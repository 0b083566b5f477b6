package syntax

import (
	"slices"

	"github.com/trainvet/trainvet/lint/source"
)

// module parses all statements of the file.
func (p *parser) module() []Stmt {
	for p.kind != kEOF {
		if p.kind == kDedent {
			p.skip() // its indent was at a place where no block could start
			continue
		}
		first := len(p.stmts.items)
		p.statement()
		if p.prologue {
			p.future(first)
		}
	}
	return p.stmts.pop(0)
}

// futureFeatures are the names that CPython knows; it looks only at the beginning of a file.
var futureFeatures = []string{"nested_scopes", "generators", "division", "absolute_import", "with_statement", "print_function",
	"unicode_literals", "barry_as_FLUFL", "generator_stop", "annotations"}

// future looks at the statements of a line of the file's beginning.
func (p *parser) future(first int) {
	for i, s := range p.stmts.items[first:] {
		switch s := s.(type) {
		case *ImportFrom:
			if s.Module != "__future__" || s.Level != 0 {
				p.prologue = false
				return
			}
			for _, a := range s.Names {
				if a.Name == "braces" {
					p.fail(a.At, "not a chance")
				} else if !slices.Contains(futureFeatures, a.Name) {
					p.fail(a.At, "future feature %s is not defined", a.Name)
				}
				p.flufl = p.flufl || a.Name == "barry_as_FLUFL"
			}
		case *ExprStmt:
			c, ok := s.Value.(*Constant)
			if first+i > 0 || !ok || c.Kind != StrConstant {
				p.prologue = false
				return
			}
		default:
			p.prologue = false
			return
		}
	}
}

// statement pushes the statements of one logical line, with their blocks.
func (p *parser) statement() {
	follows := p.quiet // from a line with a fault, which may have been the head of this block
	p.quiet = false
	p.height = 0
	switch p.kind {
	case kNewline: // a line whose only token was dropped
		p.skip()
		return
	case kIndent:
		if !follows {
			p.fail(p.here(), "unexpected indent")
		}
		p.skip()
		for p.kind != kDedent && p.kind != kEOF {
			p.statement()
		}
		if p.kind == kDedent {
			p.skip()
		}
		return
	case kIf:
		p.ifStmt()
	case kFor:
		p.forStmt(p.start(), false)
	case kWhile:
		p.whileStmt()
	case kTry:
		p.tryStmt()
	case kWith:
		p.withStmt(p.start(), false)
	case kDef:
		p.def(p.start(), nil, p.start(), false)
	case kClass:
		p.class(nil, p.start())
	case kAt:
		p.decorated()
	case kAsync:
		p.async(nil, p.start())
	case kElif, kElse, kExcept, kFinally:
		p.orphan()
	case kName:
		switch t := p.toks[p.i]; p.text[t.start:t.end] {
		case "match":
			if p.startsMatch() {
				p.match()
				return
			}
		case "case":
			if p.startsCase() {
				p.orphan()
				return
			}
		}
		p.simpleLine()
	default:
		p.simpleLine()
	}
}

// simpleLine pushes simple statements up to the end of the logical line.
func (p *parser) simpleLine() {
	for {
		p.simple()
		p.flush()
		if p.kind != kSemi && p.kind != kNewline && p.kind != kEOF {
			p.fail(p.here(), "%s", p.afterStatement())
			if !p.rest() {
				continue
			}
		}
		if p.kind == kSemi {
			p.next()
			for p.kind == kSemi {
				p.fail(p.here(), "invalid syntax")
				p.next()
			}
		}
		if p.kind == kNewline {
			p.skip()
			return
		}
		if p.kind <= kDedent {
			return
		}
	}
}

// afterStatement says what is wrong with a token behind a whole statement.
func (p *parser) afterStatement() string {
	if n := len(p.stmts.items); n > 0 && startsExpr.has(p.kind) {
		if s, ok := p.stmts.items[n-1].(*ExprStmt); ok && s.At.End == p.prevEnd {
			if name, ok := s.Value.(*Name); ok && (name.ID == "print" || name.ID == "exec") {
				return "Missing parentheses in call to '" + name.ID + "'. Did you mean " + name.ID + "(...)?"
			}
		}
	}
	return p.unexpected()
}

// rest saves what can be saved of a line that should have ended. It reports false at a keyword that starts a statement.
func (p *parser) rest() bool {
	for p.kind > kDedent && p.kind != kSemi {
		switch {
		case startsExpr.has(p.kind):
			p.save(p.namedExpr())
		case startsSimple.has(p.kind):
			p.flush()
			return false
		default:
			p.next()
		}
	}
	p.flush()
	return true
}

// startsSimple are the keywords that start a simple statement.
var startsSimple = setOf(kAssert, kBreak, kContinue, kDel, kGlobal, kImport, kNonlocal, kPass, kRaise, kReturn)

// simple pushes one simple statement.
func (p *parser) simple() {
	start := p.start()
	switch p.kind {
	case kReturn:
		p.next()
		n := p.new.returnStmt.take()
		if p.kind == kStar || startsExpr.has(p.kind) {
			n.Value = p.starExpressions()
		}
		n.Base = p.from(start)
		p.stmts.push(n)
	case kImport:
		p.importNames()
	case kFrom:
		p.importFrom()
	case kPass:
		p.next()
		n := p.new.pass.take()
		n.Base = p.from(start)
		p.stmts.push(n)
	case kBreak:
		p.next()
		p.stmts.push(&Break{Base: p.from(start)})
	case kContinue:
		p.next()
		p.stmts.push(&Continue{Base: p.from(start)})
	case kRaise:
		p.raise()
	case kAssert:
		p.next()
		n := p.new.assert.take()
		n.Test = p.expression()
		if p.accept(kComma) {
			n.Msg = p.expression()
		}
		n.Base = p.from(start)
		p.stmts.push(n)
	case kDel:
		p.del()
	case kGlobal:
		names := p.nameList()
		p.stmts.push(&Global{Base: p.from(start), Names: names})
	case kNonlocal:
		names := p.nameList()
		p.stmts.push(&Nonlocal{Base: p.from(start), Names: names})
	case kName:
		if t := p.toks[p.i]; p.text[t.start:t.end] == "type" && p.peek() == kName {
			if after := p.toks[p.i+2].kind; after == kAssign || after == kLSqb {
				p.typeAlias()
				return
			}
		}
		p.exprStmt()
	default:
		if p.kind != kStar && p.kind != kYield && !startsExpr.has(p.kind) {
			p.fail(p.here(), "%s", p.unexpected())
			return
		}
		p.exprStmt()
	}
}

// exprStmt is an expression, an assignment or an annotation.
func (p *parser) exprStmt() {
	start := p.start()
	first := p.yieldOrStar()
	switch {
	case p.kind == kNewline:
		n := p.new.exprStmt.take()
		n.Value = first
		n.Base = p.from(start)
		p.stmts.push(n)
	case p.kind == kAssign:
		mark := len(p.exprs.items)
		value := first
		for p.accept(kAssign) {
			p.target(value, Store)
			p.exprs.push(value)
			if p.kind == kYield || p.kind == kStar || startsExpr.has(p.kind) {
				value = p.yieldOrStar()
			} else {
				p.fail(p.here(), "invalid syntax")
				value = p.missing()
			}
		}
		n := p.new.assign.take()
		n.Targets = p.exprs.pop(mark)
		n.Value = value
		n.Base = p.from(start)
		p.stmts.push(n)
	case p.kind == kColon:
		p.annotated(start, first)
	case p.kind >= kPlusEq && p.kind <= kDoubleSlashEq:
		switch first.(type) {
		case *Name, *Attribute, *Subscript:
			p.target(first, Store)
		default:
			p.fail(first.Span(), "'%s' is an illegal expression for augmented assignment", describe(first))
		}
		n := p.new.augAssign.take()
		n.Target = first
		n.Op = augmented[p.kind-kPlusEq]
		p.next()
		n.Value = p.yieldOrStar()
		n.Base = p.from(start)
		p.stmts.push(n)
	default:
		n := p.new.exprStmt.take()
		n.Value = first
		n.Base = p.from(start)
		p.stmts.push(n)
	}
}

var augmented = [...]Operator{Add, Sub, Mult, MatMult, Div, Mod, Pow, LShift, RShift, BitOr, BitXor, BitAnd, FloorDiv}

// annotated is what follows a target and its colon. A colon behind anything else is a damaged line.
func (p *parser) annotated(start uint32, target Expr) {
	simple := false
	switch t := target.(type) {
	case *Name:
		simple = t.At.Start == start
		t.Ctx = Store
	case *Attribute:
		t.Ctx = Store
	case *Subscript:
		t.Ctx = Store
	default:
		switch t.(type) {
		case *List, *Tuple:
			p.fail(target.Span(), "only single target (not %s) can be annotated", describe(target))
		default:
			p.fail(target.Span(), "illegal target for annotation")
		}
		p.save(target)
		p.next()
		for startsExpr.has(p.kind) {
			p.save(p.namedExpr())
			if !p.accept(kAssign) && !p.accept(kComma) && !p.accept(kColon) {
				break
			}
		}
		return
	}
	colon := p.here()
	p.next()
	if p.kind == kNewline {
		// An unknown word before a block: its statements are kept, in the block around.
		p.fail(colon, "invalid syntax")
		restore(target)
		p.save(target)
		return
	}
	n := p.new.annAssign.take()
	n.Target, n.Simple = target, simple
	n.Annotation = p.expression()
	if p.accept(kAssign) {
		n.Value = p.yieldOrStar()
	}
	n.Base = p.from(start)
	p.stmts.push(n)
}

func restore(target Expr) {
	switch t := target.(type) {
	case *Name:
		t.Ctx = Load
	case *Attribute:
		t.Ctx = Load
	case *Subscript:
		t.Ctx = Load
	}
}

// target marks an expression as assigned to or deleted, and reports one that cannot be.
func (p *parser) target(e Expr, ctx Context) {
	switch e := e.(type) {
	case *Name:
		e.Ctx = ctx
	case *Attribute:
		e.Ctx = ctx
	case *Subscript:
		e.Ctx = ctx
	case *Starred:
		if ctx == Del {
			p.fail(e.At, "cannot delete starred")
		}
		if _, twice := e.Value.(*Starred); twice {
			p.fail(e.At, "invalid syntax")
		}
		e.Ctx = ctx
		p.target(e.Value, ctx)
	case *Tuple:
		e.Ctx = ctx
		for _, elt := range e.Elts {
			p.target(elt, ctx)
		}
	case *List:
		e.Ctx = ctx
		for _, elt := range e.Elts {
			p.target(elt, ctx)
		}
	case *Error:
		p.fail(e.At, "invalid syntax")
	default:
		p.fail(e.Span(), "%s", badTarget(e, ctx))
	}
}

func badTarget(e Expr, ctx Context) string {
	switch e.(type) {
	case *Yield, *YieldFrom:
		return "assignment to yield expression not possible"
	case *Compare, *BinOp, *UnaryOp, *BoolOp, *Call, *Await, *IfExp:
		if ctx == Store {
			return "cannot assign to " + describe(e) + " here. Maybe you meant '==' instead of '='?"
		}
	}
	if ctx == Del {
		return "cannot delete " + describe(e)
	}
	return "cannot assign to " + describe(e)
}

// describe is CPython's word for a kind of expression.
func describe(e Expr) string {
	switch e := e.(type) {
	case *Attribute:
		return "attribute"
	case *Subscript:
		return "subscript"
	case *Starred:
		return "starred"
	case *Name:
		return "name"
	case *List:
		return "list"
	case *Tuple:
		return "tuple"
	case *Lambda:
		return "lambda"
	case *Call:
		return "function call"
	case *BoolOp, *BinOp, *UnaryOp:
		return "expression"
	case *Comp:
		return [...]string{"list comprehension", "set comprehension", "dict comprehension", "generator expression"}[e.Kind]
	case *Yield, *YieldFrom:
		return "yield expression"
	case *Await:
		return "await expression"
	case *Dict:
		return "dict literal"
	case *Set:
		return "set display"
	case *JoinedStr, *FormattedValue:
		return "f-string expression"
	case *TemplateStr, *Interpolation:
		return "t-string expression"
	case *Constant:
		switch e.Kind {
		case NoneConstant:
			return "None"
		case TrueConstant:
			return "True"
		case FalseConstant:
			return "False"
		case EllipsisConstant:
			return "ellipsis"
		}
		return "literal"
	case *Compare:
		return "comparison"
	case *IfExp:
		return "conditional expression"
	case *NamedExpr:
		return "named expression"
	}
	return "expression"
}

// targets are the targets of a for loop or a comprehension, up to `in`.
func (p *parser) targets() Expr {
	start := p.start()
	first := p.starTarget()
	if p.kind != kComma {
		return first
	}
	mark := len(p.exprs.items)
	p.exprs.push(first)
	for p.accept(kComma) {
		if p.kind != kStar && !startsExpr.has(p.kind) {
			break
		}
		p.exprs.push(p.starTarget())
	}
	n := p.new.tuple.take()
	n.Elts, n.Ctx = p.exprs.pop(mark), Store
	n.Base = p.from(start)
	return n
}

func (p *parser) starTarget() Expr {
	var e Expr
	if p.kind == kStar {
		e = p.starred(precBitOr)
	} else {
		e = p.binary(precBitOr)
	}
	p.target(e, Store)
	return e
}

func (p *parser) del() {
	start := p.start()
	p.next()
	mark := len(p.exprs.items)
	for {
		if p.kind == kStar {
			p.exprs.push(p.starred(precBitOr))
		} else {
			p.exprs.push(p.expression())
		}
		p.target(p.exprs.items[len(p.exprs.items)-1], Del)
		if !p.accept(kComma) || p.kind != kStar && !startsExpr.has(p.kind) {
			break
		}
	}
	n := &Delete{Targets: p.exprs.pop(mark)}
	n.Base = p.from(start)
	p.stmts.push(n)
}

func (p *parser) raise() {
	start := p.start()
	p.next()
	n := p.new.raise.take()
	if startsExpr.has(p.kind) {
		n.Exc = p.expression()
		if p.accept(kFrom) {
			n.Cause = p.expression()
		}
	} else if p.kind == kFrom {
		p.fail(p.here(), "did you forget an expression between 'raise' and 'from'?")
		p.next()
		n.Cause = p.expression()
	}
	n.Base = p.from(start)
	p.stmts.push(n)
}

// nameList is a keyword and names behind it.
func (p *parser) nameList() []string {
	p.next()
	mark := len(p.names.items)
	for {
		if p.kind != kName {
			p.fail(p.here(), "expected a name")
			break
		}
		name, _ := p.takeName("a name")
		p.names.push(name)
		if !p.accept(kComma) {
			break
		}
	}
	return p.names.pop(mark)
}

func (p *parser) importNames() {
	start := p.start()
	p.next()
	mark := len(p.aliases.items)
	for {
		if p.kind != kName {
			p.fail(p.here(), "Expected one or more names after 'import'")
			break
		}
		at := p.start()
		n := p.new.alias.take()
		n.Name = p.moduleName()
		if p.accept(kAs) {
			n.AsName, _ = p.takeName("a name after 'as'")
		}
		n.Base = p.from(at)
		p.aliases.push(n)
		if !p.accept(kComma) {
			break
		}
	}
	n := p.new.importStmt.take()
	n.Names = p.aliases.pop(mark)
	n.Base = p.from(start)
	p.stmts.push(n)
}

// moduleName is a dotted name as one string.
func (p *parser) moduleName() string {
	first := p.toks[p.i]
	name, _ := p.takeName("a module name")
	if p.kind != kDot {
		return name
	}
	// Where the tokens touch and are plain, the name is a piece of the text.
	joined := first.flags == 0
	var parts []byte
	if !joined {
		parts = append(parts, name...)
	}
	last := first
	for p.kind == kDot {
		dot := p.toks[p.i]
		p.next()
		t := p.toks[p.i]
		if joined && (dot.start != last.end || t.start != dot.end || t.flags != 0 || t.kind != kName) {
			joined = false
			parts = append(parts, name...)
		}
		part, _ := p.takeName("a name after '.'")
		if joined {
			name = p.text[first.start:p.prevEnd]
		} else {
			parts = append(append(parts, '.'), part...)
		}
		last = t
	}
	if joined {
		return name
	}
	return string(parts)
}

func (p *parser) importFrom() {
	start := p.start()
	p.next()
	n := p.new.importFrom.take()
	for {
		if p.kind == kDot {
			n.Level++
		} else if p.kind == kEllipsis {
			n.Level += 3
		} else {
			break
		}
		p.next()
	}
	if p.kind == kName || n.Level == 0 {
		n.Module = p.moduleName()
	}
	p.expect(kImport, "expected 'import'")
	mark := len(p.aliases.items)
	switch p.kind {
	case kStar:
		at := p.start()
		p.next()
		a := p.new.alias.take()
		a.Name = "*"
		a.Base = p.from(at)
		p.aliases.push(a)
	case kLPar:
		p.next()
		p.importAliases(kRPar)
		if len(p.aliases.items) == mark {
			p.fail(p.here(), "Expected one or more names after 'import'")
		}
		p.close(kRPar)
	case kName:
		p.importAliases(kNewline)
	default:
		p.fail(p.here(), "Expected one or more names after 'import'")
	}
	n.Names = p.aliases.pop(mark)
	n.Base = p.from(start)
	p.stmts.push(n)
}

func (p *parser) importAliases(closer kind) {
	for p.kind == kName {
		at := p.start()
		a := p.new.alias.take()
		a.Name, _ = p.takeName("a name")
		if p.accept(kAs) {
			a.AsName, _ = p.takeName("a name after 'as'")
		}
		a.Base = p.from(at)
		p.aliases.push(a)
		comma := p.here()
		if !p.accept(kComma) {
			if closer == kRPar && p.kind == kName {
				p.fail(p.here(), "invalid syntax. Perhaps you forgot a comma?")
				continue
			}
			return
		}
		if closer == kNewline && p.kind != kName {
			p.fail(comma, "trailing comma not allowed without surrounding parentheses")
		}
	}
}

func (p *parser) typeAlias() {
	start := p.start()
	p.next()
	n := &TypeAlias{Name: p.nameNode(Store)}
	n.TypeParams = p.typeParams()
	if p.expect(kAssign, "expected '='") {
		n.Value = p.expression()
	} else {
		n.Value = p.missing()
	}
	n.Base = p.from(start)
	p.stmts.push(n)
}

// typeParams is a list of type parameters, if there is one.
func (p *parser) typeParams() []*TypeParam {
	if p.kind != kLSqb {
		return nil
	}
	p.next()
	mark := len(p.types.items)
	if p.kind == kRSqb {
		p.fail(p.here(), "Type parameter list cannot be empty")
	}
	for p.kind != kRSqb && p.kind > kDedent {
		start := p.start()
		n := &TypeParam{}
		switch p.kind {
		case kStar:
			n.Kind = TypeVarTuple
			p.next()
		case kDoubleStar:
			n.Kind = ParamSpec
			p.next()
		}
		if p.kind != kName {
			p.fail(p.here(), "invalid syntax")
			p.junk(kComma, kRSqb)
			if !p.accept(kComma) {
				break
			}
			continue
		}
		n.Name, _ = p.takeName("")
		if p.kind == kColon {
			if n.Kind != TypeVar {
				p.fail(p.here(), "cannot use bound with %s", [...]string{"TypeVar", "ParamSpec", "TypeVarTuple"}[n.Kind])
			}
			p.next()
			n.Bound = p.expression()
		}
		if p.accept(kAssign) {
			if n.Kind == TypeVarTuple {
				n.Default = p.starExpression()
			} else {
				n.Default = p.expression()
			}
		}
		n.Base = p.from(start)
		p.types.push(n)
		if !p.accept(kComma) {
			break
		}
	}
	p.close(kRSqb)
	return p.types.pop(mark)
}

// place gives the zero-length span at the end of what was read.
func (p *parser) place() source.Span { return source.Span{Start: p.prevEnd, End: p.prevEnd} }
