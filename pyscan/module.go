// Package pyscan says what one Python file says: its scopes, what each name in them is bound to at each use, its imports,
// functions and classes. It never asks about another file; package workspace links what it finds here.
package pyscan

import (
	"bytes"
	"strings"
	"sync"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// Module is one Python file with its names resolved as far as the file alone allows. Scopes are bound on first use; a
// Module may be used by several goroutines.
type Module struct {
	File *source.File
	Tree *syntax.File
	*Summary
	Root    *Scope // the module's own scope
	Calls   []Call // every call, in the order of the text
	byName  func() callIndex
	scopes  map[syntax.Node]*Scope
	imports map[*syntax.Alias]*Import
	bodies  bodies
	binding sync.Mutex // of the binder
	binder  binder
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
	Node   syntax.Node
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
	Name       string
	Kind       ParamKind
	Annotation syntax.Expr
	Default    syntax.Expr // evaluated in the scope around the function
	Node       *syntax.Arg
}

// Scope is a module, function, lambda or class body.
type Scope struct {
	Kind     ScopeKind
	Name     string
	Module   *Module
	Parent   *Scope
	Node     syntax.Node // *syntax.FunctionDef, *syntax.Lambda, *syntax.ClassDef; nil for the module
	Params   []Param
	Children []*Scope       // functions and classes defined directly in it, in order
	Calls    []*syntax.Call // those that run when its body does, in the order of the text

	calls    int      // as many as Calls will be
	outer    []string // declared global or nonlocal
	paths    bool     // it assigns to dotted paths
	names    uint64   // traits of all names that it defines: most questions about a name need no binding to be answered
	attrs    uint64   // traits of the last names of all dotted paths that it defines
	bindOnce sync.Once
	bound    *bound
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
func (m *Module) ScopeOf(node syntax.Node) *Scope { return m.scopes[node] }

// importOf is what an alias of an import statement binds, or nil.
func (m *Module) importOf(alias *syntax.Alias) *Import { return m.imports[alias] }

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
	m := &Module{File: tree.Source, Tree: tree, Summary: &Summary{Globals: map[string][]*Scope{}}, scopes: map[syntax.Node]*Scope{}, imports: map[*syntax.Alias]*Import{}}
	m.Root = &Scope{Kind: ModuleScope, Name: "<module>", Module: m}
	m.Calls = make([]Call, 0, bytes.Count(m.File.Text, []byte("("))) // room for all of them
	collect := collector{module: m, in: m.Root}
	collect.each = collect.visit
	collect.stmts(tree.Body)
	collect.hand()
	m.byName = sync.OnceValue(m.callsByName)
	return m
}

// callIndex holds calls by the last names of their callees; all lie in one list.
type callIndex struct {
	number map[string]int
	lists  [][]Call
}

func (m *Module) callsByName() callIndex {
	index, of, counts := callIndex{number: map[string]int{}}, make([]int, len(m.Calls)), []int{}
	for i, call := range m.Calls {
		name := LastName(call.Func)
		number, known := index.number[name]
		if !known {
			number = len(counts)
			index.number[name], counts = number, append(counts, 0)
		}
		of[i] = number
		counts[number]++
	}
	room := make([]Call, len(m.Calls))
	index.lists = make([][]Call, len(counts))
	for number, n := range counts {
		index.lists[number], room = room[:0:n], room[n:]
	}
	for i, call := range m.Calls {
		index.lists[of[i]] = append(index.lists[of[i]], call)
	}
	return index
}

// CallsOf are the calls whose callee ends in a name, in the order of the text.
func (m *Module) CallsOf(name string) []Call {
	index := m.byName()
	if number, known := index.number[name]; known && name != "" {
		return index.lists[number]
	}
	return nil
}

// collector makes the scopes of a file.
type collector struct {
	module *Module
	in     *Scope            // whose nodes are visited
	each   func(syntax.Node) // visit, as a value
	free   []Scope           // for the next scopes
}

func (c *collector) stmts(body []syntax.Stmt) {
	for _, stmt := range body {
		c.visit(stmt)
	}
}

func (c *collector) exprs(list []syntax.Expr) {
	for _, e := range list {
		if e != nil {
			c.visit(e)
		}
	}
}

func (c *collector) defaults(args *syntax.Arguments) {
	if args != nil {
		c.exprs(args.Defaults)
		c.exprs(args.KwDefaults)
	}
}

// chunk is how many scopes are made at a time.
const chunk = 8

func (c *collector) open(kind ScopeKind, name string, node syntax.Node, params []Param) *Scope {
	if len(c.free) == 0 {
		c.free = make([]Scope, chunk)
	}
	scope := &c.free[0]
	c.free = c.free[1:]
	scope.Kind, scope.Name, scope.Module, scope.Parent, scope.Node, scope.Params = kind, name, c.module, c.in, node, params
	for i := range params {
		scope.names |= trait(params[i].Name)
	}
	c.in.Children = append(c.in.Children, scope)
	c.module.scopes[node] = scope
	return scope
}

// visit takes in a node of the scope, and all below it.
func (c *collector) visit(n syntax.Node) {
	in := c.in
	switch n := n.(type) {
	case *syntax.Constant:
		return
	case *syntax.Name:
		if n.Ctx != syntax.Load {
			in.names |= trait(n.ID)
		}
		return
	case *syntax.FunctionDef:
		in.names |= trait(n.Name)
		c.exprs(n.Decorators)
		c.defaults(n.Args)
		c.in = c.open(FuncScope, n.Name, n, Parameters(n.Args))
		c.stmts(n.Body)
		c.in = in
		return
	case *syntax.ClassDef:
		in.names |= trait(n.Name)
		c.exprs(n.Decorators)
		c.exprs(n.Bases)
		for _, k := range n.Keywords {
			c.visit(k.Value)
		}
		c.in = c.open(ClassScope, n.Name, n, nil)
		c.stmts(n.Body)
		c.in = in
		return
	case *syntax.Lambda:
		c.defaults(n.Args)
		c.in = c.open(LambdaScope, "<lambda>", n, Parameters(n.Args))
		c.visit(n.Body)
		c.in = in
		return
	case *syntax.Call:
		c.module.Calls = append(c.module.Calls, Call{n, in})
		in.calls++
	case *syntax.Attribute:
		if n.Ctx != syntax.Load {
			in.paths = in.paths || n.Ctx == syntax.Store
			in.attrs |= trait(n.Attr)
		}
		c.visit(n.Value)
		return
	case *syntax.ExceptHandler:
		in.names |= trait(n.Name)
	case *syntax.MatchAs:
		in.names |= trait(n.Name)
	case *syntax.MatchStar:
		in.names |= trait(n.Name)
	case *syntax.MatchMapping:
		in.names |= trait(n.Rest)
	case *syntax.Global:
		in.outer = append(in.outer, n.Names...)
		for _, name := range n.Names {
			c.module.Globals[name] = append(c.module.Globals[name], in)
		}
	case *syntax.Nonlocal:
		in.outer = append(in.outer, n.Names...)
	case *syntax.Import:
		for _, alias := range n.Names {
			name, _, dotted := strings.Cut(alias.Name, ".")
			if alias.AsName != "" {
				name = alias.AsName
			}
			c.add(&Import{Name: name, Module: alias.Name, Whole: alias.AsName == "" && dotted, Node: alias})
		}
	case *syntax.ImportFrom:
		for _, alias := range n.Names {
			name := alias.Name
			if alias.AsName != "" {
				name = alias.AsName
			}
			c.add(&Import{Name: name, Module: n.Module, Level: n.Level, Member: alias.Name, Node: alias})
		}
	}
	syntax.Children(n, c.each)
}

// hand gives each scope its calls; all lie in one list.
func (c *collector) hand() {
	room := make([]*syntax.Call, len(c.module.Calls))
	c.module.Scopes(func(s *Scope) { s.Calls, room = room[:0:s.calls], room[s.calls:] })
	for _, call := range c.module.Calls {
		call.Scope.Calls = append(call.Scope.Calls, call.Call)
	}
}

func (c *collector) add(i *Import) {
	in := c.in
	i.Scope = in
	in.names |= trait(i.Name)
	c.module.Imports = append(c.module.Imports, i)
	c.module.imports[i.Node.(*syntax.Alias)] = i
	if i.Member == "*" {
		c.module.Stars = append(c.module.Stars, i)
	}
}

// Parameters flattens the parameters of a function in order.
func Parameters(args *syntax.Arguments) []Param {
	if args == nil {
		return nil
	}
	params := make([]Param, 0, len(args.PosOnly)+len(args.Args)+len(args.KwOnly)+2)
	add := func(arg *syntax.Arg, kind ParamKind, value syntax.Expr) {
		params = append(params, Param{Name: arg.Name, Kind: kind, Annotation: arg.Annotation, Default: value, Node: arg})
	}
	plain := len(args.PosOnly) + len(args.Args)
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
