package dialect

import (
	"strings"

	"github.com/trainvet/trainvet/configs"
)

// NeMo is the Hydra YAML of NeMo 1: Lightning's trainer beside a model of its own.
var NeMo = &Dialect{
	Name:    "nemo",
	Title:   "NeMo config",
	Version: "NeMo 1.23",
	Batch:   Divides,
	Loader:  configs.LoaderOmegaConf,

	recognise: func(d doc) bool {
		return d.mapping("trainer") && (d.has("exp_manager") ||
			d.hasAny("model.tensor_model_parallel_size", "model.micro_batch_size", "model.megatron_amp_O2"))
	},

	before: func(r *reader) { r.deviceList("trainer.devices") },
	table: []entry{
		{field: "batch.micro", keys: paths("model.micro_batch_size", "model.train_ds.batch_size")},
		{field: "batch.global", keys: paths("model.global_batch_size")},
		{field: "batch.seq_length", keys: paths("model.encoder_seq_length", "model.data.seq_length")},
		{field: "parallel.devices_per_node", keys: paths("trainer.devices", "trainer.gpus"), read: positive},
		{field: "parallel.nodes", keys: paths("trainer.num_nodes"), read: positive, absent: 1},
		{field: "parallel.tensor", keys: paths("model.tensor_model_parallel_size"), absent: 1},
		{field: "parallel.pipeline", keys: paths("model.pipeline_model_parallel_size"), absent: 1},
		{field: "parallel.context", keys: paths("model.context_parallel_size"), absent: 1},
		{field: "parallel.expert", keys: paths("model.expert_model_parallel_size"), absent: 1},
		{field: "parallel.virtual_pipeline", keys: paths("model.virtual_pipeline_model_parallel_size"), absent: 1},
		{field: "parallel.sequence_parallel", keys: paths("model.sequence_parallel"), absent: false},
		{field: "dtype.compute", keys: paths("trainer.precision"), read: lightningPrecision, absent: "fp32"},
		{field: "optimizer.type", keys: paths("model.optim.name"), read: choice(nemoOptimizers)},
		{field: "optimizer.lr", keys: paths("model.optim.lr")},
		{field: "optimizer.min_lr", keys: paths("model.optim.sched.min_lr")},
		{field: "optimizer.weight_decay", keys: paths("model.optim.weight_decay")},
		{field: "optimizer.clip", keys: paths("trainer.gradient_clip_val"), absent: 0},
		{field: "schedule.type", keys: paths("model.optim.sched.name"), read: lower},
		{field: "schedule.warmup", keys: paths("model.optim.sched.warmup_steps")},
		{field: "schedule.warmup_ratio", keys: paths("model.optim.sched.warmup_ratio")},
		{field: "schedule.warmup_unit", absent: "optimizer"},
		{field: "schedule.total_steps", keys: paths("trainer.max_steps"), read: positive},
		{field: "schedule.epochs", keys: paths("trainer.max_epochs"), read: positive},
	},
	after: nemoAfter,
}

var nemoOptimizers = map[string]string{
	"adamw": "adamw", "adam": "adamw", "fused_adam": "adamw", "distributed_fused_adam": "adamw", "adafactor": "adafactor", "novograd": "sgd_momentum",
	"mcore_distributed_optim": "adamw",
}

// nemoAfter: only models that are sized like Megatron's have their shape in the file; speech models keep encoders there.
func nemoAfter(r *reader) {
	megatron := r.hasAny("model.tensor_model_parallel_size", "model.micro_batch_size", "model.megatron_amp_O2")
	if !megatron {
		accumulate := entry{field: "batch.accumulation", keys: paths("trainer.accumulate_grad_batches"), absent: 1}
		r.apply(&accumulate)
		r.lightningStrategy("trainer.strategy")
		return
	}
	for _, e := range []entry{
		{field: "model.hidden", keys: paths("model.hidden_size")},
		{field: "model.layers", keys: paths("model.num_layers")},
		{field: "model.heads", keys: paths("model.num_attention_heads")},
		{field: "model.kv_heads", keys: paths("model.num_query_groups")},
		{field: "model.ffn", keys: paths("model.ffn_hidden_size")},
		{field: "model.tied", keys: paths("model.share_embeddings_and_output_weights"), absent: true},
		{field: "stack", absent: "megatron"},
		{field: "loss_kernel", absent: "vocab_parallel"},
	} {
		r.apply(&e)
	}
	if heads, ok := r.plan.Model.Heads.Get(); ok {
		r.derive("model.kv_heads", heads, "as many as attention heads", r.find("model.num_attention_heads"))
	}
	switch name := r.find("model.optim.name"); {
	case r.isOn("model.fsdp"):
		r.set("sharding", "fsdp1", r.find("model.fsdp"))
	case strings.Contains(r.text(name), "distributed"):
		r.derive("sharding", "megatron_dist", "the distributed optimizer", name)
	case name.state == written:
		r.assumeOf("sharding", "none", "Megatron's DDP with a replicated optimizer")
	}
	granularity, method, count := r.find("model.activations_checkpoint_granularity"), r.find("model.activations_checkpoint_method"), r.find("model.activations_checkpoint_num_layers")
	n, _ := r.integer(count)
	switch {
	case granularity.state == absent:
		r.assume("checkpointing.kind", "none")
	case r.text(granularity) == "selective":
		r.set("checkpointing.kind", "selective_attention", granularity)
	case r.text(granularity) == "full" && r.text(method) == "uniform" && n > 1:
		r.set("checkpointing.kind", "every_n", granularity)
		r.set("checkpointing.every", n, count)
	case r.text(granularity) == "full" && r.text(method) == "uniform":
		r.set("checkpointing.kind", "full", granularity)
	default:
		r.cannotTell("checkpointing.kind", "recomputation of some layers", granularity)
	}
	if flash := r.find("model.use_flash_attention"); r.isOn("model.use_flash_attention") {
		r.set("attention.kernel", "flash", flash)
	}
	if compute, ok := r.plan.DType.Compute.Get(); ok && compute.Is16() && r.isOn("model.megatron_amp_O2") {
		r.derive("precision", "megatron_mixed", "megatron_amp_O2: 16-bit weights, fp32 masters", r.find("model.megatron_amp_O2"), r.find("trainer.precision"))
	}
	if r.find("model.peft.peft_scheme").state == absent {
		r.assume("lora.rank", 0)
	}
}

