package loop

import (
	"strings"
	"sync"

	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// Scaled says whether the loss of a backward is divided so that the gradients of a window average out instead of adding up.
// Yes: some division or weighting that can be it was found; No: the loss is a plain model or criterion output; Maybe: what
// the loss is made of cannot be read.
func (w *Window) Scaled(backward *Event, link Linker) pyscan.Truth {
	s := &scaling{link: link, window: w, seen: map[*pyscan.Def]bool{}}
	if backward.Call != nil && backward.By != Accelerate && backward.By != Fabric && backward.By != Engine {
		for _, k := range backward.Call.Keywords { // loss.backward(gradient=...)
			if k.Arg == "gradient" || k.Arg == "grad_tensors" || k.Arg == "" {
				return pyscan.Yes
			}
			if k.Arg == "create_graph" { // second-order
				return pyscan.Maybe
			}
		}
		if backward.Loss != nil && backward.Receiver == backward.Loss && len(backward.Call.Args) > 0 {
			return pyscan.Yes
		}
	}
	for _, l := range []*Loop{w.Micro, w.Outer} {
		if l != nil && len(l.Deep(GradDivide)) > 0 {
			return pyscan.Yes
		}
	}
	if backward.Loss == nil {
		return pyscan.Maybe
	}
	is := s.expr(backward.Scope, backward.Frame, backward.Loss, 12)
	if is == pyscan.No && (hooked(w.Micro.Scope, link) || hooked(backward.Scope, link)) {
		return pyscan.Maybe
	}
	return is
}

type scaling struct {
	link   Linker
	window *Window
	seen   map[*pyscan.Def]bool
}

func (s *scaling) expr(scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr, depth int) pyscan.Truth {
	if depth <= 0 || e == nil {
		return pyscan.Maybe
	}
	again := func(e syntax.Expr) pyscan.Truth { return s.expr(scope, frame, e, depth-1) }
	switch e := e.(type) {
	case *syntax.Constant:
		return pyscan.Yes // adds nothing to a gradient
	case *syntax.BinOp:
		switch e.Op {
		case syntax.Div, syntax.FloorDiv:
			return again(e.Left).Or(s.divisor(scope, frame, e.Right))
		case syntax.Mult:
			if _, weight := s.link.Eval(scope, frame, e.Left).(*pyscan.Const); weight {
				return again(e.Right)
			}
			if _, weight := s.link.Eval(scope, frame, e.Right).(*pyscan.Const); weight {
				return again(e.Left)
			}
			return again(e.Left).Or(again(e.Right)).Or(s.factor(scope, frame, e.Left)).Or(s.factor(scope, frame, e.Right))
		case syntax.Add, syntax.Sub:
			return s.sum(again(e.Left), again(e.Right))
		}
		return pyscan.Maybe
	case *syntax.UnaryOp:
		return again(e.Operand)
	case *syntax.IfExp:
		return s.either(scope, again(e.Body), again(e.OrElse), func() syntax.Expr { return e.Test })
	case *syntax.NamedExpr:
		return again(e.Value)
	case *syntax.Name:
		if def := scope.Def(e); def != nil {
			return s.def(scope, frame, def, depth).Or(s.inPlace(scope, frame, e, def))
		}
		return s.value(s.link.Expand(s.link.Eval(scope, frame, e)))
	case *syntax.Attribute:
		if def := scope.AttrDef(e); def != nil {
			return s.def(scope, frame, def, depth)
		}
		if e.Attr == "loss" || e.Attr == "logits" {
			return again(e.Value)
		}
		if _, isName := e.Value.(*syntax.Name); isName {
			return pyscan.Maybe
		}
		return again(e.Value)
	case *syntax.Subscript:
		return s.subscript(scope, frame, e, depth)
	case *syntax.Call:
		return s.call(scope, frame, e, depth)
	case *syntax.Await:
		return again(e.Value)
	}
	return pyscan.Maybe
}

// sum is a + b: the whole is scaled only when each part is.
func (s *scaling) sum(a, b pyscan.Truth) pyscan.Truth { return a.And(b) }

// either joins two branches. A division on one of them counts when the test asks whether there is any accumulation.
func (s *scaling) either(scope *pyscan.Scope, a, b pyscan.Truth, of func() syntax.Expr) pyscan.Truth {
	if a == b {
		return a
	}
	if a.Or(b) == pyscan.Yes {
		if test := of(); test != nil {
			return s.asksForAccumulation(scope, test)
		}
	}
	return pyscan.Maybe
}

// asksForAccumulation reads the test around a division: `n > 1`, `if accumulate:` say that without it there is nothing to
// divide; a test of something else (another bound, the number of ranks) leaves the loss undivided in some runs.
func (s *scaling) asksForAccumulation(scope *pyscan.Scope, test syntax.Expr) pyscan.Truth {
	if cmp, ok := test.(*syntax.Compare); ok && len(cmp.Ops) == 1 {
		one := isInt(cmp.Comparators[0], 1) || isInt(cmp.Comparators[0], 0) || isInt(cmp.Comparators[0], 2)
		if number, ok := cmp.Comparators[0].(*syntax.Constant); ok && number.Kind == syntax.IntConstant && s.isN(scope, cmp.Left) {
			return pyscan.Truly(one)
		}
	}
	if mentions(test, []string{"ddp", "distributed", "world_size", "n_gpu", "num_gpus", "use_ddp", "is_distributed", "multi_gpu"}) {
		return pyscan.No
	}
	if s.namesAccumulation(test) {
		return pyscan.Yes
	}
	return pyscan.Maybe
}

func (s *scaling) def(scope *pyscan.Scope, frame *pyscan.Frame, def *pyscan.Def, depth int) pyscan.Truth {
	if s.seen[def] {
		return pyscan.Maybe
	}
	s.seen[def] = true
	defer delete(s.seen, def)
	switch def.Kind {
	case pyscan.AssignDef:
		return s.expr(scope, frame, def.Value, depth-1)
	case pyscan.UnpackDef:
		return s.unpack(scope, frame, def, depth)
	case pyscan.AugDef:
		before := pyscan.Maybe
		if def.Prev() != nil {
			before = s.def(scope, frame, def.Prev(), depth-1)
		}
		switch def.Op {
		case syntax.Div:
			return before.Or(s.divisor(scope, frame, def.Value))
		case syntax.Mult:
			return before.Or(s.factor(scope, frame, def.Value))
		case syntax.Add, syntax.Sub:
			return s.sum(before, s.expr(scope, frame, def.Value, depth-1))
		}
		return pyscan.Maybe
	case pyscan.PhiDef:
		return s.phi(scope, frame, def, depth)
	case pyscan.ParamDef:
		if frame != nil {
			if value, given := s.link.Passed(frame, def.Param()); given {
				return s.value(value)
			}
		}
		return pyscan.Maybe
	}
	return pyscan.Maybe
}

// phi joins the definitions that reach a use. One that was made in an earlier iteration says nothing about this one.
func (s *scaling) phi(scope *pyscan.Scope, frame *pyscan.Frame, def *pyscan.Def, depth int) pyscan.Truth {
	answer, first := pyscan.Maybe, true
	test := sync.OnceValue(func() syntax.Expr { return branchTest(scope, def.Alternatives()) }) // walks the whole function
	for _, alternative := range def.Alternatives() {
		if def.InLoop && len(def.Alternatives()) > 1 && !made(s.window.Micro, alternative) {
			continue
		}
		is := s.def(scope, frame, alternative, depth-1)
		if first {
			answer, first = is, false
			continue
		}
		answer = s.either(scope, answer, is, test)
	}
	return answer
}

// made reports whether a definition stands inside the loop.
func made(l *Loop, def *pyscan.Def) bool {
	return l.Node == nil || def.Node == nil || l.Node.Span().Contains(def.Node.Span())
}

// branchTest is the test of the innermost if around one of the definitions but not around all; nil when there is none.
func branchTest(scope *pyscan.Scope, defs []*pyscan.Def) syntax.Expr {
	var test syntax.Expr
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			branch, ok := n.(*syntax.If)
			if !ok {
				return true
			}
			inside := 0
			for _, def := range defs {
				if def.Node != nil && branch.Span().Contains(def.Node.Span()) {
					inside++
				}
			}
			if inside > 0 && inside < len(defs) || inside == len(defs) && len(branch.OrElse) > 0 {
				test = branch.Test
			}
			return true
		})
	}
	return test
}

