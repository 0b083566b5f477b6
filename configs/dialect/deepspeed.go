package dialect

import (
	"strings"

	"github.com/trainvet/trainvet/configs"
)

// DeepSpeed is the config of deepspeed.initialize: a JSON file, a Python dict, or a section of another dialect's file.
var DeepSpeed = &Dialect{
	Name:    "deepspeed",
	Title:   "DeepSpeed config",
	Version: "DeepSpeed 0.19.6",
	Batch:   Checked,
	Loader:  configs.LoaderYAML11,

	recognise: func(d doc) bool {
		if d.format == configs.Flags || d.format == configs.Env {
			return false // flags of that name are the program's own
		}
		if zero := d.node("zero_optimization"); zero != nil && (zero.Kind == configs.Mapping || isBool(zero)) {
			return true
		}
		optimizer := d.mapping("optimizer") && d.has("optimizer.type")
		return d.has("train_micro_batch_size_per_gpu") || d.has("fp16.enabled") || d.has("bf16.enabled") || d.has("elasticity.micro_batch_sizes") ||
			d.has("train_batch_size") && (optimizer || d.count(deepspeedOnly...) > 0) ||
			d.count("steps_per_print", "wall_clock_breakdown", "zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer",
				"communication_data_type", "prescale_gradients")+
				d.sections("flops_profiler", "comms_logger", "activation_checkpointing", "compression_training", "data_efficiency", "aio") >= 2
	},

	table: []entry{
		{field: "batch.micro", keys: paths("train_micro_batch_size_per_gpu")},
		{field: "batch.accumulation", keys: paths("gradient_accumulation_steps")},
		{field: "batch.global", keys: paths("train_batch_size")},
		{field: "parallel.tensor", keys: paths("tensor_parallel.autotp_size"), read: atLeastOne, absent: 1},
		{field: "parallel.pipeline", absent: 1},
		{field: "parallel.context", keys: paths("sequence_parallel_size"), read: atLeastOne, absent: 1},
		{field: "optimizer.type", keys: paths("optimizer.type"), read: choice(deepspeedOptimizers)},
		{field: "optimizer.lr", keys: paths("optimizer.params.lr")},
		{field: "optimizer.weight_decay", keys: paths("optimizer.params.weight_decay")},
		{field: "optimizer.eps", keys: paths("optimizer.params.eps")},
		{field: "schedule.type", keys: paths("scheduler.type"), read: lower},
		{field: "schedule.warmup", keys: paths("scheduler.params.warmup_num_steps")},
		{field: "schedule.total_steps", keys: paths("scheduler.params.total_num_steps")},
		{field: "optimizer.clip", keys: paths("gradient_clipping")},
		{field: "compile", keys: paths("compile.deepcompile"), absent: false},
	},
	before: deepspeedBefore,
	after:  deepspeedAfter,
}

// deepspeedOnly are keys of the top level that nobody else has beside train_batch_size.
var deepspeedOnly = []string{
	"steps_per_print", "wall_clock_breakdown", "zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer", "flops_profiler", "comms_logger",
	"activation_checkpointing", "communication_data_type", "prescale_gradients", "compression_training", "data_efficiency", "aio", "gradient_predivide_factor",
	"gradient_allreduce_op", "csv_monitor", "hybrid_engine", "torch_autocast", "data_types", "progressive_layer_drop", "elasticity", "dump_state",
}

// NamedDeepSpeed is for a file that content alone does not tell: a JSON file with a name that people give to DeepSpeed's configs,
// and with keys of its top level alone, or hardly any other.
func NamedDeepSpeed(name string, tree *configs.Tree) bool {
	base := strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	if tree == nil || tree.Format != configs.JSON || tree.Root == nil || tree.Root.Kind != configs.Mapping || !strings.HasSuffix(base, ".json") ||
		!strings.HasPrefix(base, "ds_config") && !strings.HasPrefix(base, "deepspeed_config") && !strings.HasPrefix(base, "dsconfig") {
		return false
	}
	known := 0
	for i := range tree.Root.Items {
		if Keys(DeepSpeed).Lookup(tree.Root.Items[i].Key) != nil {
			known++
		}
	}
	return known > 0 && 3*known >= len(tree.Root.Items)
}

var deepspeedOptimizers = map[string]string{
	"adam": "adamw", "adamw": "adamw", "fusedadam": "adamw", "cpuadam": "adamw", "deepspeedcpuadam": "adamw",
	"lion": "lion", "adafactor": "adafactor", "muon": "muon",
}

func deepspeedAfter(r *reader) {
	deepspeedBatch(r)
	deepspeedZero(r)
	deepspeedPrecision(r)
	deepspeedOptimizer(r)
	deepspeedKernel(r)
	if on, known := r.truth(r.find("expert_parallel.enabled")); on && known {
		r.apply(&entry{field: "parallel.expert", keys: paths("expert_parallel.autoep_size"), absent: 1})
	}
	r.assumeOf("optimizer.clip", 1.0, "DeepSpeed from 0.19.3 on; 0, no clipping, before")
}

