package dialect

import (
	"strings"

	"github.com/trainvet/trainvet/configs/plan"
)

// Said is a setting as a dialect writes it: a key, as a dotted path, and the text of its value.
type Said struct{ Key, Text string }

// sayings are, by dialect and then by dotted name and value, what is not the value itself at the first key of the dialect's table. The
// text of a value that is * is the value.
var sayings = map[string]map[string][]Said{
	"hf-training-args": {
		"checkpointing.kind full": {{"gradient_checkpointing", "true"}}, "checkpointing.kind none": {{"gradient_checkpointing", "false"}},
		"loss_kernel fused_linear": {{"use_liger_kernel", "true"}}, "optimizer.type adamw_8bit": {{"optim", "adamw_bnb_8bit"}},
		"sharding fsdp2": {{"fsdp", "full_shard"}, {"fsdp_config.fsdp_version", "2"}},
	},
	"axolotl": {
		"checkpointing.kind full": {{"gradient_checkpointing", "true"}}, "checkpointing.kind none": {{"gradient_checkpointing", "false"}},
		"loss_kernel fused_linear": {{"liger_fused_linear_cross_entropy", "true"}}, "optimizer.type adamw_8bit": {{"optimizer", "adamw_bnb_8bit"}},
		"sharding fsdp2": {{"fsdp_version", "2"}},
	},
	"llamafactory": {
		"checkpointing.kind full": {{"disable_gradient_checkpointing", "false"}}, "checkpointing.kind none": {{"disable_gradient_checkpointing", "true"}},
		"loss_kernel fused_linear": {{"enable_liger_kernel", "true"}}, "optimizer.type adamw_8bit": {{"optim", "adamw_bnb_8bit"}},
	},
	"torchtune": {
		"checkpointing.kind full": {{"enable_activation_checkpointing", "true"}}, "checkpointing.kind none": {{"enable_activation_checkpointing", "false"}},
	},
	"torchtitan-toml": {
		"checkpointing.kind full": {{"activation_checkpoint.mode", "full"}}, "checkpointing.kind none": {{"activation_checkpoint.mode", "none"}},
		"checkpointing.kind selective_op": {{"activation_checkpoint.mode", "selective"}},
	},
	"megatron": {
		"checkpointing.kind full": {{"recompute_granularity", "full"}, {"recompute_method", "uniform"}, {"recompute_num_layers", "1"}}, "checkpointing.kind selective_attention": {{"recompute_granularity", "selective"}},
		"sharding megatron_dist": {{"use_distributed_optimizer", "true"}}, "parallel.sequence_parallel true": {{"sequence_parallel", "true"}},
	},
	"accelerate": {
		"checkpointing.kind full": {{"fsdp_config.fsdp_activation_checkpointing", "true"}}, "checkpointing.kind none": {{"fsdp_config.fsdp_activation_checkpointing", "false"}},
	},
	"deepspeed": {
		"buckets.reduce *": {{"zero_optimization.reduce_bucket_size", "*"}},
		"sharding zero1":   {{"zero_optimization.stage", "1"}}, "sharding zero2": {{"zero_optimization.stage", "2"}}, "sharding zero3": {{"zero_optimization.stage", "3"}},
		"offload.optimizer cpu": {{"zero_optimization.offload_optimizer.device", "cpu"}}, "offload.optimizer none": {{"zero_optimization.offload_optimizer.device", "none"}},
		"offload.param cpu": {{"zero_optimization.offload_param.device", "cpu"}}, "offload.param none": {{"zero_optimization.offload_param.device", "none"}},
	},
}

// Says is how the dialect writes a value of the plan; nil where it has no key for it.
func (d *Dialect) Says(field, value string) []Said {
	if d == Native {
		for _, k := range plan.NativeKeys() {
			if k.Field == field {
				return []Said{{k.Key, value}}
			}
		}
		return nil
	}
	if said := sayings[d.Name][field+" "+value]; said != nil {
		return said
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
