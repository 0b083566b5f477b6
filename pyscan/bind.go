package pyscan

import (
	"slices"

	"github.com/trainvet/trainvet/pyscan/syntax"
)

// DefKind says how a name got its value.
type DefKind uint8

// The kinds of definitions.
const (
	ParamDef  DefKind = iota
	AssignDef         // name = Value, also name := Value and annotated assignment
	AugDef            // name op= Value, on top of Prev
	UnpackDef         // an element of Value, at Path
	IterDef           // for name in Value (or its element at Path)
	WithDef           // with Value as name
	ExceptDef         // except Value as name
	ImportDef         //
	ScopeDef          // def or class
	MatchDef          // captured by a pattern from Value
	AnnDef            // name: Annotation, without a value
	DelDef            // del name
	PhiDef            // one of Alternatives, by the path taken
)

// Def is one definition of a name, or of a dotted path such as "self.model", in a scope.
type Def struct {
	Kind         DefKind
	Name         string
	Node         syntax.Node // the target, parameter, alias or statement; nil for a Phi
	Stmt         syntax.Stmt // the statement, or nil
	Value        syntax.Expr
	Annotation   syntax.Expr
	Path         []int // UnpackDef, IterDef: indices from the outside in; -1 for a starred target
	Param        int
	Op           syntax.Operator
	Prev         *Def // AugDef
	Import       *Import
	Opens        *Scope // ScopeDef
	Alternatives []*Def // PhiDef
	InLoop       bool   // PhiDef at the head of a loop: an alternative comes from an earlier iteration

	slot int32
}

// bound is what binding a scope finds.
type bound struct {
	defs    []*Def // by slot - 1
	exit    map[string]*Def
	all     map[string][]*Def // every definition but phis, by name
	returns []*syntax.Return
	yields  []syntax.Expr
	outer   map[string]bool // declared global or nonlocal
}

// Def is the definition that a name in this scope reads or writes at that place; nil when it comes from outside.
func (s *Scope) Def(name *syntax.Name) *Def {
	b := s.bind() // sets the slots
	return b.at(name.Slot)
}

// AttrDef is the definition of a dotted path in this function that reaches the attribute, or nil.
func (s *Scope) AttrDef(attr *syntax.Attribute) *Def {
	b := s.bind()
	return b.at(attr.Slot)
}

func (b *bound) at(slot int32) *Def {
	if slot > 0 && int(slot) <= len(b.defs) {
		return b.defs[slot-1]
	}
	return nil
}

// Exit is the definition of a name when the scope ends: what a module or class offers to others. Nil when it has none.
func (s *Scope) Exit(name string) *Def { return s.bind().exit[name] }

// Defs are all definitions of a name or dotted path in the scope, phis left out, in order.
func (s *Scope) Defs(name string) []*Def { return s.bind().all[name] }

// Defined calls yield for each name and dotted path that the scope defines, in no order.
func (s *Scope) Defined(yield func(name string, defs []*Def)) {
	for name, defs := range s.bind().all {
		yield(name, defs)
	}
}

// Returns are the return statements of a function, in order.
func (s *Scope) Returns() []*syntax.Return { return s.bind().returns }

// Yields are the values that a generator yields (nil for a bare yield).
func (s *Scope) Yields() []syntax.Expr { return s.bind().yields }

// Outer reports whether the name is declared global or nonlocal in the scope.
func (s *Scope) Outer(name string) bool { return s.bind().outer[name] }

func (s *Scope) bind() *bound {
	s.bindOnce.Do(func() {
		b := &binder{scope: s, vars: map[string]int{}, below: map[string][]int{}, assigned: map[syntax.Node][]string{}}
		b.out.exit, b.out.all, b.out.outer = map[string]*Def{}, map[string][]*Def{}, map[string]bool{}
		b.run()
		s.bound = &b.out
	})
	return s.bound
}