// deepspeedBatch: accumulation is 1 when it is absent and only one of the other two sizes is written.
func deepspeedBatch(r *reader) {
	global, micro := r.find("train_batch_size"), r.find("train_micro_batch_size_per_gpu")
	accumulation := r.find("gradient_accumulation_steps")
	if accumulation.state == absent && (global.state == absent) != (micro.state == absent) {
		r.assume("batch.accumulation", 1)
	}
}

// deepspeedZero reads zero_optimization. Under stage 3 all_gather buckets, below it the stage3_ keys, do nothing.
func deepspeedZero(r *reader) {
	stage, known := deepspeedStage(r)
	if !known {
		r.forget("sharding")
		return
	}
	at := r.first("zero_optimization.stage", "zero_optimization")
	names := [...]string{"ddp", "zero1", "zero2", "zero3"}
	if at.state == written {
		r.set("sharding", names[stage], at)
	} else {
		r.assume("sharding", names[stage])
	}
	if stage == 0 {
		r.assume("offload.optimizer", "none")
		r.assume("offload.param", "none")
		return
	}
	offload := func(field, section string, old ...string) {
		f, legacy := r.find("zero_optimization."+section+".device"), r.first(old...)
		switch {
		case f.state == unknown || legacy.state == unknown:
			r.forget(field)
		case f.state == written:
			if device := r.text(f); device != "auto" {
				r.set(field, device, f)
			} else {
				r.forget(field)
			}
		case legacy.state == written:
			if on, known := r.truth(legacy); known && on {
				r.set(field, "cpu", legacy)
			}
		}
		r.assume(field, "none")
	}
	offload("offload.optimizer", "offload_optimizer", "zero_optimization.cpu_offload")
	if stage == 3 {
		offload("offload.param", "offload_param", "zero_optimization.cpu_offload_param", "zero_optimization.cpu_offload_params")
	} else {
		r.assume("offload.param", "none")
	}
	if f := r.find("zero_optimization.reduce_bucket_size"); f.state == written && isAuto(r.constant(f)) {
		r.set("buckets.auto", true, f)
	}
	r.assume("buckets.auto", false)
	buckets := []entry{
		{field: "buckets.reduce", keys: paths("zero_optimization.reduce_bucket_size"), absent: 5e8},
		{field: "buckets.overlap_comm", keys: paths("zero_optimization.overlap_comm"), absent: stage == 3},
		{field: "buckets.contiguous_gradients", keys: paths("zero_optimization.contiguous_gradients"), absent: true},
	}
	if stage < 3 {
		buckets = append(buckets, entry{field: "buckets.all_gather", keys: paths("zero_optimization.allgather_bucket_size"), absent: 5e8})
	} else {
		buckets = append(buckets, []entry{
			{field: "buckets.prefetch", keys: paths("zero_optimization.stage3_prefetch_bucket_size", "zero_optimization.prefetch_bucket_size"), absent: 5e7},
			{field: "buckets.max_live", keys: paths("zero_optimization.stage3_max_live_parameters", "zero_optimization.max_live_parameters"), absent: 1e9},
			{field: "buckets.persistence", keys: paths("zero_optimization.stage3_param_persistence_threshold", "zero_optimization.param_persistence_threshold"), absent: 1e5},
			{field: "buckets.sub_group", keys: paths("zero_optimization.sub_group_size"), absent: 1e9},
		}...)
	}
	for i := range buckets {
		r.apply(&buckets[i])
	}
}

// deepspeedStage is the stage of ZeRO; `zero_optimization: true` is the oldest spelling of stage 1.
func deepspeedStage(r *reader) (stage int, known bool) {
	if section := r.find("zero_optimization"); section.state == written && section.node.Kind == configs.Scalar {
		on, known := r.truth(section)
		if on {
			return 1, known
		}
		return 0, known
	}
	f := r.find("zero_optimization.stage")
	switch f.state {
	case unknown:
		return 0, false
	case absent:
		return 0, true
	}
	if f.node.Kind != configs.Scalar {
		return 0, false // what the autotuner is to try, or a fault that the table of keys tells
	}
	v := r.constant(f)
	if text, ok := v.Str(); ok { // pydantic takes "3"; "auto" is filled in by the integration that loads the file
		n, ok := toNumber(text)
		return int(n), ok && n >= 0 && n <= 3
	}
	if on, ok := v.Bool(); ok { // pydantic takes it for a number
		return map[bool]int{true: 1}[on], true
	}
	n, ok := v.Number()
	if !ok || n < 0 || n > 3 || n != float64(int(n)) {
		r.fault(f, "is "+v.String()+", wanted a stage from 0 to 3")
		return 0, false
	}
	return int(n), true
}

