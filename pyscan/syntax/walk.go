package syntax

import "iter"

// Inspect calls visit for a node and, where visit returns true, for its children, in the order of the text. It skips nothing: the
// parts of an Error are visited too.
func Inspect(n Node, visit func(Node) bool) {
	var walk func(Node) // one closure for the whole walk
	walk = func(n Node) {
		if visit(n) {
			Children(n, walk)
		}
	}
	walk(n)
}

// Preorder gives a node and everything below it, parents before children, in the order of the text.
func Preorder(n Node) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		more := true
		Inspect(n, func(n Node) bool {
			more = more && yield(n)
			return more
		})
	}
}

// All gives all nodes of a file in the order of Preorder.
func (f *File) All() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for _, s := range f.Body {
			for n := range Preorder(s) {
				if !yield(n) {
					return
				}
			}
		}
	}
}

// visitor calls a function for the children that are there.
type visitor func(Node)

// expr visits an expression. To make a Node of it the runtime looks for its methods, as for any two interfaces: not where its type is told,
// which is done for those that most expressions are of.
func (v visitor) expr(e Expr) {
	switch e := e.(type) {
	case nil:
	case *Name:
		v(e)
	case *Attribute:
		v(e)
	case *Constant:
		v(e)
	case *Call:
		v(e)
	default:
		v(e)
	}
}

func (v visitor) exprs(list []Expr) {
	for _, e := range list {
		v.expr(e)
	}
}

// stmts visits statements, as expr does.
func (v visitor) stmts(list []Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *Assign:
			v(s)
		case *ExprStmt:
			v(s)
		case *If:
			v(s)
		default:
			v(s)
		}
	}
}

func visitAll[T Node](v visitor, list []T) {
	for _, n := range list {
		v(n)
	}
}

// Children calls visit for each child of a node, in the order of the text.
func Children(n Node, visit func(Node)) {
	v := visitor(visit)
	switch n := n.(type) { // of types alone: among them is found by halves
	case *Name, *Constant:
	case *FunctionDef:
		v.exprs(n.Decorators)
		visitAll(v, n.TypeParams)
		if n.Args != nil {
			v(n.Args)
		}
		v.expr(n.Returns)
		v.stmts(n.Body)
	case *ClassDef:
		v.exprs(n.Decorators)
		visitAll(v, n.TypeParams)
		v.call(n.Bases, n.Keywords)
		v.stmts(n.Body)
	case *Return:
		v.expr(n.Value)
	case *Delete:
		v.exprs(n.Targets)
	case *Assign:
		v.exprs(n.Targets)
		v.expr(n.Value)
	case *TypeAlias:
		v(n.Name)
		visitAll(v, n.TypeParams)
		v.expr(n.Value)
	case *AugAssign:
		v.expr(n.Target)
		v.expr(n.Value)
	case *AnnAssign:
		v.expr(n.Target)
		v.expr(n.Annotation)
		v.expr(n.Value)
	case *For:
		v.expr(n.Target)
		v.expr(n.Iter)
		v.stmts(n.Body)
		v.stmts(n.OrElse)
	case *While:
		v.expr(n.Test)
		v.stmts(n.Body)
		v.stmts(n.OrElse)
	case *If:
		v.expr(n.Test)
		v.stmts(n.Body)
		v.stmts(n.OrElse)
	case *With:
		visitAll(v, n.Items)
		v.stmts(n.Body)
	case *WithItem:
		v.expr(n.Context)
		v.expr(n.Vars)
	case *Match:
		v.expr(n.Subject)
		visitAll(v, n.Cases)
	case *MatchCase:
		if n.Pattern != nil {
			v(n.Pattern)
		}
		v.expr(n.Guard)
		v.stmts(n.Body)
	case *Raise:
		v.expr(n.Exc)
		v.expr(n.Cause)
	case *Try:
		v.stmts(n.Body)
		visitAll(v, n.Handlers)
		v.stmts(n.OrElse)
		v.stmts(n.Final)
	case *ExceptHandler:
		v.expr(n.Type)
		v.stmts(n.Body)
	case *Assert:
		v.expr(n.Test)
		v.expr(n.Msg)
	case *Import:
		visitAll(v, n.Names)
	case *ImportFrom:
		visitAll(v, n.Names)
	case *ExprStmt:
		v.expr(n.Value)
	case *Error:
		visitAll(v, n.Parts)
	case *TypeParam:
		v.expr(n.Bound)
		v.expr(n.Default)
	case *Arguments:
		v.arguments(n)
	case *Arg:
		v.expr(n.Annotation)
	case *Keyword:
		v.expr(n.Value)
	case *Comprehension:
		v.expr(n.Target)
		v.expr(n.Iter)
		v.exprs(n.Ifs)
	case *BoolOp:
		v.exprs(n.Values)
	case *NamedExpr:
		v(n.Target)
		v.expr(n.Value)
	case *BinOp:
		v.expr(n.Left)
		v.expr(n.Right)
	case *UnaryOp:
		v.expr(n.Operand)
	case *Lambda:
		if n.Args != nil {
			v(n.Args)
		}
		v.expr(n.Body)
	case *IfExp:
		v.expr(n.Body)
		v.expr(n.Test)
		v.expr(n.OrElse)
	case *Dict:
		for i, value := range n.Values {
			v.expr(n.Keys[i])
			v.expr(value)
		}
	case *Set:
		v.exprs(n.Elts)
	case *Comp:
		v.expr(n.Elt)
		v.expr(n.Value)
		visitAll(v, n.Generators)
	case *Await:
		v.expr(n.Value)
	case *Yield:
		v.expr(n.Value)
	case *YieldFrom:
		v.expr(n.Value)
	case *Compare:
		v.expr(n.Left)
		v.exprs(n.Comparators)
	case *Call:
		v.expr(n.Func)
		v.call(n.Args, n.Keywords)
	case *FormattedValue:
		v.expr(n.Value)
		if n.FormatSpec != nil {
			v(n.FormatSpec)
		}
	case *JoinedStr:
		v.exprs(n.Values)
	case *Interpolation:
		v.expr(n.Value)
		if n.FormatSpec != nil {
			v(n.FormatSpec)
		}
	case *TemplateStr:
		v.exprs(n.Values)
	case *Attribute:
		v.expr(n.Value)
	case *Subscript:
		v.expr(n.Value)
		v.expr(n.Slice)
	case *Starred:
		v.expr(n.Value)
	case *List:
		v.exprs(n.Elts)
	case *Tuple:
		v.exprs(n.Elts)
	case *Slice:
		v.expr(n.Lower)
		v.expr(n.Upper)
		v.expr(n.Step)
	default:
		v.pattern(n)
	}
}

