package memory

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed alloc-conf-after-import.md
var allocConfAfterImportDoc string

// AllocConfAfterImport finds settings of the device that are made after torch has been imported.
var AllocConfAfterImport = &lint.Rule{
	Name:     "alloc-conf-after-import",
	Family:   "memory",
	Since:    "0.1",
	Doc:      allocConfAfterImportDoc,
	Severity: lint.Warning,
	Mentions: []string{"_ALLOC_CONF", "_VISIBLE_DEVICES"},
	Variables: func(pass *lint.Pass, variables []workspace.Variable) {
		for _, variable := range variables {
			if variable.Scope != nil {
				checkLate(pass, variable)
			}
		}
	},
}

// allocators are read by the allocator, devices when the first device is used.
var (
	allocators = map[string]bool{"PYTORCH_CUDA_ALLOC_CONF": true, "PYTORCH_ALLOC_CONF": true, "PYTORCH_NPU_ALLOC_CONF": true, "PYTORCH_HIP_ALLOC_CONF": true}
	devices    = map[string]bool{"CUDA_VISIBLE_DEVICES": true, "ASCEND_RT_VISIBLE_DEVICES": true}
)

// children are words of files that start other processes, for which the variable may be meant.
var children = []string{"subprocess", "Popen", "os.exec", "os.system", "mp.spawn", "multiprocessing", "notebook_launcher", "ray.", "reload(", "torch.multiprocessing", "Process("}

func checkLate(pass *lint.Pass, variable workspace.Variable) {
	if !allocators[variable.Name] && !devices[variable.Name] {
		return
	}
	module := variable.Scope.Module
	if _, isDict := variable.Node.(*syntax.Dict); isDict || workspace.IsTest(module.File.Path) {
		return // for another process, or for an update that is listed by itself
	}
	if call, ok := variable.Node.(*syntax.Call); ok && pyscan.Path(call.Func) == "dict" {
		return
	}
	if module.Says(children...) {
		return
	}
	at := variable.Node.Span()
	i, direct := torchBefore(pass, module, variable.Scope, at)
	if i == nil {
		return
	}
	used := deviceUsedBefore(pass, module, variable.Scope, at)
	what := "is set after torch was imported"
	if !direct {
		what = "is set after an import that imports torch"
	}
	var d *lint.Diagnostic
	place := module.File.At(at)
	switch {
	case allocators[variable.Name] && strings.Contains(variable.Value, "backend:"):
		d = pass.Reportf(place, "%s %s, which has chosen the allocator's backend: the first allocation raises", variable.Name, what)
	case used != nil:
		d = pass.Reportf(place, "%s %s and a device was used: it is read by then, so the setting has no effect", variable.Name, what).Note(module.File.At(used.Span()), "the device is used here")
	case allocators[variable.Name] && variable.Scope.Kind == pyscan.ModuleScope:
		d = pass.Reportf(place, "%s %s: what has read it by then, the allocator's configuration or a device that an import uses, keeps the old value", variable.Name, what)
	default:
		d = pass.Reportf(place, "%s %s: it works only as long as nothing before uses a device", variable.Name, what).As(lint.Info)
	}
	d.Note(module.File.At(i.Node.Span()), "torch is imported here").Help("set it before the first import, or in the launch script")
}

// torchBefore is the import that has brought torch in when a statement runs, and whether it names torch itself.
func torchBefore(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope, at source.Span) (found *pyscan.Import, direct bool) {
	for _, i := range module.Imports {
		if i.Scope.Kind != pyscan.ModuleScope || len(workspace.Around(i.Scope, i.Node)) > 1 {
			continue
		}
		if scope.Kind == pyscan.ModuleScope && i.Node.Span().End > at.Start {
			continue // it runs later
		}
		top, _, _ := strings.Cut(i.Module, ".")
		if i.Level == 0 && (top == "torch" || top == "torch_npu") {
			return i, true
		}
	}
	for _, i := range module.Imports {
		if i.Scope.Kind != pyscan.ModuleScope || len(workspace.Around(i.Scope, i.Node)) > 1 || scope.Kind == pyscan.ModuleScope && i.Node.Span().End > at.Start {
			continue
		}
		top, _, _ := strings.Cut(i.Module, ".")
		if i.Level == 0 && importsTorch[top] {
			return i, false
		}
		for _, file := range pass.FilesOf(module, i) {
			if file != module.File.Path && pass.ImportedAnywhere(file, "torch") {
				return i, false
			}
		}
	}
	return nil, false
}

// importsTorch are libraries that import torch when they are imported.
var importsTorch = map[string]bool{"deepspeed": true, "accelerate": true, "pytorch_lightning": true, "lightning": true, "peft": true, "trl": true, "torchvision": true, "torchaudio": true, "timm": true, "diffusers": true}

// deviceUsedBefore is a call that uses a device in the same block of statements before a place, nothing conditional between.
func deviceUsedBefore(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope, at source.Span) *syntax.Call {
	var found *syntax.Call
	for _, stmt := range scope.Body() {
		if stmt.Span().End > at.Start {
			break
		}
		switch stmt.(type) {
		case *syntax.ExprStmt, *syntax.Assign, *syntax.AnnAssign:
		default:
			continue
		}
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Lambda:
				return false
			case *syntax.Call:
				name := pass.Library(scope, nil, n.Func)
				attr, method := n.Func.(*syntax.Attribute)
				switch {
				case strings.HasPrefix(name, "torch.cuda.") || strings.HasPrefix(name, "torch.npu."):
					switch pyscan.LastPart(name) {
					case "is_available", "device_count", "manual_seed", "manual_seed_all", "is_initialized", "GradScaler", "autocast":
					default:
						found = n
					}
				case name == "" && method && (attr.Attr == "cuda" || attr.Attr == "npu") && len(n.Args) == 0:
					found = n
				}
			}
			return found == nil
		})
		if found != nil {
			return found
		}
	}
	return nil
}
