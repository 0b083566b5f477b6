package workspace

import (
	"cmp"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// embeddingClasses look up rows of a table by integer ids.
var embeddingClasses = []string{"torch.nn.Embedding", "torch.nn.EmbeddingBag", "bitsandbytes.nn.StableEmbedding", "bitsandbytes.nn.Embedding",
	"megatron.core.tensor_parallel.VocabParallelEmbedding", "megatron.mpu.VocabParallelEmbedding", "fairscale.nn.model_parallel.ParallelEmbedding",
	"fairscale.nn.model_parallel.layers.ParallelEmbedding", "fairscale.nn.model_parallel.VocabParallelEmbedding", "colossalai.nn.layer.VocabParallelEmbedding1D"}

// linearClasses are matrix products whose second argument is the number of output features.
var linearClasses = []string{"torch.nn.Linear", "megatron.core.tensor_parallel.ColumnParallelLinear", "megatron.mpu.ColumnParallelLinear",
	"fairscale.nn.model_parallel.ColumnParallelLinear", "fairscale.nn.model_parallel.layers.ColumnParallelLinear", "bitsandbytes.nn.Linear8bitLt", "transformer_engine.pytorch.Linear"}

// Embedding says whether a value is an embedding table (or its forward method). frozen is Yes where its weight is known
// not to train.
func (v *View) Embedding(value pyscan.Value) (is, frozen pyscan.Truth) {
	switch value := value.(type) {
	case *pyscan.Instance:
		return v.Derives(value.Of, embeddingClasses...), pyscan.No
	case *pyscan.Func:
		if value.Scope.Name == "forward" && value.Self != nil {
			return v.Embedding(value.Self)
		}
	case *pyscan.Member:
		if value.Name == "forward" || value.Name == "__call__" {
			return v.Embedding(value.Base)
		}
		if v.opaqueModel(value.Base) && embeddingLeaves[value.Name] {
			return pyscan.Yes, pyscan.Maybe
		}
		return pyscan.Maybe, pyscan.Maybe
	case *pyscan.Result:
		if member, ok := value.Of.(*pyscan.Member); ok && member.Name == "get_input_embeddings" {
			return pyscan.Yes, pyscan.Maybe
		}
		if name := v.ExternalName(value.Of); name == "torch.nn.Embedding.from_pretrained" || name == "torch.nn.EmbeddingBag.from_pretrained" {
			frozen = pyscan.Yes // freeze=True is the default
			if value.Call != nil {
				if flag := v.arg(v.scopeOfCall(value), value.Frame, value.Call, "freeze", 1); flag != nil {
					frozen = v.Truthy(flag)
				}
			}
			return pyscan.Yes, frozen
		}
	}
	return pyscan.No, pyscan.No
}

// Head says whether a value is an output head: a linear layer to the vocabulary. leaf is the attribute name under which it
// is used, "" where it has none.
func (v *View) Head(value pyscan.Value, leaf string) pyscan.Truth {
	switch value := value.(type) {
	case *pyscan.Instance:
		if v.Derives(value.Of, linearClasses...) != pyscan.Yes {
			return pyscan.No
		}
		if headLeaves[leaf] {
			return pyscan.Yes
		}
		if e := outputs(value); e != nil {
			return pyscan.Truly(mentionsVocabulary(e))
		}
		return pyscan.No
	case *pyscan.Func:
		if value.Scope.Name == "forward" && value.Self != nil {
			return v.Head(value.Self, leaf)
		}
	case *pyscan.Member:
		if value.Name == "forward" || value.Name == "__call__" {
			return v.Head(value.Base, leaf)
		}
		if v.opaqueModel(value.Base) && headLeaves[value.Name] {
			return pyscan.Yes
		}
	case *pyscan.Result:
		if member, ok := value.Of.(*pyscan.Member); ok && member.Name == "get_output_embeddings" {
			return pyscan.Yes
		}
	}
	return pyscan.No
}

// opaqueModel reports whether a value is a model of a library whose classes are not read: AutoModel....from_pretrained(...),
// an attribute of one, or `self` of a class that derives from one.
func (v *View) opaqueModel(value pyscan.Value) bool {
	for range 8 {
		switch one := v.Expand(value).(type) {
		case *pyscan.Member:
			value = one.Base
			continue
		case *pyscan.Result:
			name := v.ExternalName(one.Of)
			return strings.HasPrefix(name, "transformers.") && (strings.HasSuffix(name, ".from_pretrained") || strings.HasSuffix(name, ".from_config"))
		case *pyscan.Instance:
			name := v.ExternalName(one.Of)
			if name == "" {
				name = v.ExternalBase(one.Of)
			}
			last := pyscan.LastPart(name)
			return strings.HasPrefix(name, "transformers.") && (strings.Contains(last, "Model") || strings.Contains(last, "For"))
		case *pyscan.Wrapped:
			value = one.Inner
			continue
		}
		return false
	}
	return false
}

// Applied is a call inside a function, as seen from it.
type Applied struct {
	Call   *syntax.Call
	Callee pyscan.Value
	Leaf   string // the attribute or name that is called
	Params []int  // indices of the function's parameters that are passed directly (a *args counts as its parameter)
}

// Applies lists the calls in the body of a function in program order, with the parameters of the function that each is
// given directly. Nested functions are left out.
func (v *View) Applies(f *pyscan.Func) []Applied {
	frame := v.Enter(f, nil, nil, nil)
	var list []Applied
	visit := func(root syntax.Node) {
		syntax.Inspect(root, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.FunctionDef, *syntax.ClassDef, *syntax.Lambda:
				return n == root
			case *syntax.Call:
				a := Applied{Call: n, Callee: v.Expand(v.Eval(f.Scope, frame, n.Func)), Leaf: leafOf(n.Func)}
				for _, arg := range n.Args {
					if star, ok := arg.(*syntax.Starred); ok {
						arg = star.Value
					}
					if name, ok := arg.(*syntax.Name); ok {
						if def := f.Scope.Def(name); def != nil && def.Kind == pyscan.ParamDef {
							a.Params = append(a.Params, def.Param())
						}
					}
				}
				list = append(list, a)
			}
			return true
		})
	}
	if lambda, ok := f.Scope.Node.(*syntax.Lambda); ok {
		visit(lambda.Body)
	} else {
		for _, stmt := range f.Scope.Body() {
			visit(stmt)
		}
	}
	return list
}

