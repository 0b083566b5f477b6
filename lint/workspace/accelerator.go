package workspace

import (
	"strings"

	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
)

// Sharding is how an Accelerator shards the models that it prepares.
type Sharding struct {
	Kind      WrapperKind  // FSDP1 or FSDP2
	Strategy  string       // last name of FSDP1's strategy in capitals; "" for the default, which shards everything
	EachBatch pyscan.Truth // gradients are reduced in every micro-batch: GradientAccumulationPlugin(sync_each_batch=True)
	At        source.Place // what says so
}

// AcceleratorSharding is the FSDP of an Accelerator: that of its fsdp_plugin, else of the accelerate configs with which the project's
// scripts launch its file. ok is false where neither says that it shards.
func (v *View) AcceleratorSharding(acc *pyscan.Instance) (s Sharding, ok bool) {
	if acc == nil || acc.Call == nil || acc.At.Module == nil {
		return s, false
	}
	scope := v.scopeOfCall(acc)
	s.EachBatch = v.syncsEachBatch(acc)
	plugin := v.Arg(scope, acc.Frame, acc.Call, "fsdp_plugin", -1)
	if plugin == nil {
		return s, v.launchedSharded(acc.At.Module.File.Path, &s)
	}
	for _, one := range Alternatives(v.Expand(plugin)) {
		made, is := one.(*pyscan.Instance)
		if !is || made.Call == nil || pyscan.LastPart(v.ExternalName(pyscan.Made(made))) != "FullyShardedDataParallelPlugin" {
			continue
		}
		at := v.scopeOfCall(made)
		s.Kind, s.At = FSDP1, at.Module.File.At(made.Call.Span())
		if n, known := v.number(v.Arg(at, made.Frame, made.Call, "fsdp_version", 0)); known && n == 2 {
			s.Kind = FSDP2
		}
		for _, name := range []string{"sharding_strategy", "reshard_after_forward"} {
			if value := v.Arg(at, made.Frame, made.Call, name, -1); value != nil {
				s.Strategy = v.strategyName(value)
			}
		}
		return s, true
	}
	return s, false
}

func (v *View) number(value pyscan.Value) (int64, bool) {
	if value == nil {
		return 0, false
	}
	c, ok := v.Constant(v.Expand(value))
	if !ok {
		return 0, false
	}
	return c.Int()
}

// strategyName is the last name of a strategy, given as one of torch's, as text, or as its number; "?" for others.
func (v *View) strategyName(value pyscan.Value) string {
	value = v.Expand(value)
	if name := v.ExternalName(value); name != "" {
		return pyscan.LastPart(name)
	}
	c, ok := v.Constant(value)
	if text, isText := c.Str(); ok && isText {
		return strings.ToUpper(text)
	}
	names := [...]string{"", "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"}
	if n, isNumber := c.Int(); ok && isNumber && n > 0 && n < int64(len(names)) {
		return names[n]
	}
	if _, isBool := c.Bool(); ok && isBool {
		return "" // FSDP2's reshard_after_forward
	}
	return "?"
}

// syncsEachBatch reads GradientAccumulationPlugin(sync_each_batch=True) of an Accelerator.
func (v *View) syncsEachBatch(acc *pyscan.Instance) pyscan.Truth {
	scope := v.scopeOfCall(acc)
	plugin := v.Arg(scope, acc.Frame, acc.Call, "gradient_accumulation_plugin", -1)
	if plugin == nil {
		if v.OpenKeywords(scope, acc.Frame, acc.Call) {
			return pyscan.Maybe
		}
		return pyscan.No
	}
	made, ok := v.Expand(plugin).(*pyscan.Instance)
	if !ok || made.Call == nil || made.At.Module == nil {
		return pyscan.Maybe
	}
	at := v.scopeOfCall(made)
	flag := v.Arg(at, made.Frame, made.Call, "sync_each_batch", 3)
	if flag == nil {
		if v.OpenKeywords(at, made.Frame, made.Call) {
			return pyscan.Maybe
		}
		return pyscan.No
	}
	return v.Truthy(v.Expand(flag))
}

// launchedSharded fills in the FSDP with which all runs launch a file.
func (v *View) launchedSharded(file string, s *Sharding) bool {
	runs := v.RunsOf(file)
	for _, run := range runs {
		kind, known := run.Plan.Sharding.Get()
		switch {
		case known && kind == plan.FSDP1:
			s.Kind = FSDP1
		case known && kind == plan.FSDP2:
			s.Kind = FSDP2
		default:
			return false
		}
		if at, _, written := run.Written(run.Plan.Sharding); written {
			s.At = at
		}
	}
	return len(runs) > 0
}
