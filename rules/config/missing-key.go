package config

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed missing-key.md
var docMissingKey string

// MissingKey reports settings that need another one beside them, which is not there.
var MissingKey = &lint.Rule{
	Name:     "missing-key",
	Family:   "config",
	Since:    "0.1",
	Doc:      docMissingKey,
	Severity: lint.Error,
	Mentions: named,
	Part: func(pass *lint.Pass, part *workspace.Part) {
		root := part.Tree.Root
		if root == nil || root.Open || part.Tree.Template {
			return
		}
		switch part.Dialect {
		case dialect.DeepSpeed:
			for _, check := range []func(*lint.Pass, *workspace.Part){needsBatch, needsEnabled, needsCurriculum, needsScheduler, needsPath, needsElastic, needsGroups, needsSampling, needsPartition} {
				check(pass, part)
			}
		case dialect.Axolotl:
			needsRate(pass, part)
		case dialect.Accelerate:
			needsPluginPath(pass, part)
		}
	},
	Run: needsMicroBatch,
}

// lacks reports whether a mapping is known not to hold a key.
func lacks(node *configs.Node, key string) bool {
	return node != nil && node.Kind == configs.Mapping && !node.Open && node.Item(key) == nil
}

// needsBatch: one of the two sizes is needed, unless a program writes the config's rest.
func needsBatch(pass *lint.Pass, part *workspace.Part) {
	root := part.Tree.Root
	steps := root.Item("gradient_accumulation_steps")
	if part.Section != "" || steps == nil || root.Item("train_batch_size") != nil || root.Item("train_micro_batch_size_per_gpu") != nil || root.Item("elasticity") != nil {
		return
	}
	if v, ok := value(part, steps.Value); !ok || isAuto(v) || len(root.Items) > 2 {
		return // its program sets the rest, as many do
	}
	pass.Reportf(steps.KeyAt, "gradient_accumulation_steps alone says no batch size: DeepSpeed needs train_batch_size or train_micro_batch_size_per_gpu, and refuses the config")
}

// needsEnabled: sections that DeepSpeed reads the switch of without looking whether it is there.
func needsEnabled(pass *lint.Pass, part *workspace.Part) {
	for _, name := range []string{"amp", "progressive_layer_drop", "curriculum_learning"} {
		if item := part.Tree.Root.Item(name); item != nil && lacks(item.Value, "enabled") {
			pass.Reportf(item.KeyAt, "%s has no key enabled: DeepSpeed stops with a KeyError when it loads the config", name)
		}
	}
}

// needsCurriculum: the old sections of a curriculum and of dropped layers that are on, and what they are read for then.
func needsCurriculum(pass *lint.Pass, part *workspace.Part) {
	if item := part.Tree.Root.Item("progressive_layer_drop"); item != nil {
		if on, known := switchAt(part, "progressive_layer_drop", "enabled"); on && known {
			for _, name := range []string{"theta", "gamma"} {
				if lacks(item.Value, name) {
					pass.Reportf(item.KeyAt, "progressive_layer_drop is on and has no %s: DeepSpeed stops with a KeyError when the engine starts", name)
					break
				}
			}
		}
	}
	item := part.Tree.Root.Item("curriculum_learning")
	if on, known := switchAt(part, "curriculum_learning", "enabled"); item == nil || !on || !known {
		return
	}
	needsSchedule(pass, part, item, "curriculum_learning")
}

