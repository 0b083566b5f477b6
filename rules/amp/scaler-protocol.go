package amp

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed scaler-protocol.md
var docScalerProtocol string

// ScalerProtocol finds calls of a GradScaler that are missing, or come in the wrong order.
var ScalerProtocol = &lint.Rule{
	Name:     "scaler-protocol",
	Family:   "amp",
	Since:    "0.1",
	Doc:      docScalerProtocol,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		p := &protocol{pass: pass, loop: l, events: happenings(l), done: map[source.Place]bool{}}
		if !p.uses() {
			return
		}
		p.plainStep()
		p.missingUpdate()
		p.updateBetween()
		p.updateEachMicroBatch()
		p.rareUpdate()
		p.unscaleTwice()
	},
}

// protocol is what a loop does with its scaler.
type protocol struct {
	pass   *lint.Pass
	loop   *loop.Loop
	events []happening
	done   map[source.Place]bool
}

func (p *protocol) report(h happening, format string, args ...any) *lint.Diagnostic {
	at, ok := spot(p.loop, h)
	if !ok || p.done[at] {
		return &lint.Diagnostic{}
	}
	p.done[at] = true
	d := p.pass.Reportf(at, format, args...)
	if at != h.At {
		d.Note(h.At, "it happens here")
	}
	return d
}

// uses reports whether the loop scales, by a scaler that may be on.
func (p *protocol) uses() bool {
	found := false
	for _, h := range p.events {
		if scaled(h.Event) && h.Kind != loop.ScalerUpdate {
			if scalerEnabled(p.pass, h.Event) == pyscan.No {
				return false
			}
			found = true
		}
	}
	return found
}

func (p *protocol) of(match func(happening) bool) []happening {
	var list []happening
	for _, h := range p.events {
		if match(h) && !h.In(loop.NoGradContext) {
			list = append(list, h)
		}
	}
	return list
}

func isScaledStep(h happening) bool {
	return h.Kind == loop.Step && h.By == loop.Scaler && len(h.Call.Args) > 0
}
func isScaledBackward(h happening) bool { return h.Kind == loop.Backward && h.By == loop.Scaler }
func isUpdate(h happening) bool         { return h.Kind == loop.ScalerUpdate && h.Call != nil }
func isUnscaled(h happening) bool       { return h.Kind == loop.Unscale && isUnscale(h.Event) }

// plainStep: optimizer.step() on gradients that are still multiplied by the scale.
func (p *protocol) plainStep() {
	if len(p.of(func(h happening) bool { return h.Kind == loop.Unscale })) > 0 {
		return
	}
	for i, h := range p.events {
		if h.Kind != loop.Step || h.By != loop.Plain || h.Receiver == nil || h.Call == nil {
			continue
		}
		var backward *loop.Event
		other := false
		for j := 0; j < len(p.events); j++ {
			e := p.events[j]
			switch {
			case excludes(e.Guard, h.Guard):
				if isScaledStep(e) {
					other = true // `if amp: scaler.step(opt) else: opt.step()`, where a scaler that is off passes the loss through
				}
			case e.Kind == loop.Backward && e.By != loop.Scaler:
				other = true
			case isScaledStep(e) && sameExpr(e.Scope, e.Call.Args[0], h.Scope, h.Receiver):
				other = true
			case isScaledBackward(e) && j < i:
				backward = e.Event
			}
		}
		if backward == nil || other || mayUnscale(p.pass, h.Event) {
			continue
		}
		d := p.report(h, "%s.step() applies gradients that are still multiplied by the loss scale (65536 at first), and applies infinite ones too", text(h.Scope, h.Receiver))
		d.Note(backward.At, "the loss is scaled here")
		scaler := scalerOf(backward)
		if scaler != nil && backward.Scope == h.Scope && len(h.Call.Args)+len(h.Call.Keywords) == 0 {
			d.Suggest("step through the scaler", lint.Unsafe, lint.Edit{At: h.Scope.Module.File.At(h.Call.Span()), Text: text(backward.Scope, scaler) + ".step(" + text(h.Scope, h.Receiver) + ")"})
			continue
		}
		d.Help("call scaler.step(optimizer), then scaler.update()")
	}
}

