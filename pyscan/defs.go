package pyscan

import (
	"slices"
	"strings"

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

// Def is one definition of a name, or of a dotted path such as "self.model", in a scope. A check makes many: what only some kinds have
// is in one place.
type Def struct {
	Kind     DefKind
	InLoop   bool // PhiDef at the head of a loop: an alternative comes from an earlier iteration
	Op       syntax.Operator
	slot     int32
	variable int32
	param    int32
	Node     syntax.Node // the target, parameter, alias or statement; nil for a Phi
	Stmt     syntax.Stmt // the statement, or nil
	Value    syntax.Expr
	of       any // by Kind: indices, *Def, *Import, *Scope or *phi
}

// phi is a definition of the kind PhiDef. Most have no more than two alternatives.
type phi struct {
	Def
	ways []*Def
	two  [2]*Def
}

// Param is the index of a ParamDef's parameter.
func (d *Def) Param() int { return int(d.param) }

// Path leads to the element of Value that an UnpackDef or IterDef takes: indices from the outside in; -1 for a starred target.
func (d *Def) Path() []int {
	path, _ := d.of.([]int)
	return path
}

// Prev is what an AugDef changes, or nil.
func (d *Def) Prev() *Def {
	prev, _ := d.of.(*Def)
	return prev
}

// Import is what an ImportDef binds.
func (d *Def) Import() *Import {
	i, _ := d.of.(*Import)
	return i
}

// Opens is the scope of a ScopeDef.
func (d *Def) Opens() *Scope {
	s, _ := d.of.(*Scope)
	return s
}

// Alternatives are those of a PhiDef.
func (d *Def) Alternatives() []*Def {
	if phi, is := d.of.(*phi); is {
		return phi.ways
	}
	return nil
}

// meet adds an alternative to a PhiDef.
func (d *Def) meet(other *Def) {
	phi := d.of.(*phi)
	phi.ways = appendDef(phi.ways, other)
}

// Annotation is the type that is written at the definition, or nil.
func (d *Def) Annotation() syntax.Expr {
	if arg, is := d.Node.(*syntax.Arg); is {
		return arg.Annotation
	}
	if stmt, is := d.Stmt.(*syntax.AnnAssign); is {
		return stmt.Annotation
	}
	return nil
}

// bound is what binding a scope finds.
type bound struct {
	variables
	defs    []*Def  // by slot - 1
	last    []*Def  // by variable: what it is when the scope ends
	all     []*Def  // every definition but phis, variable after variable
	from    []int32 // by variable: where its definitions begin in all
	returns []*syntax.Return
	yields  []syntax.Expr
}

// variables numbers the names and dotted paths that a scope defines, in the order in which it is asked for them.
type variables struct {
	names  []string
	traits uint64  // of all names: what find looks at first, since most names of a function are none of these
	table  []int32 // numbers, plus 1, where the hashes of the names lead, or behind; nil while the names are few
}

// trait is a bit that names share by chance alone.
func trait(name string) uint64 {
	if name == "" {
		return 1
	}
	return 1 << ((uint(len(name)) + 5*uint(name[0]) + 11*uint(name[len(name)-1])) & 63)
}

// fewNames is up to how many names looking through all of them is faster than a table, and lighter.
const (
	fewNames = 12
	minTable = 32 // a power of two, as all sizes of tables
)

// find is the number of a name, or -1.
func (v *variables) find(name string) int {
	if v.traits&trait(name) == 0 {
		return -1
	}
	if v.table != nil {
		return int(v.table[v.place(name)]) - 1
	}
	for n, have := range v.names {
		if have == name {
			return n
		}
	}
	return -1
}

// place is where in the table a name stands or would stand. The table is never more than half full.
func (v *variables) place(name string) int {
	mask := uint32(len(v.table) - 1)
	for at := hash(name) & mask; ; at = (at + 1) & mask {
		if n := v.table[at]; n == 0 || v.names[n-1] == name {
			return int(at)
		}
	}
}

func hash(name string) uint32 { // FNV-1a
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return h
}

// add gives a new name its number.
func (v *variables) add(name string) int {
	n := len(v.names)
	v.names = append(v.names, name)
	v.traits |= trait(name)
	switch {
	case n+1 <= fewNames:
	case 2*(n+1) > len(v.table):
		v.table = make([]int32, max(minTable, 2*len(v.table)))
		for i, name := range v.names {
			v.table[v.place(name)] = int32(i + 1)
		}
	default:
		v.table[v.place(name)] = int32(n + 1)
	}
	return n
}

// Def is the definition that a name in this scope reads or writes at that place; nil when it comes from outside.
func (s *Scope) Def(name *syntax.Name) *Def {
	if s.names&trait(name.ID) == 0 {
		return nil
	}
	if s.stores&trait(name.ID) == 0 { // a parameter alone is the same everywhere
		for i := len(s.Params) - 1; i >= 0; i-- {
			if s.Params[i].Name == name.ID {
				return &s.parameters()[i]
			}
		}
	}
	if s.bound.Load() == nil && s.isPlain(name.ID) && !s.Plain(name.ID) {
		return nil
	}
	b := s.bind() // sets the slots
	return b.at(name.Slot)
}

// parameters are the definitions of the parameters. They are there before anything else is bound.
func (s *Scope) parameters() []Def {
	if made := s.given.Load(); made != nil {
		return *made
	}
	s.Module.binding.Lock()
	defer s.Module.binding.Unlock()
	return s.makeParameters()
}

// makeParameters is parameters for who holds the lock.
func (s *Scope) makeParameters() []Def {
	if made := s.given.Load(); made != nil {
		return *made
	}
	list := make([]Def, len(s.Params))
	for i := range list {
		list[i].Kind, list[i].Node, list[i].param = ParamDef, s.Params[i].Arg, int32(i)
	}
	s.given.Store(&list)
	return list
}

// AttrDef is the definition of a dotted path in this function that reaches the attribute, or nil.
func (s *Scope) AttrDef(attr *syntax.Attribute) *Def {
	if !s.MayAssign(attr.Attr) {
		return nil
	}
	b := s.bind()
	return b.at(attr.Slot)
}

// mayDefine reports whether the scope may have a definition of a name or dotted path. It binds nothing.
func (s *Scope) mayDefine(name string) bool {
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		return s.MayAssign(name[dot+1:])
	}
	return s.names&trait(name) != 0
}