func leafOf(e syntax.Expr) string {
	switch e := e.(type) {
	case *syntax.Attribute:
		if e.Attr == "forward" || e.Attr == "__call__" {
			return leafOf(e.Value)
		}
		return e.Attr
	case *syntax.Name:
		return e.ID
	}
	return ""
}

// Leaf is the attribute or name that an expression ends in, `forward` left out.
func Leaf(e syntax.Expr) string { return leafOf(e) }

// InLoop reports whether a node stands in a loop of its function, as a statement; comprehensions aside.
func InLoop(scope *pyscan.Scope, node syntax.Node) bool {
	return slices.ContainsFunc(Around(scope, node), func(stmt syntax.Stmt) bool {
		switch stmt.(type) {
		case *syntax.For, *syntax.While:
			return true
		}
		return false
	})
}

// Around lists the statements that hold a node inside its function, outermost first, and whether the node lies in the else
// part of an if.
func Around(scope *pyscan.Scope, node syntax.Node) []syntax.Stmt {
	var list []syntax.Stmt
	body := scope.Body()
	for {
		i := holding(body, node)
		if i < 0 {
			return list
		}
		next := body[i]
		list = append(list, next)
		body = nil
		for _, block := range Blocks(next) {
			if Within(block, node) {
				body = block
			}
		}
	}
}

// holding is the index of the statement of a block that holds a node, -1 where none does. Statements come one after another: the first
// that does not end before the node is the only one that can.
func holding(block []syntax.Stmt, node syntax.Node) int {
	at := node.Span()
	i, _ := slices.BinarySearchFunc(block, at.End, func(stmt syntax.Stmt, end uint32) int { return cmp.Compare(stmt.Span().End, end) })
	if i < len(block) && block[i].Span().Contains(at) {
		return i
	}
	return -1
}

