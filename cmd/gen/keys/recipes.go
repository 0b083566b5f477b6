package main

// recipe says where the keys of a dialect stand.
type recipe struct {
	removed  map[string]removal // keys of earlier releases, with the one that no longer takes them
	sections map[string]string  // what becomes of unknown keys, by section; sections that are found besides are like the one above
	from     []reading
}

// removal is the end of a key. What the framework had in its place may be known.
type removal struct{ release, replacement string }

// reading takes keys out of files of the framework into the section at a path.
type reading struct {
	kind  kind
	files []string // patterns
	class string   // of fields and parameters
	under string   // section
	omit  []string
}

type kind int

const (
	options    kind = iota // names of add_argument calls, and fields that Megatron's ArgumentGroupFactory makes arguments of
	dests                  // where add_argument calls store their values
	fields                 // of a dataclass, with those of the dataclasses in it
	parameters             // of the constructor of a class
	schema                 // keys of the dict literals whose names end in _SCHEMA
	settings               // keys of a YAML file
	builders               // parameters of the functions and classes that packages export, by their dotted names
	roots                  // top-level keys of YAML files that do not build anything, and attributes of `cfg`
)

var recipes = map[string]recipe{
	// The removals are those that arguments.py of Megatron-LM 2.5 to core 0.4 refuses with a message of its own.
	"megatron": {removed: map[string]removal{
		"batch_size":          {"2.0", "micro_batch_size"},
		"warmup":              {"2.0", "lr_warmup_fraction"},
		"model_parallel_size": {"2.0", "tensor_model_parallel_size"},
	}, sections: map[string]string{"": "open"}, from: []reading{
		{kind: options, files: []string{"megatron/training/arguments.py", "megatron/rl/*.py", "megatron/post_training/arguments.py", "pretrain_*.py", "examples/multimodal/multimodal_args.py"}},
	}},
	"kohya": {sections: map[string]string{"": "open", "general": "rejected", "datasets": "rejected", "datasets.subsets": "rejected"}, from: []reading{
		{kind: dests, files: []string{"library/*.py", "*train*.py", "fine_tune.py"}},
		{kind: schema, files: []string{"library/config_util.py"}, under: "general"},
		{kind: schema, files: []string{"library/config_util.py"}, under: "datasets"},
		{kind: schema, files: []string{"library/config_util.py"}, under: "datasets.subsets"},
	}},
	"olmo": {sections: map[string]string{"": "rejected"}, from: []reading{
		{kind: fields, files: []string{"olmo/config.py"}, class: "TrainConfig"},
	}},
	"peft-adapter": {sections: map[string]string{"": "open"}, from: []reading{
		{kind: fields, files: []string{"src/peft/config.py", "src/peft/tuners/*/config.py", "src/peft/tuners/*_utils.py"}, class: "*"},
	}},
	"verl": {sections: map[string]string{"": "open"}, from: []reading{
		{kind: settings, files: []string{"verl/trainer/config/_generated_ppo_trainer.yaml"}},
		{kind: settings, files: []string{"verl/trainer/config/_generated_ppo_megatron_trainer.yaml"}},
		{kind: settings, files: []string{"tests/trainer/config/legacy_*.yaml"}}, // keys of earlier releases
	}},
	// The Trainer's removals are those of Lightning's guide to upgrading.
	"nemo": {removed: trainerRemovals, sections: map[string]string{"": "open", "trainer": "rejected", "exp_manager": "rejected", "exp_manager.wandb_logger_kwargs": "open", "model": "open"}, from: []reading{
		{kind: fields, files: []string{"nemo/utils/exp_manager.py"}, class: "ExpManagerConfig", under: "exp_manager"},
		{kind: parameters, files: []string{"src/lightning/pytorch/trainer/trainer.py"}, class: "Trainer", under: "trainer"},
		{kind: settings, files: []string{"examples/nlp/language_modeling/conf/megatron_gpt_config.yaml"}},
		{kind: settings, files: []string{"examples/nlp/language_modeling/conf/megatron_llama_config.yaml"}},
	}},
	"lightning-cli": {removed: trainerRemovals, sections: map[string]string{"": "open", "trainer": "rejected", "fit": "open", "fit.trainer": "rejected"}, from: []reading{
		{kind: parameters, files: []string{"src/lightning/pytorch/trainer/trainer.py"}, class: "Trainer", under: "trainer"},
		{kind: parameters, files: []string{"src/lightning/pytorch/trainer/trainer.py"}, class: "Trainer", under: "fit.trainer"},
	}},
	"torchtune": {sections: map[string]string{"": "open"}, from: []reading{
		{kind: roots, files: []string{"recipes/configs/*.yaml", "recipes/configs/*/*.yaml", "recipes/configs/*/*/*.yaml", "recipes/*.py", "recipes/*/*.py"}},
		{kind: builders, files: []string{"torchtune"}},
	}},
}

// trainerRemovals are arguments that Lightning's Trainer had.
var trainerRemovals = map[string]removal{
	"trainer.gpus":                      {"2.0", "trainer.devices"},
	"trainer.num_processes":             {"2.0", "trainer.devices"},
	"trainer.tpu_cores":                 {"2.0", "trainer.devices"},
	"trainer.ipus":                      {"2.0", "trainer.devices"},
	"trainer.auto_select_gpus":          {"2.0", ""},
	"trainer.replace_sampler_ddp":       {"2.0", "trainer.use_distributed_sampler"},
	"trainer.multiple_trainloader_mode": {"2.0", ""},
	"trainer.resume_from_checkpoint":    {"2.0", ""},
	"trainer.auto_lr_find":              {"2.0", ""},
	"trainer.auto_scale_batch_size":     {"2.0", ""},
	"trainer.amp_backend":               {"2.0", ""},
	"trainer.amp_level":                 {"2.0", ""},
	"trainer.track_grad_norm":           {"2.0", ""},
	"trainer.move_metrics_to_cpu":       {"2.0", ""},
	"trainer.progress_bar_refresh_rate": {"1.7", ""},
	"trainer.checkpoint_callback":       {"1.7", "trainer.enable_checkpointing"},
	"trainer.weights_summary":           {"1.7", "trainer.enable_model_summary"},
	"trainer.flush_logs_every_n_steps":  {"1.7", ""},
	"trainer.log_gpu_memory":            {"1.7", ""},
	"trainer.prepare_data_per_node":     {"1.7", ""},
	"trainer.process_position":          {"1.7", ""},
	"trainer.stochastic_weight_avg":     {"1.7", ""},
	"trainer.terminate_on_nan":          {"1.7", "trainer.detect_anomaly"},
	"trainer.distributed_backend":       {"1.5", "trainer.accelerator"},
	"trainer.weights_save_path":         {"1.8", ""},
}
