package main

import (
	"github.com/spf13/pflag"
	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint/check"
)

// factFlags are the flags for what no file of a run holds.
type factFlags struct {
	world, seqLength          int64
	device, model, warmupUnit string
	deviceMemory              string
	changed                   func(flag string) bool // whether the command line gives it; nil: it gives none
}

func (f *factFlags) add(flags *pflag.FlagSet) {
	f.changed = flags.Changed
	flags.Int64Var(&f.world, "world-size", 0, "number of ranks of the run")
	flags.StringVar(&f.device, "device", "", "accelerator, by name (h100-80g) or size (56GB)")
	flags.StringVar(&f.deviceMemory, "device-memory", "", "memory of an accelerator that the catalogue does not know (56GB)")
	flags.StringVar(&f.model, "model", "", "model, by name (llama-3-8b)")
	flags.Int64Var(&f.seqLength, "seq-len", 0, "tokens of one sequence")
	flags.StringVar(&f.warmupUnit, "warmup-unit", "", "what warmup_steps counts where the files do not say: optimizer or micro")
}

// plan holds the facts given.
func (f *factFlags) plan() (p plan.Plan, err error) {
	device := f.device
	if f.deviceMemory != "" {
		if device != "" {
			return p, usagef("--device and --device-memory say the same; give one")
		}
		device = f.deviceMemory
		if _, err := catalog.Device(device); err != nil || device[0] < '0' || device[0] > '9' {
			return p, usagef("--device-memory: %q is no size, such as 56GB", device)
		}
	}
	for _, fact := range []struct {
		name  string
		given bool
		value any
	}{
		{"world-size", f.gave("world-size"), f.world}, {"device", device != "", device}, {"model", f.model != "", f.model},
		{"seq-len", f.gave("seq-len"), f.seqLength}, {"warmup-unit", f.warmupUnit != "", f.warmupUnit},
	} {
		if fact.given {
			if err := check.SetFact(&p, fact.name, fact.value); err != nil {
				return p, usagef("--%s: %s", fact.name, err)
			}
		}
	}
	return p, nil
}

// gave reports whether the command line gives a number: 0 is a wrong one, not none.
func (f *factFlags) gave(flag string) bool { return f.changed != nil && f.changed(flag) }
