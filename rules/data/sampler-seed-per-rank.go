package data

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed sampler-seed-per-rank.md
var samplerSeedPerRankDoc string

// SamplerSeedPerRank finds distributed samplers whose ranks shuffle with different seeds.
var SamplerSeedPerRank = &lint.Rule{
	Name:     "sampler-seed-per-rank",
	Family:   "data",
	Since:    "0.1",
	Doc:      samplerSeedPerRankDoc,
	Severity: lint.Error,
	Mentions: []string{"DistributedSampler"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		calls(pass, module, samplerClass, func(scope *pyscan.Scope, call *syntax.Call) {
			seed := workspace.Argument(call, "seed", 4)
			if seed == nil || !ranked(pass, scope, seed, 4) {
				return
			}
			if shuffle := pass.Arg(scope, nil, call, "shuffle", 3); shuffle != nil && pass.Truthy(shuffle) != pyscan.Yes {
				return // the order does not depend on the seed
			}
			if replicas := pass.Arg(scope, nil, call, "num_replicas", 1); replicas != nil {
				if c, ok := pass.Constant(replicas); ok {
					if n, is := c.Int(); is && n == 1 {
						return // each rank samples all of the data
					}
				}
			}
			pass.Reportf(module.File.At(seed.Span()), "every rank shuffles with another seed: the parts that the ranks take overlap, some samples are never seen and others several times an epoch").
				Help("give all ranks the same seed")
		})
	},
}

// ranked reports whether a number certainly differs from rank to rank: a sum or product with the global rank.
func ranked(pass *lint.Pass, scope *pyscan.Scope, e syntax.Expr, depth int) bool {
	switch e := e.(type) {
	case *syntax.BinOp:
		switch e.Op {
		case syntax.Add, syntax.Sub, syntax.Mult, syntax.BitXor:
			return ranked(pass, scope, e.Left, depth) || ranked(pass, scope, e.Right, depth)
		}
	case *syntax.Call:
		if name := pass.Library(scope, nil, e.Func); name == "torch.distributed.get_rank" || strings.HasSuffix(name, ".process_index") {
			return true
		}
		if last := pyscan.PathEnd(e.Func); last == "get_rank" && len(e.Args) == 0 {
			return true
		}
		if pyscan.Path(e.Func) == "int" && len(e.Args) == 1 {
			return environRank(e.Args[0]) || ranked(pass, scope, e.Args[0], depth)
		}
	case *syntax.Name:
		if def := scope.Def(e); def != nil && def.Kind == pyscan.AssignDef && def.Value != nil && depth > 0 {
			return ranked(pass, scope, def.Value, depth-1)
		}
		if def := module(scope).Exit(e.ID); scope.Def(e) == nil && def != nil && def.Kind == pyscan.AssignDef && def.Value != nil && depth > 0 {
			return ranked(pass, module(scope), def.Value, depth-1)
		}
		return e.ID == "rank" || e.ID == "global_rank" || e.ID == "local_rank"
	case *syntax.Attribute:
		if value, in := attribute(scope, e); value != nil && depth > 0 {
			return ranked(pass, in, value, depth-1)
		}
		switch e.Attr {
		case "rank", "global_rank", "local_rank", "process_index", "distributed_rank", "dist_rank":
			return true
		}
	}
	return false
}

func module(scope *pyscan.Scope) *pyscan.Scope { return scope.Module.Root }

// attribute is what the one assignment to self.name in the class around a scope gives it, and the method in which it stands; nil where
// there is none, or several.
func attribute(scope *pyscan.Scope, e *syntax.Attribute) (value syntax.Expr, in *pyscan.Scope) {
	class := scope
	for class != nil && class.Kind != pyscan.ClassScope {
		class = class.Parent
	}
	if self, ok := e.Value.(*syntax.Name); !ok || self.ID != "self" || class == nil {
		return nil, nil
	}
	for _, method := range class.Children {
		for _, def := range method.Defs("self." + e.Attr) {
			if value != nil || def.Kind != pyscan.AssignDef || len(def.Path()) > 0 {
				return nil, nil
			}
			value, in = def.Value, method
		}
	}
	return value, in
}

func environRank(e syntax.Expr) bool {
	found := false
	if !workspace.NamesAny(e, "environ", "getenv") {
		return false
	}
	syntax.Inspect(e, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.Constant); ok && (c.Text == "RANK" || c.Text == "LOCAL_RANK") {
			found = true
		}
		return true
	})
	return found
}
