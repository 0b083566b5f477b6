package dialect

import (
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/plan"
)

// Torchtune is torchtune's YAML of components. Which recipe runs it, and so whether states are sharded, stands on the
// command line.
var Torchtune = &Dialect{
	Name:    "torchtune",
	Title:   "torchtune config",
	Version: "torchtune 0.6",
	Batch:   Computed,
	Loader:  configs.LoaderOmegaConf,

	recognise: func(d doc) bool {
		return !walk(d.root, func(n *configs.Node) bool { return n.Item("_component_") == nil })
	},

	before: func(r *reader) {
		if !r.has("optimizer") { // evaluation and generation
			r.trainsNothing()
		}
	},
	table: []entry{
		{field: "batch.micro", keys: paths("batch_size")},
		{field: "batch.accumulation", keys: paths("gradient_accumulation_steps")},
		{field: "batch.seq_length", keys: paths("tokenizer.max_seq_len")},
		{field: "parallel.tensor", keys: paths("tensor_parallel_dim"), absent: 1},
		{field: "parallel.pipeline", absent: 1},
		{field: "parallel.context", keys: paths("context_parallel_dim"), absent: 1},
		{field: "dtype.params", keys: paths("dtype"), read: dtype},
		{field: "dtype.compute", keys: paths("dtype"), read: dtype},
		{field: "optimizer.lr", keys: paths("optimizer.lr")},
		{field: "optimizer.weight_decay", keys: paths("optimizer.weight_decay")},
		{field: "optimizer.in_backward", keys: paths("optimizer_in_bwd"), absent: false},
		{field: "optimizer.clip", keys: paths("clip_grad_norm"), absent: 0},
		{field: "schedule.warmup", keys: paths("lr_scheduler.num_warmup_steps")},
		{field: "schedule.epochs", keys: paths("epochs")},
		{field: "lora.alpha", keys: paths("model.lora_alpha")},
		{field: "lora.dropout", keys: paths("model.lora_dropout")},
		{field: "compile", keys: paths("compile"), absent: false},
		{field: "allocator.expandable_segments", keys: paths("enable_expandable_segments")},
		{field: "attention.kernel", absent: "sdpa"},
		{field: "stack", absent: "torchtune"},
	},
	after: torchtuneAfter,
}

func torchtuneAfter(r *reader) {
	torchtuneModel(r)
	if component := r.component("optimizer"); component != "" {
		f := r.find("optimizer._component_")
		switch name := strings.ToLower(component); {
		case strings.Contains(name, "8bit"):
			r.set("optimizer.type", "adamw_8bit", f)
		case strings.Contains(name, "4bit"):
			r.set("optimizer.type", "adamw_4bit", f)
		case name == "adamw" || name == "adam" || name == "pagedadamw":
			r.set("optimizer.type", "adamw", f)
		case name == "sgd":
			r.set("optimizer.type", "sgd", f)
		default:
			r.cannotTell("optimizer.type", "optimizer {}", f)
		}
	}
	if r.isOn("optimizer.fused") {
		r.set("optimizer.kernel", "fused", r.find("optimizer.fused"))
	}
	if component := r.component("lr_scheduler"); component != "" {
		r.set("schedule.type", strings.ToLower(component), r.find("lr_scheduler._component_"))
		r.derive("schedule.warmup_unit", "optimizer", "the recipes step the scheduler once for each optimizer step", r.find("lr_scheduler._component_"))
	}
	torchtuneCheckpointing(r)
	torchtuneSharding(r)
	switch component := r.component("loss"); {
	case component == "LinearCrossEntropyLoss":
		r.derive("loss_kernel", "chunked_head", "head and loss in chunks", r.find("loss._component_"))
	case strings.HasPrefix(component, "CEWithChunkedOutput"):
		r.derive("loss_kernel", "chunked", "loss in chunks", r.find("loss._component_"))
	case component == "CrossEntropyLoss":
		r.derive("loss_kernel", "fp32_module", "torch's own loss", r.find("loss._component_"))
	case component != "":
		r.cannotTell("loss_kernel", "loss {}", r.find("loss._component_"))
	}
}

// component is the last part of the dotted name of a component.
func (r *reader) component(section string) string {
	name, _ := r.constant(r.find(section + "._component_")).Str()
	return name[strings.LastIndexByte(name, '.')+1:]
}

