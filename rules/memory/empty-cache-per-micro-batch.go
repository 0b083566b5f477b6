package memory

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed empty-cache-per-micro-batch.md
var emptyCachePerMicroBatchDoc string

// rareFlush is the period in iterations from which a flush behind a modulo costs too little to speak of.
const rareFlush = 10

// EmptyCachePerMicroBatch finds allocator caches that are flushed in every micro-batch.
var EmptyCachePerMicroBatch = &lint.Rule{
	Name:     "empty-cache-per-micro-batch",
	Family:   "memory",
	Since:    "0.1",
	Doc:      emptyCachePerMicroBatchDoc,
	Severity: lint.Warning,
	Fix:      lint.SometimesFix,
	Mentions: append([]string{flushArgument}, loop.Mentions...), // the cache may be emptied in a function of another file
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, call := range module.Calls {
			for _, k := range call.Keywords {
				if k.Arg != flushArgument || !strings.HasSuffix(pass.ExternalName(pass.Eval(call.Scope, nil, call.Func)), "Arguments") {
					continue
				}
				if c, ok := pass.Constant(pass.Settled(pass.Eval(call.Scope, nil, k.Value))); ok {
					if n, ok := c.Int(); ok && n > 0 && n < rareFlush {
						reportArgument(pass, module.File.At(k.Span()), n)
					}
				}
			}
		}
	},
	Part: func(pass *lint.Pass, part *workspace.Part) {
		if part.Tree == nil || part.Tree.Root == nil || part.Dialect == nil {
			return
		}
		for _, item := range part.Tree.Root.Items {
			if strings.TrimLeft(item.Key, "-") != flushArgument || item.Value == nil {
				continue
			}
			loader := part.Dialect.Loader
			if part.Tree.Format == configs.Flags {
				loader = configs.LoaderFlags
			}
			if n, ok := item.Value.Int(loader); ok && n > 0 && n < rareFlush {
				reportArgument(pass, item.KeyAt, n)
			}
		}
	},
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		for event, in := range l.All {
			if event.Kind == loop.EmptyCache && !event.In(loop.NoGradContext) {
				checkFlush(pass, l, in, event)
			}
		}
	},
}

// flushArgument is the Trainer's own setting: it empties the cache in training_step whenever the number of optimizer steps so far is a
// multiple of it, so in every micro-batch of such a step.
const flushArgument = "torch_empty_cache_steps"

func reportArgument(pass *lint.Pass, at source.Place, n int64) {
	pass.Reportf(at, "the Trainer empties the cache in every micro-batch of every step that %d divides: each call waits for the device and gives blocks back that the next micro-batch must allocate again", n).
		Help("leave it out, or set it to 50 or more")
}

// often says how often an event of a loop runs.
type often uint8

const (
	seldom often = iota
	eachOptimizerStep
	eachMicroBatch // or each few of them
)

// inMicroBatches says how often something runs that runs once in n micro-batches.
func inMicroBatches(n int64) string {
	if n > 1 {
		return fmt.Sprintf("once in %d micro-batches", n)
	}
	return "in every micro-batch"
}

func checkFlush(pass *lint.Pass, root, in *loop.Loop, event *loop.Event) {
	rate, n := frequency(pass, in, event)
	if rate == seldom || phased(root, in) || !trains(root) {
		return
	}
	at := event.At
	if len(event.Via) > 0 {
		at = event.Via[0]
		if event.Scope.Name == "forward" && event.At.Path == root.At.Path && root.Framework != "module" {
			return // forward of a model is looked at by itself
		}
	}
	what := fmt.Sprintf("empty_cache() runs %s: each call waits for the device and gives blocks back that the next micro-batch must allocate again; "+
		"it lowers reserved memory, not what tensors need", inMicroBatches(n))
	severity := lint.Warning
	switch {
	case root.Framework == "module":
		what = "empty_cache() runs in every forward pass: each call waits for the device and gives blocks back that the next pass must allocate again; it lowers reserved memory, not what tensors need"
	case rate == eachOptimizerStep:
		what, severity = "empty_cache() runs once an optimizer step: each call waits for the device, and the next step allocates again what it gave back", lint.Info
	}
	d := pass.Reportf(at, "%s", what).As(severity)
	if len(event.Via) > 0 {
		d.Note(event.At, "the cache is emptied here")
		d.Help("take it out of the loop, or call it only every 50 iterations or more")
		return
	}
	fixDelete(d, event)
}

// frequency goes by the guards between the event and the micro-batch loop around it. Of eachMicroBatch n is the period.
func frequency(pass *lint.Pass, in *loop.Loop, event *loop.Event) (rate often, n int64) {
	guard := event.Guard
	for l := in; l != nil; l = l.Outer {
		if l.Micro == pyscan.Yes || l.Framework == "caller" && stepFunction(l.Scope.Name) {
			return guarded(pass, l, guard)
		}
		if l.Node != nil && stepsAround(l) {
			if guard.Always() == pyscan.Yes {
				return eachOptimizerStep, 0
			}
			return seldom, 0
		}
		if l.Step && guard.Always() == pyscan.Yes {
			return eachOptimizerStep, 0
		}
		if l.Node == nil {
			return seldom, 0
		}
		guard = append(guard[:len(guard):len(guard)], l.Guard...)
	}
	return seldom, 0
}

