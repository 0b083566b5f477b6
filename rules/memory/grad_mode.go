package memory

import (
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// gradients says whether gradients are on where a node runs, by the contexts around it and around the calls of its function: Yes
// only where all callers are known. It is Maybe where nobody is seen to call the function.
func gradients(pass *lint.Pass, scope *pyscan.Scope, node syntax.Node, depth int) pyscan.Truth {
	if pass.WithoutGradients(scope, node) {
		return pyscan.No
	}
	if scope.Module.Says("set_grad_enabled") {
		return pyscan.Maybe
	}
	function := scope.EnclosingFunction()
	if function.Kind == pyscan.ModuleScope {
		return pyscan.Yes
	}
	if depth < callerDepth && runsBackward(function) {
		return pyscan.Yes // it could not compute gradients otherwise
	}
	sites := pass.Callers(function)
	if len(sites) == 0 || depth <= 0 {
		return pyscan.Maybe
	}
	answer := pyscan.Yes
	for _, site := range sites {
		answer = answer.And(gradients(pass, site.Scope, site.Call, depth-1))
	}
	return answer
}

// callerDepth is how many calls gradients looks back from where it is asked.
const callerDepth = 3

// runsBackward reports whether a function itself runs a backward.
func runsBackward(scope *pyscan.Scope) bool {
	for _, call := range scope.Calls {
		if attr, ok := call.Func.(*syntax.Attribute); ok && (attr.Attr == "backward" || attr.Attr == "manual_backward") {
			return true
		}
	}
	return false
}

// isModule reports whether a value is certainly a module with parameters: one of the project, or wrapped.
func isModule(pass *lint.Pass, value pyscan.Value) bool {
	if value == nil {
		return false
	}
	value = pass.Expand(value)
	if wrappers, _, certain := pass.Wrappers(value); len(wrappers) > 0 && certain {
		return true
	}
	if inst, ok := value.(*pyscan.Instance); ok && strings.HasPrefix(pass.ExternalName(inst.Of), "torch.nn.") {
		return true
	}
	return pass.IsA(value, "torch.nn.Module") == pyscan.Yes
}

// holdsBackward reports whether a function computes gradients: a backward, torch.autograd.grad, or an input that requires them.
func holdsBackward(scope *pyscan.Scope) bool {
	found := false
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Attribute:
				switch n.Attr {
				case "backward", "grad", "requires_grad", "requires_grad_", "manual_backward", "step", "autograd", "zero_grad":
					found = true
				}
			case *syntax.Keyword:
				found = found || n.Arg == "create_graph"
			case *syntax.Name:
				found = found || n.ID == "grad"
			}
			return !found
		})
	}
	return found
}