// torchtuneModel: the model is the name of its builder, as in torchtune.models.llama3_1.lora_llama3_1_8b.
func torchtuneModel(r *reader) {
	f := r.find("model._component_")
	path, ok := r.constant(f).Str()
	if !ok {
		r.forget("lora.rank")
		return
	}
	parts := strings.Split(path, ".")
	builder := parts[len(parts)-1]
	bare := strings.TrimPrefix(strings.TrimPrefix(builder, "qlora_"), "lora_")
	switch {
	case strings.HasPrefix(builder, "qlora_"), r.isOn("model.quantize_base"):
		r.derive("quantization.kind", "nf4", "the builder quantises the base", f)
	default:
		r.assume("quantization.kind", "none")
	}
	if bare != builder {
		rank := entry{field: "lora.rank", keys: paths("model.lora_rank"), absent: 8}
		r.apply(&rank)
		torchtuneTargets(r)
	} else {
		r.derive("lora.rank", 0, "the builder has no adapters", f)
	}
	if strings.HasPrefix(path, "torchtune.models.") {
		r.set("model.name", path, f)
	}
}

func torchtuneTargets(r *reader) {
	f := r.find("model.lora_attn_modules")
	names, ok := r.list(f)
	if !ok {
		r.forget("lora.targets")
		return
	}
	set, ok := targetsOf(names)
	if !ok {
		r.forget("lora.targets")
		return
	}
	if r.isOn("model.apply_lora_to_mlp") {
		mlp, _ := targetsOf([]string{"up_proj", "gate_proj", "down_proj"})
		set |= mlp
	}
	if r.isOn("model.apply_lora_to_output") {
		head, _ := targetsOf([]string{"lm_head"})
		set |= head
	}
	r.set("lora.targets", set, f)
}

func torchtuneCheckpointing(r *reader) {
	f := r.find("enable_activation_checkpointing")
	on, known := r.truth(f)
	mode, option := r.find("ac_mode"), r.find("ac_option")
	switch {
	case !known:
		r.forget("checkpointing.kind")
	case r.text(mode) == "selective":
		if n, ok := r.integer(option); ok && n == 2 {
			r.set("checkpointing.kind", "half", mode)
		} else if r.text(option) == "op" {
			r.set("checkpointing.kind", "selective_op", mode)
		} else {
			r.cannotTell("checkpointing.kind", "activation checkpointing by {}", r.first("ac_option", "ac_mode"))
		}
	case on || r.text(mode) == "full":
		r.set("checkpointing.kind", "full", f)
	case f.state == written:
		r.set("checkpointing.kind", "none", f)
	default:
		r.assume("checkpointing.kind", "none")
	}
	offload := entry{field: "checkpointing.offload", keys: []string{"enable_activation_offloading"}, absent: false}
	r.apply(&offload)
}

// torchtuneSharding: only the distributed recipes read these keys, and they shard with FSDP2.
func torchtuneSharding(r *reader) {
	f := r.first("data_parallel_shard_dim", "fsdp_reshard_after_forward", "fsdp_cpu_offload", "custom_sharded_layers", "data_parallel_replicate_dim",
		"tensor_parallel_dim")
	if f.state == written {
		r.derive("sharding", "fsdp2", "a key of the distributed recipes, which shard with FSDP2", f)
	}
	reshard := entry{field: "fsdp.reshard_after_forward", keys: paths("fsdp_reshard_after_forward")}
	r.apply(&reshard)
	if f := r.find("custom_sharded_layers"); f.state == written && f.node.Kind == configs.Sequence && len(f.node.Items) > 0 {
		r.derive("fsdp.separate_embeddings", true, "custom_sharded_layers", f)
	}
	if f := r.find("fsdp_cpu_offload"); r.isOn("fsdp_cpu_offload") {
		r.set("offload.optimizer", "cpu", f)
		r.set("offload.param", "cpu", f)
	}
	r.dataParallel("data_parallel_replicate_dim", "data_parallel_shard_dim", 1)
}

// dataParallel: replicas times shards is the data-parallel group; a shard size of -1 takes the ranks that are left.
func (r *reader) dataParallel(replicate, shard string, replicas int64) {
	copies, shards := r.find(replicate), r.find(shard)
	if copies.state == written {
		n, ok := r.integer(copies)
		if !ok || n < 1 {
			r.forget("parallel.data")
			r.forget("parallel.shard_group")
			return
		}
		replicas = n
	}
	n, ok := r.integer(shards)
	if shards.state != written || !ok || n < 1 || copies.state == unknown {
		if replicas != 1 {
			r.forget("parallel.shard_group")
		}
		return
	}
	r.derive("parallel.data", replicas*n, "replicas * shards", copies, shards)
	if replicas > 1 {
		if context, ok := r.plan.Parallel.Context.Get(); ok && context > 1 && n <= plan.MaxCount/context {
			n *= context // the ranks of one sequence hold the same weights
		}
		r.derive("parallel.shard_group", n, "the shard size", shards)
	}
}
