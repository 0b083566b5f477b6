package workspace

import (
	"slices"
	"strings"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// TransfersToNPU reports whether CUDA names of a file mean the NPU: torch_npu.contrib.transfer_to_npu is imported by
// the file, by what it imports, or by a file that imports it; or TORCH_TRANSFER_TO_NPU is set by one of them or by a
// script that starts one.
func (v *View) TransfersToNPU(name string) bool {
	around := v.sameProcess(name)
	spelled := false
	for _, file := range around {
		if v.ImportsAny(file, transferModule, "mindspeed", "mindspeed_llm", "mindspeed_mm") { // MindSpeed's adaptor transfers too
			return true
		}
		text, err := v.Snapshot.File(file) // of which the facts are read already
		spelled = spelled || err == nil && text.Has(transferVariable)
	}
	for _, file := range around {
		if spelled && slices.ContainsFunc(v.Variables(file), func(variable Variable) bool { return variable.Name == transferVariable }) {
			return true
		}
		for _, script := range v.Launchers(file) {
			if text := v.Text(script); text == nil || !text.Has(transferVariable) {
				continue
			}
			for _, variable := range v.Variables(script) {
				if variable.Name == transferVariable && variable.Value != "0" {
					return true
				}
			}
		}
	}
	return false
}

// The two ways in which torch_npu takes over the names of CUDA.
const (
	transferModule   = "torch_npu.contrib.transfer_to_npu"
	transferVariable = "TORCH_TRANSFER_TO_NPU"
)

// sameProcess lists the Python files that run in one process with a file, as far as import statements tell: what it
// imports, what imports it and what that imports, and the packages that these are in.
func (v *View) sameProcess(name string) []string {
	around := v.Closure(name)
	add := func(file string) {
		if !slices.Contains(around, file) {
			around = append(around, file)
		}
	}
	for _, importer := range v.Importers(name) {
		for _, file := range v.Closure(importer) {
			add(file)
		}
		if len(around) > maxClosure {
			break
		}
	}
	for _, file := range slices.Clone(around) {
		for _, whole := range v.packages(file) {
			if slices.Contains(around, whole) {
				break
			}
			for _, one := range v.Closure(whole) {
				add(one)
			}
		}
	}
	return around
}

// MayTransfer reports whether a program that transfers CUDA names to the NPU may load a file in a way that import
// statements do not tell: by a name that it makes up while it runs; or the transfer stands in a file of its own that
// nothing here imports, for programs that are elsewhere.
func (v *View) MayTransfer(name string) bool {
	for _, file := range v.around(name, importKeyword+pyscan.LastPart(transferModule)) {
		if !v.ImportsAny(file, transferModule) {
			continue
		}
		users := v.Importers(file)
		if len(users) == 0 && v.onlyImports(file) {
			return true
		}
		for _, user := range append(users, file) {
			if slices.ContainsFunc(v.Closure(user), func(loader string) bool { return v.loadsByName(loader, name) }) {
				return true
			}
		}
	}
	return false
}

// onlyImports reports whether a file does nothing but import, and set up what it imports: it is there for others to
// import.
func (v *View) onlyImports(name string) bool {
	m := v.Module(name)
	if m == nil {
		return false
	}
	var idle func(body []syntax.Stmt) bool
	idle = func(body []syntax.Stmt) bool {
		return !slices.ContainsFunc(body, func(stmt syntax.Stmt) bool {
			switch s := stmt.(type) {
			case *syntax.Import, *syntax.ImportFrom, *syntax.Pass:
				return false
			case *syntax.Assign:
				return !v.setsUp(m, s.Value)
			case *syntax.ExprStmt:
				return !v.setsUp(m, s.Value)
			case *syntax.If, *syntax.Try:
				return slices.ContainsFunc(Blocks(stmt), func(block []syntax.Stmt) bool { return !idle(block) })
			}
			return true
		})
	}
	return idle(m.Tree.Body)
}

// setsUp reports whether an expression at the top of a module is a constant, or sets up a library.
func (v *View) setsUp(m *pyscan.Module, e syntax.Expr) bool {
	switch e := e.(type) {
	case *syntax.Constant:
		return true
	case *syntax.Call:
		name := v.Library(m.Root, nil, e.Func)
		return slices.ContainsFunc(settingUp, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	}
	return false
}

// settingUp are the beginnings of the names of functions that set something up.
var settingUp = []string{
	"torch.npu.set_", "torch_npu.", "torch.set_", "torch.backends.", "torch.use_", "warnings.", "logging.",
	"os.environ.", "os.putenv", "sys.path.",
}

// loadsByName reports whether a file loads code by a name that may be that of another file.
func (v *View) loadsByName(loader, name string) bool {
	m := v.Module(loader)
	return m != nil && slices.ContainsFunc(m.Calls, func(site pyscan.Call) bool {
		if !loadsCode[pyscan.LastName(site.Func)] {
			return false
		}
		if len(site.Args) > 0 {
			if c, known := v.Constant(v.Eval(site.Scope, nil, site.Args[0])); known {
				text, _ := c.Str()
				dotted := strings.ReplaceAll(strings.TrimSuffix(text, ".py"), "/", ".")
				return strings.HasSuffix("."+dotted, "."+moduleOf(name))
			}
		}
		return true
	})
}

// loadsCode are the functions that load code by its name: of importlib, runpy, pkgutil and hydra, and Python's own.
var loadsCode = map[string]bool{
	"import_module": true, "__import__": true, "spec_from_file_location": true, "run_path": true, "run_module": true,
	"exec": true, "iter_modules": true, "walk_packages": true, "entry_points": true, "instantiate": true,
	"get_class": true, "get_object": true, "get_method": true, "locate": true,
}