// NamesAny reports whether an expression, as written, holds a name, attribute or text of which one of the words, in lower case, is part.
func NamesAny(e syntax.Node, words ...string) bool {
	found := false
	syntax.Inspect(e, func(n syntax.Node) bool {
		text := pyscan.LastName(n)
		if c, ok := n.(*syntax.Constant); ok {
			text = c.Text
		}
		text = strings.ToLower(text)
		for _, word := range words {
			found = found || strings.Contains(text, word)
		}
		return !found
	})
	return found
}

// Within reports whether a node lies in a block of statements.
func Within(block []syntax.Stmt, node syntax.Node) bool {
	return len(block) > 0 && block[0].Span().Start <= node.Span().Start && node.Span().End <= block[len(block)-1].Span().End
}

// Blocks are the statement lists of a compound statement; none for any other node.
func Blocks(stmt syntax.Node) [][]syntax.Stmt {
	switch s := stmt.(type) {
	case *syntax.If:
		return [][]syntax.Stmt{s.Body, s.OrElse}
	case *syntax.For:
		return [][]syntax.Stmt{s.Body, s.OrElse}
	case *syntax.While:
		return [][]syntax.Stmt{s.Body, s.OrElse}
	case *syntax.With:
		return [][]syntax.Stmt{s.Body}
	case *syntax.Try:
		list := [][]syntax.Stmt{s.Body, s.OrElse, s.Final}
		for _, h := range s.Handlers {
			list = append(list, h.Body)
		}
		return list
	case *syntax.Match:
		var list [][]syntax.Stmt
		for _, c := range s.Cases {
			list = append(list, c.Body)
		}
		return list
	}
	return nil
}

// WithoutGradients reports whether a node runs where no gradients are wanted: under torch.no_grad or inference_mode, in a
// function so decorated, or in a branch for evaluation.
func (v *View) WithoutGradients(scope *pyscan.Scope, node syntax.Node) bool {
	for s := scope; s != nil; s = s.Parent {
		for _, stmt := range Around(s, node) {
			switch stmt := stmt.(type) {
			case *syntax.With:
				if v.withoutGrad(s, stmt) {
					return true
				}
			case *syntax.If:
				inBody := Within(stmt.Body, node)
				if test, negated := stripNot(stmt.Test); isTraining(test) && negated == inBody {
					return true
				}
			}
		}
		if def := s.Function(); def != nil && s.Parent != nil {
			for _, d := range def.Decorators {
				if noGrad(v, v.Eval(s.Parent, nil, d)) || v.switchesOff(s.Parent, d) {
					return true
				}
			}
		}
	}
	return false
}

// switchesOff reports whether a decorator or context is a function of the project, or what one gives, that speaks of no_grad or
// inference_mode: a choice between the two by the release of torch, a context manager around one.
func (v *View) switchesOff(scope *pyscan.Scope, e syntax.Expr) bool {
	if call, ok := e.(*syntax.Call); ok {
		e = call.Func
	}
	switch e.(type) {
	case *syntax.Name, *syntax.Attribute:
	default:
		return false
	}
	if name := pyscan.LastName(e); name == "no_grad" || name == "inference_mode" { // also where it is not seen whose: torch may come through a star import
		return true
	}
	f := v.calledFunc(v.Expand(v.Eval(scope, nil, e)))
	if f == nil || f.Scope.Node == nil {
		return false
	}
	return answered(&v.eval.switches, f.Scope, func() bool {
		text := f.Scope.Module.Code(f.Scope.Node.Span())
		return strings.Contains(text, "inference_mode") || strings.Contains(text, "no_grad")
	})
}

// withoutGrad reports whether one of the contexts of a with statement switches gradients off.
func (v *View) withoutGrad(scope *pyscan.Scope, with *syntax.With) bool {
	return answered(&v.eval.gradless, with, func() bool {
		return slices.ContainsFunc(with.Items, func(item *syntax.WithItem) bool {
			return noGrad(v, v.Eval(scope, nil, item.Context)) || v.switchesOff(scope, item.Context)
		})
	})
}

func stripNot(e syntax.Expr) (syntax.Expr, bool) {
	if not, ok := e.(*syntax.UnaryOp); ok && not.Op == syntax.Not {
		return not.Operand, true
	}
	return e, false
}