// LightningCLI is the YAML of Lightning's command line interface.
var LightningCLI = &Dialect{
	Name:    "lightning-cli",
	Title:   "Lightning CLI config",
	Version: "Lightning 2",
	Batch:   Computed,
	Loader:  configs.LoaderJsonargparse,
	lenient: true,

	recognise: func(d doc) bool {
		return d.mapping("trainer") && (d.has("model.class_path") || d.has("data.class_path") || d.mapping("model.init_args") || d.has("seed_everything")) ||
			d.mapping("fit.trainer")
	},

	before: func(r *reader) {
		r.into("fit")
		r.deviceList("trainer.devices")
	},
	table: []entry{
		{field: "batch.micro", keys: paths("data.init_args.batch_size", "data.batch_size")},
		{field: "batch.accumulation", keys: paths("trainer.accumulate_grad_batches"), absent: 1},
		{field: "parallel.devices_per_node", keys: paths("trainer.devices"), read: positive},
		{field: "parallel.nodes", keys: paths("trainer.num_nodes"), read: positive, absent: 1},
		{field: "parallel.tensor", absent: 1},
		{field: "parallel.pipeline", absent: 1},
		{field: "parallel.context", absent: 1},
		{field: "dtype.compute", keys: paths("trainer.precision"), read: lightningPrecision, absent: "fp32"},
		{field: "optimizer.lr", keys: paths("optimizer.init_args.lr")},
		{field: "optimizer.weight_decay", keys: paths("optimizer.init_args.weight_decay")},
		{field: "optimizer.clip", keys: paths("trainer.gradient_clip_val"), absent: 0},
		{field: "schedule.total_steps", keys: paths("trainer.max_steps"), read: positive},
		{field: "schedule.epochs", keys: paths("trainer.max_epochs"), read: positive},
	},
	after: func(r *reader) {
		if f := r.find("optimizer.class_path"); f.state == written {
			class := r.text(f)
			if to := plainOptimizers[class[strings.LastIndexByte(class, '.')+1:]]; to != "" {
				r.set("optimizer.type", to, f)
			}
		}
		if f := r.find("trainer.precision"); strings.HasSuffix(r.text(f), "-true") {
			if compute, ok := r.plan.DType.Compute.Get(); ok {
				r.derive("dtype.params", string(compute), "a true precision holds for the weights too", f)
			}
		}
		r.lightningStrategy("trainer.strategy")
	},
	sections: []string{"trainer.strategy.init_args.config"},
	files:    []string{"trainer.strategy.init_args.config"},
}

// deviceList counts devices that are listed one by one.
func (r *reader) deviceList(path string) {
	f := r.find(path)
	if f.state != written || f.node.Kind != configs.Sequence {
		return
	}
	if f.node.Open {
		r.forget("parallel.devices_per_node")
		return
	}
	r.derive("parallel.devices_per_node", len(f.node.Items), "the devices listed", f)
}

// lightningStrategy reads the strategy of Lightning's trainer, by name or as a class.
func (r *reader) lightningStrategy(path string) {
	f := r.find(path)
	if f.state == written && f.node.Kind == configs.Mapping {
		class := r.find(path + ".class_path")
		name := r.text(class)
		switch name = name[strings.LastIndexByte(name, '.')+1:]; {
		case name == "fsdpstrategy":
			r.set("sharding", "fsdp1", class)
		case name == "ddpstrategy":
			r.set("sharding", "ddp", class)
		case name == "deepspeedstrategy":
			r.zeroStage(r.find(path + ".init_args.stage"))
		}
		return
	}
	name := r.text(f)
	stage, isStage := strings.CutPrefix(name, "deepspeed_stage_")
	switch {
	case f.state == absent || name == "auto":
		if n, ok := r.plan.Parallel.DevicesPerNode.Get(); ok && n == 1 && r.plan.Parallel.Nodes.Is(1) {
			r.assumeOf("sharding", "none", "strategy auto on one device")
		} else {
			r.assumeOf("sharding", "ddp", "strategy auto on several devices")
		}
	case isStage && len(stage) > 0 && stage[0] >= '1' && stage[0] <= '3':
		r.set("sharding", "zero"+stage[:1], f)
		if strings.HasSuffix(name, "_offload") {
			r.set("offload.optimizer", "cpu", f)
			if stage[0] == '3' {
				r.set("offload.param", "cpu", f)
			}
		}
		if compute, ok := r.plan.DType.Compute.Get(); ok && compute.Is16() {
			r.derive("precision", "deepspeed_mixed", "DeepSpeed keeps fp32 masters of 16-bit weights", f, r.find("trainer.precision"))
		}
	case strings.HasPrefix(name, "fsdp"):
		r.set("sharding", "fsdp1", f)
	case strings.HasPrefix(name, "ddp"):
		r.set("sharding", "ddp", f)
		if strings.HasPrefix(name, "ddp_find_unused") {
			r.set("ddp.find_unused", strings.HasSuffix(name, "true"), f)
		}
	default:
		r.forget("sharding")
	}
}
