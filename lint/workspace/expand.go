package workspace

import (
	"path"
	"strings"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// Limits of the search for what a parameter may be: a name that is called in many places says nothing, and what callers
// pass is followed through a few calls only.
const (
	maxCallers     = 24
	maxSites       = 1000 // calls of one name in a file: of more it is not known which function they reach
	maxCallerFiles = 8
	maxExpansions  = 3
)

// Expand replaces an open parameter by what its callers pass, or by what its annotation says; any other value stays.
func (v *View) Expand(value pyscan.Value) pyscan.Value {
	switch value := value.(type) {
	case *pyscan.ParamValue:
		if v.eval.expansions >= maxExpansions {
			v.cut()
			return value
		}
		key := evalKey{expr: syntax.Key(value.Scope.Params[value.Index].Arg)}
		known, place, ok := v.eval.remembered(key)
		if ok {
			return known
		}
		return v.guard(key, place, value.Origin, func() pyscan.Value {
			v.eval.expansions++
			defer func() { v.eval.expansions-- }()
			return v.expandParam(value)
		})
	case *pyscan.Union:
		open := false
		for _, one := range value.Alternatives {
			if _, is := one.(*pyscan.ParamValue); is {
				open = true
			}
		}
		if open {
			list := make([]pyscan.Value, len(value.Alternatives))
			for i, one := range value.Alternatives {
				list[i] = v.Expand(one)
			}
			return v.union(value.Origin, list...)
		}
	}
	return value
}

func (v *View) expandParam(param *pyscan.ParamValue) pyscan.Value {
	p := param.Scope.Params[param.Index]
	var otherwise pyscan.Value = param
	if p.Annotation != nil && param.Scope.Parent != nil && p.Kind != pyscan.VarArgs && p.Kind != pyscan.VarKeywords {
		otherwise = v.annotated(param.Scope.Parent, nil, p.Annotation, param, param.Origin)
	}
	var list []pyscan.Value
	callers := v.Callers(param.Scope)
	if len(callers) > maxCallers {
		return otherwise
	}
	for _, site := range callers {
		value, given := v.argumentFor(site, param)
		if !given {
			if p.Default == nil || v.filled(param.Scope) {
				return otherwise
			}
			value = v.Eval(param.Scope.Parent, nil, p.Default)
		}
		value = v.Expand(value)
		if vague(value) {
			return otherwise
		}
		list = append(list, value)
	}
	if len(list) == 0 {
		return otherwise
	}
	value := v.union(param.Origin, list...)
	if vague(value) {
		return otherwise
	}
	return value
}

// filled reports whether a decorator of a library may give a function what a call leaves out, as those do that read the command line
// (click.command, hydra.main) or try sizes (find_executable_batch_size).
func (v *View) filled(function *pyscan.Scope) bool {
	def := function.Function()
	if def == nil || function.Parent == nil {
		return false
	}
	for _, d := range def.Decorators {
		if call, ok := d.(*syntax.Call); ok {
			d = call.Func
		}
		name := v.Library(function.Parent, nil, d)
		if top, _, _ := strings.Cut(name, "."); name != "" && !plainDecorators[top] {
			return true
		}
	}
	return false
}

// plainDecorators are libraries whose decorators hand on what the call gives, and nothing else.
var plainDecorators = map[string]bool{"torch": true, "functools": true, "contextlib": true, "typing": true, "typing_extensions": true, "abc": true, "staticmethod": true,
	"classmethod": true, "builtins": true, "warnings": true, "jaxtyping": true, "beartype": true, "torch_npu": true, "deepspeed": true, "numba": true}

func vague(value pyscan.Value) bool {
	switch value.(type) {
	case *pyscan.Unknown, *pyscan.ParamValue:
		return true
	}
	return false
}

// argumentFor is what a call passes for a parameter; given is false when it leaves the default.
func (v *View) argumentFor(site pyscan.Call, param *pyscan.ParamValue) (value pyscan.Value, given bool) {
	for _, callee := range Alternatives(v.Eval(site.Scope, nil, site.Call.Func)) {
		f := v.calledFunc(callee)
		if f == nil || f.Scope != param.Scope {
			continue
		}
		frame := v.Enter(f, site.Call, site.Scope, nil)
		if frame == nil {
			break
		}
		value, given = v.Passed(frame, param.Index)
		if open, still := value.(*pyscan.ParamValue); given && still && open.Scope == param.Scope && open.Index == param.Index {
			return &pyscan.Unknown{Origin: param.Origin}, true // a star argument may have filled it
		}
		return value, given
	}
	return &pyscan.Unknown{Origin: param.Origin}, true
}

// calledFunc is the project function that runs when a value is called: the function itself, __init__ of a class, forward or
// __call__ of an instance. Nil when none is known.
func (v *View) calledFunc(callee pyscan.Value) *pyscan.Func {
	switch callee := callee.(type) {
	case *pyscan.Func:
		return callee
	case *pyscan.Partial:
		return v.calledFunc(callee.Of)
	case *pyscan.Class:
		if init := v.method(callee, "__init__"); init != nil {
			return &pyscan.Func{Origin: callee.Origin, Scope: init, Self: v.anyInstance(callee)}
		}
	case *pyscan.Instance:
		if class, ok := callee.Of.(*pyscan.Class); ok {
			for _, name := range []string{"forward", "__call__"} {
				if method := v.method(class, name); method != nil {
					return &pyscan.Func{Origin: callee.Origin, Scope: method, Self: callee}
				}
			}
		}
	}
	return nil
}

// Called is the project function that runs when a value is called, bound to its receiver; nil when none is known.
func (v *View) Called(callee pyscan.Value) *pyscan.Func { return v.calledFunc(callee) }

// Callers are the calls in the project that reach a function, as far as they can be resolved by name: in its own file, and
// in files that call something of that name. Calls in tests do not count, but for a function of tests.
func (v *View) Callers(function *pyscan.Scope) []pyscan.Call {
	if list, known := v.eval.callers[function]; known {
		return list
	}
	if v.eval.callers == nil {
		v.eval.callers = map[*pyscan.Scope][]pyscan.Call{}
	}
	v.eval.callers[function] = nil // a question about itself on the way finds none
	name := function.Name
	if name == "__init__" && function.EnclosingClass() != nil {
		name = function.EnclosingClass().Name
	}
	var list []pyscan.Call
	own := function.Module.File.Path
	if name != "forward" && name != "__call__" && name != "<lambda>" {
		files, root := []string{own}, v.projectRoot(own)
		if v.reads != nil {
			v.record(ReadMention, root+"\x00"+name)
		}
		if others, few := v.callingFrom(root, name, IsTest(own), maxCallerFiles); few { // what a test passes says nothing of a run
			files = append(files, others...)
		}
		for i, file := range files {
			if i > 0 && file == own {
				continue
			}
			m := v.Module(file)
			if m == nil {
				continue
			}
			sites := m.CallsOf(name)
			if len(sites) > maxSites {
				continue
			}
			for _, site := range sites {
				for _, callee := range Alternatives(v.Eval(site.Scope, nil, site.Call.Func)) {
					if f := v.calledFunc(callee); f != nil && f.Scope == function {
						list = append(list, site)
						break
					}
				}
			}
			if len(list) > maxCallers {
				break
			}
		}
	}
	v.eval.callers[function] = list
	return list
}

// HasCallers reports whether a call of the function is known anywhere in the project.
func (v *View) HasCallers(function *pyscan.Scope) bool { return len(v.Callers(function)) > 0 }

// Mentioning lists the Python files of the project around a file that call something of that name, sorted.
func (v *View) Mentioning(from, name string) []string {
	root := v.projectRoot(from)
	v.record(ReadMention, root+"\x00"+name)
	return v.Snapshot.mentioning(root, name)
}

// projectRoot is the folder whose files belong together: the top of the checkout, or the highest folder named in the path
// that was given.
func (v *View) projectRoot(from string) string {
	folder := path.Dir(from)
	root, known := v.kept.projects[folder]
	if !known {
		root = v.projectRootOf(folder)
		v.kept.makeRoom(0)
		v.kept.projects[folder] = root
	}
	return root
}

func (v *View) projectRootOf(folder string) string {
	for at := folder; ; at = path.Dir(at) {
		if v.isRoot(at) {
			return at
		}
		if at == "." || at == "/" || strings.HasSuffix(at, "..") {
			break
		}
	}
	if strings.HasPrefix(folder, "/") || strings.HasPrefix(folder, "..") {
		return folder
	}
	top, _, _ := strings.Cut(folder, "/")
	return top
}

// within reports whether a file lies in a folder, or at most so many folders below it.
func within(folder, file string, deepest int) bool {
	if !inside(folder, file) {
		return false
	}
	if folder != "." {
		file = strings.TrimPrefix(file, strings.TrimSuffix(folder, "/")+"/")
	}
	return strings.Count(file, "/") <= deepest
}

// shallow marks the root of an index that holds only the files of a folder and of the folders in it.
const shallow = "\x01"

func rootDepth(root string) (folder string, deepest int) {
	if folder, is := strings.CutPrefix(root, shallow); is {
		return folder, besides
	}
	return root, wholeCheckout
}
