package loop

import (
	"strings"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// CondKind says what a condition tests, as far as training loops have words for it.
type CondKind uint8

// The kinds of conditions.
const (
	UnknownCond CondKind = iota
	Modulo               // counter % N is 0, or counter is the last of N: true once in N iterations
	SyncFlag             // a framework's own boundary: accelerator.sync_gradients, engine.is_gradient_accumulation_boundary()
	First                // the first iteration
	LastOf               // the last iteration of the data or of a known count
	Memory               // the device is nearly full
	Exception            // in an except clause
	Rank                 // one rank only
	Debug                // a verbose, debug or logging flag
	Evaluation           // the model is not in training mode
	Training             // the model is in training mode
	Available            // a device is present: true wherever it matters
	Flag                 // a setting that does not change in the loop
	Overflow             // a loss or gradient that is not finite
)

// Cond is one condition of a guard.
type Cond struct {
	Kind    CondKind
	Negated bool
	Fails   bool // Expr is false where the condition holds
	Expr    syntax.Expr
	Any     []Guard     // of a disjunction: one of them holds
	Arm     syntax.Node // of a match or try statement: the branch, which Expr does not tell
	Scope   *pyscan.Scope
	Frame   *pyscan.Frame
	N       syntax.Expr // Modulo, LastOf: the length of the period
	Counter string      // Modulo: the counting name
	counter syntax.Expr // as it is written
	Offset  int         // Modulo: 0 when it holds at counter 0 first, 1 when after N iterations
	Tail    bool        // Modulo: it also holds at the end of the data
}

// Guard is a conjunction of conditions; empty means always.
type Guard []Cond

// maxGuard bounds the conditions of a guard. Every branch of a chain of elif is under the negations of all before it, so without
// a bound a long chain would cost the square of its length.
const maxGuard = 48

// With is the guard with more conditions. Of a long one the first and the last are kept, with an unknown one for those between.
func (g Guard) With(c ...Cond) Guard {
	all := append(g[:len(g):len(g)], c...)
	if len(all) <= maxGuard {
		return all
	}
	const half = maxGuard / 2
	between := all[half]
	out := make(Guard, 0, maxGuard)
	out = append(out, all[:half]...)
	out = append(out, Cond{Kind: UnknownCond, Scope: between.Scope, Frame: between.Frame})
	return append(out, all[len(all)-half+1:]...)
}

// Has reports whether a condition of the kind, not negated, is part of the guard.
func (g Guard) Has(kind CondKind) bool {
	for _, c := range g {
		if c.Kind == kind && !c.Negated {
			return true
		}
	}
	return false
}

// Implies says whether the guard can only hold when a condition of this kind does.
func (g Guard) Implies(kind CondKind) pyscan.Truth {
	answer := pyscan.No
	for _, c := range g {
		if c.Kind == kind {
			if c.Negated {
				return pyscan.No
			}
			return pyscan.Yes
		}
		if c.Kind == UnknownCond {
			answer = pyscan.Maybe
		}
	}
	return answer
}

// Boundary is the condition that makes the guard hold once a window of micro-batches, or nil.
func (g Guard) Boundary() *Cond {
	for i := range g {
		c := &g[i]
		if !c.Negated && (c.Kind == Modulo || c.Kind == SyncFlag || c.Kind == LastOf) {
			return c
		}
	}
	return nil
}

// Always reports whether the guard holds in every iteration: it is empty, or tests only what is true throughout.
func (g Guard) Always() pyscan.Truth {
	answer := pyscan.Yes
	for _, c := range g {
		switch {
		case c.Kind == Available && !c.Negated, c.Kind == Training && !c.Negated, c.Kind == Evaluation && c.Negated, c.Kind == Overflow && c.Negated,
			c.Kind == Exception && c.Negated, c.Kind == Memory && c.Negated:
		case c.Kind == Flag, c.Kind == UnknownCond, c.Kind == Debug && !c.Negated:
			answer = answer.And(pyscan.Maybe)
		case c.Kind == Rank:
			answer = answer.And(pyscan.Maybe)
		case c.Kind == First && c.Negated, c.Kind == Debug:
		default:
			return pyscan.No
		}
	}
	return answer
}

// conditions splits an expression into the conditions that hold when it is true (or, negated, false).
func (b *builder) conditions(e syntax.Expr, negated bool, depth int) []Cond {
	switch e := e.(type) {
	case *syntax.UnaryOp:
		if e.Op == syntax.Not {
			return b.conditions(e.Operand, !negated, depth)
		}
	case *syntax.BoolOp:
		if (e.Op == syntax.And) != negated {
			var list []Cond
			for _, part := range e.Values {
				list = append(list, b.conditions(part, negated, depth)...)
			}
			return list
		}
		return []Cond{b.disjunction(e, negated, depth)}
	case *syntax.NamedExpr:
		return b.conditions(e.Value, negated, depth)
	case *syntax.Name, *syntax.Attribute:
		if def := b.defOf(e); def != nil && depth < 4 {
			if def.Kind == pyscan.AssignDef && def.Value != nil && isTest(def.Value) {
				return b.conditions(def.Value, negated, depth+1)
			}
			if said := b.passed(def, negated, depth); said != nil {
				return said
			}
		} else if name, ok := e.(*syntax.Name); ok && def == nil && depth < 4 { // a nested function reads what the one around it tested
			if def, scope, frame := closed(name.ID, b.scope, b.frame); def != nil && def.Kind == pyscan.AssignDef && def.Value != nil && isTest(def.Value) {
				outer := *b
				outer.scope, outer.frame = scope, frame
				return outer.conditions(def.Value, negated, depth+1)
			}
		}
	}
	if call, ok := e.(*syntax.Call); ok && depth < 4 {
		if said := b.answered(call, negated, depth); said != nil {
			return said
		}
	}
	c, fails := b.classify(e), negated
	if c.Negated {
		negated = !negated
	}
	c.Negated, c.Fails, c.Expr, c.Scope, c.Frame = negated, fails, e, b.scope, b.frame
	return []Cond{c}
}

func isTest(e syntax.Expr) bool {
	switch e := e.(type) {
	case *syntax.Compare, *syntax.BoolOp:
		return true
	case *syntax.UnaryOp:
		return e.Op == syntax.Not
	case *syntax.Attribute, *syntax.Call:
		return true
	case *syntax.IfExp:
		return false
	}
	return false
}

func (b *builder) defOf(e syntax.Expr) *pyscan.Def {
	switch e := e.(type) {
	case *syntax.Name:
		return b.scope.Def(e)
	case *syntax.Attribute:
		return b.scope.AttrDef(e)
	}
	return nil
}

// disjunction is `a or b` (or a negated `and`): a boundary with a tail when one side is a boundary, else unknown, unless
// both say the same.
func (b *builder) disjunction(e *syntax.BoolOp, negated bool, depth int) Cond {
	out := Cond{Kind: UnknownCond, Fails: negated, Expr: e, Scope: b.scope, Frame: b.frame}
	var parts []Cond
	for _, value := range e.Values {
		list := b.conditions(value, negated, depth)
		if out.Any = append(out.Any, list); len(list) == 1 {
			parts = append(parts, list[0])
		}
	}
	if len(parts) < len(e.Values) {
		return out
	}
	var boundary *Cond
	tail, alike := false, true
	for i := range parts {
		p := &parts[i]
		switch {
		case !p.Negated && (p.Kind == Modulo || p.Kind == SyncFlag):
			boundary, tail = p, tail || p.Tail
		case !p.Negated && p.Kind == LastOf:
			tail = true
		}
		alike = alike && p.Kind == parts[0].Kind && p.Negated == parts[0].Negated
	}
	if boundary != nil {
		out.Kind, out.N, out.Counter, out.Offset, out.Tail = boundary.Kind, boundary.N, boundary.Counter, boundary.Offset, tail
		out.counter = boundary.counter
		return out
	}
	if alike {
		any := out.Any
		out = parts[0]
		out.Expr, out.Any, out.Fails = e, any, negated
	}
	return out
}

// classify says what one test is about.
func (b *builder) classify(e syntax.Expr) Cond {
	switch e := e.(type) {
	case *syntax.Constant:
		return Cond{Kind: Available, Negated: e.Kind == syntax.FalseConstant || e.Kind == syntax.NoneConstant}
	case *syntax.Compare:
		return b.comparison(e)
	case *syntax.BinOp:
		if e.Op == syntax.Mod { // `if (i + 1) % n:` holds off the boundary
			if c, ok := b.modulo(e, false); ok {
				c.Negated = true
				return c
			}
		}
	case *syntax.Call:
		return b.callTest(e)
	case *syntax.Attribute:
		return Cond{Kind: namedTest(e.Attr)}
	case *syntax.Name:
		if def := b.scope.Def(e); def != nil && (def.Kind == pyscan.PhiDef || def.Kind == pyscan.AugDef) {
			if kind := namedTest(e.ID); kind != Flag {
				return Cond{Kind: kind}
			}
			return Cond{Kind: UnknownCond}
		}
		return Cond{Kind: namedTest(e.ID)}
	}
	return Cond{Kind: UnknownCond}
}

// namedTest goes by the words that flags are called; what says nothing is a flag.
func namedTest(name string) CondKind {
	name = strings.ToLower(name)
	switch {
	case name == "sync_gradients", strings.Contains(name, "accumulation_boundary"), name == "is_boundary":
		return SyncFlag
	case name == "training", name == "is_training":
		return Training
	case strings.Contains(name, "oom"):
		return Memory
	case strings.Contains(name, "main_process"), strings.Contains(name, "is_main"), strings.Contains(name, "is_master"), strings.Contains(name, "master_process"),
		strings.Contains(name, "is_rank"), strings.Contains(name, "rank_zero"), strings.Contains(name, "is_global_zero"), strings.Contains(name, "rank0"):
		return Rank
	case strings.Contains(name, "debug"), strings.Contains(name, "verbose"), strings.HasPrefix(name, "log"), strings.Contains(name, "_log"), strings.Contains(name, "profil"):
		return Debug
	case strings.HasPrefix(name, "is_last"), strings.HasPrefix(name, "last_"), name == "last":
		return LastOf
	case strings.HasPrefix(name, "is_first"), strings.HasPrefix(name, "first_"):
		return First
	case strings.Contains(name, "eval"), strings.Contains(name, "inference"):
		return Evaluation
	}
	return Flag
}

func (b *builder) callTest(call *syntax.Call) Cond {
	name := strings.ToLower(pyscan.LastName(call.Func))
	switch {
	case strings.Contains(name, "accumulation_boundary"):
		return Cond{Kind: SyncFlag}
	case name == "is_available", name == "is_npu_available", name == "is_torch_npu_available", name == "is_initialized", name == "hasattr", name == "is_cuda_available",
		name == "isinstance":
		return Cond{Kind: Available}
	case name == "isfinite", name == "all":
		return Cond{Kind: Overflow, Negated: true}
	case name == "isnan", name == "isinf", name == "any":
		return Cond{Kind: Overflow}
	case strings.Contains(name, "is_main"), strings.Contains(name, "is_rank"), strings.Contains(name, "is_master"), strings.Contains(name, "rank_0"), strings.Contains(name, "is_global_zero"):
		return Cond{Kind: Rank}
	case strings.Contains(name, "memory"), strings.Contains(name, "oom"):
		return Cond{Kind: Memory}
	}
	return Cond{Kind: UnknownCond}
}

// comparison reads `x op y`.
func (b *builder) comparison(e *syntax.Compare) Cond {
	if len(e.Ops) != 1 {
		return Cond{Kind: UnknownCond}
	}
	left, right, op := e.Left, e.Comparators[0], e.Ops[0]
	switch op {
	case syntax.In, syntax.NotIn:
		if text, ok := left.(*syntax.Constant); ok && strings.Contains(strings.ToLower(text.Text), "memory") {
			return Cond{Kind: Memory, Negated: op == syntax.NotIn}
		}
		return Cond{Kind: UnknownCond}
	case syntax.Is, syntax.IsNot:
		return Cond{Kind: Flag}
	case syntax.Eq, syntax.NotEq:
		if c, ok := b.equality(left, right); ok {
			c.Negated = op == syntax.NotEq
			return c
		}
		if c, ok := b.equality(right, left); ok {
			c.Negated = op == syntax.NotEq
			return c
		}
	}
	if mentions(left, memoryWords) || mentions(right, memoryWords) {
		return Cond{Kind: Memory}
	}
	if mentions(left, rankWords) {
		zero := isInt(right, 0)
		return Cond{Kind: Rank, Negated: op == syntax.NotEq || op == syntax.Gt && zero}
	}
	switch op {
	case syntax.GtE, syntax.Gt: // count >= n, i >= n - 1: the counter is set back
		if b.counts(left) {
			n, offset := b.lessOne(right)
			if b.resets(left) {
				return Cond{Kind: Modulo, N: n, Counter: pyscan.Path(left), counter: left, Offset: 1}
			}
			if offset == 1 {
				return Cond{Kind: LastOf, N: n, Counter: pyscan.Path(left), counter: left}
			}
		}
		if isInt(right, 0) && op == syntax.Gt && b.iterates(left) {
			return Cond{Kind: First, Negated: true}
		}
	case syntax.Lt, syntax.LtE: // count < n, where the counter is set back: off the boundary
		if b.counts(left) && b.resets(left) {
			n, _ := b.lessOne(right)
			return Cond{Kind: Modulo, Negated: true, N: n, Counter: pyscan.Path(left), counter: left, Offset: 1}
		}
		if op == syntax.LtE {
			break
		}
		// i < n - 1: all but the last
		if n, offset := b.lessOne(right); offset == 1 && (b.iterates(left) || b.counts(left)) {
			return Cond{Kind: LastOf, Negated: true, N: n, Counter: pyscan.Path(left), counter: left}
		}
		if plus, ok := left.(*syntax.BinOp); ok && plus.Op == syntax.Add && isInt(plus.Right, 1) && (b.iterates(plus.Left) || b.counts(plus.Left)) {
			return Cond{Kind: LastOf, Negated: true, N: right, Counter: pyscan.Path(plus.Left), counter: plus.Left}
		}
	}
	if b.steady(left) && b.steady(right) {
		return Cond{Kind: Flag}
	}
	return Cond{Kind: UnknownCond}
}

var (
	memoryWords = []string{"memory_reserved", "memory_allocated", "mem_get_info", "max_memory", "memory_usage", "used_memory", "free_memory", "memory_ratio", "memory_threshold", "mem_usage"}
	rankWords   = []string{"rank", "local_rank", "get_rank", "global_rank", "process_index", "world_rank"}
)

// equality reads x == y for a boundary: i % n == 0, (i + 1) % n == 0, i % n == n - 1, i == n - 1, i + 1 == len(loader), count == n.
func (b *builder) equality(left, right syntax.Expr) (Cond, bool) {
	if mod, ok := left.(*syntax.BinOp); ok && mod.Op == syntax.Mod {
		if isInt(right, 0) {
			return b.modulo(mod, true)
		}
		if _, offset := b.lessOne(right); offset == 1 {
			return Cond{Kind: Modulo, N: mod.Right, Counter: pyscan.Path(mod.Left), counter: mod.Left, Offset: 1}, true
		}
		return Cond{Kind: UnknownCond}, true
	}
	counter := left
	plusOne := false
	if plus, ok := left.(*syntax.BinOp); ok && plus.Op == syntax.Add && isInt(plus.Right, 1) {
		counter, plusOne = plus.Left, true
	}
	if !b.iterates(counter) && !b.counts(counter) {
		return Cond{}, false
	}
	n, offset := b.lessOne(right)
	switch {
	case isInt(right, 0) && !plusOne:
		if b.counts(counter) && b.resets(counter) {
			return Cond{Kind: UnknownCond}, true
		}
		return Cond{Kind: First}, true
	case plusOne, offset == 1, b.fromOne(counter):
		return Cond{Kind: LastOf, N: n, Counter: pyscan.Path(counter), counter: counter}, true
	case b.counts(counter) && b.resets(counter):
		return Cond{Kind: Modulo, N: right, Counter: pyscan.Path(counter), counter: counter, Offset: 1}, true
	}
	return Cond{}, false
}

// fromOne reports whether a name is the index of an enumerate that starts at 1.
func (b *builder) fromOne(e syntax.Expr) bool {
	def := b.defOf(e)
	if def == nil || def.Kind != pyscan.IterDef || len(def.Path()) == 0 || def.Path()[0] != 0 {
		return false
	}
	iter := def.Value
	for range 3 {
		call, ok := iter.(*syntax.Call)
		if !ok || len(call.Args) == 0 {
			return false
		}
		if pyscan.LastName(call.Func) != "enumerate" { // tqdm(enumerate(data, 1))
			iter = call.Args[0]
			continue
		}
		for _, k := range call.Keywords {
			if k.Arg == "start" {
				return isInt(k.Value, 1)
			}
		}
		return len(call.Args) > 1 && isInt(call.Args[1], 1)
	}
	return false
}

// modulo reads counter % n, alone or with + 1.
func (b *builder) modulo(mod *syntax.BinOp, _ bool) (Cond, bool) {
	counter, offset := mod.Left, 0
	if plus, ok := counter.(*syntax.BinOp); ok && plus.Op == syntax.Add {
		if isInt(plus.Right, 1) {
			counter, offset = plus.Left, 1
		} else if isInt(plus.Left, 1) {
			counter, offset = plus.Right, 1
		}
	}
	if b.measures(counter) {
		return Cond{Kind: UnknownCond}, true
	}
	if def := b.defOf(counter); offset == 0 && def != nil && def.Kind == pyscan.AugDef { // counted up before the test
		offset = 1
	}
	return Cond{Kind: Modulo, N: mod.Right, Counter: pyscan.Path(counter), counter: counter, Offset: offset}, true
}

// measures reports whether an expression is the size of a tensor or of a batch: what is left of it behind a division is no count of
// iterations. The length of a list that grows may be one.
func (b *builder) measures(e syntax.Expr) bool {
	switch e := e.(type) {
	case *syntax.Call:
		switch pyscan.LastName(e.Func) {
		case "size", "numel", "nelement":
			return true
		case "len":
			return len(e.Args) == 1 && b.iterates(e.Args[0])
		}
	case *syntax.Subscript:
		return pyscan.LastName(e.Value) == "shape" || b.measures(e.Value)
	case *syntax.Name:
		def := b.scope.Def(e)
		if def == nil || def.Kind != pyscan.AssignDef || len(def.Path()) > 0 {
			return false
		}
		switch def.Value.(type) {
		case *syntax.Call, *syntax.Subscript:
			return b.measures(def.Value)
		}
	}
	return false
}

// lessOne takes n - 1 apart: (n, 1); anything else is (e, 0).
func (b *builder) lessOne(e syntax.Expr) (syntax.Expr, int) {
	if minus, ok := e.(*syntax.BinOp); ok && minus.Op == syntax.Sub && isInt(minus.Right, 1) {
		return minus.Left, 1
	}
	if name, ok := e.(*syntax.Name); ok {
		if def := b.scope.Def(name); def != nil && def.Kind == pyscan.AssignDef && def.Value != nil && len(def.Path()) == 0 {
			if minus, ok := def.Value.(*syntax.BinOp); ok && minus.Op == syntax.Sub && isInt(minus.Right, 1) {
				return minus.Left, 1
			}
		}
	}
	return e, 0
}

func isInt(e syntax.Expr, n int) bool {
	c, ok := e.(*syntax.Constant)
	return ok && c.Kind == syntax.IntConstant && len(c.Text) == 1 && int(c.Text[0]-'0') == n
}

// iterates reports whether a name is a loop target (the index of enumerate or range among them).
func (b *builder) iterates(e syntax.Expr) bool {
	def := b.defOf(e)
	return def != nil && def.Kind == pyscan.IterDef
}

// counts reports whether a name or attribute is counted up somewhere in the function.
func (b *builder) counts(e syntax.Expr) bool {
	path := pyscan.Path(e)
	if path == "" {
		return false
	}
	for _, def := range b.scope.Defs(path) {
		if def.Kind == pyscan.AugDef && def.Op == syntax.Add {
			return true
		}
		if def.Kind == pyscan.AssignDef && def.Value != nil {
			if plus, ok := def.Value.(*syntax.BinOp); ok && plus.Op == syntax.Add && pyscan.Path(plus.Left) == path {
				return true
			}
		}
	}
	return false
}

// resets reports whether a counter is set back to a constant more than once: before the loop and at the boundary.
func (b *builder) resets(e syntax.Expr) bool {
	count := 0
	for _, def := range b.scope.Defs(pyscan.Path(e)) {
		if def.Kind == pyscan.AssignDef && isInt(def.Value, 0) {
			count++
		}
	}
	return count >= 2 || count == 1 && strings.Contains(pyscan.Path(e), ".")
}

// steady reports whether an expression is the same in every iteration: settings and constants.
func (b *builder) steady(e syntax.Expr) bool {
	switch e := e.(type) {
	case *syntax.Constant:
		return true
	case *syntax.Name:
		def := b.scope.Def(e)
		return def == nil || def.Kind == pyscan.ParamDef || def.Kind == pyscan.ImportDef || def.Kind == pyscan.AssignDef && def.Value != nil && b.steady(def.Value)
	case *syntax.Attribute:
		return b.scope.AttrDef(e) == nil && b.steady(e.Value)
	case *syntax.UnaryOp:
		return b.steady(e.Operand)
	case *syntax.BinOp:
		return b.steady(e.Left) && b.steady(e.Right)
	}
	return false
}

func mentions(e syntax.Expr, words []string) bool {
	found := false
	syntax.Inspect(e, func(n syntax.Node) bool {
		name := pyscan.LastName(n)
		for _, word := range words {
			found = found || name == word || strings.HasSuffix(name, "_"+word)
		}
		return !found
	})
	return found
}
