package distributed

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed collective-under-rank-guard.md
var collectiveUnderRankGuardDoc string

// CollectiveUnderRankGuard finds collectives that only some ranks reach.
var CollectiveUnderRankGuard = &lint.Rule{
	Name:     "collective-under-rank-guard",
	Family:   "distributed",
	Since:    "0.1",
	Doc:      collectiveUnderRankGuardDoc,
	Severity: lint.Error,
	Mentions: []string{"rank", "process"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		if !module.File.Has("rank") && !module.File.Has("process") || workspace.IsTest(module.File.Path) {
			return
		}
		found := map[syntax.Node]bool{}
		for _, site := range candidates(pass, module) {
			call, scope := site.Call, site.Scope
			if scope.Kind != pyscan.FuncScope && scope.Kind != pyscan.ModuleScope {
				continue
			}
			test := rankTest(pass, scope, call)
			if test == nil || test.soft {
				continue
			}
			if name, sure := collective(pass, scope, nil, call); name != "" {
				if !found[call] && !paired(pass, scope, test, call, name) && !elsewhere(pass, scope, test, name) {
					found[call] = true
					report(pass, scope, call, test, name, sure, nil)
				}
				continue
			}
			f := pass.Called(pass.Expand(pass.Eval(scope, nil, call.Func)))
			if f == nil || f.Scope.Module != module || f.Scope.Kind != pyscan.FuncScope {
				continue
			}
			// A function that waits in itself, called by some ranks only.
			if inner, name := unconditional(pass, f.Scope); inner != nil && !found[inner] && !paired(pass, scope, test, call, name) &&
				!paired(pass, f.Scope, test, inner, name) && !elsewhere(pass, scope, test, name) {
				found[inner] = true
				report(pass, f.Scope, inner, test, name, true, call)
			}
		}
	},
}

// collectives are the last names of what collective knows.
var collectives = &pyscan.Words{Names: map[string]bool{"barrier": true, "all_reduce": true, "all_gather": true, "all_gather_object": true, "all_gather_into_tensor": true,
	"broadcast": true, "broadcast_object_list": true, "reduce": true, "reduce_scatter": true, "reduce_scatter_tensor": true, "gather": true, "gather_object": true,
	"scatter": true, "scatter_object_list": true, "all_to_all": true, "all_to_all_single": true, "monitored_barrier": true, "GatheredParameters": true,
	"wait_for_everyone": true, "get_state_dict": true, "full_tensor": true, "save_checkpoint": true, "save_16bit_model": true, "state_dict": true}}

// collectiveNames are what stands for one of them, without what calls one.
var collectiveNames = &pyscan.Words{Alias: true, Names: collectives.Names}

// candidates are the calls that may be collectives, or of a function of the module that makes one itself: those by the name of such a function,
// and by names that something may be bound to.
func candidates(pass *lint.Pass, module *pyscan.Module) []pyscan.Call {
	own := pass.CallsNear(module, collectiveNames)
	waiting := map[string]bool{}
	for _, site := range own {
		if site.Scope.Kind == pyscan.FuncScope {
			waiting[site.Scope.Name] = true
		}
	}
	if len(waiting) == 0 {
		return own
	}
	return slices.DeleteFunc(pass.CallsNear(module, collectives), func(site pyscan.Call) bool {
		name := pyscan.LastName(site.Func)
		return name != "" && !waiting[name] && !pass.Bound(module, name) && !pass.Near(module, collectiveNames, site.Func)
	})
}

// guard is a test that only some ranks pass on the way to a call.
type guard struct {
	test syntax.Expr
	main bool       // it is the main rank that goes on
	stmt *syntax.If // the if statement
	rest bool       // the call is not in the statement, but after it, where it leaves
	soft bool       // it leaves the round of a loop only, so that the ranks may meet in another one
}

const hangs = "the job hangs here until the process group times out"

