package ddp

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed ddp-loss-world-scale.md
var ddpLossWorldScaleDoc string

// DdpLossWorldScale finds losses that are multiplied or divided by the number of ranks though DDP averages.
var DdpLossWorldScale = &lint.Rule{
	Name:     "ddp-loss-world-scale",
	Family:   "ddp",
	Since:    "0.1",
	Doc:      ddpLossWorldScaleDoc,
	Severity: lint.Warning,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		reported := map[source.Place]bool{}
		for event := range l.All {
			if event.Kind == loop.Backward && (event.By == loop.Plain || event.By == loop.Scaler) && !event.In(loop.NoGradContext) {
				checkScale(pass, l, event, reported)
			}
		}
	},
}

func checkScale(pass *lint.Pass, l *loop.Loop, backward *loop.Event, reported map[source.Place]bool) {
	var wrapper workspace.Wrapper
	var at source.Place
	word, mean := "", false
	for _, part := range loop.Sources(backward, pass) {
		if part.Iterated {
			continue // the data, or its indices
		}
		file := part.Scope.Module.File
		switch node := part.Node.(type) {
		case *syntax.Call:
			if global(pass, part, node) {
				return
			}
			mean = mean || isMean(pass, part, node)
			if w, is := pass.Outermost(pass.Eval(part.Scope, part.Frame, node.Func)); is != pyscan.No && w.Kind == workspace.DDP {
				wrapper = w
			}
		case *syntax.BinOp:
			if counted(file.Slice(node.Span())) {
				return
			}
			right := ranks(pass, part, node.Right)
			if right || node.Op == syntax.Mult && ranks(pass, part, node.Left) {
				at, word = file.At(node.Span()), words[node.Op]
			}
		}
		if part.Stmt != nil && ranks(pass, part, part.Stmt.Value) {
			at, word = file.At(part.Stmt.Span()), words[part.Stmt.Op]
		}
	}
	if word == "" || wrapper.Kind != workspace.DDP || reported[at] || at.Path != l.Function().Scope.Module.File.Path {
		return
	}
	reported[at] = true
	effect := "larger"
	if word == "divided" {
		effect = "smaller"
	}
	d := pass.Reportf(at, "the loss is %s by the number of ranks before backward, but DDP averages gradients over the ranks itself: they come out %s by that number", word, effect)
	if word == "multiplied" && !mean {
		d.As(lint.Info) // a sum over the samples of all ranks wants it, and nothing shows that this is none
	}
	wrappedAt(d, wrapper).
		Note(backward.At, "backward runs here").Help("leave the loss as it is, and scale only what is logged")
}

var words = map[syntax.Operator]string{syntax.Mult: "multiplied", syntax.Div: "divided"}

// ranks reports whether a factor is the number of ranks: read from torch.distributed or WORLD_SIZE, or a setting so called.
func ranks(pass *lint.Pass, part loop.Source, e syntax.Expr) bool {
	if _, isCall := e.(*syntax.Call); isCall && pyscan.LastName(e.(*syntax.Call).Func) == "device_count" {
		return false
	}
	if name := strings.ToLower(pyscan.LastName(e)); name == "n_gpu" || name == "n_gpus" || name == "num_gpus" {
		return false // of one DataParallel process, as often as not
	}
	return loop.IsWorldSize(pass, part.Scope, part.Frame, e)
}

// isMean reports whether a call makes a mean over the samples of a rank: a loss of torch, or .mean(). Sums say so in their call, and are
// left alone.
func isMean(pass *lint.Pass, part loop.Source, call *syntax.Call) bool {
	if attr, ok := call.Func.(*syntax.Attribute); ok && attr.Attr == "mean" {
		return true
	}
	callee := pass.Expand(pass.Eval(part.Scope, part.Frame, call.Func))
	if inst, ok := callee.(*pyscan.Instance); ok {
		callee = inst.Of
	}
	name := pass.ExternalName(callee)
	return strings.HasPrefix(name, "torch.nn.") && (strings.HasSuffix(strings.ToLower(name), "loss") || strings.Contains(name, "cross_entropy"))
}

// global reports whether a call shows that the loss is a sum, or spans the ranks: it must be scaled then.
func global(pass *lint.Pass, part loop.Source, call *syntax.Call) bool {
	name := strings.ToLower(pyscan.LastName(call.Func))
	for _, word := range []string{"gather", "reduce", "sum", "token", "num_items"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	for _, k := range call.Keywords {
		if k.Arg == "reduction" {
			c, ok := pass.Constant(pass.Eval(part.Scope, part.Frame, k.Value))
			text, _ := c.Str()
			return !ok || text != "mean"
		}
	}
	return false
}

// counted reports whether an expression speaks of tokens or samples that are counted.
func counted(text string) bool {
	text = strings.ToLower(text)
	for _, word := range []string{"token", "num_items", "n_items", "num_valid", "count", "mask", "numel", "sample_size", "normalizer", "global_", "total_", "batch_size", "local_bs", "_bs"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}
