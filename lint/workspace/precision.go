package workspace

import (
	"strings"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// maxCasts bounds how many expressions are followed from a model back to what converted it.
const maxCasts = 12

// ParameterType is the dtype ("torch.float16", "torch.bfloat16") that all parameters of the model that an expression denotes
// were converted to, or loaded in, and where; "" where none is known for sure. A conversion under a condition is none, and
// one that adapters were put on after it says nothing of what trains.
func (v *View) ParameterType(scope *pyscan.Scope, frame *pyscan.Frame, model syntax.Expr) (dtype string, at source.Place) {
	return v.parameterType(scope, frame, model, maxCasts)
}

func (v *View) parameterType(scope *pyscan.Scope, frame *pyscan.Frame, model syntax.Expr, left int) (string, source.Place) {
	if left <= 0 || model == nil {
		return "", source.Place{}
	}
	switch e := model.(type) {
	case *syntax.Call:
		return v.calledType(scope, frame, e, left)
	case *syntax.Name, *syntax.Attribute:
		if dtype, at, decided := v.castInPlace(scope, frame, model); decided {
			return dtype, at
		}
	default:
		return "", source.Place{}
	}
	if attr, ok := model.(*syntax.Attribute); ok && attr.Attr == "module" {
		return v.parameterType(scope, frame, attr.Value, left-1)
	}
	switch def := definitionOf(scope, model); {
	case def == nil:
	case def.Kind == pyscan.AssignDef && len(def.Path()) == 0 && def.Value != model:
		return v.parameterType(scope, frame, def.Value, left-1)
	case def.Kind == pyscan.ParamDef:
		return v.passedType(scope, def.Param(), left)
	}
	return "", source.Place{}
}

// definitionOf is the one definition of a name or dotted path that reaches a use: in its function, else in its class's
// __init__, else in the module.
func definitionOf(scope *pyscan.Scope, e syntax.Expr) *pyscan.Def {
	path := pyscan.Path(e)
	switch e := e.(type) {
	case *syntax.Name:
		if def := scope.Def(e); def != nil {
			return def
		}
		if defs := scope.Module.Root.Defs(path); len(defs) > 0 {
			return scope.Module.Root.Exit(path)
		}
	case *syntax.Attribute:
		if def := scope.AttrDef(e); def != nil {
			return def
		}
		if class := scope.EnclosingClass(); class != nil {
			var only *pyscan.Def
			for _, method := range class.Children {
				for _, def := range method.Defs(path) {
					if only != nil {
						return nil
					}
					only = def
				}
			}
			return only
		}
	}
	return nil
}

// calledType reads model expressions that are calls: Net().half(), DDP(net), AutoModel.from_pretrained(..., torch_dtype=...).
func (v *View) calledType(scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call, left int) (string, source.Place) {
	if attr, ok := call.Func.(*syntax.Attribute); ok {
		if dtype, is := v.castOf(scope, frame, call, attr.Attr); is {
			return dtype, scope.Module.File.At(call.Span())
		}
		if keepsReceiver[attr.Attr] || attr.Attr == "train" {
			return v.parameterType(scope, frame, attr.Value, left-1)
		}
		if attr.Attr == "from_pretrained" {
			for _, keyword := range []string{"torch_dtype", "dtype"} {
				if value := v.arg(scope, frame, call, keyword, -1); value != nil {
					return halfName(v.text(value)), scope.Module.File.At(call.Span())
				}
			}
			return "", source.Place{}
		}
	}
	callee := v.Eval(scope, frame, call.Func)
	switch v.ExternalName(callee) {
	case "torch.nn.parallel.DistributedDataParallel", "torch.nn.DataParallel", "torch.compile", "torch.nn.SyncBatchNorm.convert_sync_batchnorm":
		if len(call.Args) > 0 {
			return v.parameterType(scope, frame, call.Args[0], left-1)
		}
	}
	if f, ok := callee.(*pyscan.Func); ok {
		if inner := v.Enter(f, call, scope, frame); inner != nil && len(f.Scope.Returns()) == 1 {
			return v.parameterType(f.Scope, inner, f.Scope.Returns()[0].Value, left-1)
		}
	}
	return "", source.Place{}
}

// castOf reads a method call as a conversion of all parameters: half(), bfloat16(), float(), to(dtype). The dtype is "" for
// one that is not a half type or not known.
func (v *View) castOf(scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call, method string) (dtype string, is bool) {
	switch method {
	case "half":
		return "torch.float16", true
	case "bfloat16":
		return "torch.bfloat16", true
	case "float", "double":
		return "", true
	case "to":
		for _, k := range call.Keywords {
			if k.Arg == "dtype" {
				return halfName(v.text(v.Expand(v.Eval(scope, frame, k.Value)))), true
			}
		}
		for _, arg := range call.Args {
			name := v.text(v.Expand(v.Eval(scope, frame, arg)))
			if half := halfName(name); half != "" {
				return half, true
			}
			if strings.HasPrefix(name, "torch.float") || strings.Contains(strings.ToLower(leafOf(arg)), "dtype") {
				return "", true
			}
		}
		return "", false
	}
	return "", false
}

// halfName is the usual name of a half-precision dtype, "" for any other.
func halfName(name string) string {
	switch name {
	case "torch.float16", "torch.half":
		return "torch.float16"
	case "torch.bfloat16":
		return "torch.bfloat16"
	}
	return ""
}

// castInPlace looks for a statement `model.half()` of the same function, whose value nobody keeps: a module converts itself.
// decided is true where there is one; then the last one says the dtype, and one under a condition says that it is open.
func (v *View) castInPlace(scope *pyscan.Scope, frame *pyscan.Frame, model syntax.Expr) (dtype string, at source.Place, decided bool) {
	path := pyscan.Path(model)
	if path == "" {
		return "", source.Place{}, false
	}
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.FunctionDef, *syntax.ClassDef:
				return false
			case *syntax.ExprStmt:
				call, ok := n.Value.(*syntax.Call)
				if !ok {
					break
				}
				attr, ok := call.Func.(*syntax.Attribute)
				if !ok || pyscan.Path(attr.Value) != path {
					break
				}
				if name, is := v.castOf(scope, frame, call, attr.Attr); is {
					dtype, at, decided = name, scope.Module.File.At(call.Span()), true
					for _, around := range Around(scope, call) {
						if _, conditional := around.(*syntax.If); conditional {
							dtype = ""
						}
					}
				}
			}
			return true
		})
	}
	return dtype, at, decided
}

// passedType is the dtype of what all known callers pass for a parameter.
func (v *View) passedType(scope *pyscan.Scope, index int, left int) (dtype string, at source.Place) {
	callers := v.Callers(scope)
	if len(callers) == 0 || len(callers) > maxCallers {
		return "", source.Place{}
	}
	position := index
	if scope.EnclosingClass() != nil && !isStatic(scope) {
		position--
	}
	for i, site := range callers {
		e := Argument(site.Call, scope.Params[index].Name, position)
		if e == nil {
			return "", source.Place{}
		}
		name, where := v.parameterType(site.Scope, nil, e, left-1)
		if name == "" || i > 0 && name != dtype {
			return "", source.Place{}
		}
		dtype, at = name, where
	}
	return dtype, at
}
