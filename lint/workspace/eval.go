package workspace

import (
	"math/bits"
	"strings"

	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// Limits of the evaluator. What a limit cuts off is Unknown and is not remembered, so that the order of questions cannot
// change an answer.
const (
	maxFrames = 8     // calls followed into one another
	maxDepth  = 60    // expressions followed into one another
	maxSteps  = 2_000 // for one question from outside
	maxAttrs  = 24    // attributes looked up inside one another
)

// evaluator is the state of the linked questions of one view.
type evaluator struct {
	memo        map[evalKey]int32     // where the answer to a question stands, the open questions among them
	answers     []answer              // the first is none
	heads       uint64                // the depths of open questions that came up again
	pending     [maxDepth + 1][]int32 // answers that are not final, by the depth of the last question they wait for
	stars       map[string]*starred   // by name
	frames      map[frameKey]*pyscan.Frame
	instances   map[instanceKey]*pyscan.Instance
	loops       map[*pyscan.Module][]*loop.Loop
	modules     map[string]*pyscan.ModuleValue
	checkpoints map[*pyscan.Module][]*Checkpoint
	through     map[*pyscan.Scope]*passing
	lineages    map[instanceKey][]*pyscan.Class
	setters     map[*pyscan.Scope]map[string][]*pyscan.Scope // by class and attribute
	callers     map[*pyscan.Scope][]pyscan.Call
	roots       map[*pyscan.Module]string
	distances   map[distanceKey]*distances
	near        nearest                         // the distances that were asked for last
	far         map[distanceKey]map[string]bool // the names whose distances were asked for
	named       map[nameKey]nameFlags
	known       map[*pyscan.Module]map[string]string // what in-house names mean
	functions   *loop.Known
	grads       gradTrail
	listed      map[*syntax.Call]bool         // containers whose elements are being asked for
	frozen      map[*pyscan.Scope]frozenPaths // by class
	gradless    map[*syntax.With]bool
	switches    map[*pyscan.Scope]bool                    // functions that speak of switching gradients off
	declared    map[*pyscan.Module]map[string]pyscan.Call // what makes an attribute of the arguments
	changes     map[*pyscan.Scope]map[string][]change     // keys that a function sets, by the name of the dict
	switched    map[*pyscan.Scope]map[string]bool         // paths whose gradients a function switches on
	foreign     map[*pyscan.Import]bool
	attrs       int
	expansions  int // of parameters, inside one another
	depth       int
	steps       int
}

// evalKey is a question: an expression, a definition or a parameter (then expr is its node), in a frame.
type evalKey struct {
	expr  *syntax.Base
	def   *pyscan.Def
	frame *pyscan.Frame
}

type frameKey struct {
	scope *pyscan.Scope
	call  syntax.Node
	from  *pyscan.Frame
	self  pyscan.Value
}

type instanceKey struct {
	class *pyscan.Scope
	frame *pyscan.Frame
}

// anyInstance is an instance of a class of which nothing else is known: one value for the whole view, so that what its
// attributes are is found once and not anew in each method.
func (v *View) anyInstance(class *pyscan.Class) *pyscan.Instance {
	key := instanceKey{class.Scope, class.Frame}
	made := v.eval.instances[key]
	if made == nil {
		made = &pyscan.Instance{Origin: pyscan.From(class.Scope.Module, class.Scope.Node), Of: class}
		v.eval.instances[key] = made
	}
	return made
}

func newEvaluator() evaluator {
	return evaluator{memo: map[evalKey]int32{}, answers: make([]answer, 1), stars: map[string]*starred{}, frames: map[frameKey]*pyscan.Frame{}, instances: map[instanceKey]*pyscan.Instance{}, lineages: map[instanceKey][]*pyscan.Class{}, roots: map[*pyscan.Module]string{}, distances: map[distanceKey]*distances{}, far: map[distanceKey]map[string]bool{}, known: map[*pyscan.Module]map[string]string{}, named: map[nameKey]nameFlags{},
		modules:     map[string]*pyscan.ModuleValue{},
		checkpoints: map[*pyscan.Module][]*Checkpoint{}, loops: map[*pyscan.Module][]*loop.Loop{}, foreign: map[*pyscan.Import]bool{}}
}

// answered gives what make gives for a key, which is called for the first question alone.
func answered[K comparable, V any](known *map[K]V, key K, make func() V) V {
	if value, asked := (*known)[key]; asked {
		return value
	}
	value := make()
	if *known == nil {
		*known = map[K]V{}
	}
	(*known)[key] = value
	return value
}

// reset forgets everything, and keeps the memory of the large maps.
func (ev *evaluator) reset() {
	next := newEvaluator()
	next.memo, next.frames, next.pending, next.instances, next.named = ev.memo, ev.frames, ev.pending, ev.instances, ev.named
	clear(next.memo)
	clear(ev.answers)
	next.answers = ev.answers[:1]
	clear(next.frames)
	clear(next.instances)
	clear(next.named)
	for i := range next.pending {
		next.pending[i] = next.pending[i][:0]
	}
	*ev = next
}

// Eval is what an expression of a scope may evaluate to, in a given call of its function (frame) or, with a nil frame, in
// any. It never gives nil.
func (v *View) Eval(scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr) pyscan.Value {
	if e == nil {
		return &pyscan.Unknown{}
	}
	// Most names are what their definition gives and no question of their own.
	if name, ok := e.(*syntax.Name); ok {
		if def := scope.Def(name); def != nil {
			value := v.EvalDef(scope, frame, def)
			if _, changes := value.(*pyscan.Mapping); !changes || def.Kind != pyscan.AssignDef {
				return value
			}
		}
	}
	if frame != nil && isFrameless(scope, e) {
		frame = nil
	}
	key := evalKey{syntax.Key(e), nil, frame}
	known, place, ok := v.eval.remembered(key)
	if ok {
		return known
	}
	at := pyscan.From(scope.Module, e)
	return v.guard(key, place, at, func() pyscan.Value { return v.expr(scope, frame, e, at) })
}

// isFrameless holds for constants, and for names of the module or the interpreter and their attributes: what they are is the same in each call
// of the function in which they stand.
func isFrameless(scope *pyscan.Scope, e syntax.Expr) bool {
	for {
		switch of := e.(type) {
		case *syntax.Constant:
			return true
		case *syntax.Attribute:
			if scope.AttrDef(of) != nil {
				return false
			}
			e = of.Value
		case *syntax.Name:
			return scope.Def(of) == nil && !scope.Enclosed(of.ID)
		default:
			return false
		}
	}
}

// EvalDef is what a definition of a scope gives its name.
func (v *View) EvalDef(scope *pyscan.Scope, frame *pyscan.Frame, def *pyscan.Def) pyscan.Value {
	switch def.Kind { // what another question answers is none of its own
	case pyscan.ParamDef:
		for f := frame; f != nil; f = f.Outer {
			if f.Scope == scope {
				if value, given := v.Passed(f, def.Param()); given {
					return value
				}
				break
			}
		}
	case pyscan.AssignDef:
		if _, named := def.Value.(*syntax.Name); !named && def.Annotation() == nil { // names follow names as far as a file goes
			return v.Eval(scope, frame, def.Value)
		}
	}
	key := evalKey{nil, def, frame}
	known, place, ok := v.eval.remembered(key)
	if ok {
		return known
	}
	at := pyscan.From(scope.Module, def.Node)
	return v.guard(key, place, at, func() pyscan.Value { return v.definition(scope, frame, def, at) })
}

// remembered is the answer to a question that was asked before, as most were. Callers look here before they make anything for guard. Of a question without an
// answer it gives where it will stand, or 0 if it is new.
func (ev *evaluator) remembered(key evalKey) (value pyscan.Value, place int32, ok bool) {
	place = ev.memo[key]
	known := &ev.answers[place]
	if known.value == nil {
		return nil, place, false
	}
	ev.heads |= known.heads
	return known.value, place, true
}

// answer is a value, and the questions, by depth, that were still open while it was found and came up again in finding it:
// until they are answered it is not final.
// A question without a value is open itself if heads is asked and how deep it is, else it is as if it had not been asked.
type answer struct {
	value pyscan.Value
	heads uint64
}

// asked is no bit of a depth: those are maxDepth at most.
const asked = 1 << 63

// guard answers a question that the memo does not know, or of which it knows that it is open. It remembers answers and cuts cycles and limits. What was found while a question above was open, and needed its answer, is
// kept for as long as that question is open; so each question of a cycle is asked once for its head, and not once for each way round.
func (v *View) guard(key evalKey, place int32, at pyscan.Origin, run func() pyscan.Value) pyscan.Value {
	ev := &v.eval
	if ev.depth == 0 {
		ev.steps = 0
	}
	ev.steps++
	if open := ev.answers[place].heads; open != 0 {
		ev.heads |= 1 << (open &^ asked)
		return &pyscan.Unknown{Origin: at}
	}
	switch {
	case ev.steps > maxSteps || v.ctx.Err() != nil:
		ev.heads |= 1 // for the whole question
		return &pyscan.Unknown{Origin: at}
	case ev.depth >= maxDepth:
		v.cut()
		return &pyscan.Unknown{Origin: at}
	}
	depth, outer := ev.depth, ev.heads
	if place == 0 {
		place = int32(len(ev.answers))
		ev.memo[key] = place
		ev.answers = append(ev.answers, answer{})
	}
	ev.answers[place].heads = asked | uint64(depth)
	ev.depth++
	ev.heads = 0
	value := run()
	ev.depth--
	ev.heads &= 1<<depth - 1 // this one is answered
	ev.answers[place] = answer{value, ev.heads}
	if ev.heads != 0 {
		last := bits.Len64(ev.heads) - 1
		ev.pending[last] = append(ev.pending[last], place)
	}
	for _, held := range ev.pending[depth] {
		if bits.Len64(ev.answers[held].heads) == depth+1 {
			ev.answers[held] = answer{}
		}
	}
	ev.pending[depth] = ev.pending[depth][:0]
	ev.heads |= outer
	return value
}

// nearLimit is for how many expressions above the place an answer that a limit of nesting cut off is kept.
const nearLimit = 10

// cut notes that a limit of nesting cut an answer off: asked from elsewhere it may be another.
func (v *View) cut() { v.eval.heads |= 1 << max(0, v.eval.depth-nearLimit) }

func (v *View) expr(scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr, at pyscan.Origin) pyscan.Value {
	eval := func(e syntax.Expr) pyscan.Value { return v.Eval(scope, frame, e) }
	switch e := e.(type) {
	case *syntax.Constant:
		return &pyscan.Const{Origin: at, V: literal(e)}
	case *syntax.Name:
		if def := scope.Def(e); def != nil { // a dict, as Eval saw
			value := v.EvalDef(scope, frame, def)
			if m, ok := value.(*pyscan.Mapping); ok {
				return v.stored(scope, frame, def, e, m)
			}
			return value
		}
		return v.outside(scope, frame, e.ID, at)
	case *syntax.Attribute:
		if def := scope.AttrDef(e); def != nil {
			return v.EvalDef(scope, frame, def)
		}
		return v.Attr(eval(e.Value), e.Attr, at)
	case *syntax.Call:
		return v.call(scope, frame, e, at)
	case *syntax.Subscript:
		return v.index(eval(e.Value), v.slice(scope, frame, e.Slice), at)
	case *syntax.BinOp:
		return v.operate(at, operatorText[e.Op], eval(e.Left), eval(e.Right))
	case *syntax.UnaryOp:
		return v.operate(at, unaryText[e.Op], eval(e.Operand))
	case *syntax.BoolOp:
		operands := make([]pyscan.Value, len(e.Values))
		for i, operand := range e.Values {
			operands[i] = eval(operand)
		}
		if e.Op == syntax.Or { // `x or default` is one of them
			return v.union(at, operands...)
		}
		return v.operate(at, "and", operands...)
	case *syntax.Compare:
		operands := []pyscan.Value{eval(e.Left)}
		for _, c := range e.Comparators {
			operands = append(operands, eval(c))
		}
		if len(e.Ops) == 1 {
			return v.operate(at, compareText[e.Ops[0]], operands...)
		}
		return &pyscan.Op{Origin: at, Name: "compare", Operands: operands}
	case *syntax.IfExp:
		if test, ok := v.Constant(eval(e.Test)); ok {
			if test.Truth() {
				return eval(e.Body)
			}
			return eval(e.OrElse)
		}
		return v.union(at, eval(e.Body), eval(e.OrElse))
	case *syntax.NamedExpr:
		return eval(e.Value)
	case *syntax.Await:
		return eval(e.Value)
	case *syntax.Lambda:
		return &pyscan.Func{Origin: at, Scope: scope.Module.ScopeOf(e), Frame: frame}
	case *syntax.List:
		return v.sequence(scope, frame, e.Elts, at)
	case *syntax.Tuple:
		return v.sequence(scope, frame, e.Elts, at)
	case *syntax.Set:
		return v.sequence(scope, frame, e.Elts, at)
	case *syntax.Comp:
		if e.Kind == syntax.DictComp {
			return &pyscan.Mapping{Origin: at, Open: true}
		}
		return &pyscan.Sequence{Origin: at, Elements: []pyscan.Value{eval(e.Elt)}, Open: true}
	case *syntax.Dict:
		m := &pyscan.Mapping{Origin: at}
		for i, key := range e.Keys {
			if key != nil {
				m.Keys, m.Values = append(m.Keys, eval(key)), append(m.Values, eval(e.Values[i]))
				continue
			}
			inner, ok := v.Expand(eval(e.Values[i])).(*pyscan.Mapping) // **inner
			if !ok {
				m.Open = true
				continue
			}
			m.Keys, m.Values = append(m.Keys, inner.Keys...), append(m.Values, inner.Values...)
			m.Open = m.Open || inner.Open
		}
		return m
	case *syntax.Starred:
		return eval(e.Value)
	case *syntax.JoinedStr:
		return v.joined(scope, frame, e, at)
	}
	return &pyscan.Unknown{Origin: at}
}

// joined is the text of an f-string whose fields are all constant.
func (v *View) joined(scope *pyscan.Scope, frame *pyscan.Frame, e *syntax.JoinedStr, at pyscan.Origin) pyscan.Value {
	var text strings.Builder
	for _, part := range e.Values {
		field, isField := part.(*syntax.FormattedValue)
		if !isField {
			if piece, ok := part.(*syntax.Constant); ok {
				text.WriteString(piece.Text)
			}
			continue
		}
		c, ok := v.Constant(v.Eval(scope, frame, field.Value))
		if !ok || field.FormatSpec != nil || field.Conversion >= 0 {
			return &pyscan.Unknown{Origin: at}
		}
		if s, ok := c.Str(); ok {
			text.WriteString(s)
		} else {
			text.WriteString(c.String())
		}
	}
	return &pyscan.Const{Origin: at, V: constant.MakeString(text.String())}
}

func (v *View) sequence(scope *pyscan.Scope, frame *pyscan.Frame, elements []syntax.Expr, at pyscan.Origin) pyscan.Value {
	seq := &pyscan.Sequence{Origin: at}
	for _, e := range elements {
		star, ok := e.(*syntax.Starred)
		if !ok {
			seq.Elements = append(seq.Elements, v.Eval(scope, frame, e))
			continue
		}
		inner := v.Expand(v.Eval(scope, frame, star.Value))
		for _, element := range v.elements(inner) {
			seq.Elements = append(seq.Elements, element)
		}
		if list, ok := inner.(*pyscan.Sequence); !ok || list.Open {
			seq.Open = true
		}
	}
	return seq
}

func (v *View) slice(scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr) pyscan.Value {
	if _, ok := e.(*syntax.Slice); ok {
		return &pyscan.Unknown{Origin: pyscan.From(scope.Module, e)}
	}
	return v.Eval(scope, frame, e)
}

// outside is a name that its scope does not define: a closure variable, a module's name, a builtin.
func (v *View) outside(scope *pyscan.Scope, frame *pyscan.Frame, name string, at pyscan.Origin) pyscan.Value {
	for s, f := scope, frame; s != nil; s = s.Parent {
		if s != scope && s.Kind != pyscan.ClassScope && s.Kind != pyscan.ModuleScope {
			if defs := s.Defs(name); len(defs) > 0 && !s.Outer(name) {
				if len(defs) > maxSetters {
					return &pyscan.Unknown{Origin: at}
				}
				alternatives := make([]pyscan.Value, 0, len(defs))
				for _, def := range defs {
					alternatives = append(alternatives, v.EvalDef(s, f, def))
				}
				return v.union(at, alternatives...)
			}
		}
		if s.Kind == pyscan.FuncScope || s.Kind == pyscan.LambdaScope {
			if f != nil {
				f = f.Outer
			}
		}
	}
	if value := v.moduleName(scope.Module, name); value != nil {
		return value
	}
	if builtins[name] {
		return v.external(at, "builtins."+name)
	}
	return &pyscan.Unknown{Origin: at}
}

// maxSetters bounds the functions that declare a variable of the module global, the methods that assign to an attribute, and the statements
// that may have set a variable of a function around: of what more may set nothing is known.
const maxSetters = 256

// moduleName is what a module's own name is bound to when the module has run, star imports included; nil when it has none.
func (v *View) moduleName(m *pyscan.Module, name string) pyscan.Value {
	var alternatives []pyscan.Value
	if def := m.Root.Exit(name); def != nil {
		alternatives = append(alternatives, v.EvalDef(m.Root, nil, def))
	} else if defs := m.Root.Defs(name); len(defs) > 0 {
		alternatives = append(alternatives, v.EvalDef(m.Root, nil, defs[len(defs)-1]))
	}
	setters := m.Globals[name]
	if len(setters) > maxSetters {
		return &pyscan.Unknown{Origin: pyscan.From(m, setters[0].Node)}
	}
	for _, scope := range setters {
		for _, def := range scope.Defs(name) {
			alternatives = append(alternatives, v.EvalDef(scope, nil, def))
		}
	}
	if len(alternatives) > 0 {
		return v.union(alternatives[0].Site().Origin(), alternatives...)
	}
	return v.fromStars(m, name)
}

// maxStars bounds the star imports that are followed for one name.
const maxStars = 2048

// fromStars is what the star imports of a module bring under a name, the last one first; nil when that is nothing. A module that was asked
// on the way, and had no answer, has none on another way either. Unless a bound cut that off, that holds for good.
func (v *View) fromStars(m *pyscan.Module, name string) pyscan.Value {
	if len(m.Stars) == 0 {
		return nil
	}
	asked := v.eval.stars[name]
	if asked == nil {
		asked = &starred{none: map[string]bool{}}
		v.eval.stars[name] = asked
	}
	if asked.none[m.File.Path] {
		return nil
	}
	asked.none[m.File.Path] = true
	if asked.depth == 0 {
		asked.seen, asked.left = asked.seen[:0], maxStars
	}
	asked.seen = append(asked.seen, m.File.Path)
	asked.depth++
	var value pyscan.Value
	for i := len(m.Stars) - 1; i >= 0 && value == nil; i-- {
		if asked.left--; asked.left < 0 {
			break
		}
		star := m.Stars[i]
		if len(v.knownIn(m)) > 0 {
			if meaning := v.meaningOfImport(m, star, name); meaning != "" {
				value = v.external(pyscan.From(m, star.Node), meaning)
				break
			}
		}
		if file := v.locate(m.File.Path, star.Module, star.Level); file != "" && file != m.File.Path {
			value = v.ModuleMember(file, name)
		}
	}
	if value != nil {
		delete(asked.none, m.File.Path)
	}
	if asked.depth--; asked.depth == 0 && (value != nil || asked.left < 0) {
		for _, file := range asked.seen {
			delete(asked.none, file)
		}
	}
	return value
}

// starred says of a name which modules have nothing of it from their star imports, those that are being asked included.
type starred struct {
	none  map[string]bool
	seen  []string // asked since the first one
	left  int
	depth int
}

// ModuleMember is what a module of the project offers under a name; nil when it has no such name.
func (v *View) ModuleMember(file, name string) pyscan.Value {
	m := v.Module(file)
	if m == nil {
		return nil
	}
	if value := v.moduleName(m, name); value != nil {
		return value
	}
	if base, ok := strings.CutSuffix(file, "/__init__.py"); ok {
		if sub := v.moduleAt(base + "/" + name); sub != "" {
			return v.moduleValue(sub)
		}
	}
	return nil
}

func (v *View) moduleValue(file string) *pyscan.ModuleValue {
	value := v.eval.modules[file]
	if value == nil {
		value = &pyscan.ModuleValue{Path: file}
		v.eval.modules[file] = value
	}
	return value
}

func (v *View) definition(scope *pyscan.Scope, frame *pyscan.Frame, def *pyscan.Def, at pyscan.Origin) pyscan.Value {
	switch def.Kind {
	case pyscan.ParamDef:
		return v.param(scope, frame, def.Param(), at)
	case pyscan.AssignDef:
		value := v.Eval(scope, frame, def.Value)
		if _, unknown := value.(*pyscan.Unknown); unknown && def.Annotation() != nil {
			return v.annotated(scope, frame, def.Annotation(), value, at)
		}
		return value
	case pyscan.AnnDef:
		return v.annotated(scope, frame, def.Annotation(), &pyscan.Unknown{Origin: at}, at)
	case pyscan.AugDef:
		var before pyscan.Value = &pyscan.Unknown{Origin: at}
		if def.Prev() != nil {
			before = v.EvalDef(scope, frame, def.Prev())
		} else if attr, ok := def.Node.(*syntax.Attribute); ok {
			before = v.Attr(v.Eval(scope, frame, attr.Value), attr.Attr, at)
		}
		return v.operate(at, operatorText[def.Op], before, v.Eval(scope, frame, def.Value))
	case pyscan.UnpackDef:
		value := v.Eval(scope, frame, def.Value)
		for _, i := range def.Path() {
			value = v.elementAt(value, i, at)
		}
		return value
	case pyscan.IterDef:
		value := v.iterate(scope, frame, def.Value, at)
		for _, i := range def.Path() {
			value = v.elementAt(value, i, at)
		}
		return value
	case pyscan.WithDef:
		return v.enter(v.Eval(scope, frame, def.Value), at)
	case pyscan.ImportDef:
		return v.imported(scope.Module, def.Import())
	case pyscan.ScopeDef:
		if def.Opens() == nil {
			break
		}
		if m := scope.Module; len(v.knownIn(m)) > 0 {
			if meaning := v.meaningIn(m, m.File.Path, def.Opens().Qualified()); meaning != "" {
				return v.external(at, meaning)
			}
		}
		if def.Opens().Kind == pyscan.ClassScope {
			return &pyscan.Class{Origin: at, Scope: def.Opens(), Frame: frame}
		}
		return v.decorated(scope, frame, &pyscan.Func{Origin: at, Scope: def.Opens(), Frame: frame}, def.Opens().Function())
	case pyscan.PhiDef:
		alternatives := make([]pyscan.Value, 0, len(def.Alternatives()))
		for _, alternative := range def.Alternatives() {
			value := v.EvalDef(scope, frame, alternative)
			if def.InLoop && isCut(value) { // what comes round from an earlier iteration adds nothing new by itself
				continue
			}
			alternatives = append(alternatives, value)
		}
		return v.union(at, alternatives...)
	}
	return &pyscan.Unknown{Origin: at}
}

func isCut(value pyscan.Value) bool {
	_, unknown := value.(*pyscan.Unknown)
	return unknown && value.Site().Node == nil
}

// decorated applies what is known of decorators: a property stays a function (Attr calls it), staticmethod and
// classmethod bind, anything else is taken to keep the function's meaning.
func (v *View) decorated(_ *pyscan.Scope, _ *pyscan.Frame, f *pyscan.Func, _ *syntax.FunctionDef) pyscan.Value {
	return f
}

// param is a parameter in a frame, or open.
func (v *View) param(scope *pyscan.Scope, frame *pyscan.Frame, index int, at pyscan.Origin) pyscan.Value {
	for f := frame; f != nil; f = f.Outer {
		if f.Scope == scope {
			if value, given := v.Passed(f, index); given {
				return value
			}
			if index == 0 && f.Self != nil {
				return f.Self
			}
			if d := scope.Params[index].Default; d != nil && !v.filled(scope) {
				return v.Eval(scope.Parent, f.Outer, d)
			}
		}
	}
	if class := scope.EnclosingClass(); class != nil && index == 0 && !isStatic(scope) {
		self := &pyscan.Class{Origin: pyscan.From(scope.Module, class.Node), Scope: class}
		if isClassMethod(scope) {
			return self
		}
		return v.anyInstance(self)
	}
	return &pyscan.ParamValue{Origin: at, Scope: scope, Index: index}
}

func hasDecorator(scope *pyscan.Scope, names ...string) bool {
	if def := scope.Function(); def != nil {
		for _, d := range def.Decorators {
			path := pyscan.Path(d)
			for _, name := range names {
				if path == name || strings.HasSuffix(path, "."+name) {
					return true
				}
			}
		}
	}
	return false
}

func isStatic(scope *pyscan.Scope) bool      { return hasDecorator(scope, "staticmethod") }
func isClassMethod(scope *pyscan.Scope) bool { return hasDecorator(scope, "classmethod") }
func isProperty(scope *pyscan.Scope) bool {
	return hasDecorator(scope, "property", "cached_property", "functools.cached_property", "getter")
}

func literal(c *syntax.Constant) constant.Value {
	switch c.Kind {
	case syntax.TrueConstant:
		return constant.MakeBool(true)
	case syntax.FalseConstant:
		return constant.MakeBool(false)
	case syntax.EllipsisConstant:
		return constant.MakeEllipsis()
	case syntax.IntConstant:
		return constant.ParseInt(c.Text)
	case syntax.FloatConstant:
		return constant.MakeFloat(c.Float)
	case syntax.StrConstant:
		return constant.MakeString(c.Text)
	case syntax.BytesConstant:
		return constant.MakeBytes(c.Text)
	}
	return constant.Value{}
}

var (
	operatorText = [...]string{"+", "-", "*", "@", "/", "%", "**", "<<", ">>", "|", "^", "&", "//"}
	unaryText    = [...]string{"~", "not", "+", "-"}
	compareText  = [...]string{"==", "!=", "<", "<=", ">", ">=", "is", "is not", "in", "not in"}
)