// needsSchedule: what a curriculum is scheduled by, in the old section or for one metric of data_efficiency.
func needsSchedule(pass *lint.Pass, part *workspace.Part, item *configs.Item, name string) {
	for _, key := range []string{"min_difficulty", "max_difficulty", "schedule_type"} {
		if lacks(item.Value, key) {
			pass.Reportf(item.KeyAt, "%s is on and has no %s: DeepSpeed refuses it when the engine starts", name, key)
			return
		}
	}
	settings := item.Value.Item("schedule_config")
	if settings == nil {
		return
	}
	v, _ := value(part, item.Value.Get("schedule_type"))
	kind, _ := v.Str()
	needed := map[string][]string{
		"fixed_linear": {"total_curriculum_step", "difficulty_step"}, "fixed_root": {"total_curriculum_step", "difficulty_step", "root_degree"}, "fixed_discrete": {"difficulty", "max_step"},
	}[kind]
	for _, key := range needed {
		if lacks(settings.Value, key) {
			pass.Reportf(settings.KeyAt, "schedule_config has no %s, which this schedule needs: DeepSpeed refuses it when the engine starts", key)
			return
		}
	}
	levels, steps := settings.Value.Item("difficulty"), settings.Value.Item("max_step")
	if kind == "fixed_discrete" && levels != nil && steps != nil && levels.Value.Kind == configs.Sequence && steps.Value.Kind == configs.Sequence && !levels.Value.Open && !steps.Value.Open && len(levels.Value.Items) != len(steps.Value.Items)+1 {
		pass.Reportf(steps.KeyAt, "max_step holds %d steps for %d difficulties, wanted one less than there are difficulties: DeepSpeed refuses it when the engine starts", len(steps.Value.Items), len(levels.Value.Items))
	}
}

func needsScheduler(pass *lint.Pass, part *workspace.Part) {
	for _, owner := range []string{"scheduler", "optimizer"} {
		item := part.Tree.Root.Item(owner)
		if item == nil || item.Value == nil || item.Value.Kind != configs.Mapping || item.Value.Open {
			continue
		}
		kind := item.Value.Item("type")
		params := item.Value.Item("params")
		switch {
		case kind == nil:
			if params != nil {
				pass.Reportf(item.KeyAt, "%s has params and no type: DeepSpeed builds none of its own, and uses the one of the program or nothing", owner).As(lint.Warning)
			}
			continue
		case params == nil:
			if owner == "scheduler" {
				pass.Reportf(item.KeyAt, "scheduler has a type and no params: DeepSpeed stops with a TypeError when the engine starts")
			}
			continue
		}
		required := dialect.Keys(part.Dialect).Params(owner, textAt(part, owner, "type"))
		for _, name := range sortedNames(required) {
			if required[name].Required && lacks(params.Value, name) {
				d := pass.Reportf(params.KeyAt, "%s.params has no %s, which %s needs: it stops with a TypeError when the engine starts", owner, name, kind.Value.Raw)
				if name == "total_num_steps" {
					d.Help(`write the number of optimizer steps of the run, or "auto" where the Trainer of transformers loads the file`)
				}
			}
		}
	}
}

// needsPath: a device for offloaded tensors needs a place on it.
func needsPath(pass *lint.Pass, part *workspace.Part) {
	for _, section := range []string{"offload_optimizer", "offload_param"} {
		node := part.Tree.Root.Get("zero_optimization", section)
		if textAt(part, "zero_optimization", section, "device") != "nvme" {
			continue
		}
		if where := node.Get("nvme_path"); lacks(node, "nvme_path") || where != nil && isNull(part, where) {
			d := pass.Reportf(valueAt(node.Item("device")), "%s goes to nvme, and no nvme_path says where: DeepSpeed loads the config, and stops when the engine starts", section)
			if stage, known := zeroStage(part); known && stage < 3 {
				d.Message = fmt.Sprintf("%s goes to nvme at ZeRO stage %d, which no stage below 3 does: DeepSpeed keeps it in the memory of the host", section, stage)
				d.As(lint.Warning)
			}
		}
	}
}

// needsPluginPath is the same in accelerate's own words.
func needsPluginPath(pass *lint.Pass, part *workspace.Part) {
	section := part.Tree.Root.Get("deepspeed_config")
	for _, name := range []string{"offload_optimizer", "offload_param"} {
		item := section.Item(name + "_device")
		if item != nil && textAt(part, "deepspeed_config", item.Key) == "nvme" && lacks(section, name+"_nvme_path") && section.Item("deepspeed_config_file") == nil {
			pass.Reportf(valueAt(item), "%s is nvme, and no %s_nvme_path says where: accelerate then writes the text none for the path", item.Key, name)
		}
	}
}

