package compare

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/memory"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/workspace"
)

// Run is a run that the change moves.
type Run struct {
	Name  string // the file that it starts from, after the change
	State State
	Rows  []Row
	Notes []string // what is easily overlooked
}

// State says on which sides a run is.
type State string

// The states.
const (
	Changed State = "changed"
	Added   State = "added"
	Removed State = "removed"
)

// Row is one line of the table: what moved, from what, to what. Nothing is known of an empty side.
type Row struct {
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// compareRuns holds the runs of both sides against each other.
func compareRuns(ctx context.Context, old, after *side, renamed map[string]string) (all []Run) {
	names, before := old.runs(ctx, renamed)
	now, current := after.runs(ctx, nil)
	for _, name := range names {
		if !slices.Contains(now, name) {
			now = append(now, name)
		}
	}
	slices.Sort(now)
	for _, name := range now {
		was, is := before[name], current[name]
		for i := range max(len(was), len(is)) {
			var a, b *workspace.Run
			if i < len(was) {
				a = was[i]
			}
			if i < len(is) {
				b = is[i]
			}
			if run := compareRun(name, a, b); run != nil {
				all = append(all, *run)
			}
		}
	}
	return all
}

// runs are the runs of one side by the name of the file that they start from.
func (s *side) runs(ctx context.Context, renamed map[string]string) (names []string, runs map[string][]*workspace.Run) {
	view := s.snapshot.View(ctx)
	runs = map[string][]*workspace.Run{}
	seen := map[string]bool{}
	for _, target := range s.targets {
		if target.Test && !target.Named || s.settings.Excludes(target.Path) {
			continue
		}
		for _, run := range view.Runs(target.Path) {
			if !run.Trains() || seen[identity(run)] {
				continue
			}
			seen[identity(run)] = true
			name := run.Name
			if to, is := renamed[name]; is {
				name = to
			}
			if runs[name] == nil {
				names = append(names, name)
			}
			runs[name] = append(runs[name], run)
		}
	}
	return names, runs
}

// identity tells runs apart that start from the same file.
func identity(run *workspace.Run) string {
	var key strings.Builder
	key.WriteString(run.Name)
	for _, part := range run.Parts {
		fmt.Fprintf(&key, "\x00%s\x00%s", part.Path, part.Section)
		if part.Tree != nil && part.Tree.Root != nil {
			fmt.Fprintf(&key, "\x00%d", part.Tree.Root.At.Span.Start)
		}
	}
	return key.String()
}

// compareRun is the table of one run; nil where nothing moved. One of the sides may be nil.
func compareRun(name string, was, is *workspace.Run) *Run {
	run := Run{Name: name, State: Changed}
	var before, after plan.Plan
	if was != nil {
		before = was.Plan
	} else {
		run.State = Added
	}
	if is != nil {
		after = is.Plan
	} else {
		run.State = Removed
	}
	done := map[string]bool{}
	add := func(label, a, b string) {
		if a != b {
			run.Rows = append(run.Rows, Row{label, a, b})
		}
	}
	for _, row := range rows {
		for _, value := range row.values {
			done[value] = true
		}
		add(row.label, row.show(&before), row.show(&after))
	}
	add("peak memory", peak(was), peak(is))
	for _, value := range plan.Names() {
		if done[value] || value == "name" || !said(&before, value) && !said(&after, value) {
			continue
		}
		add(value, shown(&before, value), shown(&after, value))
	}
	if run.State == Changed {
		run.Notes = notes(&before, &after)
	}
	if len(run.Rows) == 0 && run.State == Changed {
		return nil
	}
	return &run
}

// said reports whether somebody wrote a value: of what follows from other values, or is a default, the table would be long.
func said(p *plan.Plan, name string) bool {
	fact, _ := plan.Lookup(p, name)
	return fact.How() == plan.IsWritten || fact.How() == plan.IsFlag
}

// rows are what is said of every run, in this order; what else moved comes behind them under its name in the plan.
var rows = [...]struct {
	label  string
	values []string
	show   func(*plan.Plan) string
}{
	{"global batch", []string{"batch.global", "batch.global_tokens"}, globalBatch},
	{"micro-batch × accumulation", []string{"batch.micro", "batch.accumulation"}, microBatch},
	{"learning rate", []string{"optimizer.lr"}, one("optimizer.lr")},
	{"warmup", []string{"schedule.warmup", "schedule.warmup_unit", "schedule.warmup_ratio"}, warmup},
	{"precision", []string{"precision", "dtype.compute", "dtype.params", "dtype.reduce"}, precision},
	{"sharding", []string{"sharding", "parallel.shard_group"}, one("sharding")},
	{"parallel degrees", []string{"parallel.world", "parallel.nodes", "parallel.devices_per_node", "parallel.data", "parallel.tensor", "parallel.pipeline",
		"parallel.context", "parallel.expert", "parallel.expert_tensor", "parallel.virtual_pipeline"}, degrees},
}

func one(name string) func(*plan.Plan) string {
	return func(p *plan.Plan) string { return shown(p, name) }
}

// shown is a value as people write it; "" where it is not known.
func shown(p *plan.Plan, name string) string {
	fact, _ := plan.Lookup(p, name)
	value, known := fact.Any()
	if !known {
		return ""
	}
	if number, is := value.(float64); is {
		return float(number)
	}
	return fmt.Sprint(value)
}

// float is a number with six digits and no more zeros than it needs: 2e-05, 0.1, 2000.
func float(number float64) string { return strconv.FormatFloat(number, 'g', 6, 64) }

func globalBatch(p *plan.Plan) string {
	n, known := sequences(p)
	tokens, inTokens := p.Batch.GlobalTokens.Get()
	switch length, hasLength := p.Batch.SeqLength.Get(); {
	case !known && inTokens:
		return grouped(tokens) + " tokens"
	case !known:
		return ""
	case hasLength:
		return fmt.Sprintf("%s sequences (%s tokens)", grouped(n), grouped(n*length))
	}
	return grouped(n) + " sequences"
}

// sequences are those of one optimizer step over all ranks.
func sequences(p *plan.Plan) (int64, bool) { return p.Batch.Global.Get() }

// grouped writes thousands apart.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func microBatch(p *plan.Plan) string {
	micro, steps := shown(p, "batch.micro"), shown(p, "batch.accumulation")
	if micro == "" && steps == "" {
		return ""
	}
	return or(micro, "?") + " × " + or(steps, "?")
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// warmup is the warm-up in the unit that it is written in and, where the global batch is known, in samples.
func warmup(p *plan.Plan) string {
	ratio, hasRatio := p.Schedule.WarmupRatio.Get()
	steps, known := p.Schedule.Warmup.Get()
	if !known || steps == 0 && hasRatio && ratio > 0 {
		if hasRatio {
			return float(100*ratio) + " % of all steps"
		}
		return ""
	}
	unit, _ := p.Schedule.WarmupUnit.Get()
	text := float(steps)
	switch unit {
	case plan.Fraction:
		return float(100*steps) + " % of all steps"
	case plan.Samples, plan.Tokens, plan.Epochs:
		return text + " " + string(unit)
	case plan.MicroSteps:
		text += " micro-steps"
	default:
		text += " steps"
	}
	if samples, ok := warmupSamples(p); ok {
		text += fmt.Sprintf(" (%s samples)", grouped(samples))
	}
	return text
}

// warmupSamples are the sequences that a warm-up of steps sees.
func warmupSamples(p *plan.Plan) (int64, bool) {
	steps, known := p.Schedule.Warmup.Get()
	global, hasGlobal := sequences(p)
	accumulation, hasAccumulation := p.Batch.Accumulation.Get()
	switch unit, _ := p.Schedule.WarmupUnit.Get(); {
	case !known || !hasGlobal || steps <= 0:
		return 0, false
	case unit == plan.OptimizerSteps || unit == "":
		return int64(steps * float64(global)), true
	case unit == plan.MicroSteps && hasAccumulation && accumulation > 0:
		return int64(steps * float64(global) / float64(accumulation)), true
	}
	return 0, false
}

func precision(p *plan.Plan) string {
	var parts []string
	for _, name := range []string{"precision", "dtype.compute", "dtype.params", "dtype.reduce"} {
		if text := shown(p, name); text != "" && !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ", ")
}

// degrees lists what is not 1.
func degrees(p *plan.Plan) string {
	var parts []string
	for _, name := range []string{"world", "nodes", "data", "tensor", "pipeline", "virtual_pipeline", "context", "expert", "expert_tensor"} {
		if text := shown(p, "parallel."+name); text != "" && text != "1" {
			parts = append(parts, strings.ReplaceAll(name, "_", " ")+" "+text)
		}
	}
	return strings.Join(parts, ", ")
}

// peak is what the run needs of its device; "" where that cannot be told.
func peak(run *workspace.Run) string {
	if run == nil {
		return ""
	}
	report, err := run.Memory()
	if err != nil || report.Usage == nil {
		return ""
	}
	text := gib(report.Usage.Total.Bytes)
	if name, known := run.Plan.Device.Get(); known {
		if device, err := catalog.Device(name); err == nil {
			text += " of " + gib(device.UsableBytes) + " (" + device.Name + ")"
		}
	}
	if report.Verdict != memory.Unknown {
		text += ": " + string(report.Verdict)
	}
	return text
}

func gib(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }

// notes say what stayed as it was though the batch that it goes with changed.
func notes(before, after *plan.Plan) (all []string) {
	was, known := sequences(before)
	is, stillKnown := sequences(after)
	if !known || !stillKnown {
		was, known = perRank(before)
		is, stillKnown = perRank(after)
	}
	if !known || !stillKnown || was == is || was == 0 {
		return nil
	}
	from := fmt.Sprintf("the batch changed from %s to %s", grouped(was), grouped(is))
	rate, had := before.Optimizer.LR.Get()
	if now, has := after.Optimizer.LR.Get(); had && has && now == rate {
		all = append(all, fmt.Sprintf("%s, and the learning rate stayed at %s", from, float(rate)))
	}
	steps, had := before.Schedule.Warmup.Get()
	unit, _ := after.Schedule.WarmupUnit.Get()
	if now, has := after.Schedule.Warmup.Get(); had && has && now == steps && steps > 0 && (unit == plan.OptimizerSteps || unit == "") {
		all = append(all, fmt.Sprintf("%s, and the warmup stayed at %s steps, so that it sees %s times the samples", from, float(steps), float(float64(is)/float64(was))))
	}
	return all
}

// perRank is the batch of one rank and optimizer step, which moves as the global one does where the ranks stay.
func perRank(p *plan.Plan) (int64, bool) {
	micro, a := p.Batch.Micro.Get()
	steps, b := p.Batch.Accumulation.Get()
	return micro * steps, a && b
}

// Overview says of each run what a change would be held against.
func Overview(ctx context.Context, snapshot *workspace.Snapshot, settings *check.Resolver, targets []check.Target) (all []Run) {
	s := &side{snapshot: snapshot, settings: settings, targets: targets}
	names, runs := s.runs(ctx, nil)
	for _, name := range names {
		for _, run := range runs[name] {
			all = append(all, *compareRun(name, nil, run))
		}
	}
	return all
}