// MayAssign reports whether the scope may assign to an attribute of that name, of whatever. It binds nothing: of the methods of a class
// few assign to the one that is asked for.
func (s *Scope) MayAssign(attr string) bool { return s.attrs&trait(attr) != 0 }

func (b *bound) at(slot int32) *Def {
	if slot > 0 && int(slot) <= len(b.defs) {
		return b.defs[slot-1]
	}
	return nil
}

// Exit is the definition of a name when the scope ends: what a module or class offers to others. Nil when it has none.
func (s *Scope) Exit(name string) *Def {
	if !s.mayDefine(name) {
		return nil
	}
	b := s.bind()
	if n := b.find(name); n >= 0 {
		return b.last[n]
	}
	return nil
}

// Defs are all definitions of a name or dotted path in the scope, phis left out, in order.
func (s *Scope) Defs(name string) []*Def {
	if !s.mayDefine(name) || s.bound.Load() == nil && s.definesNo(name) {
		return nil
	}
	b := s.bind()
	if n := b.find(name); n >= 0 {
		return b.of(n)
	}
	return nil
}

// of are all definitions of a variable but phis.
func (b *bound) of(variable int) []*Def {
	end := b.from[variable+1]
	return b.all[b.from[variable]:end:end]
}

// Defined calls yield for each name and dotted path that the scope defines, in the order of the first one.
func (s *Scope) Defined(yield func(name string, defs []*Def)) {
	b := s.bind()
	for n, name := range b.names {
		if defs := b.of(n); len(defs) > 0 {
			yield(name, defs)
		}
	}
}

// Enclosed reports whether a function around the scope defines a name: whoever reads it in the scope may mean that.
func (s *Scope) Enclosed(name string) bool {
	for around := s.Parent; around != nil && around.Kind != ModuleScope; around = around.Parent {
		if around.Kind != ClassScope && len(around.Defs(name)) > 0 {
			return true
		}
	}
	return false
}

// Returns are the return statements of a function, in order.
func (s *Scope) Returns() []*syntax.Return { return s.bind().returns }

// Yields are the values that a generator yields (nil for a bare yield).
func (s *Scope) Yields() []syntax.Expr {
	if !s.yields {
		return nil
	}
	return s.bind().yields
}

// Outer reports whether the name is declared global or nonlocal in the scope.
func (s *Scope) Outer(name string) bool { return slices.Contains(s.Module.outer[s], name) }

func (s *Scope) bind() *bound {
	if bound := s.bound.Load(); bound != nil {
		return bound
	}
	m := s.Module
	m.binding.Lock()
	defer m.binding.Unlock()
	bound := s.bound.Load()
	if bound == nil {
		if m.binder == nil {
			m.binder = newBinder()
		}
		bound = m.binder.bind(s)
		s.bound.Store(bound)
	}
	return bound
}
