package pyscan

import (
	"slices"

	"github.com/trainvet/trainvet/pyscan/syntax"
)

// binder walks a scope in the order of execution and gives each use the definitions that reach it: static single
// assignment on the tree. The state is one current definition a name; branches are undone by a log and joined by phis, so
// that the work grows with the changes made, not with the number of names. A file has one for all its scopes, one after another:
// what it takes for a while is taken once.
type binder struct {
	scope    *Scope
	out      bound
	current  []*Def // by variable
	log      []change
	dead     bool
	loops    []*loopState
	assigned map[syntax.Node][]string // what a loop assigns, by loop
	paths    bool                     // the scope assigns to dotted paths
	below    map[string][]int         // the dotted paths that begin with a name
	visit    func(syntax.Node)        // node, as a value
	defs     slab[Def]                // of all scopes of the file
	phis     slab[phi]
	ways     []change // what branches of the scope changed
	marks    []int    // by variable: the last stamp that it got
	stamp    int
}

// change is a variable with a definition: the one before (in the log) or the one after (in a branch).
type change struct {
	name int
	def  *Def
}

// branch is the state at the end of one way through: what it changed, by variable.
type branch struct {
	changes []change
	dead    bool
}

type loopState struct {
	mark      int
	continues []branch
	breaks    []branch
}

func newBinder() *binder {
	b := &binder{}
	b.visit = b.node
	return b
}

// bind binds a scope.
func (b *binder) bind(s *Scope) *bound {
	b.scope, b.paths, b.dead = s, s.paths, false
	b.out = bound{variables: variables{names: b.out.names[:0]}, defs: b.out.defs[:0]}
	b.current, b.log, b.loops, b.ways = b.current[:0], b.log[:0], b.loops[:0], b.ways[:0]
	b.assigned, b.below = nil, nil
	if len(s.Params) > 0 {
		defs := s.makeParameters()
		for i := range defs {
			b.enter(b.index(s.Params[i].Name), &defs[i])
		}
	}
	if lambda, ok := s.Node.(*syntax.Lambda); ok {
		b.expr(lambda.Body)
	} else {
		b.block(s.Body())
	}
	return b.finish()
}

// finish gives what was found, in lists that are as long as they need to be.
func (b *binder) finish() *bound {
	out, variables := &bound{}, len(b.current)
	*out = b.out
	out.names = slices.Clone(b.out.names)
	out.from = make([]int32, variables+1)
	total := 0
	for _, def := range b.out.defs {
		if def.Kind != PhiDef {
			out.from[def.variable+1]++
			total++
		}
	}
	room := make([]*Def, len(b.out.defs)+variables+total)
	out.defs, room = room[:len(b.out.defs):len(b.out.defs)], room[len(b.out.defs):]
	copy(out.defs, b.out.defs)
	out.last, out.all = room[:variables:variables], room[variables:]
	copy(out.last, b.current)
	for variable := range variables {
		out.from[variable+1] += out.from[variable]
	}
	for i := len(out.defs) - 1; i >= 0; i-- { // from the ends of the lists of the variables, which become their beginnings
		if def := out.defs[i]; def.Kind != PhiDef {
			out.from[def.variable+1]--
			out.all[out.from[def.variable+1]] = def
		}
	}
	copy(out.from, out.from[1:])
	out.from[variables] = int32(total)
	return out
}

// make is a new definition with the content of another.
func (b *binder) make(def *Def) *Def {
	made := b.defs.take()
	*made = *def
	return made
}

// phi is a new PhiDef.
func (b *binder) phi(alternatives ...*Def) *Def {
	made := b.phis.take()
	made.Kind, made.of = PhiDef, made
	made.ways = append(made.two[:0], alternatives...)
	return &made.Def
}

func (b *binder) index(name string) int {
	index := b.out.find(name)
	if index < 0 {
		index = b.out.add(name)
		b.current = append(b.current, nil)
		for at, c := range name {
			if c == '.' {
				if b.below == nil {
					b.below = map[string][]int{}
				}
				b.below[name[:at]] = append(b.below[name[:at]], index)
			}
		}
	}
	return index
}

// name makes a copy of def the current definition of a name or dotted path and returns its slot.
func (b *binder) name(name string, def *Def) int32 {
	for _, path := range b.below[name] { // the name is another object now
		b.move(path, nil)
	}
	return b.put(b.index(name), def)
}

// put makes a copy of def the current definition of a variable and returns its slot.
func (b *binder) put(index int, def *Def) int32 { return b.enter(index, b.make(def)) }

func (b *binder) enter(index int, def *Def) int32 {
	b.out.defs = append(b.out.defs, def)
	def.slot, def.variable = int32(len(b.out.defs)), int32(index)
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
	b.undo(mark)
	return out
}

