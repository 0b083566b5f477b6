// Package pyscan says what one Python file says: its scopes, what each name in them is bound to at each use, its imports,
// functions and classes. It never asks about another file; package workspace links what it finds here.
package pyscan

import (
	"bytes"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// Module is one Python file with its names resolved as far as the file alone allows. Scopes are bound on first use; a
// Module may be used by several goroutines.
type Module struct {
	File *source.File
	Tree *syntax.File
	*Summary
	Root    *Scope              // the module's own scope
	Calls   []Call              // every call, in the order of the text
	scopes  []*Scope            // but the module's own, by number - 1
	outer   map[*Scope][]string // what scopes declare global or nonlocal
	calls   callIndex
	bodies  bodies
	binding sync.Mutex // of the binder
	binder  *binder

	codeOnce sync.Once
	codeText string // what Code takes its answers from
}

// Call is a call, with the scope that it stands in.
type Call struct {
	*syntax.Call
	Scope *Scope
}

// Summary is the small part of a Module that is worth keeping when its tree is dropped.
type Summary struct {
	Imports []*Import           // every import statement's names, nested ones included, in order
	Stars   []*Import           // `from x import *` at module level
	Globals map[string][]*Scope // functions that declare `global name`
}

// Import is one name that an import statement binds.
type Import struct {
	Name   string // the name bound; "*" for a star import
	Module string // the dotted module as written, without leading dots
	Level  int    // leading dots of a relative import
	Member string // `from Module import Member`; "" for `import Module`
	Whole  bool   // `import a.b` without `as`: binds a, and makes a.b reachable
	Node   *syntax.Alias
	Scope  *Scope
}

// Dotted is the absolute dotted name that an absolute import refers to.
func (i *Import) Dotted() string {
	switch {
	case i.Member == "":
		if i.Whole {
			root, _, _ := strings.Cut(i.Module, ".")
			return root
		}
		return i.Module
	case i.Module == "":
		return i.Member
	}
	return i.Module + "." + i.Member
}

// ScopeKind tells scopes apart.
type ScopeKind uint8

// The kinds of scopes. Comprehensions are not scopes here: their variables are definitions of the scope around them.
const (
	ModuleScope ScopeKind = iota
	FuncScope
	LambdaScope
	ClassScope
)

// ParamKind tells how a parameter takes its argument.
type ParamKind uint8

// The kinds of parameters.
const (
	PositionalOnly ParamKind = iota
	Positional               // or by keyword
	VarArgs                  // *args
	KeywordOnly
	VarKeywords // **kwargs
)

// Param is a parameter of a function or lambda.
type Param struct {
	*syntax.Arg
	Kind    ParamKind
	Default syntax.Expr // evaluated in the scope around the function
}

// Scope is a module, function, lambda or class body.
type Scope struct {
	Kind     ScopeKind
	paths    bool  // it assigns to dotted paths
	yields   bool  // its function is a generator
	odd      bool  // it defines a dotted path otherwise than as the target of a plain statement
	calls    int32 // as many as Calls will be
	Name     string
	Module   *Module
	Parent   *Scope
	Node     syntax.Node // *syntax.FunctionDef, *syntax.Lambda, *syntax.ClassDef; nil for the module
	Params   []Param
	Children []*Scope       // functions and classes defined directly in it, in order
	Calls    []*syntax.Call // those that run when its body does, in the order of the text

	names  uint64                // traits of all names that it defines: most questions about a name need no binding to be answered
	stores uint64                // of those that are not only parameters
	vague  uint64                // of those that are defined otherwise than by plain statements, see plain.go
	attrs  uint64                // traits of the last names of all dotted paths that it defines
	given  atomic.Pointer[[]Def] // the definitions of the parameters
	bound  atomic.Pointer[bound]
}

// Qualified is the dotted name inside the module, as in __qualname__ without `<locals>`.
func (s *Scope) Qualified() string {
	if s.Parent == nil || s.Parent.Kind == ModuleScope {
		return s.Name
	}
	return s.Parent.Qualified() + "." + s.Name
}

// Function is the def of a function scope, or nil.
func (s *Scope) Function() *syntax.FunctionDef {
	def, _ := s.Node.(*syntax.FunctionDef)
	return def
}

// Class is the class of a class scope, or nil.
func (s *Scope) Class() *syntax.ClassDef {
	def, _ := s.Node.(*syntax.ClassDef)
	return def
}

// EnclosingClass is the class whose method this function is, or nil. A function nested in a method has none.
func (s *Scope) EnclosingClass() *Scope {
	if s.Kind == FuncScope && s.Parent != nil && s.Parent.Kind == ClassScope {
		return s.Parent
	}
	return nil
}

// EnclosingFunction is the innermost function or lambda around (or at) the scope, or the module.
func (s *Scope) EnclosingFunction() *Scope {
	for s.Kind == ClassScope {
		s = s.Parent
	}
	return s
}

// Body is the statements of the scope; a lambda has none.
func (s *Scope) Body() []syntax.Stmt {
	switch node := s.Node.(type) {
	case nil:
		return s.Module.Tree.Body
	case *syntax.FunctionDef:
		return node.Body
	case *syntax.ClassDef:
		return node.Body
	}
	return nil
}

// Child is the last function or class of that name defined directly in the scope, or nil.
func (s *Scope) Child(name string) *Scope {
	for i := len(s.Children) - 1; i >= 0; i-- {
		if s.Children[i].Name == name {
			return s.Children[i]
		}
	}
	return nil
}

// ScopeOf is the scope that a def, class or lambda node opens, or nil.
func (m *Module) ScopeOf(node syntax.Node) *Scope {
	number := int32(0)
	switch n := node.(type) {
	case *syntax.FunctionDef:
		number = n.Scope
	case *syntax.ClassDef:
		number = n.Scope
	case *syntax.Lambda:
		number = n.Scope
	}
	if number == 0 || int(number) > len(m.scopes) || m.scopes[number-1].Node != node { // a node of another file, or of a part of the tree that is none of the module
		return nil
	}
	return m.scopes[number-1]
}

// importOf is what an alias of an import statement binds, or nil.
func (m *Module) importOf(alias *syntax.Alias) *Import {
	if n := int(alias.Number); n > 0 && n <= len(m.Imports) && m.Imports[n-1].Node == alias {
		return m.Imports[n-1]
	}
	return nil
}

// Scopes calls yield for every function, lambda and class of the module in order of their start, the module first.
func (m *Module) Scopes(yield func(*Scope)) {
	var visit func(*Scope)
	visit = func(s *Scope) {
		yield(s)
		for _, child := range s.Children {
			visit(child)
		}
	}
	visit(m.Root)
}

// New resolves the scopes and imports of a parsed file.
func New(tree *syntax.File) *Module {
	m := &Module{File: tree.Source, Tree: tree, Summary: &Summary{}}
	m.Calls = make([]Call, 0, bytes.Count(m.File.Text, []byte("("))) // room for all of them
	collect := collector{module: m}
	m.Root = collect.scopes.take()
	m.Root.Kind, m.Root.Name, m.Root.Module = ModuleScope, "<module>", m
	collect.in = m.Root
	collect.each = collect.visit
	collect.stmts(tree.Body)
	collect.hand()
	return m
}

// callIndex leads from the last name of a callee to the calls: by a hash to the first, by number, and from each to the next.
type callIndex struct {
	once  sync.Once
	first []int32 // plus 1; as many as a power of two
	next  []int32 // plus 1
}

func (index *callIndex) make(calls []Call) {
	room := make([]int32, 1<<bits.Len(uint(len(calls)))+len(calls))
	index.next, index.first = room[:len(calls)], room[len(calls):]
	for i := len(calls) - 1; i >= 0; i-- {
		at := index.at(LastName(calls[i].Func))
		*at, index.next[i] = int32(i+1), *at
	}
}

func (index *callIndex) at(name string) *int32 {
	return &index.first[hash(name)&uint32(len(index.first)-1)]
}

// CallsOf are the calls whose callee ends in a name, in the order of the text.
func (m *Module) CallsOf(name string) []Call {
	if name == "" {
		return nil
	}
	index := &m.calls
	index.once.Do(func() { index.make(m.Calls) })
	first := *index.at(name)
	n := 0
	for i := first; i > 0; i = index.next[i-1] {
		if LastName(m.Calls[i-1].Func) == name {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	list := make([]Call, 0, n)
	for i := first; i > 0; i = index.next[i-1] {
		if LastName(m.Calls[i-1].Func) == name {
			list = append(list, m.Calls[i-1])
		}
	}
	return list
}

// collector makes the scopes of a file.
type collector struct {
	module  *Module
	in      *Scope            // whose nodes are visited
	each    func(syntax.Node) // visit, as a value
	scopes  slab[Scope]
	params  slab[Param]
	imports slab[Import]
}

func (c *collector) stmts(body []syntax.Stmt) {
	for _, stmt := range body {
		c.visit(stmt)
	}
}

func (c *collector) exprs(list []syntax.Expr) {
	for _, e := range list {
		c.expr(e)
	}
}

func (c *collector) expr(e syntax.Expr) {
	if e != nil {
		c.visit(e)
	}
}

func (c *collector) defaults(args *syntax.Arguments) {
	if args != nil {
		c.exprs(args.Defaults)
		c.exprs(args.KwDefaults)
	}
}

// open makes a scope inside of the one that is visited, and gives its number.
func (c *collector) open(kind ScopeKind, name string, node syntax.Node, args *syntax.Arguments) (number int32) {
	scope := c.scopes.take()
	scope.Kind, scope.Name, scope.Module, scope.Parent, scope.Node, scope.Params = kind, name, c.module, c.in, node, c.parameters(args)
	for i := range scope.Params {
		scope.names |= trait(scope.Params[i].Name)
	}
	c.in.Children = append(c.in.Children, scope)
	c.module.scopes = append(c.module.scopes, scope)
	c.in = scope
	return int32(len(c.module.scopes))
}

// name notes that the scope defines a name, other than by a parameter.
func (c *collector) name(name string) {
	c.stored(name)
	c.in.vague |= trait(name)
}

// stored is name for the target of a plain statement.
func (c *collector) stored(name string) {
	c.in.names |= trait(name)
	c.in.stores |= trait(name)
}

// visit takes in a node of the scope, and all below it.
func (c *collector) visit(n syntax.Node) {
	in := c.in
	switch n := n.(type) {
	case *syntax.Constant:
		return
	case *syntax.Name:
		if n.Ctx != syntax.Load {
			c.name(n.ID)
		}
		return
	case *syntax.FunctionDef:
		c.name(n.Name)
		c.exprs(n.Decorators)
		c.defaults(n.Args)
		n.Scope = c.open(FuncScope, n.Name, n, n.Args)
		c.stmts(n.Body)
		c.in = in
		return
	case *syntax.ClassDef:
		c.name(n.Name)
		c.exprs(n.Decorators)
		c.exprs(n.Bases)
		for _, k := range n.Keywords {
			c.visit(k.Value)
		}
		n.Scope = c.open(ClassScope, n.Name, n, nil)
		c.stmts(n.Body)
		c.in = in
		return
	case *syntax.Lambda:
		c.defaults(n.Args)
		n.Scope = c.open(LambdaScope, "<lambda>", n, n.Args)
		c.visit(n.Body)
		c.in = in
		return
	case *syntax.Assign:
		for _, target := range n.Targets {
			c.target(target, mayName(n.Value))
		}
		c.expr(n.Value)
		return
	case *syntax.AugAssign:
		c.target(n.Target, false)
		c.expr(n.Value)
		return
	case *syntax.AnnAssign:
		c.target(n.Target, mayName(n.Value))
		c.expr(n.Annotation)
		c.expr(n.Value)
		return
	case *syntax.For:
		c.target(n.Target, false)
		c.expr(n.Iter)
		c.stmts(n.Body)
		c.stmts(n.OrElse)
		return
	case *syntax.WithItem:
		c.expr(n.Context)
		c.target(n.Vars, false)
		return
	case *syntax.Call:
		c.module.Calls = append(c.module.Calls, Call{n, in})
		in.calls++
	case *syntax.Attribute:
		if n.Ctx != syntax.Load {
			in.paths = in.paths || n.Ctx == syntax.Store
			in.attrs |= trait(n.Attr)
			in.odd = true
		}
		c.visit(n.Value)
		return
	case *syntax.ExceptHandler:
		c.name(n.Name)
	case *syntax.MatchAs:
		c.name(n.Name)
	case *syntax.MatchStar:
		c.name(n.Name)
	case *syntax.MatchMapping:
		c.name(n.Rest)
	case *syntax.Yield, *syntax.YieldFrom:
		in.yields = true
	case *syntax.Global:
		c.outer(n.Names)
		for _, name := range n.Names {
			if c.module.Globals == nil {
				c.module.Globals = map[string][]*Scope{}
			}
			c.module.Globals[name] = append(c.module.Globals[name], in)
		}
	case *syntax.Nonlocal:
		c.outer(n.Names)
	case *syntax.Import:
		for _, alias := range n.Names {
			i := c.imports.take()
			i.Module, i.Name, i.Node = alias.Name, alias.AsName, alias
			if i.Name == "" {
				i.Name, _, i.Whole = strings.Cut(alias.Name, ".")
			}
			c.add(i)
		}
	case *syntax.ImportFrom:
		for _, alias := range n.Names {
			i := c.imports.take()
			i.Module, i.Level, i.Member, i.Name, i.Node = n.Module, n.Level, alias.Name, alias.AsName, alias
			if i.Name == "" {
				i.Name = alias.Name
			}
			c.add(i)
		}
	}
	syntax.Children(n, c.each)
}

// outer notes what the scope declares global or nonlocal.
func (c *collector) outer(names []string) {
	if c.module.outer == nil {
		c.module.outer = map[*Scope][]string{}
	}
	c.module.outer[c.in] = append(c.module.outer[c.in], names...)
	for _, name := range names {
		c.in.vague |= trait(name)
	}
}

// hand gives each scope its calls; all lie in one list.
func (c *collector) hand() {
	room := make([]*syntax.Call, len(c.module.Calls))
	for _, s := range c.module.scopes {
		s.Calls, room = room[:0:s.calls], room[s.calls:]
	}
	c.module.Root.Calls = room[:0]
	for _, call := range c.module.Calls {
		call.Scope.Calls = append(call.Scope.Calls, call.Call)
	}
}

func (c *collector) add(i *Import) {
	c.name(i.Name)
	i.Scope = c.in
	c.module.Imports = append(c.module.Imports, i)
	i.Node.Number = int32(len(c.module.Imports))
	if i.Member == "*" {
		c.module.Stars = append(c.module.Stars, i)
	}
}

// parameters flattens the parameters of a function in order.
func (c *collector) parameters(args *syntax.Arguments) []Param {
	if args == nil {
		return nil
	}
	plain := len(args.PosOnly) + len(args.Args)
	count := plain + len(args.KwOnly)
	if args.VarArg != nil {
		count++
	}
	if args.KwArg != nil {
		count++
	}
	params := c.params.list(count)[:0]
	add := func(arg *syntax.Arg, kind ParamKind, value syntax.Expr) {
		params = append(params, Param{arg, kind, value})
	}
	fallback := func(i int) syntax.Expr {
		if i -= plain - len(args.Defaults); i >= 0 && i < len(args.Defaults) {
			return args.Defaults[i]
		}
		return nil
	}
	for i, arg := range args.PosOnly {
		add(arg, PositionalOnly, fallback(i))
	}
	for i, arg := range args.Args {
		add(arg, Positional, fallback(len(args.PosOnly)+i))
	}
	if args.VarArg != nil {
		add(args.VarArg, VarArgs, nil)
	}
	for i, arg := range args.KwOnly {
		var value syntax.Expr
		if i < len(args.KwDefaults) {
			value = args.KwDefaults[i]
		}
		add(arg, KeywordOnly, value)
	}
	if args.KwArg != nil {
		add(args.KwArg, VarKeywords, nil)
	}
	return params
}
