package catalog

import (
	"errors"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/configs/plan"
)

// TestParameterCounts holds the closed formulas against the recorded counts, to the last digit.
func TestParameterCounts(t *testing.T) {
	independent := 0
	for _, m := range Models() {
		c := m.CountParameters()
		if c.Total != m.Parameters {
			t.Errorf("%s: formula %d, recorded %d", m.Name, c.Total, m.Parameters)
		}
		active := m.ActiveParameters
		if active == 0 {
			active = m.Parameters
		}
		if c.Active != active {
			t.Errorf("%s: active %d, recorded %d", m.Name, c.Active, active)
		}
		if m.Count == "published" || m.Count == "recalled" {
			independent++
		}
	}
	if len(Models()) != 120 || independent != 117 {
		t.Errorf("%d models, %d counts independent of the formula", len(Models()), independent)
	}
}

// TestPublishedCounts repeats a few counts as they stand in public text, so that no change of the table can hide a wrong
// formula: dense, grouped-query, tied, biased, mixture of experts, latent attention, encoder-decoder, encoder.
func TestPublishedCounts(t *testing.T) {
	for name, want := range map[string]int64{
		"meta-llama/Llama-2-7b-hf": 6738415616, "huggyllama/llama-13b": 13015864320, "mistralai/Mistral-7B-v0.1": 7241732096,
		"mistralai/Mixtral-8x7B-v0.1": 46702792704, "Qwen/Qwen2.5-7B": 7615616512, "Qwen/Qwen3-8B": 8190735360,
		"google/gemma-2-9b": 9241705984, "gpt2": 124439808, "bigscience/bloom": 176247271424, "deepseek-ai/DeepSeek-V2": 235741434880,
		"google-t5/t5-11b": 11307321344, "bert-base-uncased": 109482240, "microsoft/Phi-3-mini-4k-instruct": 3821079552,
	} {
		m, err := Model(name)
		if err != nil {
			t.Error(err)
		} else if got := m.CountParameters().Total; got != want {
			t.Errorf("%s: %d, published %d", name, got, want)
		}
	}
}

func TestModelNames(t *testing.T) {
	for name, want := range map[string]string{
		"llama-7b": "llama-7b", "LLaMA 7B": "llama-7b", "llama_7b": "llama-7b",
		"meta-llama/Llama-2-7b-hf": "llama-2-7b", "meta-llama/Llama-2-7b-chat-hf": "llama-2-7b", "/data/models/Llama-2-7b-hf/": "llama-2-7b",
		`C:\models\Llama-2-13b-hf`: "llama-2-13b", "llama2_7b": "llama-2-7b", "lora_llama2_7b": "llama-2-7b", "qlora_llama3_1_8b": "llama-3-8b",
		"torchtune.models.llama3.llama3_8b": "llama-3-8b", "torchtune.models.llama3_1.lora_llama3_1_8b": "llama-3-8b",
		"torchtune.models.qwen2_5.qwen2_5_7b_base": "qwen2.5-7b", "torchtune.models.llama3_2.llama3_2_3b": "llama-3.2-3b",
		"torchtune.models.gemma2.gemma2_9b": "gemma-2-9b", "torchtune.models.phi4.phi4_14b": "phi-4", "torchtune.models.code_llama2.code_llama2_34b": "codellama-34b",
		"llama3-8B": "llama-3-8b", "llama3-405B": "llama-3.1-405b", "llama31_8b": "llama-3-8b", "deepseek_v3-671B": "deepseek-v3", "qwen3-0.6B": "qwen3-0.6b",
		"meta-llama/Meta-Llama-3.1-8B-Instruct": "llama-3-8b", "meta-llama/Llama-3.3-70B-Instruct": "llama-3-70b", "Meta-Llama-3-70B": "llama-3-70b",
		"unsloth/Meta-Llama-3.1-8B-bnb-4bit": "llama-3-8b", "mistralai/Mistral-7B-Instruct-v0.3": "mistral-7b-v0.3", "mistralai/Mistral-7B-Instruct-v0.1": "mistral-7b",
		"Qwen/Qwen2.5-7B-Instruct": "qwen2.5-7b", "Qwen/Qwen2-7B-Instruct": "qwen2.5-7b", "Qwen/Qwen3-30B-A3B-Instruct-2507": "qwen3-30b-a3b",
		"mistralai/Mistral-Nemo-Instruct-2407": "mistral-nemo-12b", "google/gemma-2b-it": "gemma-2b", "t5-base": "t5-base", "google/flan-t5-xl": "flan-t5-xl",
		"deepseek-ai/deepseek-llm-7b-chat": "deepseek-llm-7b", "tiiuae/falcon-7b-instruct": "falcon-7b", "TinyLlama/TinyLlama-1.1B-Chat-v1.0": "tinyllama-1.1b",
		"gpt2-xl": "gpt2-xl", "EleutherAI/pythia-1.4b": "pythia-1.4b", "Phi-3-mini-4k-instruct": "phi-3-mini", "gpt-3": "gpt3-175b", "tiny-llama-1.1b": "tinyllama-1.1b",
		"stabilityai/stablelm-base-alpha-3b": "stablelm-base-alpha-3b", "THUDM/glm-4-9b-chat": "glm-4-9b",
	} {
		m, err := Model(name)
		if err != nil {
			t.Error(err)
		} else if m.Name != want {
			t.Errorf("%s is %s, wanted %s", name, m.Name, want)
		}
	}
	for name, nearest := range map[string]string{"lama-7b": "llama-7b", "llama-2-7": "llama-2-7b", "qwen3-9b": "qwen3-4b", "mixtral-8x77b": "mixtral-8x7b"} {
		_, err := Model(name)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || unknown.Nearest() != nearest || !strings.Contains(err.Error(), nearest) {
			t.Errorf("%s: %v, wanted the nearest to be %s", name, err, nearest)
		}
	}
	for _, name := range []string{"", "/", "meta-llama", "llama", strings.Repeat("llama", 1000), "my-finetune-of-llama-2-7b", "a\x00b", "..", "instruct", "v0.1"} {
		if m, err := Model(name); err == nil {
			t.Errorf("%q is %s", name, m.Name)
		}
	}
}

