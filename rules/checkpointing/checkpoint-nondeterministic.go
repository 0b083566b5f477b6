package checkpointing

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed checkpoint-nondeterministic.md
var docCheckpointNondeterministic string

// CheckpointNondeterministic finds checkpointed functions that do not do the same a second time.
var CheckpointNondeterministic = &lint.Rule{
	Name:     "checkpoint-nondeterministic",
	Family:   "checkpointing",
	Since:    "0.1",
	Doc:      docCheckpointNondeterministic,
	Severity: lint.Warning,
	Mentions: []string{"checkpoint"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, c := range pass.Checkpoints(module) {
			if (c.Kind == workspace.CheckpointCall || c.Kind == workspace.CheckpointSequential) && (c.Function != nil || c.Decorates != nil) && !pass.WithoutGradients(c.Scope, c.Call) {
				checkAgain(pass, c)
			}
		}
	},
}

func checkAgain(pass *lint.Pass, c *workspace.Checkpoint) {
	forgets := false
	if flag := pass.Arg(c.Scope, c.Frame, c.Call, "preserve_rng_state", -1); flag != nil {
		forgets = pass.Truthy(pass.Expand(flag)) == pyscan.No
	}
	look := &second{pass: pass, forgets: forgets, once: c.Reentrant == pyscan.Yes, seen: map[*pyscan.Scope]bool{}}
	for _, one := range workspace.Alternatives(pass.Target(c)) {
		look.value(one, 4)
	}
	if look.what == "" {
		return
	}
	effect := "backward recomputes with other values: a CheckpointError, or wrong gradients without any word"
	if c.Reentrant == pyscan.Yes {
		effect = "backward recomputes with other values, and gradients are silently wrong"
	}
	if look.counts {
		effect = "it happens twice a step, in forward and again when backward recomputes"
	}
	d := pass.Reportf(at(c), "%s in the checkpointed function: %s", look.what, effect)
	if look.other {
		d.As(lint.Info)
	}
	d.Note(look.at, "here")
	d.Help("move it out of the checkpoint, and pass its result in")
}

// second looks for what is different when a function runs a second time.
type second struct {
	pass    *lint.Pass
	forgets bool // preserve_rng_state=False
	once    bool // gradients are on in one of the two passes only: a reentrant checkpoint runs the first one without them
	seen    map[*pyscan.Scope]bool
	what    string
	at      source.Place
	counts  bool // the state of the module changes, but nothing is computed from it
	other   bool // the state is that of an object which is no module: an allocator's chooses where values are kept, not what they are
}

func (s *second) found(what string, at source.Place) {
	if s.what == "" {
		s.what, s.at = what, at
	}
}

func (s *second) value(value pyscan.Value, depth int) {
	if depth <= 0 || s.what != "" {
		return
	}
	if inst, ok := value.(*pyscan.Instance); ok {
		if s.forgets && s.dropout(inst) {
			s.found("preserve_rng_state=False with dropout", inst.Site().Place())
			return
		}
		for _, element := range s.pass.Elements(inst) {
			s.value(element, depth-1)
		}
	}
	f := s.pass.Called(value)
	if f == nil || s.seen[f.Scope] {
		return
	}
	s.seen[f.Scope] = true
	s.state(f)
	for _, call := range s.pass.Applies(f) {
		if s.pass.WithoutGradients(f.Scope, call.Call) {
			continue
		}
		for _, one := range workspace.Alternatives(call.Callee) {
			s.library(f, call, one)
			s.value(one, depth-1)
		}
	}
}

// dropout reports whether a module drops anything: its rate is not the constant 0.
func (s *second) dropout(inst *pyscan.Instance) bool {
	if !strings.HasPrefix(s.pass.ExternalName(inst.Of), "torch.nn.") || !strings.Contains(s.pass.ExternalName(inst.Of), "Dropout") {
		return false
	}
	if inst.Call == nil || inst.At.Module == nil {
		return true
	}
	p := s.pass.Arg(pyscan.ScopeAt(inst.At.Module, inst.Call), inst.Frame, inst.Call, "p", 0)
	if p == nil {
		return true
	}
	c, ok := s.pass.Constant(s.pass.Settled(p))
	return !ok || c.Truth()
}

// library finds random numbers that PyTorch does not restore.
func (s *second) library(f *pyscan.Func, call workspace.Applied, callee pyscan.Value) {
	name := s.pass.ExternalName(callee)
	at := f.Scope.Module.File.At(call.Call.Span())
	switch {
	case strings.HasPrefix(name, "random.") && !strings.HasSuffix(name, ".seed"), strings.HasPrefix(name, "numpy.random.") && !strings.HasSuffix(name, "seed"):
		if !s.text(f.Scope, call.Call) {
			s.found(name+"()", at)
		}
	case s.forgets && (strings.HasPrefix(name, "torch.nn.functional.") && strings.Contains(name, "dropout")):
		if on := s.pass.Arg(f.Scope, nil, call.Call, "training", 2); on == nil || s.pass.Truthy(s.pass.Expand(on)) != pyscan.No {
			s.found("preserve_rng_state=False with dropout", at)
		}
	}
}

