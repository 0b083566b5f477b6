package config

import (
	_ "embed"
	"fmt"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed conflicting-keys.md
var docConflictingKeys string

// ConflictingKeys reports two settings of which only one may stand in a file.
var ConflictingKeys = &lint.Rule{
	Name:     "conflicting-keys",
	Family:   "config",
	Since:    "0.1",
	Doc:      docConflictingKeys,
	Severity: lint.Error,
	Mentions: named,
	Part: func(pass *lint.Pass, part *workspace.Part) {
		root := part.Tree.Root
		if root == nil || part.Tree.Template || root.Kind != configs.Mapping {
			return
		}
		switch part.Dialect {
		case dialect.DeepSpeed:
			sameTwice(pass, part)
			elasticBatch(pass, part)
		case dialect.Accelerate:
			besideFile(pass, part)
		case dialect.Axolotl:
			for _, pair := range [][2]string{{"deepspeed", "fsdp"}, {"saves_per_epoch", "save_steps"}, {"evals_per_epoch", "eval_steps"}, {"warmup_steps", "warmup_ratio"}} {
				exclude(pass, part, pair[0], pair[1])
			}
			bothEngines(pass, part)
		case dialect.LLaMAFactory:
			exclude(pass, part, "deepspeed", "fsdp")
		}
	},
}

// given reports whether a setting says something: not null, not empty, not off.
func given(part *workspace.Part, item *configs.Item) bool {
	if item == nil || item.Value == nil || item.Value.Kind == configs.Invalid {
		return false
	}
	if item.Value.Kind != configs.Scalar {
		return len(item.Value.Items) > 0
	}
	v, ok := value(part, item.Value)
	if !ok || isNull(part, item.Value) {
		return false
	}
	if s, isText := v.Str(); isText {
		return s != ""
	}
	b, isBool := v.Bool()
	return !isBool || b
}

func exclude(pass *lint.Pass, part *workspace.Part, one, other string) {
	a, b := part.Tree.Root.Item(one), part.Tree.Root.Item(other)
	if !given(part, a) || !given(part, b) {
		return
	}
	if a.KeyAt.Span.Start > b.KeyAt.Span.Start {
		a, b = b, a
	}
	pass.Reportf(b.KeyAt, "%s and %s exclude each other: %s refuses the settings", b.Key, a.Key, framework(part.Dialect)).Note(a.KeyAt, "the other one")
}

// bothEngines: axolotl rejects deepspeed beside fsdp, and takes it beside fsdp_config alone. It then hands both to the Trainer, which
// rejects them when it is built (axolotl 0.19, core/builders; transformers 5, trainer.py). Older releases did not switch FSDP on by
// fsdp_config.
func bothEngines(pass *lint.Pass, part *workspace.Part) {
	engine, sharding := part.Tree.Root.Item("deepspeed"), part.Tree.Root.Item("fsdp_config")
	if !given(part, engine) || !given(part, sharding) || given(part, part.Tree.Root.Item("fsdp")) {
		return
	}
	first, second := engine, sharding
	if first.KeyAt.Span.Start > second.KeyAt.Span.Start {
		first, second = second, first
	}
	pass.Reportf(second.KeyAt, "%s is set, and so is %s: axolotl 0.19 reads both, and the Trainer that it builds raises ValueError; keep one",
		second.Key, first.Key).As(lint.Warning).Note(first.KeyAt, "the other one")
}

// sameTwice: an old key beside its successor, and a key beside its alias.
func sameTwice(pass *lint.Pass, part *workspace.Part) {
	for _, s := range settings(part) {
		if s.key == nil {
			continue
		}
		if s.key.Deprecated && !s.key.Dropped {
			section, name := cutPath(s.key.Replacement)
			if successor := s.within.Item(name); section == s.section && successor != nil && !isNull(part, s.item().Value) {
				what := "DeepSpeed refuses both together"
				if s.section == "" {
					what = "DeepSpeed reads the new one alone"
				}
				d := pass.Reportf(s.item().KeyAt, "%s stands beside %s, which replaces it: %s", s.name, name, what)
				if s.section == "" {
					d.As(lint.Warning)
				}
				d.Note(successor.KeyAt, "the new key")
				if edit, ok := without(pass, s.within, s.index); ok {
					d.Suggest("take out "+s.name, lint.Unsafe, edit)
				}
			}
		}
		if official := s.key.Name(); official != s.name && s.policy.Unknown == dialect.Rejected {
			if twin := s.within.Item(official); twin != nil {
				pass.Reportf(s.item().KeyAt, "%s is another name of %s, which is written too: DeepSpeed refuses the config", s.name, official).Note(twin.KeyAt, "the other one")
			}
		}
	}
}

// elasticBatch: elastic training chooses the batch sizes.
func elasticBatch(pass *lint.Pass, part *workspace.Part) {
	on, known := switchAt(part, "elasticity", "enabled")
	ignored, known2 := switchAt(part, "elasticity", "ignore_non_elastic_batch_info")
	if !on || !known || ignored || !known2 {
		return
	}
	for _, name := range []string{"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"} {
		if item := part.Tree.Root.Item(name); item != nil {
			pass.Reportf(item.KeyAt, "%s stands beside elasticity, which chooses it: DeepSpeed refuses the config", name).
				Help("take it out, or set elasticity.ignore_non_elastic_batch_info").
				Note(part.Tree.Root.Item("elasticity").KeyAt, "elastic training is on")
		}
	}
}

// besideFile: what accelerate would write into a DeepSpeed config must not stand beside the name of one.
func besideFile(pass *lint.Pass, part *workspace.Part) {
	section := part.Tree.Root.Get("deepspeed_config")
	file := section.Item("deepspeed_config_file")
	if !given(part, file) {
		return
	}
	severity := lint.Error
	report := func(item *configs.Item, path string) {
		if item == nil || isNull(part, item.Value) {
			return
		}
		d := pass.Reportf(item.KeyAt, "%s stands beside deepspeed_config_file, whose own setting counts: accelerate refuses both together", path).As(severity)
		severity = lint.Warning // the first one stops the run
		d.Help("%s", fmt.Sprintf("take it out here; it belongs in %s", file.Value.Raw)).
			Note(file.KeyAt, "the DeepSpeed config")
	}
	for _, name := range []string{"gradient_accumulation_steps", "gradient_clipping", "zero_stage", "offload_optimizer_device", "offload_param_device", "offload_param_nvme_path", "offload_optimizer_nvme_path", "zero3_save_16bit_model"} {
		report(section.Item(name), name)
	}
	report(part.Tree.Root.Item("mixed_precision"), "mixed_precision")
}
