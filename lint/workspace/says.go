package workspace

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs/dialect"
	hbm "github.com/trainvet/trainvet/configs/memory"
	"github.com/trainvet/trainvet/configs/plan"
)

// Says is how a part of the run writes a value of the plan, with keys as the part spells them: flags on a command line. A dialect without
// a key for the accumulation writes the global batch that it keeps. It is nil where the part has no key for the value.
func (r *Run) Says(p *Part, field, value string) []dialect.Said {
	if p.Dialect == nil {
		return nil
	}
	sharding := r.Plan.Sharding.Or(plan.NoSharding)
	found := p.Dialect.Says(sharding, field, value)
	if found == nil && field == "batch.accumulation" {
		micro, steps, ranks := r.Plan.Batch.Micro.Or(0), r.Plan.Batch.Accumulation.Or(1), r.Plan.Parallel.Data.Or(0)
		if global := micro * steps * ranks; global > 0 {
			found = p.Dialect.Says(sharding, "batch.global", fmt.Sprint(global))
		}
	}
	said := slices.Clone(found)
	for i := range said {
		said[i].Key = p.spelled(p.Key(said[i].Key))
	}
	return said
}

// spelled is a key as a part writes keys: a command line has flags, and Megatron's have `-` for `_`.
func (p *Part) spelled(key string) string {
	if p.Tree == nil || p.Tree.Root == nil || strings.HasPrefix(key, "--") || strings.Contains(key, ".") {
		return key
	}
	for item := range p.Keys() {
		if strings.HasPrefix(item.Key, "--") {
			if p.Dialect.Name == "megatron" {
				key = strings.ReplaceAll(key, "_", "-")
			}
			return "--" + key
		}
	}
	return key
}

// CanMake reports whether a change can be made in the files of the run. Where one of them has a key for checkpointing, a kind that it has
// not is not to be had, while a run whose own code checkpoints can do as it likes; ZeRO is DeepSpeed's, and FSDP can be had by code too.
func (r *Run) CanMake(c hbm.Change) bool {
	says := func(field, value string) bool {
		return slices.ContainsFunc(r.Parts, func(p *Part) bool { return r.Says(p, field, value) != nil })
	}
	switch c.Name {
	case "checkpointing.kind":
		return says(c.Name, c.To) || !says(c.Name, string(plan.Full))
	case "checkpointing.every":
		return says(c.Name, c.To)
	case "sharding":
		return says(c.Name, c.To) || plan.Sharding(c.To).FSDP()
	}
	return true
}