func report(pass *lint.Pass, scope *pyscan.Scope, call *syntax.Call, test *guard, name string, sure bool, via *syntax.Call) {
	file := scope.Module.File
	who := "the main rank"
	if !test.main {
		who = "the other ranks"
	}
	d := pass.Reportf(file.At(call.Span()), "only %s reach %s, which waits for all: "+hangs, who, name)
	if test.main {
		d.Message = strings.Replace(d.Message, "reach ", "reaches ", 1)
	}
	if !sure {
		d.As(lint.Info)
	}
	if unknown := unknownOther(pass, scope, test, call); unknown != nil {
		d.As(lint.Info).Message = strings.TrimSuffix(d.Message, hangs) + "unless the other ranks call it in " +
			file.Slice(unknown.Func.Span()) + ", the job hangs here"
	}
	d.Note(file.At(test.test.Span()), "the test of the rank")
	if via != nil {
		d.Note(file.At(via.Span()), "it is called here")
	}
	d.Help("call it on every rank, and test the rank only around what one rank does alone")
}

// collective names a call that every rank of the default group must make; sure is false where that depends on what is not known.
func collective(pass *lint.Pass, scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call) (name string, sure bool) {
	external := pass.Library(scope, frame, call.Func)
	switch external {
	case "torch.distributed.barrier", "torch.distributed.all_reduce", "torch.distributed.all_gather", "torch.distributed.all_gather_object", "torch.distributed.all_gather_into_tensor",
		"torch.distributed.broadcast", "torch.distributed.broadcast_object_list", "torch.distributed.reduce", "torch.distributed.reduce_scatter", "torch.distributed.reduce_scatter_tensor",
		"torch.distributed.gather", "torch.distributed.gather_object", "torch.distributed.scatter", "torch.distributed.scatter_object_list", "torch.distributed.all_to_all",
		"torch.distributed.all_to_all_single", "torch.distributed.monitored_barrier":
		if grouped(pass, scope, call, external) {
			return "", false
		}
		return pyscan.LastPart(external), true
	case "deepspeed.comm.barrier", "deepspeed.comm.all_reduce":
		if grouped(pass, scope, call, external) {
			return "", false
		}
		return pyscan.LastPart(external), true
	case "deepspeed.zero.GatheredParameters":
		return "GatheredParameters", true
	}
	attr, ok := call.Func.(*syntax.Attribute)
	if !ok || pass.Called(pass.Eval(scope, frame, call.Func)) != nil {
		return "", false
	}
	switch attr.Attr {
	case "wait_for_everyone":
		return "wait_for_everyone()", true
	case "get_state_dict":
		if accelerator(pass, scope, frame, attr.Value) {
			return "get_state_dict(), under FSDP and ZeRO-3 a collective", shards(pass, pass.Expand(pass.Eval(scope, frame, attr.Value)))
		}
	case "full_tensor":
		if len(call.Args)+len(call.Keywords) == 0 {
			return "full_tensor()", true
		}
	case "save_checkpoint", "save_16bit_model":
		if attr.Attr == "save_checkpoint" && pass.IsA(pass.Expand(pass.Eval(scope, frame, attr.Value)), "pytorch_lightning.Trainer") == pyscan.Yes {
			return "the Trainer's save_checkpoint()", true
		}
		wrappers, _, certain := pass.Wrappers(pass.Expand(pass.Eval(scope, frame, attr.Value)))
		if len(wrappers) > 0 && wrappers[0].Kind == workspace.DeepSpeedEngine {
			return "the engine's " + attr.Attr + "()", certain
		}
	case "state_dict":
		wrappers, _, certain := pass.Wrappers(pass.Expand(pass.Eval(scope, frame, attr.Value)))
		if len(wrappers) > 0 && wrappers[0].Kind == workspace.FSDP1 && certain {
			return "state_dict() of FSDP", true
		}
	}
	return "", false
}

