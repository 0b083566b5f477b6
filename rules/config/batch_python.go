package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// batchRole is what a setting of a program says of the batch.
type batchRole uint8

const (
	noRole      batchRole = iota
	globalBatch           // sequences per optimizer step over all ranks
	microBatch            // sequences per rank and forward pass
	plainBatch            // batch_size: the micro-batch where nothing else is called so
	accumulation
	ranks
	layout   // sizes of groups of ranks, of which none is the number of those that read different data
	sequence // tokens of a sequence
	roles    // their number
)

// stated is one number that a program states.
type stated struct {
	role  batchRole
	name  string
	at    source.Place
	value syntax.Expr
	n     int64
}

// pythonBatch compares the numbers that one object, class, dict, call or block of a program states side by side.
func pythonBatch(pass *lint.Pass, module *pyscan.Module) {
	if workspace.IsTest(module.File.Path) {
		return
	}
	for _, group := range statedTogether(module) {
		if b, ok := readStated(pass, group); ok {
			b.check(pass, module)
		}
	}
}

// statedGroup is what is stated together.
type statedGroup struct {
	scope *pyscan.Scope
	list  []stated
}

// statedTogether collects attributes of one object in a scope (config.x = 1), the names of a scope or class, the items of a dict and the
// keywords of a call.
func statedTogether(module *pyscan.Module) []statedGroup {
	type key struct {
		scope *pyscan.Scope
		of    string      // the object whose attributes they are
		in    syntax.Node // the dict or call
	}
	groups := map[key]*statedGroup{}
	var order []key
	known := map[string]batchRole{} // a file has few names, and many uses of them
	roleOf := func(name string) batchRole {
		role, ok := known[name]
		if !ok {
			role = roleOf(name)
			known[name] = role
		}
		return role
	}
	add := func(node syntax.Node, of syntax.Expr, name string, at syntax.Node, value syntax.Expr) {
		role := roleOf(name)
		if role == noRole || value == nil {
			return
		}
		k := key{scope: pyscan.ScopeAt(module, node)}
		switch node.(type) {
		case *syntax.Dict, *syntax.Call:
			k.in = node
		}
		if of != nil {
			k.of = pyscan.Path(of) + "."
		}
		if groups[k] == nil {
			groups[k] = &statedGroup{scope: k.scope}
			order = append(order, k)
		}
		groups[k].list = append(groups[k].list, stated{role: role, name: name, at: module.File.At(at.Span()), value: value})
	}
	target := func(stmt syntax.Node, e, value syntax.Expr) {
		switch e := e.(type) {
		case *syntax.Name:
			add(stmt, nil, e.ID, e, value)
		case *syntax.Attribute:
			add(stmt, e.Value, e.Attr, e, value)
		}
	}
	for node := range module.Tree.All() {
		switch n := node.(type) {
		case *syntax.Assign:
			for _, e := range n.Targets {
				target(n, e, n.Value)
			}
		case *syntax.AnnAssign:
			target(n, n.Target, n.Value)
		case *syntax.Dict:
			for i, k := range n.Keys {
				if c, ok := k.(*syntax.Constant); ok && c.Kind == syntax.StrConstant && i < len(n.Values) {
					add(n, nil, c.Text, c, n.Values[i])
				}
			}
		case *syntax.Call:
			for _, k := range n.Keywords {
				if k.Arg != "" {
					add(n, nil, k.Arg, k, k.Value)
				}
			}
		}
	}
	list := make([]statedGroup, 0, len(order))
	for _, k := range order {
		list = append(list, *groups[k])
	}
	return list
}

// roleOf reads the name of a setting by its words.
func roleOf(name string) batchRole {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	has := func(any ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(any, word) })
	}
	batch := has("batch", "batchsize", "bs", "bsz")
	switch {
	case has("eval", "val", "valid", "test", "inference", "max", "min", "num", "tokens", "token"):
		return noRole
	case batch && has("effective", "eff", "global", "total", "target", "overall"):
		return globalBatch
	case batch && (has("micro", "mini", "local") || has("per") && has("device", "gpu", "npu", "rank", "card") || has("device") && len(words) < 4):
		return microBatch
	case loop.WindowName(name) && !has("scheduler", "dtype", "kwargs", "plugin", "loss"):
		return accumulation
	case len(words) == 1 && has("batchsize", "bs", "bsz") || len(words) == 2 && has("batch") && has("size") ||
		len(words) == 3 && has("batch") && has("size") && has("train"):
		return plainBatch
	case has("world", "gpus", "gpu", "devices", "npus") && !batch, has("nodes"):
		return ranks
	case has("parallel", "dp", "tp", "pp", "replicas", "workers") && !has("loader", "dataloader"):
		return layout
	case has("seq", "sequence", "block", "context", "length", "seqlen"):
		return sequence
	}
	return noRole
}

// pythonSizes are the numbers of one group by their role.
type pythonSizes struct {
	of [roles]*stated
}

