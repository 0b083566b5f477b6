package workspace

import (
	"strings"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// libraries are the top-level packages whose names always mean the library, also where a project has a folder of that
// name: rules speak of them by name, and their insides are not read.
var libraries = map[string]bool{
	"torch": true, "torch_npu": true, "torchvision": true, "torchaudio": true, "torch_xla": true, "numpy": true, "transformers": true, "accelerate": true,
	"deepspeed": true, "lightning": true, "pytorch_lightning": true, "lightning_fabric": true, "peft": true, "trl": true, "datasets": true, "diffusers": true,
	"bitsandbytes": true, "flash_attn": true, "apex": true, "transformer_engine": true, "megatron": true, "mindspeed": true, "fairscale": true, "jax": true,
	"flax": true, "tensorflow": true, "paddle": true, "mindspore": true, "oneflow": true, "horovod": true, "wandb": true, "yaml": true, "omegaconf": true,
	"hydra": true, "torchdata": true, "torchao": true, "liger_kernel": true, "timm": true, "ray": true, "tqdm": true, "pydantic": true, "click": true,
	// the standard library, as far as projects name files like it
	"os": true, "sys": true, "re": true, "json": true, "math": true, "time": true, "random": true, "functools": true, "itertools": true, "collections": true, "contextlib": true,
	"argparse": true, "dataclasses": true, "typing": true, "logging": true, "pathlib": true, "gc": true, "copy": true, "datetime": true, "abc": true, "enum": true, "builtins": true,
}

// suffixes of a dotted module as a file, tried in order.
var moduleFiles = []string{".py", "/__init__.py"}

// locate finds the project file of an imported module, as Python would with the script's folder and each folder above it on
// sys.path. It gives "" for what the project does not hold.
func (v *View) locate(from, module string, level int) string {
	if level == 0 && (module == "" || libraries[firstPart(module)]) {
		return ""
	}
	key := importKey{source.Dir(from), module, level}
	found, known := v.kept.located[key]
	if !known {
		key.module = strings.Clone(module) // which may be a piece of a text
		if level > 0 {
			found = v.locateNear(from, key.module, level)
		} else {
			found = v.locateAbove(from, key.module)
		}
		v.kept.makeRoom(0)
		v.kept.located[key] = found
	}
	return found
}

type importKey struct {
	folder, module string
	level          int
}

// locateNear is locate for as many dots as the level.
func (v *View) locateNear(from, module string, level int) string {
	folder := source.Dir(from)
	for range level - 1 {
		folder = source.Dir(folder)
	}
	base := source.Join(folder, strings.ReplaceAll(module, ".", "/"))
	if !inside(v.settingsTop(from), source.Join(base, "__init__.py")) { // as many dots as one likes
		return ""
	}
	return v.moduleAt(base)
}

// locateAbove is locate for a module without dots before it.
func (v *View) locateAbove(from, module string) string {
	top, first := v.settingsTop(from), firstPart(module)
	for folder := source.Dir(from); ; folder = source.Dir(folder) {
		if found := v.locateIn(folder, module, first); found != "" {
			return found
		}
		if v.unrecorded(folder) == nil || v.in(folder, "src") != Absent {
			if found := v.locateIn(source.Join(folder, "src"), module, first); found != "" {
				return found
			}
		}
		if folder == "." || folder == "/" || strings.HasSuffix(folder, "..") || folder == top {
			return ""
		}
	}
}

// locateIn is the file of a module whose first part is to stand in a folder. Most folders hold none of the modules: that is asked first.
func (v *View) locateIn(folder, module, first string) string {
	if !v.holdsPackage(folder, first) {
		return ""
	}
	return v.moduleAt(source.Join(folder, strings.ReplaceAll(module, ".", "/")))
}

// holdsPackage reports whether a folder holds a module or a folder of that name.
func (v *View) holdsPackage(folder, top string) bool {
	if l := v.unrecorded(folder); l != nil && !l.begins(top) {
		return false
	}
	key := packageKey{folder, top}
	holds, known := v.kept.packages[key]
	if !known {
		holds = v.in(folder, top) == Folder || v.in(folder, top+".py") == RegularFile
		v.kept.makeRoom(0)
		v.kept.packages[key] = holds
	}
	return holds
}

type packageKey struct{ folder, top string }

// isRoot reports whether a folder is the top of a checkout: imports are not looked for above it.
func (v *View) isRoot(folder string) bool {
	if v.in(folder, ".git") != Absent {
		return true
	}
	if folder != "." {
		return false
	}
	for _, name := range topFiles { // a release as it was unpacked
		if v.in(folder, name) == RegularFile {
			return true
		}
	}
	return false
}

// topFiles stand at the top of a project.
var topFiles = []string{"pyproject.toml", "setup.py", "setup.cfg", ".gitignore"}

func (v *View) moduleAt(base string) string {
	for _, suffix := range moduleFiles {
		if name := base + suffix; v.Is(name) == RegularFile {
			return name
		}
	}
	return ""
}

// imported is what an import binds.
func (v *View) imported(m *pyscan.Module, i *pyscan.Import) pyscan.Value {
	at := pyscan.From(m, i.Node)
	if i.Member != "" && len(v.knownIn(m)) > 0 {
		if meaning := v.meaningOfImport(m, i, i.Member); meaning != "" {
			return v.external(at, meaning)
		}
	}
	if i.Member == "" {
		module := i.Module
		if i.Whole {
			module, _, _ = strings.Cut(module, ".")
		}
		if file := v.locate(m.File.Path, module, 0); file != "" {
			return v.moduleValue(file)
		}
		return v.external(at, module)
	}
	if file := v.locate(m.File.Path, i.Module, i.Level); file != "" {
		if value := v.ModuleMember(file, i.Member); value != nil {
			return value
		}
		return &pyscan.Unknown{Origin: at}
	}
	if i.Level > 0 {
		// A namespace package has no __init__.py: `from . import blocks`.
		if file := v.locate(m.File.Path, join(i.Module, i.Member), i.Level); file != "" {
			return v.moduleValue(file)
		}
		return &pyscan.Unknown{Origin: at}
	}
	if file := v.locate(m.File.Path, join(i.Module, i.Member), 0); file != "" {
		return v.moduleValue(file)
	}
	return v.external(at, join(i.Module, i.Member))
}

// foreign reports whether an import binds something of a library.
func (v *View) foreign(m *pyscan.Module, i *pyscan.Import) bool {
	is, known := v.eval.foreign[i]
	if !known {
		is = i.Level == 0 && len(v.knownIn(m)) == 0 && v.locate(m.File.Path, i.Module, 0) == "" && (i.Member == "" || v.locate(m.File.Path, join(i.Module, i.Member), 0) == "")
		v.eval.foreign[i] = is
	}
	return is
}

// Foreign implements loop.Linker.
func (v *View) Foreign(scope *pyscan.Scope, e syntax.Expr) bool {
	for attr, ok := e.(*syntax.Attribute); ok; attr, ok = e.(*syntax.Attribute) {
		e = attr.Value
	}
	name, ok := e.(*syntax.Name)
	return ok && v.foreignName(scope, name)
}

func (v *View) foreignName(scope *pyscan.Scope, name *syntax.Name) bool {
	m := scope.Module
	if def := scope.Def(name); def != nil {
		return v.foreignDef(m, def)
	}
	if scope.Enclosed(name.ID) || len(m.Globals[name.ID]) > 0 {
		return false
	}
	if def := m.Root.Exit(name.ID); def != nil {
		return v.foreignDef(m, def)
	}
	return len(m.Stars) == 0 && len(m.Root.Defs(name.ID)) == 0
}

func (v *View) foreignDef(m *pyscan.Module, def *pyscan.Def) bool {
	switch def.Kind {
	case pyscan.ImportDef:
		return v.foreign(m, def.Import())
	case pyscan.PhiDef: // try: import ... except ImportError: import ...
		for _, one := range def.Alternatives() {
			if one.Kind != pyscan.ImportDef || !v.foreign(m, one.Import()) {
				return false
			}
		}
		return len(def.Alternatives()) > 0
	}
	return false
}

func join(module, member string) string {
	if module == "" {
		return member
	}
	return module + "." + member
}

// knownFor is what the settings of a file say of in-house names.
func (v *View) knownFor(file string) map[string]string {
	if v.known == nil {
		return nil
	}
	return v.known(file)
}

// knownIn is what the settings of a file say of in-house names.
func (v *View) knownIn(m *pyscan.Module) map[string]string {
	if v.known == nil {
		return nil
	}
	known, asked := v.eval.known[m]
	if !asked {
		known = v.known(m.File.Path)
		v.eval.known[m] = known
	}
	return known
}

// meaningOfImport is the meaning of a name that an import statement takes from a module, which may be a file of the
// project.
func (v *View) meaningOfImport(m *pyscan.Module, i *pyscan.Import, name string) string {
	if i.Level == 0 {
		if meaning := v.meaning(m, join(i.Module, name)); meaning != "" {
			return meaning
		}
	}
	if file := v.locate(m.File.Path, i.Module, i.Level); file != "" {
		return v.meaningIn(m, file, name)
	}
	return ""
}

// meaningIn is the meaning of what a file of the project has under a name. It goes by the end of the dotted name, as
// declared does.
func (v *View) meaningIn(m *pyscan.Module, file, name string) string {
	full := "." + dottedModule(file) + "." + name
	longest, found := "", ""
	for dotted, meaning := range v.knownIn(m) {
		if strings.Contains(meaning, ".") && len(dotted) > len(longest) && strings.HasSuffix(full, "."+dotted) {
			longest, found = dotted, meaning
		}
	}
	return found
}

// meaningOfMethod is the meaning of an attribute of an instance, by its class.
func (v *View) meaningOfMethod(m *pyscan.Module, of pyscan.Value, name string) string {
	switch class := of.(type) {
	case *pyscan.External:
		return v.meaning(m, class.Name+"."+name)
	case *pyscan.Class:
		for _, one := range v.lineage(class) {
			if meaning := v.meaningIn(m, one.Scope.Module.File.Path, one.Scope.Qualified()+"."+name); meaning != "" {
				return meaning
			}
		}
	}
	return ""
}

// meaning is the library name that the settings of a file give a dotted name, or "". Properties ("scales-loss") are no names.
func (v *View) meaning(m *pyscan.Module, dotted string) string {
	if meaning := v.knownIn(m)[dotted]; strings.Contains(meaning, ".") {
		return meaning
	}
	return ""
}