func accelerator(pass *lint.Pass, scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr) bool {
	return strings.HasSuffix(pyscan.Path(e), "accelerator") || pass.IsA(pass.Expand(pass.Eval(scope, frame, e)), "accelerate.Accelerator") == pyscan.Yes
}

// shards reports whether an Accelerator is made with a plugin under which a model's state is spread over the ranks.
func shards(pass *lint.Pass, value pyscan.Value) bool {
	inst, ok := value.(*pyscan.Instance)
	if !ok || inst.Call == nil || inst.At.Module == nil {
		return false
	}
	scope := pyscan.ScopeAt(inst.At.Module, inst.Call)
	if plugin := pass.Arg(scope, inst.Frame, inst.Call, "fsdp_plugin", -1); plugin != nil && pass.Truthy(plugin) != pyscan.No {
		return true
	}
	plugin, ok := pass.Arg(scope, inst.Frame, inst.Call, "deepspeed_plugin", -1).(*pyscan.Instance)
	if !ok || plugin.Call == nil || plugin.At.Module == nil {
		return false
	}
	stage, ok := pass.Constant(pass.Arg(pyscan.ScopeAt(plugin.At.Module, plugin.Call), plugin.Frame, plugin.Call, "zero_stage", -1))
	n, is := stage.Int()
	return ok && is && n == 3
}

// groups are the positions of the group argument.
var groups = map[string]int{"barrier": 0, "all_reduce": 2, "all_gather": 2, "broadcast": 2, "reduce": 3, "monitored_barrier": 0, "all_gather_object": 2, "gather": 3, "scatter": 3}

// grouped reports whether a collective is of another group than all ranks, as far as can be told.
func grouped(pass *lint.Pass, scope *pyscan.Scope, call *syntax.Call, name string) bool {
	position, known := groups[pyscan.LastPart(name)]
	if !known {
		position = -1
	}
	group := workspace.Argument(call, "group", position)
	if group == nil {
		return pass.OpenKeywords(scope, nil, call)
	}
	if c, ok := group.(*syntax.Constant); ok && c.Kind == syntax.NoneConstant {
		return false
	}
	return !strings.HasSuffix(pass.Library(scope, nil, group), "group.WORLD")
}

// rankTest is the innermost test of the rank that decides whether a call is made, in its own function; nil where all ranks make
// it, or where that cannot be told.
func rankTest(pass *lint.Pass, scope *pyscan.Scope, call syntax.Node) *guard {
	var found *guard
	body := scope.Body()
	for _, stmt := range workspace.Around(scope, call) {
		left := leaving(pass, scope, body)
		if before, _ := slices.BinarySearchFunc(left, stmt.Span().Start, func(one *guard, start uint32) int { return cmp.Compare(one.stmt.Span().Start, start) }); before > 0 {
			found = left[before-1]
		}
		body = nil
		switch stmt := stmt.(type) {
		case *syntax.If:
			switch {
			case stmt.Test.Span().Contains(call.Span()):
				return nil
			case workspace.Within(stmt.Body, call):
				body = stmt.Body
				if which := rank(pass, scope, stmt.Test); which != 0 {
					found = &guard{test: stmt.Test, main: which > 0, stmt: stmt}
				} else if alone(stmt.Test) {
					return nil
				}
			default:
				body = stmt.OrElse
				if which := rank(pass, scope, stmt.Test); which != 0 && !partly(stmt.Test) {
					found = &guard{test: stmt.Test, main: which < 0, stmt: stmt}
				} else if alone(stmt.Test) {
					return nil
				}
			}
		case *syntax.For:
			body = stmt.Body
		case *syntax.While:
			body = stmt.Body
		case *syntax.With:
			body = stmt.Body
		case *syntax.Try:
			body = stmt.Body
			if !workspace.Within(stmt.Body, call) {
				body = nil
			}
		}
	}
	return found
}

