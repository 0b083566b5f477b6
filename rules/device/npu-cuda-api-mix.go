package device

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed npu-cuda-api-mix.md
var npuCudaApiMixDoc string

// NpuCudaApiMix finds names and device strings of CUDA in code that runs on an NPU.
var NpuCudaApiMix = &lint.Rule{
	Name:     "npu-cuda-api-mix",
	Family:   "device",
	Since:    "0.1",
	Doc:      npuCudaApiMixDoc,
	Severity: lint.Error,
	Mentions: []string{"cuda"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		if !module.File.Has("cuda") || !onNPU(pass, module) {
			return
		}
		started := pass.Started(module.File.Path)
		skip := map[syntax.Node]bool{}
		for node := range module.Tree.All() {
			if skip[node] {
				markBelow(skip, node)
				continue
			}
			what, idle := cudaName(pass, module, node, skip)
			if what == "" {
				continue
			}
			when := condition(pass, pyscan.ScopeAt(module, node), node)
			if when == byDevice || disabledScaler(pass, module, node) {
				continue
			}
			d := pass.Reportf(module.File.At(node.Span()), "%s is CUDA's, and this runs on an NPU without transfer_to_npu: %s",
				what, effect(pass, module, node, what, idle))
			if idle || when == sometime || started == pyscan.No {
				d.As(lint.Warning)
			}
			d.Help("use %s, or import torch_npu.contrib.transfer_to_npu before", instead(what))
		}
	},
}

// harmless are what answers rightly without CUDA, so that programs ask it first.
var harmless = map[string]bool{"torch.cuda.is_available": true, "torch.cuda.device_count": true, "torch.cuda.is_initialized": true, "torch.cuda.OutOfMemoryError": true,
	"torch.cuda": true, "torch.cuda.amp": true, "torch.cuda.memory": true, "torch.cuda.is_bf16_supported": true, "torch.cuda.nccl": true, "torch.cuda.nvtx": true}

// noEffect are calls that do nothing where no CUDA is.
var noEffect = map[string]bool{"torch.cuda.empty_cache": true, "torch.cuda.manual_seed": true, "torch.cuda.manual_seed_all": true, "torch.cuda.ipc_collect": true}

// cudaName says what of CUDA a node is: a name below torch.cuda, `.cuda()`, or a device string in a place where a device is wanted.
// idle: it does nothing, rather than fail. Nodes that are part of an answer go to skip.
func cudaName(pass *lint.Pass, module *pyscan.Module, node syntax.Node, skip map[syntax.Node]bool) (what string, idle bool) {
	switch n := node.(type) {
	case *syntax.FunctionDef:
		for _, arg := range append(append(n.Args.PosOnly[:len(n.Args.PosOnly):len(n.Args.PosOnly)], n.Args.Args...), n.Args.KwOnly...) {
			skipIfThere(skip, arg.Annotation)
		}
		skipIfThere(skip, n.Returns)
	case *syntax.AnnAssign:
		skipIfThere(skip, n.Annotation)
	case *syntax.Attribute, *syntax.Name:
		e := n.(syntax.Expr)
		if name, ok := e.(*syntax.Name); ok && name.Ctx != syntax.Load {
			return "", false
		}
		if attr, ok := e.(*syntax.Attribute); ok && attr.Ctx != syntax.Load {
			return "", false
		}
		external, ok := pass.Eval(pyscan.ScopeAt(module, e), nil, e).(*pyscan.External)
		if !ok {
			return "", false
		}
		name := pass.ExternalName(external)
		if !strings.HasPrefix(name, "torch.cuda.") && name != "torch.cuda" {
			return "", false
		}
		skip[n] = true
		if attr, ok := e.(*syntax.Attribute); ok {
			skipIfThere(skip, attr.Value)
		}
		if harmless[name] || strings.Contains(name, "._") || strings.HasPrefix(name, "torch.cuda.nvtx.") {
			return "", false
		}
		return name, noEffect[name]
	case *syntax.Call:
		if attr, ok := n.Func.(*syntax.Attribute); ok && attr.Attr == "cuda" && len(n.Args) <= 1 && pass.Called(pass.Eval(pyscan.ScopeAt(module, n), nil, n.Func)) == nil {
			if pass.Library(pyscan.ScopeAt(module, n), nil, attr.Value) == "" {
				return ".cuda()", false
			}
		}
	case *syntax.Constant:
		if n.Kind == syntax.StrConstant && (n.Text == "cuda" || strings.HasPrefix(n.Text, "cuda:")) && devicePlace(pass, module, n) {
			return `"` + n.Text + `"`, false
		}
	}
	return "", false
}

