package config

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
)

//go:embed batch-size-mismatch.md
var docBatchSizeMismatch string

// BatchSizeMismatch compares a written global batch with micro-batch * accumulation * data-parallel ranks.
var BatchSizeMismatch = &lint.Rule{
	Name:     "batch-size-mismatch",
	Family:   "config",
	Since:    "0.1",
	Doc:      docBatchSizeMismatch,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: []string{"batch"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		if len(pass.Parts(module.File.Path)) > 0 { // a config of a framework in Python
			for _, run := range pass.Runs(module.File.Path) {
				checkRunBatch(pass, run)
			}
		}
		pythonBatch(pass, module)
	},
	Run: checkRunBatch,
}

func checkRunBatch(pass *lint.Pass, run *workspace.Run) {
	for _, part := range run.Parts {
		if written(part.Plan.Batch.Global) {
			checkBatch(pass, run, part)
		}
		elasticWorld(pass, run, part)
	}
}

// batch are the sizes of one run, as far as they are written; of the ranks also as far as they follow from what is written.
type batch struct {
	run                   *workspace.Run
	part                  *workspace.Part // that states the global batch
	global, micro, steps  int64
	ranks                 int64
	hasMicro, hasSteps    bool
	microFact, stepsFact  plan.Value[int64]
	defaultSteps, checked bool
}

func written[T comparable](v plan.Value[T]) bool {
	return v.How() == plan.IsWritten || v.How() == plan.IsFlag
}

func checkBatch(pass *lint.Pass, run *workspace.Run, part *workspace.Part) {
	p := &run.Plan
	b := batch{run: run, part: part, microFact: p.Batch.Micro, stepsFact: p.Batch.Accumulation}
	b.global, _ = part.Plan.Batch.Global.Get()
	if b.global < 1 {
		return
	}
	if b.micro, b.hasMicro = p.Batch.Micro.Get(); !written(p.Batch.Micro) || b.micro < 1 {
		b.hasMicro = false
	}
	b.steps, b.hasSteps = p.Batch.Accumulation.Get()
	b.hasSteps = b.hasSteps && b.steps > 0 && (written(p.Batch.Accumulation) || p.Batch.Accumulation.How() == plan.IsDefault && integrated(run, part))
	if isOn(part, entry(part, "decrease_batch_size_if_needed")) {
		return // Megatron then takes the next smaller batch that can be divided
	}
	b.ranks, _ = p.Parallel.Data.Get()
	if b.ranks < 1 || p.Parallel.Data.How() == plan.IsDefault || run.Spare(p.Parallel.Data) {
		b.ranks = 0
		b.anyRanks(pass)
		return
	}
	switch part.Dialect.Batch {
	case dialect.Checked, dialect.Unchecked, dialect.Computed:
		b.product(pass)
	case dialect.Divides:
		if b.hasMicro && b.global%(b.micro*b.ranks) != 0 {
			b.report(pass, fmt.Sprintf("is no multiple of %s, which %s refuses when it starts", b.spell(b.micro*b.ranks), b.framework()))
		}
	case dialect.Floors:
		b.floors(pass)
	case dialect.Ceils:
		if b.global%b.ranks != 0 {
			b.report(pass, fmt.Sprintf("is no multiple of the %s, which %s refuses when it starts", b.rankText(), b.framework()))
		}
	}
}

// anyRanks reports a global batch that no number of ranks gives, where the framework demands that one does.
func (b *batch) anyRanks(pass *lint.Pass) {
	by := int64(1)
	if b.hasMicro {
		by = b.micro
	}
	switch b.part.Dialect.Batch {
	case dialect.Checked:
		if on, known := switchAt(b.part, "elasticity", "enabled"); on || !known {
			return // it chooses the batch
		}
		if b.hasSteps {
			by *= b.steps
		}
	case dialect.Divides:
		b.hasSteps = false
	case dialect.Floors:
		if b.hasMicro && b.global < b.micro {
			b.report(pass, fmt.Sprintf("is less than %s: no accumulation step is left, and %s refuses it", b.spell(b.micro), b.framework()))
		}
		return
	default:
		return
	}
	if b.global%by == 0 {
		return
	}
	d := b.report(pass, fmt.Sprintf("is not a multiple of %s: no number of data-parallel ranks gives it, and %s rejects it at start-up",
		b.spell(by), b.framework()))
	if below := b.global / by * by; below > 0 {
		d.Help("for example %d or %d", below, below+by)
	} else {
		d.Help("for example %d", by)
	}
}

// integrated reports whether HF's integration fills in and compares the sizes of a DeepSpeed config: the accumulation of its
// arguments is then 1 where nobody wrote one.
func integrated(run *workspace.Run, part *workspace.Part) bool {
	if part.Dialect != dialect.DeepSpeed {
		return false
	}
	for _, other := range run.Parts {
		if other != part && other.Trains() && other.Dialect.Batch == dialect.Computed {
			return true
		}
	}
	return false
}

