package fsdp

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed fsdp-no-auto-wrap.md
var fsdpNoAutoWrapDoc string

// FsdpNoAutoWrap finds models that FSDP1 keeps in one unit.
var FsdpNoAutoWrap = &lint.Rule{
	Name:     "fsdp-no-auto-wrap",
	Family:   "fsdp",
	Since:    "0.1",
	Doc:      fsdpNoAutoWrapDoc,
	Severity: lint.Warning,
	Mentions: []string{"FullyShardedDataParallel", "FSDP(", "fsdp_auto_wrap_policy", "FSDP"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		var found []*syntax.Call
		for _, site := range pass.CallsNear(module, wrapNames) {
			call, scope := site.Call, site.Scope
			switch name := pass.Library(scope, nil, call.Func); {
			case name == fsdp1:
				found = append(found, call)
			case strings.HasPrefix(name, "torch.distributed.fsdp.wrap.") && (strings.HasSuffix(name, ".wrap") || strings.HasSuffix(name, "enable_wrap")):
				return // layers are wrapped by hand
			case name == "functools.partial" && len(call.Args) > 0 && pass.Library(scope, nil, call.Args[0]) == fsdp1:
				return
			}
		}
		if len(found) == 1 { // several: some wrap layers
			checkUnit(pass, module, found[0])
		}
	},
	Part: func(pass *lint.Pass, part *workspace.Part) {
		section := part.Tree.Root.Get("fsdp_config")
		if section == nil {
			return
		}
		policy := section.Item("fsdp_auto_wrap_policy")
		if policy == nil || policy.Value == nil || policy.Value.Kind != configs.Scalar || policy.Value.Open || strings.ToUpper(policy.Value.Raw) != "NO_WRAP" {
			return
		}
		if version := section.Get("fsdp_version"); version != nil && version.Raw != "1" {
			return
		}
		reportUnit(pass, policy.Value.At, largeModel(pass, &pyscan.Unknown{}, part.Path))
	},
}

// Sizes of models, parameters.
const (
	large = 1_000_000_000 // a unit of this size gathers 4 GB in fp32
	small = 100_000_000   // below this, one unit does
)

func checkUnit(pass *lint.Pass, module *pyscan.Module, call *syntax.Call) {
	scope := pyscan.ScopeAt(module, call)
	model := workspace.Argument(call, "module", 0)
	if model == nil || pass.OpenKeywords(scope, nil, call) || inLoop(scope, call) {
		return
	}
	if policy := pass.Arg(scope, nil, call, "auto_wrap_policy", policyPosition); policy != nil {
		if c, ok := pass.Constant(pass.Expand(policy)); !ok || c.Kind() != constant.None {
			return
		}
	}
	value := pass.Expand(pass.Eval(scope, nil, model))
	switch value := value.(type) {
	case *pyscan.Instance:
		if name := pass.ExternalName(value.Of); strings.HasPrefix(name, "torch.nn.") && name != "torch.nn.Sequential" {
			return // a layer
		}
	case *pyscan.Element, *pyscan.Const:
		return
	case *pyscan.Member:
		return // a part of a model
	}
	if wrapsInside(pass, value) {
		return
	}
	reportUnit(pass, module.File.At(call.Span()), largeModel(pass, value, module.File.Path))
}

// largeModel is Yes for a model known to be large, No for one known to be small.
func largeModel(pass *lint.Pass, model pyscan.Value, file string) pyscan.Truth {
	parameters, _, known := pass.ModelSize(model, file)
	switch {
	case known && parameters >= large:
		return pyscan.Yes
	case known && parameters < small:
		return pyscan.No
	}
	return pyscan.Maybe
}

func reportUnit(pass *lint.Pass, at source.Place, isLarge pyscan.Truth) {
	if isLarge == pyscan.No {
		return
	}
	d := pass.Reportf(at, "without a wrap policy FSDP makes one unit of the whole model: forward gathers all weights at once, and no communication overlaps with computation")
	if isLarge == pyscan.Maybe {
		d.As(lint.Info)
	}
	d.Help("pass auto_wrap_policy with the class of the transformer's layers")
}

// inLoop reports whether a call stands in a loop or comprehension of its function: layers are wrapped one by one there.
func inLoop(scope *pyscan.Scope, call *syntax.Call) bool {
	if workspace.InLoop(scope, call) {
		return true
	}
	found := false
	for _, stmt := range scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			if comp, ok := n.(*syntax.Comp); ok && comp.Span().Contains(call.Span()) {
				found = true
			}
			return !found
		})
	}
	return found || scope.Kind == pyscan.LambdaScope
}

// wrapsInside reports whether the class of a model wraps its own layers.
func wrapsInside(pass *lint.Pass, model pyscan.Value) bool {
	made, ok := model.(*pyscan.Instance)
	if !ok {
		return false
	}
	class, ok := made.Of.(*pyscan.Class)
	if !ok {
		return false
	}
	text := class.Scope.Module.Code(class.Scope.Node.Span())
	return strings.Contains(text, "FSDP") || strings.Contains(text, "FullyShardedDataParallel") || strings.Contains(text, "wrap(")
}
