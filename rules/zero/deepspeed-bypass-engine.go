package zero

import (
	_ "embed"
	"slices"

	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed deepspeed-bypass-engine.md
var deepspeedBypassEngineDoc string

// DeepspeedBypassEngine finds training steps that go past a DeepSpeed engine: to the tensor, the optimizer or the model
// that it was made from.
var DeepspeedBypassEngine = &lint.Rule{
	Name:     "deepspeed-bypass-engine",
	Family:   "zero",
	Since:    "0.1",
	Doc:      deepspeedBypassEngineDoc,
	Severity: lint.Warning,
	Fix:      lint.SometimesFix,
	Mentions: loop.Mentions,
	Loop: func(pass *lint.Pass, l *loop.Loop) {
		b := &bypass{pass: pass, loop: l, reported: map[source.Place]bool{}}
		for event := range l.All {
			switch {
			case event.Kind == loop.Backward && event.By == loop.Plain:
				b.backward(event)
			case event.Kind == loop.Backward && event.By == loop.Engine:
				b.rawForward(event)
			}
		}
		for event := range l.All {
			if event.Kind == loop.Step && event.By == loop.Plain || event.Kind == loop.ZeroGrad && event.By == loop.Plain {
				b.optimizer(event)
			}
		}
	},
}

// torchStyle is the release of DeepSpeed from which loss.backward() works on what an engine computed (deepspeedai/DeepSpeed#7665).
const torchStyle = "0.18.3"

type bypass struct {
	pass     *lint.Pass
	loop     *loop.Loop
	engines  []workspace.Wrapper // that run in this loop
	reported map[source.Place]bool
}

// backward is loss.backward() of a loss that an engine computed.
func (b *bypass) backward(event *loop.Event) {
	if class := event.Scope.EnclosingClass(); class != nil && b.pass.Derives(&pyscan.Class{Origin: pyscan.From(class.Module, class.Node), Scope: class}, "torch.optim.Optimizer") == pyscan.Yes {
		return // an optimizer that steps while gradients are made, and reduces them itself
	}
	for _, part := range loop.Sources(event, b.pass) {
		call, ok := part.Node.(*syntax.Call)
		if !ok {
			continue
		}
		if attr, ok := call.Func.(*syntax.Attribute); ok && attr.Attr == "scale" {
			if _, ok := engineOf(b.pass, b.pass.Eval(part.Scope, part.Frame, attr.Value)); ok {
				return // engine.scale(loss).backward() is the engine's own way since late 2025
			}
		}
		engine, ok := engineOf(b.pass, b.pass.Eval(part.Scope, part.Frame, call.Func))
		if !ok {
			continue
		}
		if apart(engine, event) {
			return
		}
		b.engines = append(b.engines, engine)
		deepspeed := b.pass.Pin(event.Scope.Module.File.Path, "deepspeed")
		message := "loss.backward() goes past the DeepSpeed engine that computed the loss: before late 2025 no gradients are reduced between ranks, and the engine neither scales the loss nor counts the micro-batch"
		switch deepspeed.Since(torchStyle) {
		case pyscan.No:
			message = "loss.backward() goes past the DeepSpeed engine that computed the loss: with " + deepspeed.String() + " no gradients are reduced between ranks, and the engine neither scales the loss nor counts the micro-batch"
		case pyscan.Yes:
			message = "loss.backward() goes past the DeepSpeed engine that computed the loss: " + deepspeed.String() + " reduces gradients for it from ZeRO stage 1 on, and raises at stage 0"
		}
		d := b.report(event, engine, message)
		if d == nil {
			return
		}
		if deepspeed.Since(torchStyle) == pyscan.No {
			d.As(lint.Error)
		}
		if deepspeed.Since(torchStyle) == pyscan.Maybe && b.launchedWithNew(event.Scope.Module.File.Path) {
			d.As(lint.Info)
		}
		d.Pinned(deepspeed, torchStyle)
		model := part.Scope.Module.File.Slice(call.Func.Span())
		if loss, ok := event.Loss.(*syntax.Name); ok && event.Call != nil && len(event.Via) == 0 && part.Scope == event.Scope && len(event.Call.Args)+len(event.Call.Keywords) == 0 && pyscan.Path(call.Func) != "" {
			d.Suggest("let the engine run backward", lint.Unsafe, lint.Edit{At: event.At, Text: model + ".backward(" + loss.ID + ")"})
			return
		}
		d.Help("call %s.backward(loss)", model)
		return
	}
}

// apart reports whether the engine is made under a test of the same setting as the event stands under: the branches of programs that train
// with DeepSpeed or without.
func apart(engine workspace.Wrapper, event *loop.Event) bool {
	at := engine.Value.Site()
	if at.Module == nil || at.Node == nil {
		return false
	}
	tested := map[string]bool{}
	for _, stmt := range workspace.Around(pyscan.ScopeAt(at.Module, at.Node), at.Node) {
		if test, ok := stmt.(*syntax.If); ok && workspace.Within(test.Body, at.Node) {
			settings(test.Test, func(name string) { tested[name] = true })
		}
	}
	if len(tested) == 0 {
		return false
	}
	found := false
	for _, cond := range event.Guard {
		if cond.Expr != nil {
			settings(cond.Expr, func(name string) { found = found || tested[name] })
		}
	}
	return found
}

// settings visits the attributes that a test reads: self.env_type, args.deepspeed.
func settings(test syntax.Expr, visit func(name string)) {
	syntax.Inspect(test, func(n syntax.Node) bool {
		if attr, ok := n.(*syntax.Attribute); ok {
			visit(attr.Attr)
		}
		return true
	})
}

// newerKeys are keys of DeepSpeed that no release before torchStyle has.
var newerKeys = [][]string{
	{"bf16", "bf16_master_weights_and_grads"}, {"bf16", "bf16_optimizer_states"}, {"zero_optimization", "stage3_allgather_sequential"}, {"zero_optimization", "allgather_sequential"},
	{"zero_optimization", "save_muon_momentum_buffer_in_memory"}, {"managed_gradient_accumulation"}, {"expert_parallel", "autoep_size"},
}

// launchedWithNew reports whether the commands that start a program give it configs for a release that knows the torch-style backward,
// and which it works with: ZeRO, and no fp16.
func (b *bypass) launchedWithNew(file string) bool {
	newer := false
	for _, run := range b.pass.RunsOf(file) {
		for _, part := range run.Parts {
			if part.Dialect != dialect.DeepSpeed {
				continue
			}
			config := workspace.EngineConfig{Parts: []*workspace.Part{part}, Certain: true}
			if stage, _, known := config.Stage(); !known || stage == 0 || config.On("fp16", "enabled") != pyscan.No {
				return false
			}
			newer = newer || slices.ContainsFunc(newerKeys, func(path []string) bool { return part.Tree.Root.Get(path...) != nil })
		}
	}
	return newer
}

// rawForward is engine.backward of a loss that the model inside computed, past the engine.
func (b *bypass) rawForward(event *loop.Event) {
	engine, ok := engineOf(b.pass, event.On)
	if !ok {
		return
	}
	b.engines = append(b.engines, engine)
	_, raw, _ := b.pass.Wrappers(event.On)
	var direct *loop.Source
	for _, part := range loop.Sources(event, b.pass) {
		call, ok := part.Node.(*syntax.Call)
		if !ok {
			continue
		}
		callee := b.pass.Expand(b.pass.Eval(part.Scope, part.Frame, call.Func))
		if _, ok := engineOf(b.pass, callee); ok {
			return
		}
		if attr, ok := call.Func.(*syntax.Attribute); ok && attr.Attr == "module" { // engine.module(x) is ddp-forward-through-module's like, and often meant
			continue
		}
		if sameObject(callee, raw) && direct == nil {
			direct = &part
		}
	}
	if direct == nil {
		return
	}
	at := direct.Scope.Module.File.At(direct.Node.Span())
	if at.Path != b.loop.Function().Scope.Module.File.Path {
		at = b.loop.Place(event)
	}
	b.reportAt(at, engine, "the model is called past the DeepSpeed engine that was made from it: the engine neither casts the inputs nor sees this forward").As(lint.Warning).Help("call the engine")
}

// optimizer is a step or zero_grad of the optimizer that an engine was given, or that it gave back.
func (b *bypass) optimizer(event *loop.Event) {
	for _, engine := range b.engines {
		if engine.Call == nil {
			continue
		}
		own := b.pass.Expand(event.On)
		inner, ok := own.(*pyscan.Instance)
		if !ok {
			continue
		}
		given := b.pass.Keyword(engine, "optimizer", 2)
		handedBack := b.pass.ExternalName(inner.Of) == "deepspeed.runtime.DeepSpeedOptimizer" && inner.At.Node == engine.Value.Site().Node
		if !handedBack && (given == nil || !sameObject(b.pass.Expand(given), own)) {
			continue
		}
		if event.Kind == loop.ZeroGrad {
			if d := b.report(event, engine, "zero_grad() of the optimizer inside a DeepSpeed engine: engine.step() clears the gradients itself"); d != nil {
				d.As(lint.Info)
			}
			return
		}
		if d := b.report(event, engine, "optimizer.step() goes past the DeepSpeed engine: it does not count the micro-batch, clip, step the scheduler or unscale, and the raw optimizer updates weights that ZeRO overwrites"); d != nil {
			d.Help("call step() of the engine")
		}
		return
	}
}

func (b *bypass) report(event *loop.Event, engine workspace.Wrapper, message string) *lint.Diagnostic {
	return b.reportAt(b.loop.Place(event), engine, message)
}

func (b *bypass) reportAt(at source.Place, engine workspace.Wrapper, message string) *lint.Diagnostic {
	if b.reported[at] {
		return &lint.Diagnostic{}
	}
	b.reported[at] = true
	d := b.pass.Reportf(at, "%s", message)
	config := b.pass.Engine(engine)
	stage, part, known := config.Stage()
	if config.Certain && (known && stage == 0 || config.On("fp16", "enabled") == pyscan.Yes) {
		d.As(lint.Error)
	}
	return stageAt(wrappedAt(d, engine), part)
}
