package ddp

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed ddp-rank-as-device.md
var ddpRankAsDeviceDoc string

// DdpRankAsDevice finds the global rank used as the number of a device.
var DdpRankAsDevice = &lint.Rule{
	Name:     "ddp-rank-as-device",
	Family:   "ddp",
	Since:    "0.1",
	Doc:      ddpRankAsDeviceDoc,
	Severity: lint.Warning,
	Fix:      lint.SometimesFix,
	Mentions: []string{"set_device", "device_ids"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		found := false
		var ids []*syntax.Call
		for _, site := range module.Calls {
			call, scope := site.Call, site.Scope
			switch pyscan.LastName(call.Func) {
			case "set_device", "set_device_index", "set_device_idx":
				name := pass.Library(scope, nil, call.Func)
				if strings.HasPrefix(name, "torch.") && len(call.Args) == 1 && reportRank(pass, module, scope, call.Args[0], call) {
					found = true
				}
			default:
				if workspace.Argument(call, "device_ids", 1) != nil {
					ids = append(ids, call)
				}
			}
		}
		for _, call := range ids {
			scope := pyscan.ScopeAt(module, call)
			if found || pass.Library(scope, nil, call.Func) != "torch.nn.parallel.DistributedDataParallel" {
				continue
			}
			value := workspace.Argument(call, "device_ids", 1)
			if list, ok := value.(*syntax.List); ok && len(list.Elts) == 1 {
				reportRank(pass, module, scope, list.Elts[0], value)
			}
		}
	},
}

// reportRank reports at a node when a device is certainly the global rank.
func reportRank(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope, device syntax.Expr, at syntax.Node) bool {
	how := globalRank(pass, scope, device, 4)
	if how == "" || how == "get_rank()" && spawned(pass, scope, 3) {
		return false
	}
	d := pass.Reportf(module.File.At(at.Span()), "%s counts over all machines, but devices are counted on each: from the second machine on there is no device of this number", how)
	evidence, several := pass.SeveralNodes(module, scope)
	switch {
	case several:
		d.As(lint.Error).Note(evidence, "it is launched on several machines here")
	case strings.Contains(how, "SLURM") || module.Says("SLURM_NNODES", "SLURM_JOB_NUM_NODES"):
		d.As(lint.Error)
	}
	const local = `int(os.environ["LOCAL_RANK"])`
	if value := pass.Eval(scope, nil, &syntax.Name{ID: "os"}); pass.ExternalName(value) == "os" && !strings.Contains(how, "SLURM") {
		if _, text := device.(*syntax.JoinedStr); !text {
			d.Suggest("use the rank on this machine", lint.Unsafe, lint.Edit{At: module.File.At(device.Span()), Text: local})
			return true
		}
	}
	d.Help("use the rank on this machine: %s", local)
	return true
}

// spawners are the names of what starts a function once for each device of this machine, with the number of the device.
var spawners = &pyscan.Words{Alias: true, Names: map[string]bool{"spawn": true}}

// spawned reports whether a function, or one that calls it, is started by torch.multiprocessing.spawn: all ranks are on one machine then,
// since its processes are numbered from 0, and programs for several add an offset that they have at hand.
func spawned(pass *lint.Pass, scope *pyscan.Scope, depth int) bool {
	for scope.Kind != pyscan.FuncScope && scope.Parent != nil {
		scope = scope.Parent
	}
	if scope.Kind != pyscan.FuncScope || depth <= 0 {
		return false
	}
	for _, site := range pass.CallsNear(scope.Module, spawners) {
		if len(site.Call.Args) == 0 || pass.Library(site.Scope, nil, site.Call.Func) != "torch.multiprocessing.spawn" {
			continue
		}
		if f := pass.Called(pass.Expand(pass.Eval(site.Scope, nil, site.Call.Args[0]))); f != nil && f.Scope == scope {
			return true
		}
	}
	for _, caller := range pass.Callers(scope) {
		if caller.Scope != nil && caller.Scope != scope && spawned(pass, caller.Scope, depth-1) {
			return true
		}
	}
	return false
}

// globalRank says what makes an expression the global rank; "" when it may be something else.
func globalRank(pass *lint.Pass, scope *pyscan.Scope, e syntax.Expr, depth int) string {
	if depth <= 0 {
		return ""
	}
	switch e := e.(type) {
	case *syntax.JoinedStr: // f"cuda:{rank}"
		for _, part := range e.Values {
			if field, ok := part.(*syntax.FormattedValue); ok {
				return globalRank(pass, scope, field.Value, depth-1)
			}
		}
		return ""
	case *syntax.Name:
		if def := scope.Def(e); def != nil && def.Kind == pyscan.AssignDef {
			switch def.Value.(type) {
			case *syntax.JoinedStr, *syntax.Call:
				if how := globalRank(pass, scope, def.Value, depth-1); how != "" {
					return how
				}
			}
		}
	case *syntax.Call:
		if pass.Library(scope, nil, e.Func) == "torch.device" && len(e.Args) > 0 {
			return globalRank(pass, scope, e.Args[len(e.Args)-1], depth-1)
		}
	}
	return rankValue(pass, pass.Expand(pass.Eval(scope, nil, e)), 4)
}

func rankValue(pass *lint.Pass, value pyscan.Value, depth int) string {
	if depth <= 0 {
		return ""
	}
	how := ""
	for _, one := range workspace.Alternatives(value) {
		this := ""
		switch one := one.(type) {
		case *pyscan.Result:
			switch pass.ExternalName(one.Of) {
			case "torch.distributed.get_rank":
				if one.Call != nil && len(one.Call.Args)+len(one.Call.Keywords) == 0 {
					this = "get_rank()"
				}
			case "os.getenv", "os.environ.get":
				this = environment(pass, one)
			}
			if member, ok := one.Of.(*pyscan.Member); ok && member.Name == "get" && pass.ExternalName(member.Base) == "os.environ" {
				this = environment(pass, one)
			}
		case *pyscan.Element:
			if pass.ExternalName(one.Base) == "os.environ" {
				if c, ok := pass.Constant(one.Key); ok {
					text, _ := c.Str()
					this = rankVariables[text]
				}
			}
		case *pyscan.Op:
			if one.Name == "int" && len(one.Operands) == 1 {
				this = rankValue(pass, one.Operands[0], depth-1)
			}
		}
		if this == "" {
			return ""
		}
		how = this
	}
	return how
}

var rankVariables = map[string]string{"RANK": "RANK", "SLURM_PROCID": "SLURM_PROCID", "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_RANK"}

// environment is the rank variable that os.getenv or os.environ.get reads, "" when it reads another one.
func environment(pass *lint.Pass, result *pyscan.Result) string {
	if result.Call == nil || len(result.Call.Args) == 0 || result.At.Module == nil {
		return ""
	}
	scope := pyscan.ScopeAt(result.At.Module, result.Call)
	c, ok := pass.Constant(pass.Eval(scope, result.Frame, result.Call.Args[0]))
	text, _ := c.Str()
	if !ok {
		return ""
	}
	return rankVariables[text]
}