// unpack follows `loss, metrics = f(...)` into the tuple that f returns.
func (s *scaling) unpack(scope *pyscan.Scope, frame *pyscan.Frame, def *pyscan.Def, depth int) pyscan.Truth {
	call, ok := def.Value.(*syntax.Call)
	if !ok || len(def.Path()) != 1 || def.Path()[0] < 0 {
		return s.expr(scope, frame, def.Value, depth-1)
	}
	answer, found := pyscan.No, false
	for _, one := range alternatives(s.link.Expand(s.link.Eval(scope, frame, call.Func))) {
		f := s.link.Called(one)
		if f == nil {
			continue
		}
		inner := s.link.Enter(f, call, scope, frame)
		for _, r := range f.Scope.Returns() {
			if tuple, ok := r.Value.(*syntax.Tuple); ok && def.Path()[0] < len(tuple.Elts) && inner != nil {
				found = true
				answer = answer.Or(s.expr(f.Scope, inner, tuple.Elts[def.Path()[0]], depth-1))
			} else {
				answer, found = answer.Or(pyscan.Maybe), true
			}
		}
	}
	if found {
		return answer
	}
	if besideCount(def) {
		return pyscan.Maybe // a sum, which is divided by what it is a sum of
	}
	return s.expr(scope, frame, def.Value, depth-1)
}