// mayUnscale reports whether an optimizer is of the project or a framework, and may unscale in its step.
func mayUnscale(pass *lint.Pass, step *loop.Event) bool { return ownLoss(pass, step) }

func sameExpr(a *pyscan.Scope, x syntax.Expr, b *pyscan.Scope, y syntax.Expr) bool {
	return text(a, x) == text(b, y) || pyscan.PathEnd(x) == pyscan.PathEnd(y) && pyscan.Path(x) != ""
}

// missingUpdate: the scale never changes, and the second step raises.
func (p *protocol) missingUpdate() {
	steps := p.of(isScaledStep)
	if len(steps) == 0 || p.loop.Node == nil || len(p.of(isUpdate)) > 0 {
		return
	}
	step := steps[len(steps)-1]
	if p.handsOver(step) {
		return
	}
	scaler := text(step.Scope, step.Receiver)
	d := p.report(step, "%s.update() is never called in this loop: the second step raises \"step() has already been called since the last update()\"", scaler)
	stmt := statement(step.Event)
	file := step.Scope.Module.File
	if stmt != nil && len(steps) == 1 {
		if _, indent, ok := file.OwnLines(stmt.Span()); ok {
			end := file.LineEnd(stmt.Span())
			d.Suggest("update the scaler", lint.Safe, lint.Edit{At: file.At(source.Span{Start: end, End: end}), Text: "\n" + indent + scaler + ".update()"})
			return
		}
	}
	d.Help("call %s.update() once after the steps of an iteration", scaler)
}

func blank(s string) bool {
	for _, r := range s {
		if r != ' ' && r != '\t' {
			return false
		}
	}
	return true
}

// handsOver reports whether the loop's functions give the scaler, or the object that holds it, to a call that is not understood: update may happen
// there.
func (p *protocol) handsOver(step happening) bool {
	name := pyscan.Path(step.Receiver)
	found := false
	scopes := map[*pyscan.Scope]bool{step.Scope: true, p.loop.Scope: true}
	for scope := range scopes {
		node := scope.Node
		if class := scope.EnclosingClass(); class != nil { // another method may be a hook of a framework
			node = class.Node
		}
		if node == nil {
			continue
		}
		syntax.Inspect(node, func(n syntax.Node) bool {
			call, ok := n.(*syntax.Call)
			if !ok || found {
				return !found
			}
			if attr, ok := call.Func.(*syntax.Attribute); ok && (attr.Attr == "update" || attr.Attr == "update_scaler") && pyscan.Path(attr.Value) == name {
				found = true
			}
			passed := append([]syntax.Expr(nil), call.Args...)
			for _, k := range call.Keywords {
				passed = append(passed, k.Value)
			}
			for _, arg := range passed {
				if path := pyscan.Path(arg); path != "" && (path == name || pyscan.LastPart(path) == pyscan.LastPart(name)) && p.pass.Called(p.pass.Eval(scope, nil, call.Func)) == nil {
					found = true
				}
			}
			return !found
		})
	}
	return found
}

// updateBetween: an update between a backward and a step of its gradients changes the scale that they must be divided by.
func (p *protocol) updateBetween() {
	for i, h := range p.events {
		if !isUpdate(h) {
			continue
		}
		for j := i + 1; j < len(p.events); j++ {
			e := p.events[j]
			if excludes(e.Guard, h.Guard) {
				continue
			}
			if e.Kind == loop.Backward || e.Kind == loop.Forward || isUpdate(e) || e.in != h.in {
				break
			}
			if isScaledStep(e) && p.scaledBefore(i, e) && p.steppedBefore(i, e) {
				d := p.report(h, "the scale may change here, between backward and a later step: that step divides its gradients by another scale than they were multiplied by")
				d.Note(e.At, "the later step")
				d.Help("call update() once, after the steps of all optimizers")
				break
			}
		}
	}
}

