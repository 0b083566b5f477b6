package checkpointing

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed checkpoint-ddp-unused.md
var docCheckpointDdpUnused string

// CheckpointDdpUnused finds reentrant checkpoints under DDP that looks for unused parameters.
var CheckpointDdpUnused = &lint.Rule{
	Name:     "checkpoint-ddp-unused",
	Family:   "checkpointing",
	Since:    "0.1",
	Doc:      docCheckpointDdpUnused,
	Severity: lint.Error,
	Mentions: []string{"find_unused_parameters"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, site := range module.Calls {
			call, scope := site.Call, site.Scope
			for _, k := range call.Keywords {
				if (k.Arg == "find_unused_parameters" || k.Arg == "ddp_find_unused_parameters") && isOn(pass, scope, k.Value) {
					checkUnused(pass, module, call, module.File.At(k.Span()))
				}
			}
			if on, key := pass.Spread(scope, nil, call, "find_unused_parameters"); on != nil && key.Module == module && pass.Truthy(pass.Expand(on)) == pyscan.Yes {
				checkUnused(pass, module, call, key.Place())
			}
		}
	},
	Part: checkUnusedPart,
}

const unusedMessage = "DDP with find_unused_parameters=True and reentrant checkpoints: backward raises \"Expected to mark a variable ready only once\", since recomputed parameters are marked once more"

const unusedMessageUnsaid = "under transformers before 5, whose checkpoints are reentrant by default, find_unused_parameters=True makes " +
	"backward raise \"Expected to mark a variable ready only once\""

func checkUnused(pass *lint.Pass, module *pyscan.Module, call *syntax.Call, at source.Place) {
	scope := pyscan.ScopeAt(module, call)
	if static := pass.Arg(scope, nil, call, "static_graph", -1); static != nil && pass.Truthy(pass.Expand(static)) != pyscan.No {
		return
	}
	evidence, certain, unsaid := reentrantBeside(pass, module, call, scope)
	if evidence.IsZero() {
		return
	}
	message := unusedMessage
	if unsaid {
		message = unusedMessageUnsaid
	}
	d := pass.Reportf(at, "%s", message)
	if !certain || unsaid { // a flag turns checkpointing on, often of a text encoder that trains seldom
		d.As(lint.Info)
	}
	d.Note(evidence, "activations are checkpointed here")
	d.Help("pass use_reentrant=False to the checkpoints, or leave find_unused_parameters off")
}

// reentrantBeside finds a reentrant checkpoint that runs in the model which a call wraps or sets up for DDP; unsaid, one that is reentrant
// under some releases of transformers alone.
func reentrantBeside(pass *lint.Pass, module *pyscan.Module, call *syntax.Call, scope *pyscan.Scope) (at source.Place, certain, unsaid bool) {
	name := pass.Library(scope, nil, call.Func)
	if strings.HasSuffix(name, "DistributedDataParallel") || name == "functools.partial" {
		var model pyscan.Value = &pyscan.Unknown{}
		if len(call.Args) > 0 && name != "functools.partial" {
			model = pass.Eval(scope, nil, call.Args[0])
		} else if e := workspace.Argument(call, "module", -1); e != nil {
			model = pass.Eval(scope, nil, e)
		}
		certain = true
		_, model, _ = pass.Wrappers(model)
		if pass.Opaque(pass.Expand(model)) {
			if only := pass.OnlyModel(module); only != nil {
				model = only
			}
		}
		for _, c := range pass.ModelCheckpoints(model) {
			if c.Reentrant == pyscan.Yes && !pass.WithoutGradients(c.Scope, c.Call) {
				return c.Scope.Module.File.At(c.Call.Span()), true, false
			}
		}
		if _, isClass := model.(*pyscan.Instance); isClass && pass.ExternalName(model.(*pyscan.Instance).Of) == "" {
			return at, false, false // a class of the project, which was read
		}
	}
	for _, e := range enablings(pass, module) {
		if e.key != nil && e.call != call && name != "accelerate.DistributedDataParallelKwargs" {
			continue
		}
		switch {
		case e.reentrant == pyscan.No:
			return source.Place{}, false, false
		case (e.reentrant == pyscan.Yes || e.unsaid) && at.IsZero():
			at, certain, unsaid = module.File.At(e.call.Span()), !conditional(e.scope, e.call), e.unsaid
			if e.key != nil {
				at = module.File.At(e.key.Span())
			}
		}
	}
	if !at.IsZero() || name == "functools.partial" {
		return at, certain, unsaid
	}
	if name == "accelerate.DistributedDataParallelKwargs" || strings.HasSuffix(name, "DDPStrategy") {
		var model pyscan.Value = &pyscan.Unknown{}
		if only := pass.OnlyModel(module); only != nil {
			model = only
		}
		for _, c := range pass.ModelCheckpoints(model) {
			if c.Reentrant == pyscan.Yes {
				return c.Scope.Module.File.At(c.Call.Span()), true, false
			}
		}
	}
	return at, certain, unsaid
}

func checkUnusedPart(pass *lint.Pass, part *workspace.Part) {
	if part.Tree == nil || part.Tree.Root == nil || part.Dialect == nil {
		return
	}
	kind, known := part.Plan.Checkpointing.Kind.Get()
	if !known || kind == plan.NoCheckpointing || part.Plan.Checkpointing.Kind.How() == plan.IsDefault {
		return
	}
	reentrant, said := part.Plan.Checkpointing.Reentrant.Get()
	if said && !reentrant || !said && (part.Dialect.Name != "hf-training-args" || choosesItself(pass, part.Path)) {
		return
	}
	message, severity := unusedMessage, lint.Error
	if !said {
		switch unsaidReentrant(pass, part.Path) {
		case pyscan.No:
			return
		case pyscan.Maybe:
			message, severity = unusedMessageUnsaid, lint.Info
		}
	}
	for _, item := range part.Tree.Root.Items {
		if strings.TrimLeft(item.Key, "-") != "ddp_find_unused_parameters" || item.Value == nil {
			continue
		}
		loader := part.Dialect.Loader
		if part.Tree.Format == configs.Flags {
			loader = configs.LoaderFlags
		}
		if on, known := item.Value.Bool(loader); known && on {
			d := pass.Reportf(item.KeyAt, "%s", message).As(severity)
			d.Help("set gradient_checkpointing_kwargs: {use_reentrant: false}, or ddp_find_unused_parameters: false")
		}
	}
}

// choosesItself reports whether a script starts a trainer that picks the variant by itself, as ms-swift does.
func choosesItself(pass *lint.Pass, path string) bool {
	if m := pass.Module(path); m != nil {
		return m.Says("swift")
	}
	file := pass.Text(path)
	return file != nil && file.Has("swift")
}