// besideCount reports whether the loss is handed out together with how many samples or tokens it is of.
func besideCount(def *pyscan.Def) bool {
	assign, ok := def.Stmt.(*syntax.Assign)
	if !ok {
		return false
	}
	for _, target := range assign.Targets {
		tuple, ok := target.(*syntax.Tuple)
		if !ok {
			continue
		}
		for _, element := range tuple.Elts {
			name := strings.ToLower(pyscan.LastName(element))
			for _, word := range []string{"count", "num_tokens", "ntokens", "n_tokens", "num_items", "sample_size", "num_samples", "n_samples", "denominator"} {
				if strings.Contains(name, word) {
					return true
				}
			}
		}
	}
	return false
}

func (s *scaling) call(scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call, depth int) pyscan.Truth {
	again := func(e syntax.Expr) pyscan.Truth { return s.expr(scope, frame, e, depth-1) }
	callee := s.link.Expand(s.link.Eval(scope, frame, call.Func))
	name := s.link.ExternalName(callee)
	switch name {
	case "torch.div", "torch.true_divide", "torch.divide":
		if len(call.Args) > 1 {
			return again(call.Args[0]).Or(s.divisor(scope, frame, call.Args[1]))
		}
	case "torch.mul", "torch.multiply":
		if len(call.Args) > 1 {
			return again(call.Args[0]).Or(s.factor(scope, frame, call.Args[1]))
		}
	case "torch.mean", "torch.squeeze", "torch.abs":
		if len(call.Args) > 0 {
			return again(call.Args[0])
		}
	case "builtins.sum", "torch.stack", "torch.sum", "torch.dot", "torch.einsum", "torch.add":
		return pyscan.Maybe
	}
	if attr, ok := call.Func.(*syntax.Attribute); ok && name == "" && !ownMethod(s.link, scope, frame, attr) {
		switch attr.Attr {
		case "div", "div_", "divide", "true_divide":
			if len(call.Args) > 0 {
				return again(attr.Value).Or(s.divisor(scope, frame, call.Args[0]))
			}
		case "mul", "mul_", "multiply":
			if len(call.Args) > 0 {
				return again(attr.Value).Or(s.factor(scope, frame, call.Args[0]))
			}
		case "scale":
			if len(call.Args) > 0 {
				return again(call.Args[0])
			}
		case "mean":
			if inner := again(attr.Value); inner == pyscan.Yes || s.tellsCount(scope, attr.Value) {
				return inner
			}
			return pyscan.No // a mean over the micro-batch, whatever it is taken of
		case "float", "to", "squeeze", "half", "cuda", "npu", "view", "reshape", "requires_grad_", "contiguous", "double", "bfloat16":
			return again(attr.Value)
		case "sum":
			if again(attr.Value) == pyscan.Yes {
				return pyscan.Yes
			}
			return pyscan.Maybe // a sum is divided by a count elsewhere, or not: it is no mean
		}
	}
	for _, arg := range call.Args { // a helper that is told the number of micro-batches or tokens divides by it
		if s.isN(scope, arg) || s.namesAccumulation(arg) {
			return s.told(scope, frame, callee, call, depth)
		}
	}
	for _, k := range call.Keywords {
		if s.namesAccumulation(k.Value) || AccumulationName(k.Arg) {
			return s.told(scope, frame, callee, call, depth)
		}
		if k.Arg == "reduction" {
			if c, ok := s.link.Eval(scope, frame, k.Value).(*pyscan.Const); !ok || c.V.Equal(sumReduction) || c.V.Equal(noReduction) {
				return pyscan.Maybe
			}
		}
	}
	return s.called(scope, frame, callee, call, depth)
}