func needsElastic(pass *lint.Pass, part *workspace.Part) {
	item := part.Tree.Root.Item("elasticity")
	if on, known := switchAt(part, "elasticity", "enabled"); item == nil || !on || !known {
		return
	}
	for _, name := range []string{"max_train_batch_size", "micro_batch_sizes"} {
		if lacks(item.Value, name) {
			pass.Reportf(item.KeyAt, "elasticity is on and has no %s: DeepSpeed refuses the config", name)
		}
	}
}

// groupParams are what the parameters of each group of modules must say, by the way of compressing.
var groupParams = map[string][]string{
	"weight_quantization": {"start_bits", "target_bits"}, "activation_quantization": {"bits"}, "sparse_pruning": {"dense_ratio"},
	"row_pruning": {"dense_ratio"}, "head_pruning": {"dense_ratio"}, "channel_pruning": {"dense_ratio"},
}

// needsGroups: a way of compressing that is on needs the groups of modules that it is for, and what is to be done with each.
func needsGroups(pass *lint.Pass, part *workspace.Part) {
	for _, name := range sortedNames(groupParams) {
		section := part.Tree.Root.Get("compression_training", name)
		groups := section.Get("different_groups")
		for i := 0; groups != nil && groups.Kind == configs.Mapping && i < len(groups.Items); i++ {
			group := &groups.Items[i]
			for _, param := range groupParams[name] {
				if params := group.Value.Item("params"); params != nil && lacks(params.Value, param) {
					pass.Reportf(params.KeyAt, "the parameters of the group %s have no %s: DeepSpeed refuses the config", group.Key, param)
				}
			}
		}
		if on, known := switchAt(part, "compression_training", name, "shared_parameters", "enabled"); !on || !known {
			continue
		}
		if shared := section.Item("shared_parameters"); name == "head_pruning" && lacks(shared.Value, "num_heads") {
			pass.Reportf(shared.KeyAt, "head_pruning is on and has no num_heads: DeepSpeed refuses the config")
		}
		if !lacks(section, "different_groups") || name == "sparse_pruning" && textAt(part, "compression_training", name, "shared_parameters", "method") == "snip_momentum" {
			continue
		}
		item := part.Tree.Root.Get("compression_training").Item(name)
		pass.Reportf(item.KeyAt, "%s is on and has no different_groups: DeepSpeed refuses the config", name)
	}
}

// needsSampling: ways of choosing samples that are on need to know by what. DeepSpeed looks at them also where the sections
// around them are off.
func needsSampling(pass *lint.Pass, part *workspace.Part) {
	for _, need := range [][2]string{{"curriculum_learning", "curriculum_metrics"}, {"dynamic_batching", "max_tokens"}} {
		item := part.Tree.Root.Get("data_efficiency", "data_sampling").Item(need[0])
		if on, known := switchAt(part, "data_efficiency", "data_sampling", need[0], "enabled"); on && known && lacks(item.Value, need[1]) {
			pass.Reportf(item.KeyAt, "%s is on and has no %s: DeepSpeed refuses the config", need[0], need[1])
		}
	}
	curriculum := []string{"data_efficiency", "data_sampling", "curriculum_learning"}
	metrics := part.Tree.Root.Get(append(curriculum, "curriculum_metrics")...)
	if metrics == nil || metrics.Kind != configs.Mapping || !certainlyOn(part, append(curriculum, "enabled")...) || !certainlyOn(part, "data_efficiency", "enabled") || !certainlyOn(part, "data_efficiency", "data_sampling", "enabled") {
		return
	}
	for i := range metrics.Items {
		if metric := &metrics.Items[i]; metric.Value != nil && metric.Value.Kind == configs.Mapping {
			needsSchedule(pass, part, metric, metric.Key)
		}
	}
}