// binder walks a scope in the order of execution and gives each use the definitions that reach it: static single
// assignment on the tree. The state is one current definition a name; branches are undone by a log and joined by phis, so
// that the work grows with the changes made, not with the number of names.
type binder struct {
	scope    *Scope
	out      bound
	vars     map[string]int
	names    []string
	current  []*Def
	log      []change
	dead     bool
	loops    []*loopState
	assigned map[syntax.Node][]string // what a loop assigns, by loop
	paths    bool                     // the scope assigns to dotted paths
	below    map[string][]int         // the dotted paths that begin with a name
}

type change struct {
	name int
	old  *Def
}

// branch is the state at the end of one way through: what it changed.
type branch struct {
	changes map[int]*Def
	dead    bool
}

type loopState struct {
	mark      int
	continues []branch
	breaks    []branch
}

func (b *binder) run() {
	s := b.scope
	switch node := s.Node.(type) {
	case *syntax.Lambda:
		b.params()
		b.expr(node.Body)
	default:
		b.declare(s.Body())
		b.params()
		b.block(s.Body())
	}
	for name, index := range b.vars {
		if def := b.current[index]; def != nil {
			b.out.exit[name] = def
		}
	}
}

// declare finds global and nonlocal statements, which hold for the whole scope, and whether dotted paths are assigned.
func (b *binder) declare(body []syntax.Stmt) {
	for _, stmt := range body {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.FunctionDef, *syntax.ClassDef, *syntax.Lambda:
				return false
			case *syntax.Global:
				for _, name := range n.Names {
					b.out.outer[name] = true
				}
			case *syntax.Nonlocal:
				for _, name := range n.Names {
					b.out.outer[name] = true
				}
			case *syntax.Attribute:
				b.paths = b.paths || n.Ctx == syntax.Store
			}
			return true
		})
	}
}

func (b *binder) params() {
	for i, p := range b.scope.Params {
		b.set(p.Name, &Def{Kind: ParamDef, Name: p.Name, Node: p.Node, Annotation: p.Annotation, Param: i})
	}
}

func (b *binder) index(name string) int {
	index, known := b.vars[name]
	if !known {
		index = len(b.current)
		b.vars[name] = index
		b.names = append(b.names, name)
		b.current = append(b.current, nil)
		for at, c := range name {
			if c == '.' {
				b.below[name[:at]] = append(b.below[name[:at]], index)
			}
		}
	}
	return index
}

// set makes def the current definition of name and returns its slot.
func (b *binder) set(name string, def *Def) int32 {
	b.out.all[name] = append(b.out.all[name], def)
	for _, path := range b.below[name] { // the name is another object now
		b.move(path, nil)
	}
	return b.put(b.index(name), def)
}

func (b *binder) put(index int, def *Def) int32 {
	b.out.defs = append(b.out.defs, def)
	def.slot = int32(len(b.out.defs))
	b.move(index, def)
	return def.slot
}

func (b *binder) move(index int, def *Def) {
	if b.current[index] != def {
		b.log = append(b.log, change{index, b.current[index]})
		b.current[index] = def
	}
}

// take undoes everything since mark and returns it.
func (b *binder) take(mark int) branch {
	out := b.peek(mark)
	for i := len(b.log) - 1; i >= mark; i-- {
		b.current[b.log[i].name] = b.log[i].old
	}
	b.log = b.log[:mark]
	b.dead = false
	return out
}

// peek is what changed since mark.
func (b *binder) peek(mark int) branch {
	out := branch{dead: b.dead}
	for _, c := range b.log[mark:] {
		if out.changes == nil {
			out.changes = map[int]*Def{}
		}
		out.changes[c.name] = b.current[c.name]
	}
	return out
}