// tellsCount reports whether a call in an expression is given the number of micro-batches or tokens.
func (s *scaling) tellsCount(scope *pyscan.Scope, e syntax.Expr) bool {
	name, ok := e.(*syntax.Name)
	if ok {
		if def := scope.Def(name); def != nil && def.Value != nil {
			return s.namesAccumulation(def.Value)
		}
	}
	return s.namesAccumulation(e)
}

// told is a helper that is given the count: what it returns decides where it can be read, else the count was for dividing.
func (s *scaling) told(scope *pyscan.Scope, frame *pyscan.Frame, callee pyscan.Value, call *syntax.Call, depth int) pyscan.Truth {
	if is := s.called(scope, frame, callee, call, depth); is == pyscan.No && s.readable(callee) {
		return pyscan.No
	}
	return pyscan.Yes
}

func (s *scaling) readable(callee pyscan.Value) bool { return s.link.Called(callee) != nil }

// called is what a call returns: the returns of a project function are read; a model, criterion or torch function gives a
// plain loss; anything else may do what it likes.
func (s *scaling) called(scope *pyscan.Scope, frame *pyscan.Frame, callee pyscan.Value, call *syntax.Call, depth int) pyscan.Truth {
	answer, first := pyscan.Maybe, true
	for _, one := range alternatives(callee) {
		is := s.one(scope, frame, one, call, depth)
		if first {
			answer, first = is, false
		} else if is != answer {
			answer = pyscan.Maybe
		}
	}
	return answer
}

