package amp

import (
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// mayScale reports whether a function, or its class, uses what by its name scales losses: something that is not
// understood may do it. One that is only made, kept, saved or tested scales nothing.
func mayScale(pass *lint.Pass, scope *pyscan.Scope) bool {
	if class := scope.EnclosingClass(); class != nil {
		scope = class
	}
	type question struct{ scope *pyscan.Scope }
	return lint.Once(pass, question{scope}, func() bool {
		u := scalerUse{pass: pass, scope: scope, depth: handings}
		if scope.Node != nil {
			u.body(scope.Node)
			return u.used
		}
		for _, stmt := range scope.Body() {
			switch stmt.(type) {
			case *syntax.FunctionDef, *syntax.ClassDef:
			default:
				u.visit(stmt)
			}
		}
		return u.used
	})
}

// handings is how many calls a scaler is followed that is handed on.
const handings = 3

// scalerUse looks for a use of a scaler.
type scalerUse struct {
	pass  *lint.Pass
	scope *pyscan.Scope
	depth int
	used  bool
}

// scalerName reports whether an expression is called as scalers are.
func scalerName(n syntax.Node) bool {
	name := strings.ToLower(pyscan.LastName(n))
	return slices.ContainsFunc([]string{"scaler", "loss_scal", "scale_loss", "lossscal"}, func(part string) bool {
		return strings.Contains(name, part)
	})
}

// keeping are the methods of a scaler that scale nothing.
var keeping = map[string]bool{
	"state_dict": true, "load_state_dict": true, "get_scale": true, "is_enabled": true, "get_growth_factor": true,
	"get_backoff_factor": true, "get_growth_interval": true, "to": true,
}

func (u *scalerUse) body(n syntax.Node) { syntax.Children(n, u.visit) }

func (u *scalerUse) visit(n syntax.Node) {
	if u.used || n == nil {
		return
	}
	switch n := n.(type) {
	case *syntax.Arguments: // of a definition: what a parameter is called does nothing
		return
	case *syntax.Assign:
		u.assigned(n.Value, len(n.Targets) > 0 && scalerName(n.Targets[0]))
		return
	case *syntax.AnnAssign:
		if n.Value != nil {
			u.assigned(n.Value, scalerName(n.Target))
		}
		return
	case *syntax.If:
		u.tested(n.Test)
		for _, block := range [][]syntax.Stmt{n.Body, n.OrElse} {
			for _, stmt := range block {
				u.visit(stmt)
			}
		}
		return
	case *syntax.IfExp:
		u.tested(n.Test)
		u.visit(n.Body)
		u.visit(n.OrElse)
		return
	case *syntax.Call:
		u.called(n)
		return
	case *syntax.Name, *syntax.Attribute:
		u.used = scalerName(n)
	}
	u.body(n)
}

// assigned looks at what a name is bound to: one of a scaler is made, or is another scaler.
func (u *scalerUse) assigned(value syntax.Expr, scaler bool) {
	switch value := value.(type) {
	case *syntax.IfExp:
		u.tested(value.Test)
		u.assigned(value.Body, scaler)
		u.assigned(value.OrElse, scaler)
		return
	case *syntax.BoolOp:
		for _, one := range value.Values {
			u.assigned(one, scaler)
		}
		return
	case *syntax.Name, *syntax.Attribute:
		if scaler && scalerName(value) {
			return
		}
	case *syntax.Call:
		if scaler && !scalerName(receiver(value)) {
			u.arguments(value)
			return
		}
	}
	u.visit(value)
}

// tested looks at a test, which scales nothing by what it asks of.
func (u *scalerUse) tested(test syntax.Expr) {
	switch test := test.(type) {
	case *syntax.Name, *syntax.Attribute:
	case *syntax.UnaryOp:
		u.tested(test.Operand)
	case *syntax.BoolOp:
		for _, one := range test.Values {
			u.tested(one)
		}
	case *syntax.Compare:
		u.tested(test.Left)
		for _, one := range test.Comparators {
			u.tested(one)
		}
	default:
		u.visit(test)
	}
}

// called looks at a call: of a scaler, or of a function that is given one.
func (u *scalerUse) called(call *syntax.Call) {
	if pyscan.Path(call.Func) == "isinstance" {
		return
	}
	if attr, is := call.Func.(*syntax.Attribute); is && keeping[attr.Attr] && scalerName(attr.Value) {
		u.arguments(call)
		return
	}
	if strings.HasSuffix(u.pass.Library(u.scope, nil, call.Func), "GradScaler") { // made, for whatever
		u.arguments(call)
		return
	}
	if u.givesScaler(call) && u.depth > 0 {
		f := u.pass.Called(u.pass.Eval(pyscan.ScopeAt(u.scope.Module, call), nil, call.Func))
		if f != nil && f.Scope.Node != nil {
			inner := scalerUse{pass: u.pass, scope: f.Scope, depth: u.depth - 1}
			inner.body(f.Scope.Node)
			u.used = inner.used
			return
		}
	}
	u.visit(call.Func)
	u.arguments(call)
}

// givesScaler reports whether a call hands a scaler on.
func (u *scalerUse) givesScaler(call *syntax.Call) bool {
	return slices.ContainsFunc(call.Args, func(arg syntax.Expr) bool { return scalerName(arg) }) ||
		slices.ContainsFunc(call.Keywords, func(k *syntax.Keyword) bool { return scalerName(k.Value) })
}

func (u *scalerUse) arguments(call *syntax.Call) {
	for _, arg := range call.Args {
		u.visit(arg)
	}
	for _, keyword := range call.Keywords {
		u.visit(keyword.Value)
	}
}

// receiver is what a method is called on; nil for another call.
func receiver(call *syntax.Call) syntax.Node {
	if attr, is := call.Func.(*syntax.Attribute); is {
		return attr.Value
	}
	return nil
}