// join makes the state after one of several branches. A branch that ends in return, raise, break or continue does not count.
func (b *binder) join(branches ...branch) {
	live := branches[:0:0]
	for _, br := range branches {
		if !br.dead {
			live = append(live, br)
		}
	}
	if len(live) == 0 {
		b.dead = true
		if len(branches) > 0 { // unreachable from here on; keep something to resolve names with
			live = branches[:1]
		}
	}
	order := []int{}
	seen := map[int]bool{}
	for _, br := range live {
		for index := range br.changes {
			if !seen[index] {
				seen[index] = true
				order = append(order, index)
			}
		}
	}
	slices.Sort(order)
	for _, index := range order {
		var alternatives []*Def
		for _, br := range live {
			def, changed := br.changes[index]
			if !changed {
				def = b.current[index]
			}
			alternatives = appendDef(alternatives, def)
		}
		switch len(alternatives) {
		case 0:
		case 1:
			b.move(index, alternatives[0])
		default:
			b.put(index, &Def{Kind: PhiDef, Name: b.names[index], Alternatives: alternatives})
		}
	}
}

// appendDef adds a definition once; an undefined way (nil) is left out, since reading the name there would fail.
func appendDef(list []*Def, def *Def) []*Def {
	if def == nil {
		return list
	}
	for _, have := range list {
		if have == def {
			return list
		}
	}
	return append(list, def)
}

func (b *binder) block(body []syntax.Stmt) {
	for _, stmt := range body {
		b.stmt(stmt)
	}
}

// arm runs a branch from the present state and undoes it.
func (b *binder) arm(run func()) branch {
	mark := len(b.log)
	run()
	return b.take(mark)
}

func (b *binder) stmt(stmt syntax.Stmt) {
	switch s := stmt.(type) {
	case *syntax.FunctionDef:
		b.exprs(s.Decorators)
		b.defaults(s.Args)
		b.name(s.Name, &Def{Kind: ScopeDef, Node: s, Stmt: s, Opens: b.scope.Module.ScopeOf(s)})
	case *syntax.ClassDef:
		b.exprs(s.Decorators)
		b.exprs(s.Bases)
		for _, k := range s.Keywords {
			b.expr(k.Value)
		}
		b.name(s.Name, &Def{Kind: ScopeDef, Node: s, Stmt: s, Opens: b.scope.Module.ScopeOf(s)})
	case *syntax.Return:
		b.expr(s.Value)
		b.out.returns = append(b.out.returns, s)
		b.dead = true
	case *syntax.Delete:
		for _, target := range s.Targets {
			b.target(target, Def{Kind: DelDef, Stmt: s})
		}
	case *syntax.Assign:
		b.expr(s.Value)
		for _, target := range s.Targets {
			b.assign(target, s.Value, s)
		}
	case *syntax.AugAssign:
		b.expr(s.Value)
		prev := b.load(s.Target)
		b.target(s.Target, Def{Kind: AugDef, Stmt: s, Value: s.Value, Op: s.Op, Prev: prev})
	case *syntax.AnnAssign:
		b.expr(s.Annotation)
		if s.Value == nil {
			b.target(s.Target, Def{Kind: AnnDef, Stmt: s, Annotation: s.Annotation})
			return
		}
		b.expr(s.Value)
		b.target(s.Target, Def{Kind: AssignDef, Stmt: s, Value: s.Value, Annotation: s.Annotation})
	case *syntax.TypeAlias:
		b.expr(s.Value)
		b.assign(s.Name, s.Value, s)
	case *syntax.For:
		b.expr(s.Iter)
		b.loop(s, s.Body, s.OrElse, func() { b.unpack(s.Target, Def{Kind: IterDef, Stmt: s, Value: s.Iter}, nil) })
	case *syntax.While:
		b.loop(s, s.Body, s.OrElse, func() { b.expr(s.Test) })
	case *syntax.If:
		b.expr(s.Test)
		then := b.arm(func() { b.block(s.Body) })
		other := b.arm(func() { b.block(s.OrElse) })
		b.join(then, other)
	case *syntax.With:
		for _, item := range s.Items {
			b.expr(item.Context)
			if item.Vars != nil {
				b.unpack(item.Vars, Def{Kind: WithDef, Stmt: s, Value: item.Context}, nil)
			}
		}
		b.block(s.Body)
	case *syntax.Match:
		b.expr(s.Subject)
		arms := []branch{{}}
		for _, c := range s.Cases {
			arms = append(arms, b.arm(func() {
				b.pattern(c.Pattern, s)
				b.expr(c.Guard)
				b.block(c.Body)
			}))
		}
		b.join(arms...)
	case *syntax.Raise:
		b.expr(s.Exc)
		b.expr(s.Cause)
		b.dead = true
	case *syntax.Try:
		b.try(s)
	case *syntax.Assert:
		b.expr(s.Test)
		b.expr(s.Msg)
	case *syntax.Import:
		for _, alias := range s.Names {
			b.imports(alias, s)
		}
	case *syntax.ImportFrom:
		for _, alias := range s.Names {
			b.imports(alias, s)
		}
	case *syntax.ExprStmt:
		b.expr(s.Value)
	case *syntax.Break:
		if n := len(b.loops); n > 0 {
			b.loops[n-1].breaks = append(b.loops[n-1].breaks, b.peek(b.loops[n-1].mark))
		}
		b.dead = true
	case *syntax.Continue:
		if n := len(b.loops); n > 0 {
			b.loops[n-1].continues = append(b.loops[n-1].continues, b.peek(b.loops[n-1].mark))
		}
		b.dead = true
	case *syntax.Error:
		for _, part := range s.Parts {
			switch part := part.(type) {
			case syntax.Stmt:
				b.stmt(part)
			case syntax.Expr:
				b.expr(part)
			}
		}
	}
}

