package data

import (
	"slices"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// maxUsers bounds the files in which loops over a file's loaders are looked for.
const maxUsers = 8

// calls gives the calls of a library function or class in a module, with their scopes.
func calls(pass *lint.Pass, module *pyscan.Module, name string, visit func(scope *pyscan.Scope, call *syntax.Call)) {
	last := pyscan.LastPart(name)
	if !module.File.Has(last) {
		return
	}
	left := module.File.Affordable()
	for _, call := range module.Calls {
		if left > 0 && pass.Near(module, wanted[name], call.Func) && pass.Library(call.Scope, nil, call.Func) == name {
			visit(call.Scope, call.Call)
			left--
		}
	}
}

// wanted are the last names of what the rules look for.
var wanted = map[string]*pyscan.Words{
	loaderClass:  {Alias: true, Names: map[string]bool{"DataLoader": true}},
	samplerClass: {Alias: true, Names: map[string]bool{"DistributedSampler": true}},
	loadFunction: {Alias: true, Names: map[string]bool{"load": true}},
}

const (
	loaderClass  = "torch.utils.data.DataLoader"
	samplerClass = "torch.utils.data.DistributedSampler"
	loadFunction = "torch.load"
)

// use is a loop over a DataLoader.
type use struct {
	scope  *pyscan.Scope
	loop   *syntax.For
	epochs syntax.Stmt // the loop around it, in the same function; nil when there is none
	loader *pyscan.Instance
}

// uses lists the loops over DataLoaders in a file and in those that import it.
func uses(pass *lint.Pass, module *pyscan.Module) []use {
	files := append([]string{module.File.Path}, pass.Importers(module.File.Path)...)
	return usesIn(pass, files[:min(len(files), maxUsers)])
}

// handedOn lists the loops over DataLoaders in the files that are imported by those that uses looks at: programs keep their training loop in a
// file of its own and hand it their loaders.
func handedOn(pass *lint.Pass, module *pyscan.Module) []use {
	users := append([]string{module.File.Path}, pass.Importers(module.File.Path)...)
	users = users[:min(len(users), maxUsers)]
	var files []string
	for _, user := range users {
		for _, file := range pass.DirectImports(user) {
			if text := pass.Text(file); len(files) < maxUsers && text != nil && text.Has("backward(") && !slices.Contains(users, file) && !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	return usesIn(pass, files)
}

func usesIn(pass *lint.Pass, files []string) []use {
	var list []use
	for _, file := range files {
		m := pass.Module(file)
		if m == nil {
			continue
		}
		for node := range m.Tree.All() {
			loop, ok := node.(*syntax.For)
			if !ok {
				continue
			}
			scope := pyscan.ScopeAt(m, loop)
			over, begun := drawn(scope, loop)
			for _, one := range workspace.Alternatives(pass.Expand(pass.Eval(scope, nil, iterated(pass, scope, over)))) {
				if inst, ok := one.(*pyscan.Instance); ok && inst.Call != nil && pass.ExternalName(inst.Of) == loaderClass {
					list = append(list, use{scope, loop, outerLoop(scope, begun), inst})
				}
			}
		}
	}
	return list
}

// drawn is what a loop takes its batches from, and the statement that begins with it: the loop itself, or `batches =
// iter(loader)` before one that calls next(batches).
func drawn(scope *pyscan.Scope, loop *syntax.For) (over syntax.Expr, begun syntax.Stmt) {
	over, begun = loop.Iter, loop
	for _, call := range scope.Calls {
		if !inside(loop, call) || pyscan.Path(call.Func) != "next" || len(call.Args) == 0 {
			continue
		}
		name, is := call.Args[0].(*syntax.Name)
		if !is {
			continue
		}
		for _, def := range scope.Defs(name.ID) {
			made, is := def.Value.(*syntax.Call)
			if !is || def.Kind != pyscan.AssignDef || def.Stmt == nil || def.Stmt.Span().Start > loop.Span().Start {
				continue
			}
			if pyscan.Path(made.Func) == "iter" && len(made.Args) == 1 {
				over, begun = made.Args[0], def.Stmt
			}
		}
	}
	return over, begun
}

// iterated takes off what loops put around a loader: enumerate, tqdm, iter, zip's first, and generators of the project that hand its batches on.
func iterated(pass *lint.Pass, scope *pyscan.Scope, e syntax.Expr) syntax.Expr {
	for range 4 {
		call, ok := e.(*syntax.Call)
		if !ok || len(call.Args) == 0 {
			return e
		}
		switch pyscan.PathEnd(call.Func) {
		case "enumerate", "tqdm", "iter", "islice", "trange", "track":
			e = call.Args[0]
			continue
		}
		inner := yielded(pass, scope, call)
		if inner == nil {
			return e
		}
		e = inner
	}
	return e
}

// yielded is the argument of a call whose elements a generator of the project yields one after another, as the log_every of a MetricLogger does with
// a loader; nil for any other call.
func yielded(pass *lint.Pass, scope *pyscan.Scope, call *syntax.Call) syntax.Expr {
	f := pass.Called(pass.Eval(scope, nil, call.Func))
	if f == nil {
		return nil
	}
	for _, value := range f.Scope.Yields() {
		name, ok := value.(*syntax.Name)
		if !ok {
			continue
		}
		element := f.Scope.Def(name)
		if element == nil || element.Kind != pyscan.IterDef {
			continue
		}
		over := element.Value
		if count, ok := over.(*syntax.Call); ok && pyscan.PathEnd(count.Func) == "enumerate" && len(count.Args) > 0 {
			over = count.Args[0]
		}
		if param, ok := over.(*syntax.Name); ok {
			if def := f.Scope.Def(param); def != nil && def.Kind == pyscan.ParamDef {
				position := def.Param()
				if f.Self != nil {
					position--
				}
				return workspace.Argument(call, param.ID, position)
			}
		}
	}
	return nil
}

// outerLoop is the loop around a loop in the same function, or nil.
func outerLoop(scope *pyscan.Scope, loop syntax.Stmt) syntax.Stmt {
	var outer syntax.Stmt
	for _, stmt := range workspace.Around(scope, loop) {
		switch stmt.(type) {
		case *syntax.For, *syntax.While:
			if stmt != loop {
				outer = stmt
			}
		}
	}
	return outer
}

// frameworkImports are libraries that put samplers into loaders by themselves, and set their epoch.
var frameworkImports = []string{"accelerate", "pytorch_lightning", "lightning", "lightning_fabric", "ignite", "mmengine", "mmcv", "fastai", "composer", "ray", "webdataset", "horovod", "catalyst", "colossalai", "transformers.Trainer", "trl"}

// prepared reports whether a framework hands out the loaders of a file: it, or a file that imports it, imports one.
func prepared(pass *lint.Pass, module *pyscan.Module) bool {
	files := append([]string{module.File.Path}, pass.Importers(module.File.Path)...)
	if len(files) > maxUsers {
		files = files[:maxUsers]
	}
	for _, file := range files {
		if pass.ImportsAny(file, frameworkImports...) {
			return true
		}
	}
	return false
}
