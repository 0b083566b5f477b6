package dialect

import (
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint/constant"
)

// Trains reports whether files of the dialect describe a training run, rather than how one is launched or the model that it
// starts from.
func (d *Dialect) Trains() bool {
	return d.recognise != nil && d != Accelerate && d != HFModelConfig && d != PEFTAdapter
}

// Packages are the Python packages that read a command line in the dialect, where these are known.
func (d *Dialect) Packages() []string {
	switch d {
	case Megatron:
		return []string{"megatron", "mindspeed", "mindspeed_llm", "mindspeed_mm", "modellink", "megatron_patch", "nemo", "mbridge"}
	case LLaMAFactory:
		return []string{"llamafactory", "llmtuner"}
	case Torchtitan:
		return []string{"torchtitan"}
	}
	return nil
}

// Launcher is the dialect of the flags of a launcher (torchrun, deepspeed, accelerate, srun, mpirun), or nil. They are never
// recognised by content: the command says what they are.
func Launcher(command string) *Dialect {
	switch command {
	case "torchrun", "torch.distributed.launch": // the older one takes the same flags
		return torchrun
	case "deepspeed":
		return deepspeedLauncher
	case "accelerate":
		return accelerateLaunch
	case "srun":
		return srun
	case "mpirun":
		return mpirun
	}
	return nil
}

var torchrun = &Dialect{
	Name:    "torchrun",
	Title:   "torchrun",
	Version: "torchrun",
	table: []entry{
		{field: "parallel.nodes", keys: paths("nnodes"), read: ranks, absent: 1},
		{field: "parallel.devices_per_node", keys: paths("nproc_per_node"), read: ranks, absent: 1},
	},
}

var deepspeedLauncher = &Dialect{
	Name:    "deepspeed-launcher",
	Title:   "deepspeed launcher",
	Version: "the deepspeed launcher",
	table: []entry{
		{field: "parallel.devices_per_node", keys: paths("num_gpus", "num_accelerators"), read: ranks},
	},
	after: func(r *reader) {
		include := r.first("include", "i")
		text, _ := r.constant(include).Str()
		if hosts := strings.Split(text, "@"); include.state == written && len(hosts) == 1 {
			_, devices, listed := strings.Cut(hosts[0], ":")
			if listed && devices != "" && !strings.ContainsAny(devices, "-:") {
				r.derive("parallel.devices_per_node", 1+strings.Count(devices, ","), "the devices of --include", include)
				r.derive("parallel.nodes", 1, "the hosts of --include", include)
			}
		}
		nodes := entry{field: "parallel.nodes", keys: paths("num_nodes"), read: ranks}
		r.apply(&nodes)
		if r.first("hostfile", "H", "include", "i", "exclude", "e").state == absent {
			r.assumeOf("parallel.nodes", 1, "the deepspeed launcher without a hostfile")
		}
	},
}

var accelerateLaunch = &Dialect{
	Name:    "accelerate-launch",
	Title:   "accelerate launch",
	Version: "accelerate 1",
	files:   []string{"deepspeed_config_file"},
	table: []entry{
		{field: "parallel.world", keys: paths("num_processes"), read: ranks},
		{field: "parallel.nodes", keys: paths("num_machines"), read: ranks},
		{field: "dtype.compute", keys: paths("mixed_precision"), read: dtype},
		{field: "batch.accumulation", keys: paths("gradient_accumulation_steps")},
	},
	after: func(r *reader) {
		switch {
		case r.isOn("use_deepspeed") && r.find("deepspeed_config_file").state == absent:
			if stage := r.find("zero_stage"); stage.state == absent {
				r.assume("sharding", "zero2")
			} else {
				r.zeroStage(stage)
			}
		case r.isOn("use_fsdp"):
			kind := "fsdp1"
			if n, ok := r.number(r.find("fsdp_version")); ok && n == 2 {
				kind = "fsdp2"
			}
			r.accelerateFSDPFlags(kind)
		case r.isOn("multi_gpu"):
			r.set("sharding", "ddp", r.find("multi_gpu"))
		}
		for _, e := range []entry{
			{field: "offload.optimizer", keys: paths("offload_optimizer_device"), read: lower},
			{field: "offload.param", keys: paths("offload_param_device"), read: lower},
		} {
			r.apply(&e)
		}
	},
}