// isTraining reports whether a test is `self.training` (also as one part of an `and`).
func isTraining(e syntax.Expr) bool {
	switch e := e.(type) {
	case *syntax.Attribute:
		return e.Attr == "training"
	}
	return false
}

func noGrad(v *View, value pyscan.Value) bool {
	for _, one := range Alternatives(value) {
		name := v.ExternalName(one)
		switch one := one.(type) {
		case *pyscan.Result:
			name = v.ExternalName(one.Of)
		case *pyscan.Instance:
			name = v.ExternalName(one.Of)
		}
		if name == "torch.no_grad" || name == "torch.inference_mode" {
			return true
		}
	}
	return false
}

// Frozen reports whether the weight of a module attribute is switched off somewhere in its class: requires_grad_(False) on
// it, or a loop over its parameters that clears requires_grad.
func (v *View) Frozen(scope *pyscan.Scope, module syntax.Expr) bool {
	path := pyscan.Path(module)
	class := scope
	for class != nil && class.Kind != pyscan.ClassScope {
		class = class.Parent
	}
	if path == "" || class == nil {
		return false
	}
	off := answered(&v.eval.frozen, class, func() frozenPaths { return frozenIn(class.Node) })
	at, _ := slices.BinarySearch(off.parts, path+".") // what begins so stands there, if anywhere
	return off.whole[path] || at < len(off.parts) && strings.HasPrefix(off.parts[at], path+".")
}

// frozenPaths are what a class freezes.
type frozenPaths struct {
	whole map[string]bool // modules of which a loop freezes all parameters
	parts []string        // paths of weights, sorted, and of modules with a dot behind them
}

func frozenIn(class syntax.Node) frozenPaths {
	off := frozenPaths{whole: map[string]bool{}}
	add := func(frozen bool, path string) {
		if frozen {
			off.parts = append(off.parts, path)
		}
	}
	syntax.Inspect(class, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Call: // self.wte.requires_grad_(False), self.wte.weight.requires_grad_(False)
			if attr, ok := n.Func.(*syntax.Attribute); ok && attr.Attr == "requires_grad_" && len(n.Args) == 1 {
				add(isFalse(n.Args[0]), pyscan.Path(attr.Value)+".")
			}
		case *syntax.Assign: // self.wte.weight.requires_grad = False
			if attr, ok := n.Targets[0].(*syntax.Attribute); ok && attr.Attr == "requires_grad" {
				add(isFalse(n.Value), pyscan.Path(attr.Value))
			}
		case *syntax.For: // for p in self.wte.parameters(): p.requires_grad = False
			call, ok := n.Iter.(*syntax.Call)
			if !ok {
				break
			}
			path, all := strings.CutSuffix(pyscan.Path(call.Func), ".parameters")
			if !all {
				break
			}
			for _, stmt := range n.Body {
				if assign, ok := stmt.(*syntax.Assign); ok {
					if attr, ok := assign.Targets[0].(*syntax.Attribute); ok && attr.Attr == "requires_grad" {
						off.whole[path] = off.whole[path] || isFalse(assign.Value)
					}
				}
			}
		}
		return true
	})
	slices.Sort(off.parts)
	return off
}

func isFalse(e syntax.Expr) bool {
	c, ok := e.(*syntax.Constant)
	return ok && c.Kind == syntax.FalseConstant
}

// TiedEmbedding is the statement of the class around a scope that shares the weight of a module with another one
// (`self.lm_head.weight = self.wte.weight`), or nil.
func (v *View) TiedEmbedding(scope *pyscan.Scope, module syntax.Expr) syntax.Stmt {
	path := pyscan.Path(module)
	class := scope
	for class != nil && class.Kind != pyscan.ClassScope {
		class = class.Parent
	}
	if path == "" || class == nil {
		return nil
	}
	var tied syntax.Stmt
	syntax.Inspect(class.Node, func(n syntax.Node) bool {
		if assign, ok := n.(*syntax.Assign); ok && tied == nil {
			target, value := pyscan.Path(assign.Targets[0]), pyscan.Path(assign.Value)
			if strings.HasSuffix(target, ".weight") && strings.HasSuffix(value, ".weight") && (target == path+".weight" || value == path+".weight") {
				tied = assign
			}
		}
		return tied == nil
	})
	return tied
}
