package data

import (
	_ "embed"
	"slices"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed distributed-sampler-missing.md
var distributedSamplerMissingDoc string

// DistributedSamplerMissing finds data-parallel training whose ranks all shuffle the whole data set.
var DistributedSamplerMissing = &lint.Rule{
	Name:     "distributed-sampler-missing",
	Family:   "data",
	Since:    "0.1",
	Doc:      distributedSamplerMissingDoc,
	Severity: lint.Warning,
	Mentions: []string{"DataLoader"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		calls(pass, module, loaderClass, func(scope *pyscan.Scope, call *syntax.Call) { checkLoader(pass, module, scope, call) })
	},
}

// splitters are words of code that gives each rank its own part of the data.
var splitters = []string{"split_dataset_by_node", "DistributedSampler", "webdataset", "IterableDataset", "prepare(", "prepare_data_loader",
	".shard(", "DistributedBatchSampler", "DistributedWeighted", "rank::", "num_replicas", "nn.DataParallel("}

func checkLoader(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope, call *syntax.Call) {
	shuffle := pass.Arg(scope, nil, call, "shuffle", 2)
	if shuffle == nil || pass.Truthy(shuffle) != pyscan.Yes || pass.OpenKeywords(scope, nil, call) || workspace.IsTest(module.File.Path) {
		return
	}
	for _, keyword := range []string{"sampler", "batch_sampler", "generator"} {
		if workspace.Argument(call, keyword, -1) != nil {
			return
		}
	}
	if len(call.Args) > 3 || prepared(pass, module) {
		return
	}
	if dataset := workspace.Argument(call, "dataset", 0); dataset == nil || ofRank(pass, scope, dataset, 4) {
		return
	}
	for _, use := range uses(pass, module) {
		if use.loader.Call != call {
			continue
		}
		if splits(pass, use.scope.Module) || splits(pass, module) {
			return
		}
		if wrapped := dataParallel(pass, use); wrapped != nil {
			pass.Reportf(module.File.At(call.Span()), "each rank shuffles the whole data set by itself: in one epoch the ranks of DistributedDataParallel train on the same samples several times, or with equal seeds on the same batches").
				Note(pyscan.From(wrapped.Scope.Module, wrapped.Call).Site().Place(), "the model is wrapped here").
				Help("pass sampler=DistributedSampler(dataset) and leave shuffle out")
			return
		}
	}
}

// ofRank reports whether the rank, or a part, is spoken of where a data set is made, or the indices that choose from one: the data are split by
// hand then. Names are followed to what they were cut from, and not to what else a data set is made of.
func ofRank(pass *lint.Pass, scope *pyscan.Scope, e syntax.Expr, depth int) bool {
	if workspace.NamesAny(e, "rank", "shard", "local") {
		return true
	}
	switch e := e.(type) {
	case *syntax.Name:
		for _, def := range scope.Defs(e.ID) {
			if depth > 0 && def.Kind == pyscan.AssignDef && def.Value != nil && ofRank(pass, scope, def.Value, depth-1) {
				return true
			}
		}
	case *syntax.Subscript:
		return ofRank(pass, scope, e.Value, depth)
	case *syntax.Call:
		if attr, ok := e.Func.(*syntax.Attribute); ok && ofRank(pass, scope, attr.Value, depth) {
			return true
		}
		subset := pyscan.LastName(e.Func) == "Subset" || pass.Library(scope, nil, e.Func) == "torch.utils.data.Subset"
		return subset && slices.ContainsFunc(e.Args, func(arg syntax.Expr) bool { return ofRank(pass, scope, arg, depth) })
	}
	return false
}

func splits(pass *lint.Pass, module *pyscan.Module) bool {
	for _, file := range pass.Closure(module.File.Path) {
		if m := pass.Module(file); m != nil && m.Says(splitters...) {
			return true
		}
	}
	return false
}

// dataParallel is the DistributedDataParallel around the model that a loop over a loader trains; nil where it trains none.
func dataParallel(pass *lint.Pass, use use) *workspace.Wrapper {
	for _, root := range pass.Loops(use.scope.Module) {
		var found *workspace.Wrapper
		trains := false
		var visit func(l *loop.Loop, in bool)
		visit = func(l *loop.Loop, in bool) {
			in = in || l.Node == syntax.Stmt(use.loop)
			for _, item := range l.Items {
				switch {
				case item.Loop != nil:
					visit(item.Loop, in)
				case in && item.Event.Kind == loop.Backward:
					trains = true
				case in && item.Event.Kind == loop.Forward:
					wrappers, _, certain := pass.Wrappers(pass.Expand(item.Event.On))
					for i := range wrappers {
						if certain && wrappers[i].Kind == workspace.DDP && wrappers[i].Call != nil {
							found = &wrappers[i]
						}
					}
				}
			}
		}
		visit(root, false)
		if trains && found != nil {
			return found
		}
	}
	return nil
}