// needsPartition: the rest of activation_checkpointing builds on partitioned activations.
func needsPartition(pass *lint.Pass, part *workspace.Part) {
	section := part.Tree.Root.Get("activation_checkpointing")
	if section == nil || section.Kind != configs.Mapping || section.Open || section.Item("contiguous_memory_optimization") == nil && section.Item("cpu_checkpointing") == nil || checkpointsElsewhere(pass, part) {
		return
	}
	partition, known := switchAt(part, "activation_checkpointing", "partition_activations")
	for _, name := range []string{"contiguous_memory_optimization", "cpu_checkpointing"} {
		item := section.Item(name)
		if !isOn(part, item) || !known || partition {
			continue
		}
		d := pass.Reportf(item.KeyAt, "%s has an effect only together with partition_activations", name).As(lint.Warning)
		if name == "contiguous_memory_optimization" {
			d.Message += ": without, DeepSpeed stops at the first checkpoint"
		}
	}
	if item := section.Item("contiguous_memory_optimization"); isOn(part, item) && partition && lacks(section, "number_checkpoints") {
		pass.Reportf(item.KeyAt, "contiguous_memory_optimization needs number_checkpoints, the number of checkpointed layers: DeepSpeed stops at the first checkpoint").As(lint.Warning)
	}
}

// checkpointsElsewhere reports whether HF's integration reads the config, and nothing in the project hands one to DeepSpeed's own
// checkpointing, which alone reads this section: the Trainer's models call torch's.
func checkpointsElsewhere(pass *lint.Pass, part *workspace.Part) bool {
	integrated := slices.ContainsFunc(pass.Runs(part.Path), func(run *workspace.Run) bool {
		config, _ := run.Integrated()
		return config != nil && config.Path == part.Path
	})
	return integrated && !pass.Spells(part.Path, "checkpointing.configure") && !pass.Spells(part.Path, "activation_checkpointing.checkpointing")
}

func needsRate(pass *lint.Pass, part *workspace.Part) {
	root := part.Tree.Root
	if base := root.Item("base_model"); base != nil && lacks(root, "learning_rate") && root.Item("datasets") != nil && root.Item("num_epochs") != nil && root.Item("micro_batch_size") != nil {
		pass.Reportf(base.KeyAt, "there is no learning_rate, which axolotl has no default for: it refuses the settings")
	}
}

// needsMicroBatch: accelerate and the Trainer multiply by the micro-batch of a DeepSpeed config, "auto" or not.
func needsMicroBatch(pass *lint.Pass, run *workspace.Run) {
	for _, part := range run.Parts {
		if part.Dialect != dialect.DeepSpeed || part.Section != "" || !lacks(part.Tree.Root, "train_micro_batch_size_per_gpu") || part.Tree.Template {
			continue
		}
		name, at := integration(run, part)
		if name == "" {
			continue
		}
		place := part.Tree.Root.At
		if first := part.Tree.Root.Items; len(first) > 0 {
			place = first[0].KeyAt
		}
		d := pass.Reportf(place, `there is no train_micro_batch_size_per_gpu, which %s multiplies by: it stops with a TypeError; "auto" is enough`, name)
		d.Key = "train_micro_batch_size_per_gpu"
		d.Note(at, "it reads the file")
	}
}

// integration is the library that reads a DeepSpeed config for a run, and the place where it is told to.
func integration(run *workspace.Run, part *workspace.Part) (string, source.Place) {
	for _, other := range run.Parts {
		if other.Dialect != dialect.Accelerate && other.Dialect != dialect.DeepSpeedPlugin && other.Dialect != dialect.Launcher("accelerate") {
			continue
		}
		for _, reference := range other.Dialect.References(other.Tree) {
			if strings.HasSuffix(part.Path, strings.TrimPrefix(reference.File, "./")) {
				return "accelerate", reference.At
			}
		}
	}
	return "", source.Place{}
}
