// Package amp holds the rules on mixed precision: autocast and gradient scaling.
package amp

import (
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// happening is an event with the loop that it stands in.
type happening struct {
	*loop.Event
	in *loop.Loop
}

// happenings lists the events of a loop and its inner loops in program order.
func happenings(l *loop.Loop) []happening {
	var list []happening
	for event, in := range l.All {
		list = append(list, happening{event, in})
	}
	return list
}

// spot is the place in the file of the outermost loop l where an event is reported: the event itself, or the call that leads
// to it. ok is false for an event of another file's loop, which that file tells of.
func spot(l *loop.Loop, h happening) (at source.Place, ok bool) {
	file := l.Scope.Module.File.Path
	if h.At.Path == file {
		return h.At, true
	}
	for in := h.in; in != nil; in = in.Outer {
		if in.Node != nil && in.Scope.Module.File.Path == h.At.Path {
			return source.Place{}, false
		}
	}
	for i := len(h.Via) - 1; i >= 0; i-- {
		if h.Via[i].Path == file {
			return h.Via[i], true
		}
	}
	return source.Place{}, false
}

// excludes reports whether two guards cannot both hold: they ask the same with opposite answers.
func excludes(a, b loop.Guard) bool {
	for i := range a {
		for j := range b {
			first, yes := asked(&a[i])
			second, also := asked(&b[j])
			if first != "" && first == second && yes != also {
				return true
			}
		}
	}
	return false
}

// asked is the text of a condition, and whether it must hold. `x is None` asks whether x, the other way round.
func asked(c *loop.Cond) (text string, holds bool) {
	if c.Expr == nil || c.Scope == nil {
		return "", false
	}
	text, holds = c.Scope.Module.File.Slice(c.Expr.Span()), !c.Negated
	for {
		text = strings.TrimSpace(text)
		if rest, ok := strings.CutSuffix(text, " is not None"); ok {
			text = rest
		} else if rest, ok := strings.CutSuffix(text, " is None"); ok {
			text, holds = rest, !holds
		} else if rest, ok := strings.CutPrefix(text, "not "); ok && !strings.ContainsAny(rest, " ") {
			text, holds = rest, !holds
		} else {
			return text, holds
		}
	}
}

// scalerOf is the GradScaler that a backward, unscale, step or update goes through, as an expression; nil when it is none.
func scalerOf(e *loop.Event) syntax.Expr {
	if e.Kind != loop.Backward {
		return e.Receiver
	}
	for inner := e.Receiver; ; { // scaler.scale(loss).mean().backward()
		call, ok := inner.(*syntax.Call)
		if !ok {
			return nil
		}
		attr, ok := call.Func.(*syntax.Attribute)
		if !ok {
			return nil
		}
		if attr.Attr == "scale" && len(call.Args) == 1 {
			return attr.Value
		}
		inner = attr.Value
	}
}

// scaled reports whether an event goes through a GradScaler of torch.
func scaled(e *loop.Event) bool {
	return e.By == loop.Scaler && (e.Kind == loop.Backward || e.Kind == loop.Step) || e.Kind == loop.ScalerUpdate
}

// isUnscale reports whether an event is scaler.unscale_(optimizer); accelerator.unscale_gradients() asks its own scaler.
func isUnscale(e *loop.Event) bool {
	attr, ok := e.Call.Func.(*syntax.Attribute)
	return ok && attr.Attr == "unscale_" && len(e.Call.Args) > 0
}

// isScaler reports whether a call makes a GradScaler.
func isScaler(pass *lint.Pass, scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call) bool {
	return strings.HasSuffix(pass.Library(scope, frame, call.Func), "GradScaler")
}

// enabled says whether a GradScaler or autocast made by a call does anything. An argument that is not given is Yes.
func enabled(pass *lint.Pass, scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call, position int) pyscan.Truth {
	flag := pass.Arg(scope, frame, call, "enabled", position)
	if flag == nil {
		if pass.OpenKeywords(scope, frame, call) {
			return pyscan.Maybe
		}
		return pyscan.Yes
	}
	return pass.Truthy(pass.Expand(flag))
}

// scalerEnabled says whether the GradScaler that an event goes through does anything, as far as it is known; off by default
// counts as Maybe.
func scalerEnabled(pass *lint.Pass, e *loop.Event) pyscan.Truth {
	answer := pyscan.Maybe
	expr := scalerOf(e)
	if expr == nil {
		return answer
	}
	if !strings.Contains(strings.ToLower(workspace.Leaf(expr)), "scaler") { // engine.scale(loss) is DeepSpeed's
		answer = pyscan.No
	}
	for _, one := range workspace.Alternatives(pass.Expand(pass.Eval(e.Scope, e.Frame, expr))) {
		inst, ok := one.(*pyscan.Instance)
		if !ok {
			continue
		}
		if name := pass.ExternalName(inst.Of); !strings.HasSuffix(name, "GradScaler") && !strings.HasSuffix(pass.ExternalBase(inst.Of), "GradScaler") {
			return pyscan.No // another class, which keeps to other rules
		}
		if inst.Call == nil || inst.At.Module == nil {
			continue
		}
		if answer = enabled(pass, pyscan.ScopeAt(inst.At.Module, inst.Call), inst.Frame, inst.Call, scalerFlag(pass.ExternalName(inst.Of))); answer != pyscan.Yes {
			return answer
		}
	}
	return answer
}

// scalerFlag is the position of `enabled` in a GradScaler: torch.amp.GradScaler takes the device first.
func scalerFlag(name string) int {
	if name == "torch.amp.GradScaler" || name == "torch.GradScaler" {
		return 5
	}
	return 4
}

// autocast is one torch.autocast(...) of a program.
type autocast struct {
	call    *syntax.Call
	scope   *pyscan.Scope
	dtype   string // "float16", "bfloat16"; "" when it is not known
	written bool   // the dtype is written, not the device's default
	enabled pyscan.Truth
}

// autocastNames are the autocast classes, with the device that they are for.
var autocastNames = map[string]string{"torch.autocast": "", "torch.cuda.amp.autocast": "cuda", "torch.npu.amp.autocast": "npu", "torch.cpu.amp.autocast": "cpu"}

// readAutocast reads a call as an autocast.
func readAutocast(pass *lint.Pass, scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call) (a autocast, ok bool) {
	device, known := autocastNames[pass.Library(scope, frame, call.Func)]
	if !known {
		return a, false
	}
	a = autocast{call: call, scope: scope}
	flag, position := 0, 1
	if device == "" {
		flag, position = 2, 1
		if c, ok := pass.Constant(pass.Expand(orUnknown(pass.Arg(scope, frame, call, "device_type", 0)))); ok {
			device, _ = c.Str()
		}
	}
	a.enabled = enabled(pass, scope, frame, call, flag)
	dtype := pass.Arg(scope, frame, call, "dtype", position)
	switch {
	case dtype != nil:
		a.dtype, a.written = halfType(pass, dtype), true
	case pass.OpenKeywords(scope, frame, call):
	default:
		a.dtype = defaultTypes[device]
	}
	return a, true
}

// mayAutocast reports whether the callee is one of several things, of which one is autocast.
func mayAutocast(pass *lint.Pass, scope *pyscan.Scope, frame *pyscan.Frame, call *syntax.Call) bool {
	for _, one := range workspace.Alternatives(pass.Expand(pass.Eval(scope, frame, call.Func))) {
		if _, known := autocastNames[pass.ExternalName(one)]; known {
			return true
		}
	}
	return false
}

// defaultTypes are the dtypes that autocast takes where none is given, by device (torch/amp/autocast_mode.py and the device
// table of ATen's autocast mode).
var defaultTypes = map[string]string{"cuda": "float16", "npu": "float16", "cpu": "bfloat16", "xpu": "bfloat16", "hpu": "bfloat16"}

// halfType is float16 or bfloat16 where a dtype is surely that one, other for any other, "" when it is not known.
func halfType(pass *lint.Pass, dtype pyscan.Value) string {
	switch name := pass.ExternalName(pass.Expand(dtype)); name {
	case "torch.float16", "torch.half":
		return "float16"
	case "torch.bfloat16":
		return "bfloat16"
	case "":
		return ""
	default:
		return "other"
	}
}

func orUnknown(value pyscan.Value) pyscan.Value {
	if value == nil {
		return &pyscan.Unknown{}
	}
	return value
}

// autocastsIn lists the autocasts written in a node, those of evaluation left out.
func autocastsIn(pass *lint.Pass, scope *pyscan.Scope, frame *pyscan.Frame, node syntax.Node) []autocast {
	var list []autocast
	syntax.Inspect(node, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.Call); ok {
			at := pyscan.ScopeAt(scope.Module, call)
			if at != scope {
				frame = nil
			}
			if a, ok := readAutocast(pass, at, frame, call); ok && !pass.WithoutGradients(at, call) {
				list = append(list, a)
			}
		}
		return true
	})
	return list
}

// autocastsOf lists the autocasts that a context may be.
func autocastsOf(pass *lint.Pass, c loop.Context) []autocast {
	var list []autocast
	for _, value := range c.Values {
		if result, ok := value.(*pyscan.Result); ok && result.Call != nil && result.At.Module != nil {
			scope := pyscan.ScopeAt(result.At.Module, result.Call)
			if a, ok := readAutocast(pass, scope, result.Frame, result.Call); ok {
				list = append(list, a)
			} else if mayAutocast(pass, scope, result.Frame, result.Call) {
				list = append(list, autocast{scope: scope, call: result.Call, enabled: pyscan.Maybe})
			}
		}
	}
	return list
}

// place is where an autocast is written.
func (a autocast) place() source.Place { return a.scope.Module.File.At(a.call.Span()) }

// text is an expression as it is written.
func text(scope *pyscan.Scope, e syntax.Expr) string {
	if e == nil {
		return ""
	}
	return scope.Module.File.Slice(e.Span())
}