// stepFunction goes by the names that functions have which somebody calls once a micro-batch.
func stepFunction(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "train_step") || strings.Contains(name, "training_step") || strings.Contains(name, "train_batch") || strings.Contains(name, "train_one_batch") || strings.Contains(name, "micro_step")
}

// stepsAround reports whether the loop steps the optimizer itself, around a micro-batch loop inside it.
func stepsAround(l *loop.Loop) bool {
	return len(l.Of(loop.Step)) > 0 && len(l.Deep(loop.Backward)) > 0
}

func guarded(pass *lint.Pass, l *loop.Loop, guard loop.Guard) (rate often, n int64) {
	boundary := guard.Boundary()
	if boundary == nil {
		if guard.Always() == pyscan.Yes {
			return eachMicroBatch, 1
		}
		return seldom, 0
	}
	for step, in := range l.All {
		if step.Kind == loop.Step && withStep(pass, guard, l.GuardOf(step, in)) {
			return eachOptimizerStep, 0
		}
	}
	if boundary.Kind == loop.Modulo && len(guard) == 1 && l.Counts(boundary) {
		if n, ok := period(pass, boundary); ok && n < rareFlush {
			return eachMicroBatch, n
		}
	}
	return seldom, 0
}

// withStep reports whether what is under a guard runs once for each step: at the step's boundary or another place of its window, and on no
// further condition but those of the step.
func withStep(pass *lint.Pass, guard, step loop.Guard) bool {
	end := step.Boundary()
	if end == nil {
		return false
	}
	var rest loop.Guard
	for _, c := range guard {
		if c.Kind != end.Kind || c.Negated || c.Counter != end.Counter || c.Scope != end.Scope || !sameText(&c, end) {
			rest = append(rest, c)
		}
	}
	return rest.Always() == pyscan.Yes || loop.Implies(pass, step, rest)
}

func sameText(a, b *loop.Cond) bool {
	if a.N == nil || b.N == nil {
		return a.N == nil && b.N == nil
	}
	return a.Scope.Module.File.Slice(a.N.Span()) == b.Scope.Module.File.Slice(b.N.Span())
}

func period(pass *lint.Pass, c *loop.Cond) (int64, bool) {
	if c.N == nil {
		return 0, false
	}
	if n, ok := pass.Constant(pass.Eval(c.Scope, c.Frame, c.N)); ok {
		return n.Int()
	}
	return 0, false
}

// phased reports whether the loop changes between training and generating in each iteration: a flush between the two gives
// memory from one to the other.
func phased(root, in *loop.Loop) bool {
	for _, l := range []*loop.Loop{root, in} {
		found := false
		inspect(l, func(n syntax.Node) bool {
			if call, ok := n.(*syntax.Call); ok {
				name := strings.ToLower(workspace.Leaf(call.Func))
				found = found || strings.Contains(name, "generat") || strings.Contains(name, "rollout")
			}
			return !found
		})
		if found {
			return true
		}
	}
	return false
}

// inspect walks the text of a loop, or of the function where the loop has no statement of its own.
func inspect(l *loop.Loop, visit func(syntax.Node) bool) {
	if l.Node != nil {
		syntax.Inspect(l.Node, visit)
		return
	}
	for _, stmt := range l.Scope.Body() {
		syntax.Inspect(stmt, visit)
	}
}

// trains reports whether an optimizer is stepped in the loop, around it, or by the framework that runs it: a benchmark that
// times backward does not.
func trains(root *loop.Loop) bool {
	return root.Framework != "" || len(root.Function().Deep(loop.Step)) > 0
}

// fixDelete removes the statement, unless it stands alone in its block.
func fixDelete(d *lint.Diagnostic, event *loop.Event) {
	file := event.Scope.Module.File
	span := event.Node.Span()
	line := file.LineSpan(file.Line(span.Start))
	text := file.Slice(line)
	for i := range text {
		if text[i] != ' ' && text[i] != '\t' {
			line.Start += uint32(i)
			break
		}
	}
	if line == span && !alone(event) {
		whole := file.LineSpan(file.Line(span.Start))
		next := file.Lines()
		end := uint32(len(file.Text))
		if n := file.Line(span.Start) + 1; n < len(next) {
			end = next[n]
		}
		d.Suggest("delete the call", lint.Safe, lint.Edit{At: file.At(source.Span{Start: whole.Start, End: end})})
		return
	}
	d.Help("delete the call, or make it only every 50 iterations or more")
}

// alone reports whether the statement is the only one of its block.
func alone(event *loop.Event) bool {
	only := true
	for _, stmt := range event.Scope.Body() {
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			for _, block := range workspace.Blocks(n) {
				for _, s := range block {
					if s.Span() == event.Node.Span() && len(block) > 1 {
						only = false
					}
				}
			}
			return only
		})
	}
	return only
}