// leaving are the tests of the rank in a block under which some ranks leave the function.
func leaving(pass *lint.Pass, scope *pyscan.Scope, block []syntax.Stmt) []*guard {
	if len(block) == 0 || len(block) <= shortBlock && !slices.ContainsFunc(block, leaves) {
		return nil
	}
	type question struct{ first syntax.Stmt }
	return lint.Once(pass, question{block[0]}, func() []*guard {
		var list []*guard
		for _, stmt := range block {
			if test, ok := stmt.(*syntax.If); ok && leaves(stmt) {
				if which := rank(pass, scope, test.Test); which != 0 {
					_, returns := test.Body[len(test.Body)-1].(*syntax.Return)
					list = append(list, &guard{test.Test, which < 0, test, true, !returns})
				}
			}
		}
		return list
	})
}

// shortBlock is up to how many statements a block is gone through for each call in it: most have no test under which anybody leaves.
const shortBlock = 32

// leaves holds for a test that ends the function, or the round of a loop, where it is met.
func leaves(stmt syntax.Stmt) bool {
	test, ok := stmt.(*syntax.If)
	if !ok || len(test.OrElse) > 0 || len(test.Body) == 0 {
		return false
	}
	switch last := test.Body[len(test.Body)-1].(type) {
	case *syntax.Return, *syntax.Continue, *syntax.Break, *syntax.Raise:
		return true
	case *syntax.ExprStmt:
		call, ok := last.Value.(*syntax.Call)
		return ok && (pyscan.Path(call.Func) == "sys.exit" || pyscan.Path(call.Func) == "exit")
	}
	return false
}

// partly reports whether a test is a conjunction, so that its else part is for more than the ranks that fail it.
func partly(test syntax.Expr) bool {
	_, ok := test.(*syntax.BoolOp)
	return ok
}

// alone reports whether a test asks whether there is one process only: then nothing waits.
func alone(test syntax.Expr) bool {
	found := false
	syntax.Inspect(test, func(n syntax.Node) bool {
		text := pyscan.LastName(n)
		found = found || strings.Contains(text, "world_size") || strings.Contains(text, "num_processes")
		return !found
	})
	return found
}

// rank reads a test of the rank: 1 when the main rank passes it alone, -1 when all but that one do, 0 for anything else.
func rank(pass *lint.Pass, scope *pyscan.Scope, test syntax.Expr) int {
	switch e := test.(type) {
	case *syntax.UnaryOp:
		if e.Op == syntax.Not {
			return -rank(pass, scope, e.Operand)
		}
	case *syntax.BoolOp:
		if e.Op == syntax.And {
			for _, value := range e.Values {
				if which := rank(pass, scope, value); which != 0 {
					return which
				}
			}
			return 0
		}
		found := 0
		for _, value := range e.Values { // not dist.is_initialized() or rank == 0
			switch which := rank(pass, scope, value); {
			case which != 0 && found == 0:
				found = which
			case which != 0 || !negated(value):
				return 0
			}
		}
		return found
	case *syntax.Name:
		if def := scope.Def(e); def != nil && def.Kind == pyscan.AssignDef && def.Value != nil {
			switch def.Value.(type) {
			case *syntax.Compare, *syntax.UnaryOp, *syntax.Attribute, *syntax.Call:
				return rank(pass, scope, def.Value)
			}
			return 0
		}
		return mainName(e.ID)
	case *syntax.Attribute:
		return mainName(e.Attr)
	case *syntax.Call:
		if len(e.Args) == 0 {
			return mainName(pyscan.PathEnd(e.Func))
		}
	case *syntax.Compare:
		if len(e.Ops) != 1 {
			return 0
		}
		zero, number := e.Comparators[0].(*syntax.Constant)
		local := elements(e.Comparators[0])
		if local == nil && (!number || zero.Kind != syntax.IntConstant || zero.Text != "0") || !isRank(pass, scope, e.Left, 3) {
			return 0
		}
		if local != nil { // [-1, 0]: without a launcher, or the main rank
			switch {
			case len(local) != 2:
			case e.Ops[0] == syntax.In:
				return 1
			case e.Ops[0] == syntax.NotIn:
				return -1
			}
			return 0
		}
		switch e.Ops[0] {
		case syntax.Eq:
			return 1
		case syntax.NotEq, syntax.Gt:
			return -1
		}
	}
	return 0
}