// deepspeedPrecision: with fp16 or bf16 the engine keeps 16-bit weights and fp32 masters, whatever the stage.
func deepspeedPrecision(r *reader) {
	fp16, bf16 := r.find("fp16.enabled"), r.first("bf16.enabled", "bfloat16.enabled")
	half, halfKnown := r.truth(fp16)
	brain, brainKnown := r.truth(bf16)
	autocast := r.find("torch_autocast.enabled")
	if on, known := r.truth(autocast); on || !known || r.isOn("amp.enabled") {
		r.forget("dtype.compute")
		r.forget("precision")
		return
	}
	switch {
	case !halfKnown || !brainKnown:
		r.forget("dtype.compute")
		r.forget("precision")
	case half && brain: // refused when it is loaded
		r.forget("dtype.compute")
		r.forget("precision")
	case half:
		r.set("dtype.compute", "fp16", fp16)
		if r.isOn("fp16.fp16_master_weights_and_grads") {
			r.forget("precision")
			return
		}
		r.derive("precision", "deepspeed_mixed", "DeepSpeed's fp16: 16-bit weights and gradients, fp32 masters and states", fp16)
	case brain:
		r.set("dtype.compute", "bf16", bf16)
		deepspeedBF16(r, bf16)
	default:
		r.assume("dtype.compute", "fp32")
	}
}

// deepspeedBF16: stage 1 (and 0) with fp32 gradient accumulation runs on BF16_Optimizer.
func deepspeedBF16(r *reader, bf16 found) {
	accumulate := r.find("data_types.grad_accum_dtype")
	stage, known := deepspeedStage(r)
	switch {
	case r.isOn("bf16.bf16_master_weights_and_grads") || r.isOn("bf16.bf16_optimizer_states"), accumulate.state == unknown:
		r.forget("precision")
	case accumulate.state == written && strings.HasSuffix(r.text(accumulate), "32"):
		if !known {
			r.forget("precision")
			return
		}
		if stage <= 1 {
			r.derive("precision", "deepspeed_bf16_optimizer", "bf16 with fp32 gradient accumulation below stage 2", bf16, accumulate)
			return
		}
		fallthrough
	default:
		r.derive("precision", "deepspeed_mixed", "DeepSpeed's bf16: 16-bit weights and gradients, fp32 masters and states", bf16)
	}
}

func deepspeedBefore(r *reader) {
	deepspeedSGD(r)
	// Elasticity chooses the batch sizes for the ranks that are there, whatever is written.
	if on, known := r.truth(r.find("elasticity.enabled")); on || !known {
		for _, field := range []string{"batch.global", "batch.micro", "batch.accumulation"} {
			r.forget(field)
		}
	}
}

// deepspeedKernel: the engine builds FusedAdam for Adam and AdamW, or its CPU kernel where the states are offloaded, and torch's own
// optimizer only where torch_adam is on (runtime/engine.py, _configure_basic_optimizer).
func deepspeedKernel(r *reader) {
	kind := r.find("optimizer.type")
	if name := strings.ToLower(r.text(kind)); name != "adam" && name != "adamw" {
		return
	}
	switch torch, known := r.truth(r.find("optimizer.params.torch_adam")); {
	case !known:
		r.forget("optimizer.kernel")
	case torch:
		r.derive("optimizer.kernel", "foreach", "torch's own choice on a device", r.find("optimizer.params.torch_adam"))
	default:
		r.derive("optimizer.kernel", "fused", "FusedAdam", kind)
	}
}

// deepspeedSGD: SGD is torch's, with states only where it has momentum.
func deepspeedSGD(r *reader) {
	kind, momentum := r.find("optimizer.type"), r.find("optimizer.params.momentum")
	if r.text(kind) != "sgd" {
		return
	}
	if m, ok := r.number(momentum); momentum.state == absent || ok && m == 0 {
		r.derive("optimizer.type", "sgd", "without momentum", kind)
	} else if ok {
		r.derive("optimizer.type", "sgd_momentum", "with momentum", kind, momentum)
	}
}

func deepspeedOptimizer(r *reader) {
	kind := r.text(r.find("optimizer.type"))
	if (strings.HasSuffix(kind, "adam") || kind == "adamw") && r.find("optimizer.params.lr").state == absent {
		r.assume("optimizer.lr", 0.001)
	}
	if betas, ok := r.numbers("optimizer.params.betas"); ok && len(betas) == 2 {
		f := r.find("optimizer.params.betas")
		r.set("optimizer.beta1", betas[0], f)
		r.set("optimizer.beta2", betas[1], f)
	}
	schedule := r.find("scheduler.type")
	if strings.HasPrefix(r.text(schedule), "warmup") {
		if r.find("scheduler.params").state != absent && r.find("scheduler.params.warmup_num_steps").state == absent {
			r.assume("schedule.warmup", 1000)
		}
		// DeepSpeed steps its scheduler at the accumulation boundary.
		r.derive("schedule.warmup_unit", "optimizer", "the engine steps the scheduler once for each optimizer step", schedule)
	}
}

// numbers are the elements of a list of numbers.
func (r *reader) numbers(path string) ([]float64, bool) {
	f := r.find(path)
	if f.state != written || f.node.Kind != configs.Sequence || f.node.Open {
		return nil, false
	}
	var all []float64
	for _, item := range f.node.Items {
		if item.Value == nil {
			return nil, false
		}
		n, ok := r.number(found{state: written, node: item.Value, path: path})
		if !ok {
			return nil, false
		}
		all = append(all, n)
	}
	return all, true
}