// accelerateFSDPFlags are the keys of fsdp_config in accelerate's file, as flags.
func (r *reader) accelerateFSDPFlags(kind string) {
	strategy, at := r.find("fsdp_sharding_strategy"), r.find("use_fsdp")
	name := r.text(strategy)
	if n, ok := r.integer(strategy); ok && n >= 1 && n <= 5 {
		name = fsdpStrategies[n]
	}
	switch name {
	case "no_shard":
		r.set("sharding", "ddp", strategy)
	case "shard_grad_op", "hybrid_shard_zero2":
		r.set("fsdp.reshard_after_forward", false, strategy)
	}
	r.set("sharding", kind, at)
	if strings.HasPrefix(name, "hybrid_shard") {
		r.forget("parallel.shard_group")
	}
	if f := r.find("fsdp_reshard_after_forward"); f.state == written && kind == "fsdp2" {
		if on, known := r.truth(f); known {
			r.set("fsdp.reshard_after_forward", on, f)
		}
	}
	if f := r.find("fsdp_offload_params"); r.isOn("fsdp_offload_params") {
		r.set("offload.optimizer", "cpu", f)
		r.set("offload.param", "cpu", f)
	}
	if f := r.find("fsdp_activation_checkpointing"); r.isOn("fsdp_activation_checkpointing") {
		r.set("checkpointing.kind", "full", f)
	}
	r.unreduced()
}

// srun starts one process a task.
var srun = &Dialect{
	Name:    "srun",
	Title:   "srun",
	Version: "srun",
	dashes:  true, // #SBATCH lines keep theirs
	table: []entry{
		{field: "parallel.nodes", keys: paths("nodes", "N"), read: ranks},
		{field: "parallel.devices_per_node", keys: paths("ntasks_per_node"), read: ranks},
		{field: "parallel.world", keys: paths("ntasks", "n"), read: ranks},
	},
}

var mpirun = &Dialect{
	Name:    "mpirun",
	Title:   "mpirun",
	Version: "mpirun",
	table: []entry{
		{field: "parallel.world", keys: paths("np", "n", "c"), read: ranks},
		{field: "parallel.devices_per_node", keys: paths("npernode", "ppn"), read: ranks},
	},
}

// ranks is a plain count; a range of nodes, `auto` and `gpu` are not known.
func ranks(v constant.Value) (any, bool) {
	text, isText := v.Str()
	if !isText {
		return plain(v)
	}
	n, ok := toNumber(text)
	return n, ok && n >= 1
}

// Of the environment, the variables that say something of a run.
const hcclBuffer = "HCCL_BUFFSIZE"

var allocatorOptions = paths("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_NPU_ALLOC_CONF")

// Telling reports whether any of the variables says something of a run: scripts set dozens, and few do.
func Telling(env *configs.Tree) bool {
	d := Environment.doc(env, keysOf(env.Root))
	return d.has(hcclBuffer) || d.hasAny(allocatorOptions...)
}

// Environment reads the variables that a script sets for its processes.
var Environment = &Dialect{
	Name:    "environment",
	Title:   "environment variables",
	Version: "the environment",
	table: []entry{
		{field: "communication.hccl_buffer_mb", keys: paths(hcclBuffer)},
	},
	after: func(r *reader) {
		for _, name := range allocatorOptions {
			f := r.find(name)
			text := strings.ReplaceAll(strings.ToLower(r.text(f)), " ", "")
			for option := range strings.SplitSeq(text, ",") {
				if value, ok := strings.CutPrefix(option, "expandable_segments:"); ok && f.state == written {
					r.set("allocator.expandable_segments", value == "true", f)
				}
			}
		}
	},
}
