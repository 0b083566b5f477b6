package workspace

import (
	"path"
	"slices"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint/source"
)

// trainerDialects are those of HF's Trainer and of the front ends that fill in its arguments.
var trainerDialects = []*dialect.Dialect{dialect.HFTrainingArguments, dialect.LLaMAFactory, dialect.Axolotl}

// OfTrainer reports whether the part holds arguments of HF's Trainer.
func (p *Part) OfTrainer() bool { return slices.Contains(trainerDialects, p.Dialect) }

// trainerKeys are the arguments from which a value of the plan comes.
var trainerKeys = map[string][]string{
	"batch.accumulation":     {"gradient_accumulation_steps"},
	"batch.micro":            {"per_device_train_batch_size", "per_gpu_train_batch_size", "micro_batch_size", "auto_find_batch_size"},
	"optimizer.clip":         {"max_grad_norm"},
	"optimizer.lr":           {"learning_rate"},
	"optimizer.weight_decay": {"weight_decay"},
	"optimizer.beta1":        {"adam_beta1"},
	"optimizer.beta2":        {"adam_beta2"},
	"optimizer.eps":          {"adam_epsilon"},
	"schedule.warmup":        {"warmup_steps", "warmup_ratio"},
	"schedule.total_steps":   {"max_steps"},
	"dtype.compute":          {"fp16", "bf16"},
}

// Trainer is the value that HF's Trainer has in a run, by the name in the plan: what the command line gives, else what a file
// does, else the default. Nil where none of these is certain, and where the run has no Trainer.
func (r *Run) Trainer(name string) plan.Fact {
	var written, otherwise plan.Fact
	fromFlags, seen, unknown := false, false, false
	for _, part := range r.Parts {
		if !part.OfTrainer() {
			continue
		}
		flags := part.Tree == r.flags
		seen = seen || flags
		fact, ok := plan.Lookup(&part.Plan, name)
		switch {
		case !ok || !fact.Known():
			unknown = true
		case fact.How() == plan.IsWritten || fact.How() == plan.IsDerived && len(fact.From()) > 0:
			if written == nil || flags || !fromFlags {
				written, fromFlags = fact, flags
			}
		case otherwise == nil:
			otherwise = fact
		}
	}
	if r.flags != nil && !seen && r.Overrides(trainerKeys[name]...) {
		return nil
	}
	open := r.flags != nil && r.flags.Root != nil && r.flags.Root.Open
	switch {
	case written != nil && (fromFlags || !open):
		return written
	case written == nil && otherwise != nil && !open && !unknown:
		return otherwise
	}
	return nil
}

// Integrated is the DeepSpeed config that HF's Trainer or accelerate completes and compares with its own arguments in this run,
// and the place that names it; nil where there is none, or more than one.
func (r *Run) Integrated() (config *Part, named source.Place) {
	for _, part := range r.Parts {
		if part.Dialect != dialect.DeepSpeed {
			continue
		}
		at, ok := r.handedTo(part)
		if !ok {
			continue
		}
		if config != nil {
			return nil, source.Place{}
		}
		config, named = part, at
	}
	return config, named
}

// handedTo finds who names a DeepSpeed config so that the integration reads it: `deepspeed` of the Trainer's arguments, or
// `deepspeed_config_file` of accelerate.
func (r *Run) handedTo(config *Part) (source.Place, bool) {
	for _, part := range r.Parts {
		if part == config || !part.OfTrainer() && part.Dialect != dialect.Accelerate && part.Dialect != dialect.Launcher("accelerate") {
			continue
		}
		for item := range part.Keys() {
			switch PlainKey(item.Key) {
			case "deepspeed":
				if !part.OfTrainer() || item.Value == nil {
					continue
				}
				if item.Value.Kind == configs.Mapping && part.Path == config.Path && item.Value == config.Tree.Root {
					return item.KeyAt, true
				}
			case "deepspeed_config_file":
			default:
				continue
			}
			if item.Value != nil && item.Value.Kind == configs.Scalar && item.Value.Raw != "" && path.Base(item.Value.Raw) == path.Base(config.Path) {
				return item.KeyAt, true
			}
		}
	}
	return source.Place{}, false
}