func TestEveryAliasIsFound(t *testing.T) {
	for _, m := range Models() {
		for _, name := range append([]string{m.Name}, m.Aliases...) {
			if found, err := Model(name); err != nil || found != m {
				t.Errorf("%s of %s: %v %v", name, m.Name, found, err)
			}
		}
	}
	for _, d := range Devices() {
		for _, name := range append([]string{d.Name}, d.Aliases...) {
			if found, err := Device(name); err != nil || found.Name != d.Name {
				t.Errorf("%s of %s: %v %v", name, d.Name, found, err)
			}
		}
		if d.UsableBytes < 8<<30 || float64(d.UsableBytes) > d.MarketingGB*1e9*1.08 || d.ContextBytes < 1<<28 || len(d.Sources) == 0 {
			t.Errorf("%s: %+v", d.Name, d)
		}
	}
	if len(Devices()) != 35 {
		t.Errorf("%d devices", len(Devices()))
	}
}

func TestDeviceNames(t *testing.T) {
	for name, want := range map[string]string{
		"A100-SXM4-80GB": "A100-80GB", "NVIDIA A100-SXM4-80GB": "A100-80GB", "NVIDIA A100 80GB PCIe": "A100-80GB", "NVIDIA A100-PCIE-40GB": "A100-40GB",
		"a100_80gb": "A100-80GB", "NVIDIA H100 80GB HBM3": "H100-80GB-SXM", "NVIDIA GeForce RTX 4090": "RTX 4090", "4090": "RTX 4090",
		"Tesla V100-SXM2-32GB": "V100-32GB", "Tesla T4": "T4", "NVIDIA RTX A6000": "A6000", "910B3": "Ascend 910B3", "Ascend910B2": "Ascend 910B2",
		"Huawei Ascend 910B4": "Ascend 910B4", "ascend 910 a": "Ascend 910A", "Ascend910_9392": "Ascend 910C", "AMD Instinct MI300X": "MI300X", "H20-96GB": "H20",
	} {
		d, err := Device(name)
		if err != nil {
			t.Error(err)
		} else if d.Name != want {
			t.Errorf("%s is %s, wanted %s", name, d.Name, want)
		}
	}
	for name, assumed := range map[string]string{"910B": "64 GB", "Ascend 910B": "64 GB", "huawei-ascend-910b": "64 GB", "A100": "80 GB", "V100": "16 GB", "910B3": "",
		"A100-40GB": ""} {
		d, err := Device(name)
		if err != nil || (assumed == "") != (d.Assumption == "") || !strings.Contains(d.Assumption, assumed) {
			t.Errorf("%s: %v %v", name, d, err)
		}
	}
	if d, _ := Device("910B"); d.UsableBytes != 65466039009 {
		t.Errorf("910B has %d bytes", d.UsableBytes)
	}
	if again, _ := Device("910B3"); again.Assumption != "" {
		t.Error("an assumption stays with the device")
	}
	for name, nearest := range map[string]string{"A100-80GBB": "A100-80GB", "910B9": "Ascend 910B1", "RTX 4080": "RTX 4090"} {
		_, err := Device(name)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || unknown.Nearest() != nearest {
			t.Errorf("%s: %v, wanted the nearest to be %s", name, err, nearest)
		}
	}
}

