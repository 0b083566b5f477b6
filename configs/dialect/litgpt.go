package dialect

import (
	"strings"

	"github.com/trainvet/trainvet/configs"
)

// LitGPT is the YAML of litgpt.
var LitGPT = &Dialect{
	Name:    "litgpt",
	Title:   "litgpt config",
	Version: "litgpt 0.5",
	Batch:   Floors,
	Loader:  configs.LoaderJsonargparse,
	lenient: true,

	recognise: func(d doc) bool {
		return d.has("train.global_batch_size") && d.has("train.micro_batch_size") &&
			d.hasAny("checkpoint_dir", "model_name", "model_config", "out_dir", "precision")
	},

	before: func(r *reader) { r.deviceList("devices") },
	table: []entry{
		{field: "model.hidden", keys: paths("model_config.n_embd")},
		{field: "model.layers", keys: paths("model_config.n_layer")},
		{field: "model.heads", keys: paths("model_config.n_head")},
		{field: "model.kv_heads", keys: paths("model_config.n_query_groups")},
		{field: "model.ffn", keys: paths("model_config.intermediate_size")},
		{field: "model.vocab", keys: paths("model_config.padded_vocab_size", "model_config.vocab_size")},
		{field: "model.tied", keys: paths("train.tie_embeddings")},
		{field: "batch.micro", keys: paths("train.micro_batch_size"), absent: 4},
		{field: "batch.global", keys: paths("train.global_batch_size")},
		{field: "batch.seq_length", keys: paths("train.max_seq_length", "model_config.block_size"), read: positive},
		{field: "parallel.devices_per_node", keys: paths("devices"), read: positive},
		{field: "parallel.nodes", keys: paths("num_nodes"), absent: 1},
		{field: "parallel.tensor", absent: 1},
		{field: "parallel.pipeline", absent: 1},
		{field: "parallel.context", absent: 1},
		{field: "optimizer.lr", keys: paths("optimizer.init_args.lr")},
		{field: "optimizer.weight_decay", keys: paths("optimizer.init_args.weight_decay")},
		{field: "optimizer.min_lr", keys: paths("train.min_lr")},
		{field: "optimizer.clip", keys: paths("train.max_norm"), absent: 0},
		{field: "schedule.warmup", keys: paths("train.lr_warmup_steps")},
		{field: "schedule.warmup_ratio", keys: paths("train.lr_warmup_fraction")},
		{field: "schedule.warmup_unit", absent: "optimizer"},
		{field: "schedule.total_steps", keys: paths("train.max_steps")},
		{field: "schedule.epochs", keys: paths("train.epochs")},
		{field: "lora.rank", keys: paths("lora_r")},
		{field: "lora.alpha", keys: paths("lora_alpha")},
		{field: "lora.dropout", keys: paths("lora_dropout")},
		{field: "attention.kernel", absent: "flash"},
		{field: "stack", absent: "litgpt"},
	},
	after: litgptAfter,
}

func litgptAfter(r *reader) {
	pretrain := r.hasAny("model_name", "model_config", "initial_checkpoint_dir")
	switch f := r.first("model_name", "checkpoint_dir"); {
	case f.state == written && strings.HasSuffix(f.path, "model_name"):
		name := entry{field: "model.name", keys: paths("model_name")}
		r.apply(&name)
	case f.state == written:
		folder, _ := r.constant(f).Str()
		if parts := strings.Split(strings.Trim(folder, "/"), "/"); len(parts) >= 2 {
			r.derive("model.name", strings.Join(parts[len(parts)-2:], "/"), "by the folder of the checkpoint", f)
		}
	}
	if f := r.first("optimizer.class_path", "optimizer"); f.state == written && f.node.Kind == configs.Scalar {
		class, _ := r.constant(f).Str()
		name := strings.ToLower(class[strings.LastIndexByte(class, '.')+1:])
		if to := plainOptimizers[name]; to != "" {
			r.set("optimizer.type", to, f)
		}
	}
	precision := r.find("precision")
	switch name := r.text(precision); {
	case strings.HasSuffix(name, "-true"):
		kind := strings.TrimSuffix(name, "-true")
		to := map[string]string{"bf16": "bf16", "16": "fp16", "32": "fp32"}[kind]
		if to != "" {
			r.set("dtype.compute", to, precision)
			r.set("dtype.params", to, precision)
		}
	case name == "bf16-mixed":
		r.set("dtype.compute", "bf16", precision)
		r.assumeOf("dtype.params", "fp32", "mixed precision")
	case precision.state == absent:
		r.assumeOf("dtype.compute", "bf16", "bf16-true where the device has it")
		r.assumeOf("dtype.params", "bf16", "bf16-true where the device has it")
	}
	if r.format == configs.Flags {
		r.forget("lora.rank") // the subcommand says whether there are adapters
	} else if !r.has("lora_r") {
		r.assume("lora.rank", 0)
	}
	litgptTargets(r)
	quantize := r.find("quantize")
	switch r.text(quantize) {
	case "bnb.nf4":
		r.set("quantization.kind", "nf4", quantize)
	case "bnb.nf4-dq":
		r.set("quantization.kind", "nf4_double", quantize)
	case "bnb.int8", "bnb.int8-training":
		r.set("quantization.kind", "int8", quantize)
	case "":
		if quantize.state == absent {
			r.assume("quantization.kind", "none")
		}
	}
	litgptSharding(r, pretrain)
	r.assumeOf("loss_kernel", map[bool]string{true: "chunked", false: "chunked_head"}[pretrain], "litgpt's chunked cross entropy")
}

func litgptTargets(r *reader) {
	modules := []struct {
		path string
		to   []string
	}{{"lora_query", []string{"q_proj"}}, {"lora_key", []string{"k_proj"}}, {"lora_value", []string{"v_proj"}},
		{"lora_projection", []string{"o_proj"}}, {"lora_mlp", []string{"up_proj", "gate_proj", "down_proj"}}, {"lora_head", []string{"lm_head"}}}
	var names []string
	at := r.find("lora_r")
	if at.state != written {
		return
	}
	for _, m := range modules {
		f := r.find(m.path)
		on, known := r.truth(f)
		if !known {
			r.forget("lora.targets")
			return
		}
		if f.state == absent {
			on = m.path == "lora_query" || m.path == "lora_value"
		}
		if on {
			names = append(names, m.to...)
		}
	}
	if set, ok := targetsOf(names); ok {
		r.derive("lora.targets", set, "the lora_ switches", at)
	}
}

// litgptSharding: one device runs alone; full fine-tuning and pretraining on several use FSDP and recompute every block.
func litgptSharding(r *reader, pretrain bool) {
	devices := r.find("devices")
	n, ok := r.plan.Parallel.DevicesPerNode.Get()
	nodes, hasNodes := r.plan.Parallel.Nodes.Get()
	switch {
	case ok && n == 1 && hasNodes && nodes == 1, devices.state == absent && !pretrain:
		r.derive("sharding", "none", "one device", devices)
		r.assumeOf("checkpointing.kind", "none", "litgpt recomputes only under FSDP")
	case ok && n > 1 || hasNodes && nodes > 1:
		r.derive("sharding", "fsdp1", "several devices: FSDP", devices, r.find("num_nodes"))
		r.assumeOf("fsdp.no_sync", true, "litgpt reduces gradients at the last micro-batch alone (fabric.no_backward_sync)")
		if !r.has("lora_r") {
			r.assumeOf("checkpointing.kind", "full", "litgpt's FSDP strategy recomputes each block")
		} else {
			r.assumeOf("checkpointing.kind", "none", "litgpt's LoRA recipe")
		}
	}
}