func (b *binder) defaults(args *syntax.Arguments) {
	if args != nil {
		b.exprs(args.Defaults)
		b.exprs(args.KwDefaults)
	}
}

func (b *binder) imports(alias *syntax.Alias, stmt syntax.Stmt) {
	if i := b.scope.Module.imports[alias]; i != nil && i.Member != "*" {
		b.name(i.Name, &Def{Kind: ImportDef, Node: alias, Stmt: stmt, Import: i})
	}
}

// name defines a plain name.
func (b *binder) name(name string, def *Def) int32 {
	def.Name = name
	return b.set(name, def)
}

func (b *binder) assign(target syntax.Expr, value syntax.Expr, stmt syntax.Stmt) {
	elements := elementsOf(target)
	values := elementsOf(value)
	if elements != nil && len(values) == len(elements) && !hasStar(elements) && !hasStar(values) {
		for i := range elements { // a, b = x, y
			b.assign(elements[i], values[i], stmt)
		}
		return
	}
	b.unpack(target, Def{Kind: AssignDef, Stmt: stmt, Value: value}, nil)
}

func elementsOf(e syntax.Expr) []syntax.Expr {
	switch e := e.(type) {
	case *syntax.Tuple:
		return e.Elts
	case *syntax.List:
		return e.Elts
	}
	return nil
}

func hasStar(list []syntax.Expr) bool {
	for _, e := range list {
		if _, star := e.(*syntax.Starred); star {
			return true
		}
	}
	return false
}

// unpack defines the names of a target, which may be nested; path leads to the element that each gets.
func (b *binder) unpack(target syntax.Expr, def Def, path []int) {
	switch t := target.(type) {
	case *syntax.Tuple, *syntax.List:
		for i, element := range elementsOf(t) {
			if star, ok := element.(*syntax.Starred); ok {
				b.unpack(star.Value, def, append(path[:len(path):len(path)], -1))
				continue
			}
			b.unpack(element, def, append(path[:len(path):len(path)], i))
		}
	case *syntax.Starred:
		b.unpack(t.Value, def, append(path[:len(path):len(path)], -1))
	default:
		if def.Path = path; len(path) > 0 && def.Kind == AssignDef {
			def.Kind = UnpackDef
		}
		b.target(target, def)
	}
}