func skipIfThere(skip map[syntax.Node]bool, e syntax.Expr) {
	if e != nil {
		skip[e] = true
	}
}

func markBelow(skip map[syntax.Node]bool, node syntax.Node) {
	syntax.Children(node, func(child syntax.Node) { skip[child] = true })
}

// devicePlace reports whether a text stands where a device is wanted: device="cuda", .to("cuda"), torch.device("cuda"), the
// type of an autocast or GradScaler.
func devicePlace(pass *lint.Pass, module *pyscan.Module, text *syntax.Constant) bool {
	found := false
	scope := pyscan.ScopeAt(module, text)
	around := workspaceAround(scope, text)
	if around == nil {
		return false
	}
	syntax.Inspect(around, func(n syntax.Node) bool {
		if found || !n.Span().Contains(text.Span()) {
			return false
		}
		call, ok := n.(*syntax.Call)
		if !ok {
			return true
		}
		for _, k := range call.Keywords {
			if k.Value == syntax.Expr(text) {
				found = k.Arg == "device" || k.Arg == "device_type" || k.Arg == "map_location"
			}
		}
		if len(call.Args) > 0 && call.Args[0] == syntax.Expr(text) {
			attr, method := call.Func.(*syntax.Attribute)
			switch name := pass.Library(scope, nil, call.Func); name {
			case "torch.device", "torch.autocast", "torch.amp.GradScaler", "torch.set_default_device":
				found = true
			case "":
				found = method && attr.Attr == "to"
			}
		}
		return true
	})
	return found
}

// effect is what happens at run time. A GradScaler or autocast for CUDA warns and switches itself off where no CUDA is, whether the
// device is part of its name or its first argument (torch/amp/grad_scaler.py, torch/amp/autocast_mode.py).
func effect(pass *lint.Pass, module *pyscan.Module, node syntax.Node, what string, idle bool) string {
	maker := what
	if call := callOf(module, node); call != nil && strings.HasPrefix(what, `"`) {
		maker = pass.Library(pyscan.ScopeAt(module, call), nil, call.Func)
	}
	switch {
	case idle:
		return "the call does nothing"
	case strings.HasSuffix(maker, ".GradScaler"):
		return "the scaler switches itself off, so gradients underflow in fp16"
	case strings.HasSuffix(maker, ".autocast"):
		return "autocast switches itself off, so everything runs in fp32"
	}
	return `"Torch not compiled with CUDA enabled" is raised`
}

// callOf is the innermost call of which a node is the function or an argument; nil where it is part of none.
func callOf(module *pyscan.Module, node syntax.Node) *syntax.Call {
	var found *syntax.Call
	stmt := workspaceAround(pyscan.ScopeAt(module, node), node)
	if stmt == nil {
		return nil
	}
	syntax.Inspect(stmt, func(n syntax.Node) bool {
		if n == nil || !n.Span().Contains(node.Span()) {
			return false
		}
		if call, ok := n.(*syntax.Call); ok {
			found = call
		}
		return true
	})
	return found
}

// disabledScaler reports whether a node is part of the making of a GradScaler with enabled=False, which asks for no device.
func disabledScaler(pass *lint.Pass, module *pyscan.Module, node syntax.Node) bool {
	call := callOf(module, node)
	if call == nil {
		return false
	}
	scope := pyscan.ScopeAt(module, call)
	if !strings.HasSuffix(pass.Library(scope, nil, call.Func), ".GradScaler") {
		return false
	}
	flag := pass.Arg(scope, nil, call, "enabled", -1)
	return flag != nil && pass.Truthy(pass.Expand(flag)) == pyscan.No
}

// instead is the name of the same thing on the NPU.
func instead(what string) string {
	switch {
	case strings.HasSuffix(what, ".autocast"):
		return `torch.amp.autocast("npu")`
	case strings.HasPrefix(what, "torch.cuda"):
		return strings.Replace(what, "torch.cuda", "torch.npu", 1)
	}
	return strings.Replace(what, "cuda", "npu", 1)
}