func (s *scaling) one(scope *pyscan.Scope, frame *pyscan.Frame, callee pyscan.Value, call *syntax.Call, depth int) pyscan.Truth {
	if f := s.link.Called(callee); f != nil {
		inner := s.link.Enter(f, call, scope, frame)
		if inner == nil {
			return pyscan.Maybe
		}
		if lambda, ok := f.Scope.Node.(*syntax.Lambda); ok {
			return s.expr(f.Scope, inner, lambda.Body, depth-1)
		}
		answer, first := pyscan.Maybe, true
		for _, r := range f.Scope.Returns() {
			if r.Value == nil {
				continue
			}
			value := r.Value
			if tuple, ok := value.(*syntax.Tuple); ok && len(tuple.Elts) > 0 {
				value = tuple.Elts[0]
			}
			is := s.expr(f.Scope, inner, value, depth-1)
			if first {
				answer, first = is, false
			} else if is != answer {
				answer = pyscan.Maybe
			}
		}
		return answer
	}
	switch callee := callee.(type) {
	case *pyscan.External:
		if strings.HasPrefix(callee.Name, "torch.nn.functional.") {
			return pyscan.No
		}
		return pyscan.Maybe
	case *pyscan.Instance:
		if s.adds(callee) {
			return pyscan.Maybe
		}
		return pyscan.No // a module: model or criterion
	case *pyscan.Wrapped:
		return pyscan.No
	}
	if attr, ok := call.Func.(*syntax.Attribute); ok && ModelName(pyscan.LastName(attr.Value)) {
		return pyscan.No // model.loss(batch)
	}
	switch word := strings.ToLower(pyscan.LastName(call.Func)); {
	case ModelName(word), word == "criterion", word == "loss_fn", word == "loss_func", word == "criterion_fn", strings.HasSuffix(word, "_criterion"), strings.HasSuffix(word, "_loss_fn"),
		word == "cross_entropy", word == "loss_function":
		return pyscan.No
	}
	return pyscan.Maybe
}

// adds reports whether a criterion was made with another reduction than the mean, or with one that is not known.
func (s *scaling) adds(criterion *pyscan.Instance) bool {
	if criterion.Call == nil || criterion.At.Module == nil {
		return false
	}
	for _, k := range criterion.Call.Keywords {
		if k.Arg == "reduction" {
			c, ok := s.link.Eval(pyscan.ScopeAt(criterion.At.Module, criterion.Call), criterion.Frame, k.Value).(*pyscan.Const)
			return !ok || c.V.Equal(sumReduction) || c.V.Equal(noReduction)
		}
	}
	return false
}

// value judges a loss of which only the value is known.
func (s *scaling) value(value pyscan.Value) pyscan.Truth {
	switch value := value.(type) {
	case *pyscan.Op:
		if value.Name == "/" {
			return pyscan.Yes
		}
	case *pyscan.Result:
		if member, ok := value.Of.(*pyscan.Member); ok && member.Name == "mean" {
			return s.value(member.Base)
		}
		for _, one := range alternatives(s.link.Expand(value.Of)) {
			switch one.(type) {
			case *pyscan.Instance, *pyscan.Wrapped:
				return pyscan.No
			}
		}
		if value.Call != nil && ModelName(strings.ToLower(pyscan.LastName(value.Call.Func))) {
			return pyscan.No
		}
	case *pyscan.Element:
		return s.value(value.Base)
	case *pyscan.Member:
		return s.value(value.Base)
	}
	return pyscan.Maybe
}

// divisor says whether dividing by an expression can be the averaging over a window. The number of ranks is none: DDP
// averages over ranks by itself.
func (s *scaling) divisor(scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr) pyscan.Truth {
	if isWorldSize(s.link, scope, frame, e) {
		return pyscan.No
	}
	if c, ok := s.link.Eval(scope, frame, e).(*pyscan.Const); ok {
		if n, ok := c.V.Number(); ok && n == 1 {
			return pyscan.No
		}
	}
	return pyscan.Yes
}