// target defines one name or dotted path.
func (b *binder) target(target syntax.Expr, def Def) {
	def.Node = target
	switch t := target.(type) {
	case *syntax.Name:
		made := def
		t.Slot = b.name(t.ID, &made)
	case *syntax.Attribute:
		b.expr(t.Value)
		if path := Path(t); path != "" {
			made := def
			t.Slot = b.name(path, &made)
		}
	case *syntax.Subscript:
		b.expr(t.Value)
		b.expr(t.Slice)
	case *syntax.Starred:
		b.target(t.Value, def)
	case *syntax.Tuple, *syntax.List:
		for _, element := range elementsOf(t) {
			b.target(element, def)
		}
	case nil:
	default:
		b.expr(target)
	}
}

// Path is the dotted form of a name with attributes, "" for anything else.
func Path(e syntax.Expr) string {
	switch e := e.(type) {
	case *syntax.Name:
		return e.ID
	case *syntax.Attribute:
		if base := Path(e.Value); base != "" {
			return base + "." + e.Attr
		}
	}
	return ""
}

// load is the current definition of a target that is also read.
func (b *binder) load(target syntax.Expr) *Def {
	name := Path(target)
	if name == "" {
		b.expr(target)
		return nil
	}
	if index, known := b.vars[name]; known {
		return b.current[index]
	}
	return nil
}

func (b *binder) try(s *syntax.Try) {
	mark := len(b.log)
	b.block(s.Body)
	fromBody := map[int][]*Def{} // every definition that an exception may have left behind
	order := []int{}
	for _, c := range b.log[mark:] {
		if _, known := fromBody[c.name]; !known {
			order = append(order, c.name)
		}
		fromBody[c.name] = appendDef(fromBody[c.name], c.old)
	}
	for _, index := range order {
		fromBody[index] = appendDef(fromBody[index], b.current[index])
	}
	if !b.dead {
		b.block(s.OrElse)
	}
	arms := []branch{b.take(mark)}
	for _, handler := range s.Handlers {
		arms = append(arms, b.arm(func() {
			for _, index := range order {
				if len(fromBody[index]) > 1 {
					b.put(index, &Def{Kind: PhiDef, Name: b.names[index], Alternatives: fromBody[index]})
				} else if len(fromBody[index]) == 1 {
					b.move(index, fromBody[index][0])
				}
			}
			b.expr(handler.Type)
			if handler.Name != "" {
				b.name(handler.Name, &Def{Kind: ExceptDef, Node: handler, Value: handler.Type})
			}
			b.block(handler.Body)
		}))
	}
	b.join(arms...)
	dead := b.dead
	b.block(s.Final)
	b.dead = b.dead || dead
}

// loop binds a loop. Names that its body assigns get a phi at its head, of the state before and of each way back.
func (b *binder) loop(node syntax.Stmt, body, orElse []syntax.Stmt, head func()) {
	state := &loopState{}
	phis := map[int]*Def{}
	var order []int
	for _, name := range b.assigns(node) {
		index := b.index(name)
		phi := &Def{Kind: PhiDef, Name: name, InLoop: true}
		phi.Alternatives = appendDef(nil, b.current[index])
		phis[index] = phi
		order = append(order, index)
		b.put(index, phi)
	}
	state.mark = len(b.log)
	head()
	b.loops = append(b.loops, state)
	b.block(body)
	b.loops = b.loops[:len(b.loops)-1]
	for _, way := range append(state.continues, b.take(state.mark)) {
		if way.dead {
			continue
		}
		for _, index := range order {
			if def, changed := way.changes[index]; changed && def != phis[index] {
				phis[index].Alternatives = appendDef(phis[index].Alternatives, def)
			}
		}
	}
	// The loop ends at its head, or by a break.
	ended := b.arm(func() { b.block(orElse) })
	b.join(append([]branch{ended}, state.breaks...)...)
}