// product: all three sizes must multiply to the global batch; of two the third follows, and must be whole.
func (b *batch) product(pass *lint.Pass) {
	checked := b.part.Dialect.Batch == dialect.Checked
	switch {
	case b.hasMicro && b.hasSteps:
		product := b.micro * b.steps * b.ranks
		if product == b.global {
			return
		}
		end := fmt.Sprintf("the run will train with %d", product)
		if checked {
			end = b.framework() + " refuses the config when it loads it"
		}
		d := b.report(pass, fmt.Sprintf("is not %s: %s%s", b.spell(product), end, b.wholeWorld()))
		b.fix(d, product)
	case b.hasMicro:
		if b.global%(b.micro*b.ranks) != 0 {
			b.report(pass, b.indivisible(b.micro*b.ranks, "accumulation", checked))
		}
	case b.hasSteps:
		if b.global%(b.steps*b.ranks) != 0 {
			b.report(pass, b.indivisible(b.steps*b.ranks, "micro-batch", checked))
		}
	case checked && b.global%b.ranks != 0:
		b.report(pass, b.indivisible(b.ranks, "micro-batch", true))
	}
}

// framework is who reads the part.
func (b *batch) framework() string {
	name := b.part.Dialect.Title
	for _, ending := range []string{" config", " arguments"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// indivisible says that the size that is not written comes out as a fraction.
func (b *batch) indivisible(by int64, missing string, checked bool) string {
	text := fmt.Sprintf("is no multiple of %s: no %s gives that batch", b.spell(by), missing)
	if checked {
		text += fmt.Sprintf("; %s rounds it down to %d and then refuses the product", b.framework(), b.global/by)
	}
	return text
}

func (b *batch) floors(pass *lint.Pass) {
	if !b.hasMicro {
		return
	}
	steps := b.global / b.ranks / b.micro
	switch {
	case steps == 0:
		b.report(pass, fmt.Sprintf("is less than %s: no accumulation step is left, and %s refuses it", b.spell(b.micro*b.ranks), b.framework()))
	case steps*b.ranks*b.micro != b.global:
		b.report(pass, fmt.Sprintf("is no multiple of %s: %s rounds the accumulation down to %d, so that a step trains on %d sequences", b.spell(b.micro*b.ranks),
			b.framework(), steps, steps*b.ranks*b.micro)).As(lint.Warning)
	}
}

// spell writes the multiplication of what is known.
func (b *batch) spell(product int64) string {
	var factors []string
	if b.hasMicro {
		factors = append(factors, count(b.micro, "sequence")+" per rank")
	}
	if b.hasSteps && b.part.Dialect.Batch != dialect.Divides && b.part.Dialect.Batch != dialect.Floors {
		factors = append(factors, count(b.steps, "accumulation step"))
	}
	if b.ranks > 0 {
		factors = append(factors, b.rankText())
	}
	if len(factors) == 1 {
		return factors[0]
	}
	return strings.Join(factors, " x ") + fmt.Sprintf(" = %d", product)
}

func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (b *batch) rankText() string {
	parallel := &b.run.Plan.Parallel
	text := count(b.ranks, "data-parallel rank")
	if parallel.Data.How() != plan.IsDerived {
		return text
	}
	world, ok := parallel.World.Get()
	if !ok || world == b.ranks {
		return text
	}
	text += fmt.Sprintf(" (%d ranks", world)
	for _, group := range b.groups() {
		text += " / " + group.name + fmt.Sprintf(" %d", group.size)
	}
	return text + ")"
}

type group struct {
	name string
	size int64
}

// groups are the parallel groups whose ranks read the same data.
func (b *batch) groups() []group {
	var all []group
	parallel := &b.run.Plan.Parallel
	for _, g := range []struct {
		name string
		size plan.Value[int64]
	}{{"tensor parallel", parallel.Tensor}, {"pipeline parallel", parallel.Pipeline}, {"context parallel", parallel.Context}} {
		if n, ok := g.size.Get(); ok && n > 1 {
			all = append(all, group{g.name, n})
		}
	}
	return all
}

// wholeWorld explains the usual slip: all ranks were counted, where some share their data.
func (b *batch) wholeWorld() string {
	world, ok := b.run.Plan.Parallel.World.Get()
	if !ok || world == b.ranks || b.micro*b.steps*world != b.global {
		return ""
	}
	var shares []string
	for _, g := range b.groups() {
		shares = append(shares, fmt.Sprintf("%s %d", g.name, g.size))
	}
	return fmt.Sprintf("; %d counts all %d ranks, of which %s leave %d that read different data", b.global, world, strings.Join(shares, " and "), b.ranks)
}

func (b *batch) report(pass *lint.Pass, what string) *lint.Diagnostic {
	at := b.part.Plan.Batch.Global.From()[0]
	name := "the global batch"
	if setting, ok := b.run.Setting(at); ok {
		name = setting.Name()
	}
	d := pass.Reportf(at, "%s %d %s", name, b.global, what)
	for _, factor := range []struct {
		fact plan.Fact
		text string
	}{
		{b.microFact, "sequences per rank and forward pass"}, {b.stepsFact, "accumulation steps"},
		{b.run.Plan.Parallel.Data, "data-parallel ranks follow from this"},
	} {
		if b.ranks == 0 && factor.fact == plan.Fact(b.run.Plan.Parallel.Data) {
			continue
		}
		for _, place := range factor.fact.From() {
			if place != at {
				d.Note(place, "%s", factor.text)
			}
		}
	}
	return d
}

// fix offers the product. Which of the factors is wrong is for the author to say.
func (b *batch) fix(d *lint.Diagnostic, product int64) {
	setting, ok := b.run.Setting(d.At)
	if !ok || setting.Item.Value == nil || setting.Item.Value.At.Span.Len() == 0 || !setting.Item.Value.Via.IsZero() {
		return
	}
	d.Suggest(fmt.Sprintf("set %s to %d", setting.Name(), product), lint.Unsafe, lint.Edit{At: setting.Item.Value.At, Text: fmt.Sprint(product)})
}
