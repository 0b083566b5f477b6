package dialect

import (
	"strings"

	"github.com/trainvet/trainvet/configs/plan"
)

// Files of DeepSpeed as a value: Hugging Face's argument takes the text of one in place of its path.
const (
	zero2 = `{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}, "zero_optimization": {"stage": 2}}`
	zero3 = `{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}, "zero_optimization": {"stage": 3}}`
)

// Said is a setting as a dialect writes it: a key, as a dotted path, and the text of its value.
type Said struct{ Key, Text string }

// sayings are, by dialect and then by dotted name, value and, where it decides, the kind of sharding, what is not the value itself at the first key of the dialect's table. The
// text of a value that is * is the value.
var sayings = map[string]map[string][]Said{
	"hf-training-args": {
		"checkpointing.kind full": {{"gradient_checkpointing", "true"}}, "checkpointing.kind none": {{"gradient_checkpointing", "false"}},
		"loss_kernel fused_linear": {{"use_liger_kernel", "true"}},
		"fsdp.no_sync false fsdp":  {{"accelerator_config.gradient_accumulation_kwargs.sync_each_batch", "true"}}, "optimizer.type adamw_8bit": {{"optim", "adamw_bnb_8bit"}},
		"sharding fsdp2": {{"fsdp", "full_shard auto_wrap"}, {"fsdp_config.fsdp_version", "2"}},
		"sharding fsdp1": {{"fsdp", "full_shard auto_wrap"}}, "sharding zero2": {{"deepspeed", zero2}}, "sharding zero3": {{"deepspeed", zero3}},
		"offload.param cpu fsdp": {{"fsdp_config.offload_params", "true"}}, "offload.param none fsdp": {{"fsdp_config.offload_params", "false"}},
		"offload.optimizer cpu fsdp": {{"fsdp_config.offload_params", "true"}}, "offload.optimizer none fsdp": {{"fsdp_config.offload_params", "false"}},
		"fsdp.reshard_after_forward false fsdp1": {{"fsdp", "shard_grad_op auto_wrap"}}, "fsdp.reshard_after_forward false fsdp2": {{"fsdp_config.reshard_after_forward", "false"}},
	},
	"axolotl": {
		"checkpointing.kind full": {{"gradient_checkpointing", "true"}}, "checkpointing.kind none": {{"gradient_checkpointing", "false"}},
		"loss_kernel fused_linear": {{"liger_fused_linear_cross_entropy", "true"}},
		"fsdp.no_sync false fsdp":  {{"accelerator_config.gradient_accumulation_kwargs.sync_each_batch", "true"}}, "optimizer.type adamw_8bit": {{"optimizer", "adamw_bnb_8bit"}},
		"sharding fsdp2": {{"fsdp_version", "2"}},
		"sharding fsdp1": {{"fsdp", "full_shard auto_wrap"}}, "sharding zero2": {{"deepspeed", zero2}}, "sharding zero3": {{"deepspeed", zero3}},
		"offload.param cpu fsdp": {{"fsdp_config.offload_params", "true"}}, "offload.param none fsdp": {{"fsdp_config.offload_params", "false"}},
		"offload.optimizer cpu fsdp": {{"fsdp_config.offload_params", "true"}}, "offload.optimizer none fsdp": {{"fsdp_config.offload_params", "false"}},
		"fsdp.reshard_after_forward false fsdp1": {{"fsdp", "shard_grad_op auto_wrap"}}, "fsdp.reshard_after_forward false fsdp2": {{"fsdp_config.reshard_after_forward", "false"}},
	},
	"llamafactory": {
		"checkpointing.kind full": {{"disable_gradient_checkpointing", "false"}}, "checkpointing.kind none": {{"disable_gradient_checkpointing", "true"}},
		"loss_kernel fused_linear": {{"enable_liger_kernel", "true"}},
		"fsdp.no_sync false fsdp":  {{"accelerator_config.gradient_accumulation_kwargs.sync_each_batch", "true"}}, "optimizer.type adamw_8bit": {{"optim", "adamw_bnb_8bit"}},
		"sharding fsdp1": {{"fsdp", "full_shard auto_wrap"}}, "sharding zero2": {{"deepspeed", zero2}}, "sharding zero3": {{"deepspeed", zero3}},
		"offload.param cpu fsdp": {{"fsdp_config.offload_params", "true"}}, "offload.param none fsdp": {{"fsdp_config.offload_params", "false"}},
		"offload.optimizer cpu fsdp": {{"fsdp_config.offload_params", "true"}}, "offload.optimizer none fsdp": {{"fsdp_config.offload_params", "false"}},
		"fsdp.reshard_after_forward false fsdp1": {{"fsdp", "shard_grad_op auto_wrap"}}, "fsdp.reshard_after_forward false fsdp2": {{"fsdp_config.reshard_after_forward", "false"}},
	},
	"torchtune": {
		"checkpointing.kind full": {{"enable_activation_checkpointing", "true"}}, "checkpointing.kind none": {{"enable_activation_checkpointing", "false"}},
		"checkpointing.kind half": {{"ac_mode", "selective"}, {"ac_option", "2"}},
		"offload.optimizer cpu":   {{"fsdp_cpu_offload", "true"}}, "offload.param cpu": {{"fsdp_cpu_offload", "true"}},
		"fsdp.reshard_after_forward false": {{"fsdp_reshard_after_forward", "false"}},
	},
	"torchtitan-toml": {
		"checkpointing.kind full": {{"activation_checkpoint.mode", "full"}}, "checkpointing.kind none": {{"activation_checkpoint.mode", "none"}},
		"checkpointing.kind selective_op": {{"activation_checkpoint.mode", "selective"}, {"activation_checkpoint.selective_ac_option", "op"}},
		"checkpointing.kind half":         {{"activation_checkpoint.mode", "selective"}, {"activation_checkpoint.selective_ac_option", "2"}},
		"offload.optimizer cpu":           {{"training.enable_cpu_offload", "true"}}, "offload.param cpu": {{"training.enable_cpu_offload", "true"}},
		"offload.optimizer none": {{"training.enable_cpu_offload", "false"}}, "offload.param none": {{"training.enable_cpu_offload", "false"}},
		"fsdp.reshard_after_forward false": {{"parallelism.fsdp_reshard_after_forward", "never"}},
	},
	"megatron": {
		"checkpointing.kind full": {{"recompute_granularity", "full"}, {"recompute_method", "uniform"}, {"recompute_num_layers", "1"}}, "checkpointing.kind selective_attention": {{"recompute_granularity", "selective"}},
		"checkpointing.kind every_n": {{"recompute_granularity", "full"}, {"recompute_method", "uniform"}}, "checkpointing.every *": {{"recompute_num_layers", "*"}},
		"sharding megatron_dist": {{"use_distributed_optimizer", "true"}}, "parallel.sequence_parallel true": {{"sequence_parallel", "true"}},
	},
	"accelerate": {
		"checkpointing.kind full fsdp": {{"fsdp_config.fsdp_activation_checkpointing", "true"}}, "checkpointing.kind none fsdp": {{"fsdp_config.fsdp_activation_checkpointing", "false"}},
		"offload.param cpu fsdp": {{"fsdp_config.fsdp_offload_params", "true"}}, "offload.param none fsdp": {{"fsdp_config.fsdp_offload_params", "false"}},
		"offload.optimizer cpu fsdp": {{"fsdp_config.fsdp_offload_params", "true"}}, "offload.optimizer none fsdp": {{"fsdp_config.fsdp_offload_params", "false"}},
		"fsdp.reshard_after_forward false fsdp1": {{"fsdp_config.fsdp_sharding_strategy", "SHARD_GRAD_OP"}}, "fsdp.reshard_after_forward false fsdp2": {{"fsdp_config.fsdp_reshard_after_forward", "false"}},
		"sharding fsdp1": {{"distributed_type", "FSDP"}, {"fsdp_config.fsdp_sharding_strategy", "FULL_SHARD"}, {"fsdp_config.fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP"}},
	},
	"deepspeed": {
		"buckets.reduce *": {{"zero_optimization.reduce_bucket_size", "*"}},
		"sharding ddp":     {{"zero_optimization.stage", "0"}},
		"sharding zero1":   {{"zero_optimization.stage", "1"}}, "sharding zero2": {{"zero_optimization.stage", "2"}}, "sharding zero3": {{"zero_optimization.stage", "3"}},
		"offload.optimizer cpu zero": {{"zero_optimization.offload_optimizer.device", "cpu"}}, "offload.optimizer none zero": {{"zero_optimization.offload_optimizer.device", "none"}},
		"offload.param cpu zero": {{"zero_optimization.offload_param.device", "cpu"}}, "offload.param none zero": {{"zero_optimization.offload_param.device", "none"}},
	},
}

// Says is how the dialect writes a value of a plan that is sharded so; nil where it has no key for it.
func (d *Dialect) Says(sharding plan.Sharding, field, value string) []Said {
	if d == Native {
		for _, k := range plan.NativeKeys() {
			if k.Field == field {
				return []Said{{k.Key, value}}
			}
		}
		return nil
	}
	for _, under := range [...]string{"", " " + string(sharding), " " + strings.TrimRight(string(sharding), "123")} {
		if said := sayings[d.Name][field+" "+value+under]; said != nil {
			return said
		}
	}
	if said := sayings[d.Name][field+" *"]; said != nil {
		return []Said{{said[0].Key, value}}
	}
	if !counted(field) {
		return nil
	}
	for i := range d.table {
		if e := &d.table[i]; e.field == field && len(e.keys) > 0 {
			return []Said{{e.keys[0], value}}
		}
	}
	return nil
}

// counted reports whether a value is a number that every dialect writes as it is.
func counted(field string) bool {
	return strings.HasPrefix(field, "batch.") || strings.HasPrefix(field, "parallel.") || strings.HasPrefix(field, "buckets.")
}
