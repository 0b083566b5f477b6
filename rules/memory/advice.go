package memory

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/memory"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
)

// advise names the cheapest change that makes the run fit, and offers the first change that is one edit of one key.
func (n *need) advise(d *lint.Diagnostic, run *workspace.Run, device *catalog.DeviceSpec) {
	if n.usage == nil {
		d.Help("shard over more ranks, or offload the optimizer states")
		return
	}
	options, tried := memory.OptionsOf(&run.Plan, device, run.CanMake), []string(nil)
	if len(options) == 0 {
		if options, tried = memory.OptionsOf(n.plan, device, run.CanMake), n.tried(); len(options) == 0 {
			return
		}
	}
	text := changesText(run, &options[0])
	if len(tried) > 0 {
		text += ", with " + strings.Join(tried, " and ")
	}
	if !options[0].Fits {
		d.Help("no change that trainvet knows makes it fit; the lowest peak has %s (%s)", text, gigabytes(options[0].NeedsBytes))
		return
	}
	d.Help("the cheapest change that fits: %s (%s, about %.0f %% of the throughput)", text, gigabytes(options[0].NeedsBytes), 100*math.Min(options[0].Throughput, 1))
	for _, verdict := range []memory.Verdict{memory.Fits, memory.Tight} {
		i := slices.IndexFunc(options, func(o memory.Option) bool {
			_, ok := oneEdit(run, &o)
			return ok && o.Verdict == verdict
		})
		if i >= 0 {
			edit, _ := oneEdit(run, &options[i])
			d.Suggest(fmt.Sprintf("%s (%s, about %.0f %% of the throughput)", changesText(run, &options[i]), gigabytes(options[i].NeedsBytes), 100*math.Min(options[i].Throughput, 1)),
				lint.Unsafe, edit)
			return
		}
	}
}

// changesText calls values as the run's own files call them, and leaves out what follows from the others.
func changesText(run *workspace.Run, o *memory.Option) string {
	var all []string
	for _, change := range o.Changes {
		if follows(run, change) {
			continue
		}
		name, to := change.Name, change.To
		if setting, ok := settingOf(run, change); ok {
			name = setting.Name()
			if said := run.Says(setting.Part, change.Name, change.To); len(said) == 1 {
				to = said[0].Text
			}
			all = append(all, fmt.Sprintf("%s %s -> %s", name, setting.Item.Value.Raw, to))
			continue
		}
		if said := saidBy(run, change); said != "" {
			all = append(all, said)
		} else {
			all = append(all, fmt.Sprintf("%s %s -> %s", name, change.From, to))
		}
	}
	return strings.Join(all, ", ")
}

// saidBy is a value that is not written, in the words of the first part that has a key for it.
func saidBy(run *workspace.Run, change memory.Change) string {
	for _, part := range run.Parts {
		var all []string
		for _, said := range run.Says(part, change.Name, change.To) {
			all = append(all, said.Key+" "+said.Text)
		}
		if len(all) > 0 {
			return strings.Join(all, " and ")
		}
	}
	return ""
}

// follows reports whether a value is computed from a written one that is kept: the accumulation from the global batch.
func follows(run *workspace.Run, change memory.Change) bool {
	return change.Name == "batch.accumulation" && run.Plan.Batch.Accumulation.How() == plan.IsDerived && run.Plan.Batch.Global.How() == plan.IsWritten
}

// settingOf is where a value is written as a scalar.
func settingOf(run *workspace.Run, change memory.Change) (setting workspace.Setting, ok bool) {
	fact, known := plan.Lookup(&run.Plan, change.Name)
	if !known || fact.How() != plan.IsWritten {
		return setting, false
	}
	for _, place := range fact.From() {
		if setting, ok = run.Setting(place); ok && setting.Part.Dialect != nil && setting.Item.Value != nil && setting.Item.Value.Kind == configs.Scalar {
			return setting, true
		}
	}
	return setting, false
}

// oneEdit is the edit of an option that changes one key that is written, in a plain number, word or truth value.
func oneEdit(run *workspace.Run, o *memory.Option) (lint.Edit, bool) {
	if !o.Fits || o.Numerics {
		return lint.Edit{}, false
	}
	var edit lint.Edit
	found := false
	for _, change := range o.Changes {
		if follows(run, change) {
			continue
		}
		setting, ok := settingOf(run, change)
		if found || !ok {
			return lint.Edit{}, false
		}
		said := run.Says(setting.Part, change.Name, change.To)
		before := run.Says(setting.Part, change.Name, change.From)
		value := setting.Item.Value
		if len(said) != 1 || len(before) != 1 || value.Style != configs.Plain || value.Raw != before[0].Text {
			return lint.Edit{}, false
		}
		edit, found = lint.Edit{At: value.At, Text: said[0].Text}, true
	}
	return edit, found
}