// assigns lists the names and dotted paths that a loop may assign, in order of appearance.
func (b *binder) assigns(node syntax.Stmt) []string {
	if list, known := b.assigned[node]; known {
		return list
	}
	var list []string
	seen := map[string]bool{}
	add := func(name string) {
		if name != "" && !seen[name] {
			seen[name] = true
			list = append(list, name)
		}
	}
	syntax.Inspect(node, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FunctionDef:
			add(n.Name)
			return false
		case *syntax.ClassDef:
			add(n.Name)
			return false
		case *syntax.Lambda:
			return false
		case *syntax.For, *syntax.While:
			if inner := n.(syntax.Stmt); inner != node {
				for _, name := range b.assigns(inner) {
					add(name)
				}
				return false
			}
		case *syntax.Name:
			if n.Ctx != syntax.Load {
				add(n.ID)
			}
		case *syntax.Attribute:
			if n.Ctx != syntax.Load {
				add(Path(n))
			}
		case *syntax.Alias:
			if i := b.scope.Module.imports[n]; i != nil {
				add(i.Name)
			}
		case *syntax.ExceptHandler:
			add(n.Name)
		case *syntax.MatchAs:
			add(n.Name)
		case *syntax.MatchStar:
			add(n.Name)
		}
		return true
	})
	b.assigned[node] = list
	return list
}

func (b *binder) exprs(list []syntax.Expr) {
	for _, e := range list {
		b.expr(e)
	}
}

// expr gives each name in an expression its slot, in order of evaluation as far as it matters (walrus, comprehensions).
func (b *binder) expr(e syntax.Expr) {
	if e == nil {
		return
	}
	syntax.Inspect(e, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Name:
			if n.Ctx == syntax.Load {
				n.Slot = b.use(n.ID)
			}
		case *syntax.Attribute:
			if b.paths && n.Ctx == syntax.Load {
				if path := Path(n); path != "" {
					if index, known := b.vars[path]; known && b.current[index] != nil {
						n.Slot = b.current[index].slot
					}
				}
			}
		case *syntax.NamedExpr:
			b.expr(n.Value)
			b.target(n.Target, Def{Kind: AssignDef, Value: n.Value})
			return false
		case *syntax.Lambda:
			b.defaults(n.Args)
			return false
		case *syntax.Comp:
			b.comprehension(n)
			return false
		case *syntax.Yield:
			b.out.yields = append(b.out.yields, n.Value)
		case *syntax.YieldFrom:
			b.out.yields = append(b.out.yields, nil)
		}
		return true
	})
}

func (b *binder) use(name string) int32 {
	if index, known := b.vars[name]; known && b.current[index] != nil {
		return b.current[index].slot
	}
	return 0
}

// comprehension binds the variables of a comprehension and forgets them after it.
func (b *binder) comprehension(c *syntax.Comp) {
	mark, dead := len(b.log), b.dead
	for _, g := range c.Generators {
		b.expr(g.Iter)
		b.unpack(g.Target, Def{Kind: IterDef, Value: g.Iter}, nil)
		b.exprs(g.Ifs)
	}
	b.expr(c.Elt)
	b.expr(c.Value)
	b.take(mark)
	b.dead = dead
}

func (b *binder) pattern(p syntax.Pattern, s *syntax.Match) {
	if p == nil {
		return
	}
	syntax.Inspect(p, func(n syntax.Node) bool {
		capture := func(name string) {
			if name != "" {
				b.name(name, &Def{Kind: MatchDef, Node: n, Stmt: s, Value: s.Subject})
			}
		}
		switch n := n.(type) {
		case *syntax.MatchAs:
			capture(n.Name)
		case *syntax.MatchStar:
			capture(n.Name)
		case *syntax.MatchMapping:
			capture(n.Rest)
		case *syntax.Name:
			n.Slot = b.use(n.ID)
		}
		return true
	})
}
