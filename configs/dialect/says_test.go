package dialect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint/source"
)

// TestSays writes what a dialect says into a file of it, reads that, and finds the value again.
func TestSays(t *testing.T) {
	files := map[string]string{
		"hf-training-args": "output_dir: out\nlearning_rate: 1e-5\nnum_train_epochs: 1\nper_device_train_batch_size: 7\n",
		"axolotl":          "base_model: meta-llama/Llama-2-7b-hf\ndatasets: []\nsequence_len: 512\nmicro_batch_size: 7\nnum_epochs: 1\n",
		"llamafactory":     "model_name_or_path: meta-llama/Llama-2-7b-hf\nstage: sft\nfinetuning_type: full\ntemplate: llama2\ncutoff_len: 128\nper_device_train_batch_size: 7\n",
		"deepspeed":        "train_batch_size: 8\nbf16: {enabled: true}\n",
		"torchtune":        "batch_size: 2\nmodel: {_component_: torchtune.models.llama3.llama3_8b}\noptimizer: {_component_: torch.optim.AdamW}\n",
		"torchtitan-toml":  "",
		"accelerate":       "compute_environment: LOCAL_MACHINE\nnum_processes: 8\n",
		"megatron":         "MODEL_ARGS:\n  --num-layers: 2\n  --hidden-size: 64\n  --bf16: true\n",
	}
	for name, text := range files {
		d := Named(name)
		for said := range sayings[name] {
			field, value, _ := strings.Cut(said, " ")
			value, under, _ := strings.Cut(value, " ")
			if under == "fsdp" {
				under = "fsdp1"
			} else if under == "zero" {
				under = "zero3"
			}
			if value == "*" {
				value = "50000000"
				if field == "checkpointing.every" {
					value = "2"
				}
			}
			written := d.Says(plan.Sharding(under), field, value)
			if strings.HasPrefix(firstText(written), "{") {
				continue // a file of DeepSpeed, which is a section with its own dialect
			}
			if name == "accelerate" && value == "none" && field == "checkpointing.kind" {
				continue // the Trainer's own argument then decides
			}
			if len(written) == 0 {
				t.Errorf("%s: %s is not said", name, said)
				continue
			}
			lines := text
			for _, setting := range written {
				indent, key := "", setting.Key
				if name == "megatron" {
					indent, key = "  ", "--"+strings.ReplaceAll(key, "_", "-")
				}
				parts := strings.Split(key, ".")
				for i, part := range parts[:len(parts)-1] {
					lines += indent + strings.Repeat("  ", i) + part + ":\n"
				}
				lines += indent + strings.Repeat("  ", len(parts)-1) + parts[len(parts)-1] + ": " + setting.Text + "\n"
			}
			if field == "sharding" && name == "axolotl" {
				lines += "fsdp_config: {reshard_after_forward: true}\n"
			}
			if name == "axolotl" && field == "loss_kernel" {
				lines += "plugins: [axolotl.integrations.liger.LigerPlugin]\n"
			}
			if name == "deepspeed" && field != "sharding" {
				lines = strings.Replace(lines, "zero_optimization:\n", "zero_optimization:\n  stage: 3\n", 1)
			}
			switch context := strings.HasPrefix(under, "fsdp"); {
			case context && name == "accelerate":
				lines += "distributed_type: FSDP\n"
			case context && !strings.Contains(lines, "fsdp: "):
				lines += "fsdp: full_shard auto_wrap\n"
			}
			if under == "fsdp2" {
				lines = strings.Replace(lines, "fsdp_config:\n", "fsdp_config:\n  fsdp_version: 2\n", 1)
			}
			if field == "checkpointing.every" {
				lines += "  --recompute-granularity: full\n  --recompute-method: uniform\n"
			}
			if value == "every_n" {
				lines += "  --recompute-num-layers: 2\n"
			}
			file, err := source.Decode("f.yaml", source.YAML, []byte(lines))
			if err != nil {
				t.Fatal(err)
			}
			trees := configs.ParseYAML(file)
			if len(trees) == 0 {
				t.Fatal(lines)
			}
			p := d.Plan(trees[0])
			fact, found := plan.Lookup(&p, field)
			if !found || !fact.Known() {
				t.Errorf("%s: %s: not read back from\n%s", name, said, lines)
				continue
			}
			if got, _ := fact.Any(); got != nil && !strings.EqualFold(fmt.Sprint(got), value) {
				t.Errorf("%s: %s reads back as %v from\n%s", name, said, got, lines)
			}
		}
	}
	for _, row := range [][4]string{
		{"hf-training-args", "batch.micro", "4", "per_device_train_batch_size"}, {"native", "batch.accumulation", "4", "gradient_accumulation_steps"},
		{"deepspeed", "buckets.reduce", "50000000", "zero_optimization.reduce_bucket_size"}, {"torchtitan-toml", "batch.micro", "4", "training.local_batch_size"},
	} {
		if said := Named(row[0]).Says("", row[1], row[2]); len(said) != 1 || said[0] != (Said{row[3], row[2]}) {
			t.Errorf("%v: %v", row, said)
		}
	}
	if said := DeepSpeed.Says("", "checkpointing.kind", "full"); said != nil {
		t.Error("DeepSpeed has no key that checkpoints")
	}
}

func firstText(said []Said) string {
	if len(said) == 0 {
		return ""
	}
	return said[0].Text
}