// elements are those of a list or tuple; nil for anything else.
func elements(e syntax.Expr) []syntax.Expr {
	switch e := e.(type) {
	case *syntax.List:
		return e.Elts
	case *syntax.Tuple:
		return e.Elts
	}
	return nil
}

func negated(e syntax.Expr) bool {
	not, ok := e.(*syntax.UnaryOp)
	return ok && not.Op == syntax.Not
}

func mainName(name string) int {
	switch strings.ToLower(name) {
	case "is_main_process", "is_main", "is_master", "is_master_process", "master_process", "main_process", "is_rank_zero", "is_rank_0", "is_rank0", "is_global_zero", "is_world_process_zero", "is_local_main_process":
		return 1
	}
	return 0
}

var rankGetters = &pyscan.Words{Alias: true, Names: map[string]bool{"get_rank": true}}

// isRank reports whether an expression is the number of this process among all.
func isRank(pass *lint.Pass, scope *pyscan.Scope, e syntax.Expr, depth int) bool {
	switch e := e.(type) {
	case *syntax.Name:
		if def := scope.Def(e); def != nil && def.Kind == pyscan.AssignDef && def.Value != nil && depth > 0 {
			return isRank(pass, scope, def.Value, depth-1)
		}
		return e.ID == "rank" || e.ID == "global_rank" || e.ID == "local_rank" || e.ID == "RANK" || e.ID == "LOCAL_RANK"
	case *syntax.Attribute:
		switch pyscan.Path(e) {
		case "self.rank", "args.rank", "self.global_rank", "self.local_rank", "args.local_rank", "args.global_rank", "dist.rank", "accelerator.process_index", "self.accelerator.process_index":
			return true
		}
	case *syntax.Call:
		if pass.Near(scope.Module, rankGetters, e.Func) && pass.Library(scope, nil, e.Func) == "torch.distributed.get_rank" {
			return len(e.Args)+len(e.Keywords) == 0
		}
		if pyscan.Path(e.Func) == "int" && len(e.Args) == 1 {
			return environRank(e.Args[0])
		}
		return pyscan.Path(e.Func) == "get_rank" && len(e.Args) == 0
	}
	return false
}

func environRank(e syntax.Expr) bool {
	environ, named := false, false
	syntax.Inspect(e, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Attribute:
			environ = environ || n.Attr == "environ" || n.Attr == "getenv"
		case *syntax.Constant:
			named = named || n.Text == "RANK" || n.Text == "LOCAL_RANK"
		}
		return true
	})
	return environ && named
}

// unconditional is a barrier in a function that each call of it makes: directly in its body, or in a with statement there.
func unconditional(pass *lint.Pass, scope *pyscan.Scope) (*syntax.Call, string) {
	var look func(body []syntax.Stmt) (*syntax.Call, string)
	look = func(body []syntax.Stmt) (*syntax.Call, string) {
		for _, stmt := range body {
			switch s := stmt.(type) {
			case *syntax.ExprStmt:
				if call, ok := s.Value.(*syntax.Call); ok {
					if name, sure := collective(pass, scope, nil, call); name != "" && sure {
						return call, name
					}
				}
			case *syntax.With:
				if call, name := look(s.Body); call != nil {
					return call, name
				}
			case *syntax.If, *syntax.Return, *syntax.Try:
				return nil, "" // it may leave before
			}
		}
		return nil, ""
	}
	return look(scope.Body())
}