func TestDeviceBySize(t *testing.T) {
	for name, bytes := range map[string]int64{"56GB": 56e9, "56 GB": 56e9, "56gb": 56e9, "56GiB": 56 << 30, "56 gib": 56 << 30, "56G": 56e9, "0.5TB": 5e11,
		"61.25GiB": 61<<30 + 1<<28, "65536MiB": 64 << 30} {
		d, err := Device(name)
		if err != nil || d.UsableBytes != bytes {
			t.Errorf("%s: %v %v", name, d, err)
		}
	}
	for _, name := range []string{"GB", "-5GB", "0GB", "5e9GB", "99999999999GB", "9999999TB", "56", "NaNGB", ""} {
		if d, err := Device(name); err == nil {
			t.Errorf("%s is %+v", name, d)
		}
	}
}

func TestShape(t *testing.T) {
	var p plan.Plan
	if _, missing, err := Shape(&p); err != nil || len(missing) != 1 || missing[0] != "model" {
		t.Errorf("no model: %v %v", missing, err)
	}
	p.Model.Name = plan.Written("lama-7b")
	if _, missing, err := Shape(&p); err == nil || len(missing) == 0 {
		t.Errorf("unknown name: %v %v", missing, err)
	}
	p.Model.Name = plan.Written("llama-7b")
	p.Model.Layers, p.Model.Norm = plan.Written[int64](16), plan.Default(plan.LayerNorm, "a format's default")
	m, missing, err := Shape(&p)
	if err != nil || missing != nil || m.Layers != 16 || m.Norm != plan.RMSNorm || m.Hidden != 4096 {
		t.Errorf("named and overridden: %+v %v %v", m, missing, err)
	}
	if known, _ := Model("llama-7b"); known.Layers != 32 {
		t.Error("Shape wrote into the catalogue")
	}
	custom := plan.Plan{Model: plan.Model{Name: plan.Written("ours"), Hidden: plan.Written[int64](1024), Layers: plan.Written[int64](4),
		Heads: plan.Written[int64](16), FFN: plan.Written[int64](4096)}}
	if _, missing, err := Shape(&custom); len(missing) != 1 || missing[0] != "model.vocab" || err == nil {
		t.Errorf("no vocabulary: %v %v", missing, err)
	}
	custom.Model.Vocab = plan.Written[int64](1000)
	custom.Model.Gated, custom.Model.Norm = plan.Default(false, "a format's default"), plan.Default(plan.LayerNorm, "a format's default")
	m, missing, err = Shape(&custom)
	if err != nil || missing != nil || m.Gated || m.Norm != plan.LayerNorm || m.KVHeads != 16 || m.HeadDim != 64 {
		t.Errorf("shape: %+v %v %v", m, missing, err)
	}
}

// TestAbsurdShapes: sizes that would overflow are an error, sizes below 1 are missing.
func TestAbsurdShapes(t *testing.T) {
	shape := func(hidden, layers, heads, ffn, vocab int64) (*ModelSpec, []string, error) {
		return Shape(&plan.Plan{Model: plan.Model{Hidden: plan.Written(hidden), Layers: plan.Written(layers), Heads: plan.Written(heads), FFN: plan.Written(ffn),
			Vocab: plan.Written(vocab)}})
	}
	if _, missing, _ := shape(-7, 32, 0, 4, 5); len(missing) != 2 {
		t.Errorf("missing %v", missing)
	}
	for _, sizes := range [][5]int64{{1 << 50, 32, 32, 1 << 50, 32000}, {4096, 1 << 50, 32, 1 << 20, 32000}, {16, 2, 32, 64, 100}} {
		if m, _, err := shape(sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]); err == nil {
			t.Errorf("%v gives %+v", sizes, m)
		}
	}
	if m, _, err := shape(16384, 126, 128, 53248, 128256); err != nil || m.CountParameters().Total < 4e11 {
		t.Errorf("%v %v", m, err)
	}
}

// FuzzNames: no name may crash a lookup, and what is found is in the catalogue.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{"llama-7b", "meta-llama/Llama-2-7b-chat-hf", "910B", "56GiB", "torchtune.", "nvidia", "/", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if m, err := Model(name); err == nil && m.Hidden == 0 {
			t.Errorf("%q gives an empty model", name)
		}
		if d, err := Device(name); err == nil && d.UsableBytes <= 0 {
			t.Errorf("%q gives an empty device", name)
		}
	})
}

func BenchmarkModelByHubID(b *testing.B) {
	for b.Loop() {
		if _, err := Model("meta-llama/Llama-2-7b-chat-hf"); err != nil {
			b.Fatal(err)
		}
	}
}