// call visits arguments and keywords, which may stand in any order (`f(a=1, *b)`).
func (v visitor) call(args []Expr, keywords []*Keyword) {
	for len(args) > 0 && len(keywords) > 0 {
		if args[0].Span().Start < keywords[0].At.Start {
			v.expr(args[0])
			args = args[1:]
		} else {
			v(keywords[0])
			keywords = keywords[1:]
		}
	}
	v.exprs(args)
	visitAll(v, keywords)
}

// arguments visits each parameter with its default behind it.
func (v visitor) arguments(n *Arguments) {
	required := len(n.PosOnly) + len(n.Args) - len(n.Defaults)
	param := func(i int, a *Arg) {
		v(a)
		if i >= required && i-required < len(n.Defaults) {
			v.expr(n.Defaults[i-required])
		}
	}
	for i, a := range n.PosOnly {
		param(i, a)
	}
	for i, a := range n.Args {
		param(len(n.PosOnly)+i, a)
	}
	if n.VarArg != nil {
		v(n.VarArg)
	}
	for i, a := range n.KwOnly {
		v(a)
		if i < len(n.KwDefaults) {
			v.expr(n.KwDefaults[i])
		}
	}
	if n.KwArg != nil {
		v(n.KwArg)
	}
}

func (v visitor) pattern(n Node) {
	switch n := n.(type) {
	case *MatchValue:
		v.expr(n.Value)
	case *MatchSequence:
		visitAll(v, n.Patterns)
	case *MatchMapping:
		for i, pattern := range n.Patterns {
			if i < len(n.Keys) {
				v.expr(n.Keys[i])
			}
			v(pattern)
		}
	case *MatchClass:
		v.expr(n.Cls)
		visitAll(v, n.Patterns)
		visitAll(v, n.KwdPatterns)
	case *MatchAs:
		if n.Pattern != nil {
			v(n.Pattern)
		}
	case *MatchOr:
		visitAll(v, n.Patterns)
	}
}