// text reports whether a value becomes text where it is made, str(n) or f"{n}": a label, from which no tensor is computed.
func (s *second) text(scope *pyscan.Scope, node syntax.Node) bool {
	around := workspace.Around(scope, node)
	if len(around) == 0 {
		return false
	}
	found := false
	syntax.Inspect(around[len(around)-1], func(n syntax.Node) bool {
		if n == nil || found || !n.Span().Contains(node.Span()) {
			return false
		}
		switch n := n.(type) {
		case *syntax.JoinedStr:
			found = true
		case *syntax.Call:
			found = n != node && s.pass.Library(scope, nil, n.Func) == "builtins.str"
		}
		return !found
	})
	return found
}

// state finds counters: self.calls += 1.
func (s *second) state(f *pyscan.Func) {
	if f.Self == nil || len(f.Scope.Params) == 0 {
		return
	}
	self := f.Scope.Params[0].Name + "."
	for _, stmt := range f.Scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.FunctionDef, *syntax.ClassDef:
				return false
			case *syntax.AugAssign:
				path := pyscan.Path(n.Target)
				if strings.HasPrefix(path, self) && s.what == "" && !s.pass.WithoutGradients(f.Scope, n) && !optional(f.Scope, n) && !(s.once && s.asksGradients(f.Scope, n) && !readAfter(f.Scope, path, n)) {
					s.found("`"+path+"` changes", f.Scope.Module.File.At(n.Span()))
					s.counts = !readElsewhere(f.Scope, path, n)
					s.other = s.pass.IsA(f.Self, "torch.nn.Module") == pyscan.No
				}
			}
			return true
		})
	}
}

// optional reports whether a statement runs only where the caller gives an argument that is off by default, or outside of training:
// counters of a cache in inference are changed so.
func optional(scope *pyscan.Scope, node syntax.Node) bool {
	around := workspace.Around(scope, node)
	for i, stmt := range around {
		test, ok := stmt.(*syntax.If)
		if !ok || i+1 == len(around) {
			continue
		}
		body := workspace.Within(test.Body, node)
		trains, asked := asksTraining(test.Test)
		if body && asksParameter(scope, test.Test) || asked && trains != body {
			return true
		}
	}
	return false
}

// asksGradients reports whether a statement runs only in one of the passes of a reentrant checkpoint, the second: it asks whether gradients
// are on. What the function reads before it is then the same in both.
func (s *second) asksGradients(scope *pyscan.Scope, node syntax.Node) bool {
	return slices.ContainsFunc(workspace.Around(scope, node), func(stmt syntax.Stmt) bool {
		test, ok := stmt.(*syntax.If)
		if !ok {
			return false
		}
		asks := false
		syntax.Inspect(test.Test, func(n syntax.Node) bool {
			if call, ok := n.(*syntax.Call); ok && s.pass.Library(scope, nil, call.Func) == "torch.is_grad_enabled" {
				asks = true
			}
			return !asks
		})
		return asks
	})
}

// asksParameter reports whether a test names a parameter of which the default is None, False or 0.
func asksParameter(scope *pyscan.Scope, test syntax.Expr) bool {
	found := false
	syntax.Inspect(test, func(n syntax.Node) bool {
		if name, ok := n.(*syntax.Name); ok {
			for _, p := range scope.Params {
				if c, ok := p.Default.(*syntax.Constant); ok && p.Name == name.ID && (c.Kind == syntax.NoneConstant || c.Kind == syntax.FalseConstant || c.Text == "0") {
					found = true
				}
			}
		}
		return !found
	})
	return found
}

// asksTraining reports whether a test is `self.training` or its opposite, and which.
func asksTraining(test syntax.Expr) (trains, asked bool) {
	trains = true
	if not, ok := test.(*syntax.UnaryOp); ok && not.Op == syntax.Not {
		test, trains = not.Operand, false
	}
	return trains, pyscan.PathEnd(test) == "training"
}

// readAfter reports whether a function reads a path after the statement that changes it, or may come back to where it does.
func readAfter(scope *pyscan.Scope, path string, change syntax.Node) bool {
	if workspace.InLoop(scope, change) {
		return true
	}
	found := false
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			if attr, ok := n.(*syntax.Attribute); ok && attr.Span().Start >= change.Span().End && pyscan.Path(attr) == path {
				found = true
			}
			return !found
		})
	}
	return found
}

// readElsewhere reports whether a function reads a path outside the statement that changes it.
func readElsewhere(scope *pyscan.Scope, path string, change syntax.Node) bool {
	found := false
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			if n == change {
				return false
			}
			if attr, ok := n.(*syntax.Attribute); ok && pyscan.Path(attr) == path {
				found = true
			}
			return !found
		})
	}
	return found
}
