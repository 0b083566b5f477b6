package dialect

import (
	"slices"
	"testing"
)

func TestKeyTables(t *testing.T) {
	launchers := map[string]*Dialect{"torchrun": torchrun, "deepspeed-launcher": deepspeedLauncher, "accelerate-launch": accelerateLaunch}
	for name := range keyTables {
		d := Named(name)
		if d == nil {
			d = launchers[name]
		}
		if d == nil {
			t.Fatalf("keys/%s.json is of no dialect", name)
		}
		table := Keys(d)
		if table.Version == "" || len(table.keys) < 25 {
			t.Errorf("%s: version %q, %d keys", name, table.Version, len(table.keys))
		}
		if _, known := table.Section(""); !known {
			t.Errorf("%s does not say what becomes of unknown keys", name)
		}
		for path, section := range table.sections {
			if !slices.Contains([]Unknown{Mixed, Accepted, Ignored, Rejected}, section.Unknown) {
				t.Errorf("%s: section %q: unknown %q", name, path, section.Unknown)
			}
		}
		for path, key := range table.keys {
			if section, _ := splitPath(path); section != "" {
				if _, known := table.Section(section); !known {
					t.Errorf("%s: %s stands in no section", name, path)
				}
			}
			if replacement := key.Replacement; name == "deepspeed" && replacement != "" && table.Lookup(replacement) == nil && !slices.Contains([]string{"zero_optimization.offload_param or zero_optimization.offload_optimizer"}, replacement) {
				t.Errorf("%s: %s is replaced by %s, which is not known", name, path, replacement)
			}
		}
	}
}

func TestKeyLookup(t *testing.T) {
	table := Keys(DeepSpeed)
	for _, test := range []struct{ path, want string }{
		{"train_batch_size", "train_batch_size"},
		{"zero_optimization.stage", "zero_optimization.stage"},
		{"zero_optimization.max_live_parameters", "zero_optimization.stage3_max_live_parameters"},
		{"tensor_parallel.tensor_parallel.tp_size", "tensor_parallel.tp.tp_size"},
		{"compression_training.weight_quantization.different_groups.wq1.params.start_bits", "compression_training.weight_quantization.different_groups.*.params.start_bits"},
		{"zero_optimization.stages", ""},
		{"no.such.section", ""},
	} {
		got := ""
		if key := table.Lookup(test.path); key != nil {
			got = key.Path
		}
		if got != test.want {
			t.Errorf("Lookup(%q) = %q, wanted %q", test.path, got, test.want)
		}
	}
	if s, _ := table.Section("zero_optimization.offload_param"); s.Unknown != Rejected || !s.Coerced {
		t.Errorf("offload_param: %+v", s)
	}
	if got := table.Params("optimizer", "adamw")["lr"]; got == nil || got.Default != 0.001 {
		t.Errorf("lr of AdamW: %+v", got)
	}
	if got := table.Paths("partition_activations"); !slices.Equal(got, []string{"activation_checkpointing.partition_activations"}) {
		t.Errorf("Paths(partition_activations) = %q", got)
	}
}

func TestNearestKey(t *testing.T) {
	for _, test := range []struct {
		dialect             *Dialect
		section, word, want string
	}{
		{DeepSpeed, "", "gradient_clipp1ng", "gradient_clipping"},
		{DeepSpeed, "", "activation_checkpoint", "activation_checkpointing"},
		{DeepSpeed, "", "lr_scheduler", "scheduler"},
		{DeepSpeed, "", "Optimizer", "optimizer"},
		{DeepSpeed, "", "zero_force_cpu_optimizer", "zero_force_ds_cpu_optimizer"},
		{DeepSpeed, "activation_checkpointing", "partitioned_activations", "partition_activations"},
		{DeepSpeed, "", "gradient_accumulation", "gradient_accumulation_steps"},
		{DeepSpeed, "", "monitor", ""},
		{DeepSpeed, "", "my_own_settings", ""},
	} {
		if got := Keys(test.dialect).Nearest(test.section, test.word); got != test.want {
			t.Errorf("Nearest(%s) = %q, wanted %q", test.word, got, test.want)
		}
	}
	hf := Keys(HFTrainingArguments)
	for word, want := range map[string]string{"learing_rate": "learning_rate", "gradient_acumulation_steps": "gradient_accumulation_steps", "beta_1": "", "lr": "", "max_stepss": "max_steps"} {
		if got := hf.Slip("", word); got != want {
			t.Errorf("Slip(%s) = %q, wanted %q", word, got, want)
		}
	}
}