// readStated gives the sizes of a group that states all three, each once. A global batch that is computed is not one that was stated.
func readStated(pass *lint.Pass, g statedGroup) (b pythonSizes, ok bool) {
	for i := range g.list {
		s := &g.list[i]
		if b.of[s.role] != nil && s.role != ranks && s.role != layout && s.role != sequence {
			return b, false
		}
		b.of[s.role] = s
	}
	if b.of[microBatch] == nil {
		b.of[microBatch] = b.of[plainBatch]
	}
	for _, role := range []batchRole{globalBatch, microBatch, accumulation} {
		s := b.of[role]
		if s == nil {
			return b, false
		}
		c, known := pass.Constant(pass.Eval(g.scope, nil, s.value))
		if n, isInt := c.Int(); known && isInt && n > 0 {
			s.n = n
			continue
		}
		return b, false
	}
	if _, literal := b.of[globalBatch].value.(*syntax.Constant); !literal {
		return b, false
	}
	if s := b.of[ranks]; s != nil {
		if c, known := pass.Constant(pass.Eval(g.scope, nil, s.value)); known {
			s.n, _ = c.Int()
		}
	}
	if s := b.of[sequence]; s != nil {
		if c, known := pass.Constant(pass.Eval(g.scope, nil, s.value)); known {
			s.n, _ = c.Int()
		}
	}
	return b, true
}

func (b *pythonSizes) check(pass *lint.Pass, module *pyscan.Module) {
	whole, micro, steps := b.of[globalBatch], b.of[microBatch], b.of[accumulation]
	product := micro.n * steps.n
	if s := b.of[sequence]; s != nil && (s.n == 0 || s.n > 1 && whole.n%s.n == 0 && whole.n > product) {
		return // it may count tokens
	}
	factors := fmt.Sprintf("%s %d x %s %d", micro.name, micro.n, steps.name, steps.n)
	world, known := b.world(pass, module)
	var d *lint.Diagnostic // a warning: nothing compares these numbers when the program runs
	switch {
	case known && world > 1:
		if whole.n == product*world || b.of[layout] != nil && whole.n%product == 0 {
			return
		}
		d = pass.Reportf(whole.at, "%s %d is not %s x %d ranks = %d: the run trains with another batch than is stated",
			whole.name, whole.n, factors, world, product*world).As(lint.Warning)
	case whole.n%product != 0:
		d = pass.Reportf(whole.at, "%s %d is not a multiple of %s = %d: no number of ranks gives that batch",
			whole.name, whole.n, factors, product).As(lint.Warning)
	case known && whole.n != product && b.of[layout] == nil:
		d = pass.Reportf(whole.at, "%s %d is not %s = %d, and nothing here starts more than one rank: an optimizer step takes %d sequences "+
			"(%d with %d ranks)",
			whole.name, whole.n, factors, product, product, whole.n, whole.n/product).As(lint.Warning)
		if pass.Started(module.File.Path) != pyscan.Yes {
			d.As(lint.Info) // what calls it may start more
			break
		}
	default:
		return
	}
	d.Note(micro.at, "sequences per rank and forward pass").Note(steps.at, "accumulation steps")
	d.Help("state the product, or compute it from the other sizes and the number of ranks")
}

// world is the number of ranks of a program: as the user or its launch commands say, or the group; one where no file that it is made of has
// any code for several.
func (b *pythonSizes) world(pass *lint.Pass, module *pyscan.Module) (int64, bool) {
	file := module.File.Path
	if facts := pass.Facts(file); facts != nil {
		if n, ok := facts.Parallel.World.Get(); ok {
			return n, true
		}
	}
	if s := b.of[ranks]; s != nil {
		return s.n, s.n > 0
	}
	if runs := pass.RunsOf(file); len(runs) > 0 {
		world := int64(0)
		for _, run := range runs {
			n, ok := run.Plan.Parallel.World.Get()
			if !ok || world != 0 && n != world || run.Spare(run.Plan.Parallel.World) {
				return 0, false
			}
			world = n
		}
		if world > 1 {
			return world, true
		}
	}
	return 1, len(pass.Launchers(file)) == 0 && oneRank(pass, module)
}

// severalRanks are the libraries that train on several ranks.
var severalRanks = []string{"torch.distributed", "torch.nn.parallel", "torch.multiprocessing", "torch_xla", "deepspeed", "accelerate",
	"transformers", "trl", "lightning", "pytorch_lightning", "lightning_fabric", "horovod", "ray", "colossalai", "megatron", "fairscale",
	"composer", "mmengine", "ignite", "nemo", "apex", "torchtitan", "jax"}

// oneRank reports whether the files of a program train, and none of them has code for several ranks. A file of settings alone may be read by
// who knows what.
func oneRank(pass *lint.Pass, module *pyscan.Module) bool {
	trains := false
	for _, start := range append([]string{module.File.Path}, pass.Importers(module.File.Path)...) {
		if pass.ImportedAnywhere(start, severalRanks...) {
			return false
		}
		for _, file := range pass.Closure(start) {
			m := pass.Module(file)
			if m == nil || slices.ContainsFunc([]string{"distributed", "DataParallel", "WORLD_SIZE", "LOCAL_RANK"}, m.File.Has) {
				return false
			}
			trains = trains || m.File.Has("backward")
		}
	}
	return trains
}