// factor says whether multiplying by an expression can be it: 1 / n, a share, a weight that is computed. A plain constant
// weighs one loss against another.
func (s *scaling) factor(scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr) pyscan.Truth {
	switch inner := e.(type) {
	case *syntax.Constant:
		return pyscan.No
	case *syntax.BinOp:
		if inner.Op == syntax.Div {
			return s.divisor(scope, frame, inner.Right)
		}
	case *syntax.Name:
		if def := scope.Def(inner); def != nil && def.Kind == pyscan.AssignDef && def.Value != nil && len(def.Path()) == 0 {
			return s.factor(scope, frame, def.Value)
		}
	}
	if isWorldSize(s.link, scope, frame, e) {
		return pyscan.No
	}
	if _, ok := s.link.Eval(scope, frame, e).(*pyscan.Const); ok {
		return pyscan.No
	}
	return pyscan.Maybe
}

func isWorldSize(link Linker, scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr) bool {
	for _, one := range alternatives(link.Eval(scope, frame, e)) {
		if result, ok := one.(*pyscan.Result); ok {
			if name := link.ExternalName(result.Of); strings.HasSuffix(name, ".get_world_size") || strings.HasSuffix(name, ".device_count") {
				return true
			}
		}
	}
	name := strings.ToLower(pyscan.LastName(e))
	return name == "world_size" || name == "n_gpu" || name == "num_gpus" || name == "num_processes" || name == "n_gpus"
}

// isN reports whether an expression is the number of micro-batches of the window.
func (s *scaling) isN(scope *pyscan.Scope, e syntax.Expr) bool {
	if s.window.N == nil {
		return AccumulationName(pyscan.LastName(e))
	}
	if scope == s.window.Scope && pyscan.Path(e) != "" && pyscan.Path(e) == pyscan.Path(s.window.N) {
		return true
	}
	return AccumulationName(pyscan.LastName(e))
}

func (s *scaling) namesAccumulation(e syntax.Expr) bool {
	found := false
	size := stride(s.window.Micro)
	syntax.Inspect(e, func(n syntax.Node) bool {
		if one, ok := n.(syntax.Expr); ok && size != "" && pyscan.Path(one) == size {
			return false // the size of a micro-batch, not their number
		}
		switch n := n.(type) {
		case *syntax.Name:
			found = found || AccumulationName(n.ID)
		case *syntax.Attribute:
			found = found || AccumulationName(n.Attr)
		}
		return !found
	})
	return found
}

// stride is the name of the step in `for i in range(0, n, step)`: how many samples a micro-batch has.
func stride(l *Loop) string {
	node, ok := l.Node.(*syntax.For)
	if !ok {
		return ""
	}
	if call, ok := node.Iter.(*syntax.Call); ok && pyscan.LastName(call.Func) == "range" && len(call.Args) == 3 {
		return pyscan.Path(call.Args[2])
	}
	return ""
}

// AccumulationName goes by what the number of micro-batches or of tokens in a window is called.
func AccumulationName(name string) bool {
	if WindowName(name) {
		return true
	}
	name = strings.ToLower(name)
	if strings.Contains(name, "accum") || strings.Contains(name, "microbatch") || strings.Contains(name, "micro_batch") {
		return true
	}
	switch name {
	case "num_items_in_batch", "num_tokens", "total_tokens", "loss_scale_factor", "normalizer", "global_batch_size":
		return true
	}
	return strings.HasSuffix(name, "tokens") && (strings.Contains(name, "valid") || strings.Contains(name, "total") || strings.Contains(name, "num_") || strings.Contains(name, "n_") || strings.Contains(name, "global"))
}

// WindowName goes by what the number of micro-batches in a window is called.
func WindowName(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "gas", "ga_steps", "update_freq", "iters_to_accumulate", "num_micro_batches", "num_microbatches", "n_micro_batches", "micro_batches", "accumulate_grad_batches", "grad_acc", "virtual_batch":
		return true
	}
	if strings.Contains(name, "size") || strings.Contains(name, "token") { // of a micro-batch
		return false
	}
	return strings.Contains(name, "accum") || strings.Contains(name, "microbatch") || strings.Contains(name, "micro_batch") || strings.Contains(name, "grad_acc")
}

var (
	sumReduction = constant.MakeString("sum")
	noReduction  = constant.MakeString("none")
)