// scaledBefore reports whether a scaled backward runs before event i, under a guard that the step allows.
func (p *protocol) scaledBefore(i int, step happening) bool {
	for j := i - 1; j >= 0; j-- {
		if e := p.events[j]; isScaledBackward(e) && !excludes(e.Guard, step.Guard) {
			return true
		}
	}
	return false
}

// steppedBefore reports whether the step before event i is of another optimizer: else the loop is not understood.
func (p *protocol) steppedBefore(i int, step happening) bool {
	for j := i - 1; j >= 0; j-- {
		if e := p.events[j]; isScaledStep(e) && !excludes(e.Guard, step.Guard) {
			return text(e.Scope, e.Call.Args[0]) != text(step.Scope, step.Call.Args[0])
		}
	}
	return false
}

// boundary reports whether an event happens once a window of micro-batches.
func boundary(h happening) bool { return h.Guard.Boundary() != nil }

// updateEachMicroBatch: update without a step before it asserts, unscale_ without an update in between raises.
func (p *protocol) updateEachMicroBatch() {
	steps := p.of(isScaledStep)
	for _, step := range steps {
		if !boundary(step) || step.Guard.Boundary().Kind == loop.SyncFlag {
			return
		}
	}
	if len(steps) == 0 {
		return
	}
	step := steps[0]
	early := false
	for _, h := range p.of(isUnscaled) {
		if h.in != step.in || boundary(h) || h.Guard.Always() != pyscan.Yes {
			continue
		}
		early = true
		d := p.report(h, "unscale_() runs for every micro-batch, but step() and update() once a window: the second call raises \"unscale_() has already been called on this optimizer since the last update()\"")
		d.Note(step.At, "the optimizer steps here")
		d.Help("unscale once a window, right before clipping and step()")
	}
	for _, h := range p.of(isUpdate) {
		if early || h.in != step.in || boundary(h) || h.Guard.Always() != pyscan.Yes {
			continue
		}
		d := p.report(h, "update() runs for every micro-batch, but step() once a window: without a step it fails with \"No inf checks were recorded prior to update\"")
		d.Note(step.At, "the optimizer steps here")
		d.Help("move it into the branch of step()")
	}
}

// rareUpdate: a second step before an update raises.
func (p *protocol) rareUpdate() {
	updates := p.of(isUpdate)
	for _, h := range updates {
		if !boundary(h) {
			return
		}
	}
	for _, step := range p.of(isScaledStep) {
		if len(updates) == 0 || step.in != updates[0].in || boundary(step) || step.Guard.Always() != pyscan.Yes {
			continue
		}
		d := p.report(updates[0], "update() is skipped after most steps: the next step raises \"step() has already been called since the last update()\"")
		d.Note(step.At, "the optimizer steps here, in every iteration")
		d.Help("call update() after every step()")
		return
	}
}

// unscaleTwice: a second unscale_ of one optimizer before an update raises.
func (p *protocol) unscaleTwice() {
	list := p.of(func(h happening) bool { return isUnscaled(h) || isUpdate(h) })
	for i, h := range list {
		if !isUnscaled(h) {
			continue
		}
		for j := i - 1; j >= 0; j-- {
			e := list[j]
			if excludes(e.Guard, h.Guard) {
				continue
			}
			if isUpdate(e) {
				break
			}
			if e.in == h.in && e.Node != h.Node && text(e.Scope, e.Call.Args[0]) == text(h.Scope, h.Call.Args[0]) && text(e.Scope, e.Receiver) == text(h.Scope, h.Receiver) &&
				e.Guard.Always() == pyscan.Yes {
				d := p.report(h, "unscale_() a second time before update(): it raises \"unscale_() has already been called on this optimizer since the last update()\"")
				d.Note(e.At, "the first time")
				break
			}
		}
	}
}