// undo goes back to the state at mark.
func (b *binder) undo(mark int) {
	for i := len(b.log) - 1; i >= mark; i-- {
		b.current[b.log[i].name] = b.log[i].def
	}
	b.log = b.log[:mark]
	b.dead = false
}

// peek is what changed since mark.
func (b *binder) peek(mark int) branch {
	out := branch{dead: b.dead}
	if mark == len(b.log) {
		return out
	}
	fresh := b.fresh()
	first := len(b.ways)
	for _, c := range b.log[mark:] {
		if fresh(c.name) {
			b.ways = append(b.ways, change{c.name, b.current[c.name]})
		}
	}
	out.changes = b.ways[first:len(b.ways):len(b.ways)]
	slices.SortFunc(out.changes, func(x, y change) int { return x.name - y.name })
	return out
}

// fresh gives a function that reports whether it has not been called with that variable before. The one before it is worth nothing then.
func (b *binder) fresh() func(index int) bool {
	if n := len(b.current) - len(b.marks); n > 0 {
		b.marks = append(b.marks, make([]int, n)...)
	}
	b.stamp++
	return func(index int) bool {
		if b.marks[index] == b.stamp {
			return false
		}
		b.marks[index] = b.stamp
		return true
	}
}

// join makes the state after one of several branches. A branch that ends in return, raise, break or continue does not count.
func (b *binder) join(branches ...branch) {
	live := branches[:0]
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
	for {
		index := -1 // the least variable that is left; the branches are merged by it
		for _, br := range live {
			if len(br.changes) > 0 && (index < 0 || br.changes[0].name < index) {
				index = br.changes[0].name
			}
		}
		if index < 0 {
			return
		}
		var few [4]*Def
		alternatives := few[:0]
		for i := range live {
			def := b.current[index]
			if changes := live[i].changes; len(changes) > 0 && changes[0].name == index {
				def, live[i].changes = changes[0].def, changes[1:]
			}
			alternatives = appendDef(alternatives, def)
		}
		switch len(alternatives) {
		case 0:
		case 1:
			b.move(index, alternatives[0])
		default:
			b.enter(index, b.phi(alternatives...))
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
		b.name(s.Name, &Def{Kind: ScopeDef, Node: s, Stmt: s, of: b.scope.Module.ScopeOf(s)})
	case *syntax.ClassDef:
		b.exprs(s.Decorators)
		b.exprs(s.Bases)
		for _, k := range s.Keywords {
			b.expr(k.Value)
		}
		b.name(s.Name, &Def{Kind: ScopeDef, Node: s, Stmt: s, of: b.scope.Module.ScopeOf(s)})
	case *syntax.Return:
		b.expr(s.Value)
		b.out.returns = append(b.out.returns, s)
		b.dead = true
	case *syntax.Delete:
		for _, target := range s.Targets {
			b.target(target, &Def{Kind: DelDef, Stmt: s})
		}
	case *syntax.Assign:
		b.expr(s.Value)
		for _, target := range s.Targets {
			b.assign(target, s.Value, s)
		}
	case *syntax.AugAssign:
		b.expr(s.Value)
		prev := b.load(s.Target)
		b.target(s.Target, &Def{Kind: AugDef, Stmt: s, Value: s.Value, Op: s.Op, of: prev})
	case *syntax.AnnAssign:
		b.expr(s.Annotation)
		if s.Value == nil {
			b.target(s.Target, &Def{Kind: AnnDef, Stmt: s})
			return
		}
		b.expr(s.Value)
		b.target(s.Target, &Def{Kind: AssignDef, Stmt: s, Value: s.Value})
	case *syntax.TypeAlias:
		b.expr(s.Value)
		b.assign(s.Name, s.Value, s)
	case *syntax.For:
		b.expr(s.Iter)
		b.loop(s, s.Body, s.OrElse, func() { b.unpack(s.Target, &Def{Kind: IterDef, Stmt: s, Value: s.Iter}, nil) })
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
				b.unpack(item.Vars, &Def{Kind: WithDef, Stmt: s, Value: item.Context}, nil)
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
	if i := b.scope.Module.importOf(alias); i != nil && i.Member != "*" {
		b.name(i.Name, &Def{Kind: ImportDef, Node: alias, Stmt: stmt, of: i})
	}
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
	b.unpack(target, &Def{Kind: AssignDef, Stmt: stmt, Value: value}, nil)
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

// unpack defines the names of a target, which may be nested, as copies of def; path leads to the element that each gets.
func (b *binder) unpack(target syntax.Expr, def *Def, path []int) {
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
		kind := def.Kind
		if def.of = nil; len(path) > 0 {
			if def.of = path; kind == AssignDef {
				def.Kind = UnpackDef
			}
		}
		b.target(target, def)
		def.Kind = kind
	}
}

// target defines one name or dotted path as a copy of def.
func (b *binder) target(target syntax.Expr, def *Def) {
	switch t := target.(type) {
	case *syntax.Name:
		def.Node = target
		t.Slot = b.name(t.ID, def)
	case *syntax.Attribute:
		b.expr(t.Value)
		if path := Path(t); path != "" {
			def.Node = target
			t.Slot = b.name(path, def)
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

// PathEnd is the last name of a Path, without making the path.
func PathEnd(e syntax.Expr) string {
	for below := e; ; {
		switch n := below.(type) {
		case *syntax.Name:
			if n.ID == "" {
				return ""
			}
			return LastName(e)
		case *syntax.Attribute:
			below = n.Value
		default:
			return ""
		}
	}
}

// load is the current definition of a target that is also read.
func (b *binder) load(target syntax.Expr) *Def {
	name := Path(target)
	if name == "" {
		b.expr(target)
		return nil
	}
	if index := b.out.find(name); index >= 0 {
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
		fromBody[c.name] = appendDef(fromBody[c.name], c.def)
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
					b.enter(index, b.phi(fromBody[index]...))
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
	assigns := b.assigns(node)
	phis := make([]change, len(assigns))
	for i, name := range assigns {
		index := b.index(name)
		phi := b.phi()
		phi.InLoop = true
		phi.meet(b.current[index])
		phis[i] = change{index, phi}
		b.enter(index, phi)
	}
	slices.SortFunc(phis, func(x, y change) int { return x.name - y.name })
	state.mark = len(b.log)
	head()
	b.loops = append(b.loops, state)
	b.block(body)
	b.loops = b.loops[:len(b.loops)-1]
	for _, way := range append(state.continues, b.take(state.mark)) {
		if way.dead {
			continue
		}
		next := 0
		for _, c := range way.changes {
			for next < len(phis) && phis[next].name < c.name {
				next++
			}
			if next < len(phis) && phis[next].name == c.name && phis[next].def != c.def {
				phis[next].def.meet(c.def)
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
	var seen variables
	add := func(name string) {
		if name != "" && seen.find(name) < 0 {
			seen.add(name)
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
			if i := b.scope.Module.importOf(n); i != nil {
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
	if b.assigned == nil {
		b.assigned = map[syntax.Node][]string{}
	}
	b.assigned[node] = seen.names
	return seen.names
}

func (b *binder) exprs(list []syntax.Expr) {
	for _, e := range list {
		b.expr(e)
	}
}

// expr gives each name in an expression its slot, in order of evaluation as far as it matters (walrus, comprehensions).
func (b *binder) expr(e syntax.Expr) {
	if e != nil {
		b.node(e)
	}
}

func (b *binder) node(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.Constant:
	case *syntax.Name:
		if n.Ctx == syntax.Load {
			n.Slot = b.use(n.ID)
		}
	case *syntax.Attribute:
		if b.paths && n.Ctx == syntax.Load && b.scope.MayAssign(n.Attr) {
			if path := Path(n); path != "" {
				n.Slot = b.reach(path, n.Slot)
			}
		}
		b.node(n.Value)
	case *syntax.Call:
		if len(n.Keywords) > 0 { // between the arguments
			syntax.Children(n, b.visit)
			return
		}
		b.node(n.Func)
		b.exprs(n.Args)
	case *syntax.NamedExpr:
		b.expr(n.Value)
		b.target(n.Target, &Def{Kind: AssignDef, Value: n.Value})
	case *syntax.Lambda:
		b.defaults(n.Args)
	case *syntax.Comp:
		b.comprehension(n)
	case *syntax.Yield:
		b.out.yields = append(b.out.yields, n.Value)
		syntax.Children(n, b.visit)
	case *syntax.YieldFrom:
		b.out.yields = append(b.out.yields, nil)
		syntax.Children(n, b.visit)
	default:
		syntax.Children(n, b.visit)
	}
}

func (b *binder) use(name string) int32 { return b.reach(name, 0) }

// reach is the slot of what a name or dotted path is now, or what is given.
func (b *binder) reach(name string, otherwise int32) int32 {
	if index := b.out.find(name); index >= 0 && b.current[index] != nil {
		return b.current[index].slot
	}
	return otherwise
}

// comprehension binds the variables of a comprehension and forgets them after it.
func (b *binder) comprehension(c *syntax.Comp) {
	mark, dead := len(b.log), b.dead
	for _, g := range c.Generators {
		b.expr(g.Iter)
		b.unpack(g.Target, &Def{Kind: IterDef, Value: g.Iter}, nil)
		b.exprs(g.Ifs)
	}
	b.expr(c.Elt)
	b.expr(c.Value)
	b.undo(mark)
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
