package workspace

import (
	"fmt"
	"strings"

	"github.com/trainvet/trainvet/pyscan"
)

// Describe tells in a few words what a value is, for people and for tests.
func (v *View) Describe(value pyscan.Value) string { return v.describe(value, 4) }

func (v *View) describe(value pyscan.Value, depth int) string {
	if depth <= 0 {
		return "..."
	}
	list := func(values []pyscan.Value) string {
		words := make([]string, len(values))
		for i, one := range values {
			words[i] = v.describe(one, depth-1)
		}
		return strings.Join(words, ", ")
	}
	switch value := value.(type) {
	case *pyscan.Const:
		return value.V.String()
	case *pyscan.External:
		return value.Name
	case *pyscan.ModuleValue:
		return "module " + value.Path
	case *pyscan.Func:
		if value.Self != nil {
			return "method " + value.Scope.Qualified()
		}
		return "function " + value.Scope.Qualified()
	case *pyscan.Class:
		return "class " + value.Scope.Qualified()
	case *pyscan.Instance:
		return "instance of " + strings.TrimPrefix(v.describe(value.Of, depth-1), "class ")
	case *pyscan.Result:
		return v.describe(value.Of, depth-1) + "()"
	case *pyscan.Member:
		return v.describe(value.Base, depth-1) + "." + value.Name
	case *pyscan.Element:
		if value.Key == nil {
			return "element of " + v.describe(value.Base, depth-1)
		}
		return v.describe(value.Base, depth-1) + "[" + v.describe(value.Key, depth-1) + "]"
	case *pyscan.Partial:
		return "partial " + v.describe(value.Of, depth-1)
	case *pyscan.Wrapped:
		return value.By + "(" + v.describe(value.Inner, depth-1) + ")"
	case *pyscan.Super:
		return "super of " + value.Class.Scope.Qualified()
	case *pyscan.Sequence:
		if value.Open {
			return "[" + list(value.Elements) + ", ...]"
		}
		return "[" + list(value.Elements) + "]"
	case *pyscan.Mapping:
		words := make([]string, len(value.Keys))
		for i := range value.Keys {
			words[i] = v.describe(value.Keys[i], depth-1) + ": " + v.describe(value.Values[i], depth-1)
		}
		if value.Open {
			words = append(words, "...")
		}
		return "{" + strings.Join(words, ", ") + "}"
	case *pyscan.ParamValue:
		return "parameter " + value.Scope.Params[value.Index].Name
	case *pyscan.Setting:
		if value.Default != nil {
			return "setting " + value.Name + ", by default " + v.describe(value.Default, depth-1)
		}
		return "setting " + value.Name
	case *pyscan.Op:
		if len(value.Operands) == 2 {
			return fmt.Sprintf("(%s %s %s)", v.describe(value.Operands[0], depth-1), value.Name, v.describe(value.Operands[1], depth-1))
		}
		return value.Name + "(" + list(value.Operands) + ")"
	case *pyscan.Union:
		words := make([]string, len(value.Alternatives))
		for i, one := range value.Alternatives {
			words[i] = v.describe(one, depth-1)
		}
		return strings.Join(words, " | ")
	}
	return "unknown"
}
