package workspace

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/configs/plan"
)

// TestTrainedModel says what the plan of a script holds of the model that its Trainer is handed.
func TestTrainedModel(t *testing.T) {
	const head = "import torch\nfrom transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, BitsAndBytesConfig, Trainer, TrainingArguments\n" +
		"from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training\nimport peft\n" +
		"args = TrainingArguments('out', per_device_train_batch_size=4, max_steps=5)\n"
	for _, test := range []struct{ name, text, want string }{
		{"the type of the weights", "model = AutoModelForCausalLM.from_pretrained('a/b', torch_dtype=torch.bfloat16)\nTrainer(model, args)\n",
			"compute=bf16 params=bf16 rank=0 name=a/b"},
		{"its new name, as text", "model = AutoModelForCausalLM.from_pretrained('a/b', dtype='float16').cuda()\nTrainer(model=model, args=args)\n",
			"compute=fp16 params=fp16 rank=0 name=a/b"},
		{"a cast", "model = AutoModelForCausalLM.from_pretrained('a/b').bfloat16()\nTrainer(model=model, args=args)\n",
			"compute=bf16 params=bf16 rank=0 name=a/b"},
		{"that of the checkpoint", "model = AutoModelForCausalLM.from_pretrained('a/b', torch_dtype='auto')\nTrainer(model=model, args=args)\n",
			"compute=bf16 params=bf16 rank=0 name=a/b"},
		{"that of the checkpoint by the release", "model = AutoModelForCausalLM.from_pretrained('a/b')\nTrainer(model=model, args=args)\n-- requirements.txt --\ntransformers==5.1.0\n",
			"compute=bf16 params=bf16 rank=0 name=a/b"},
		{"moved in a branch and in a loop", "model = AutoModelForCausalLM.from_pretrained('a/b', torch_dtype=torch.bfloat16)\nif device:\n    model = model.to(device)\n" +
			"for step in range(3):\n    model = model.train()\nTrainer(model=model, args=args)\n", "compute=bf16 params=bf16 rank=0 name=a/b"},
		{"an attribute that is written from itself", "class Run:\n    def load(self):\n        self.model = AutoModelForCausalLM.from_pretrained('a/b', torch_dtype=torch.bfloat16)\n" +
			"        self.model = self.model.to('npu')\n    def train(self):\n        Trainer(model=self.model, args=args).train()\n", "compute=bf16 params=bf16 rank=0 name=a/b"},
		{"an attribute that is only written from itself", "class Run:\n    def __init__(self, o):\n        self.model = self.model.to(o.device)\n" +
			"        if o.kbit:\n            self.model = prepare_model_for_kbit_training(self.model)\n        self.model = get_peft_model(self.model, LoraConfig(r=o.r))\n" +
			"        Trainer(model=self.model, args=args).train()\n",
			"compute=fp32 rank=0 not a model that is one of several"},
		{"nothing said", "model = AutoModelForCausalLM.from_pretrained('a/b')\nTrainer(model=model, args=args)\n", "compute=fp32 rank=0 name=a/b"},
		{"an adapter", "model = AutoModelForCausalLM.from_pretrained('a/b', torch_dtype=torch.bfloat16)\nconfig = LoraConfig(r=16, target_modules=['q_proj'])\n" +
			"model = get_peft_model(model, config)\nTrainer(model=model, args=args)\n", "compute=bf16 params=bf16 rank=16 targets=q name=a/b"},
		{"an adapter by another name, of no rank", "m = peft.get_peft_model(AutoModelForCausalLM.from_pretrained('a/b'), peft.LoraConfig(task_type='CAUSAL_LM'))\nTrainer(m, args)\n",
			"compute=fp32 rank=8 name=a/b"},
		{"handed to TRL's trainer", "from trl import SFTConfig, SFTTrainer\ncfg = SFTConfig(max_steps=7)\nSFTTrainer('a/b', args=cfg, peft_config=LoraConfig(r=4, target_modules='all-linear'))\n",
			"compute=fp32 rank=0; compute=bf16 rank=4 targets=q k v o up gate down ckpt=full name=a/b"},
		{"quantized", "q = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_use_double_quant=True)\nm = AutoModelForCausalLM.from_pretrained('a/b', quantization_config=q)\n" +
			"m = prepare_model_for_kbit_training(m)\nm = get_peft_model(m, LoraConfig(r=8))\nTrainer(m, args)\n", "compute=fp32 rank=8 quant=nf4_double ckpt=full name=a/b"},
		{"through functions", "def load(name):\n    return AutoModelForCausalLM.from_pretrained(name, torch_dtype=torch.float16)\ndef adapt(m):\n    return get_peft_model(m, LoraConfig(r=2))\n" +
			"def main():\n    model = adapt(load('a/b'))\n    Trainer(model=model, args=args).train()\n", "compute=fp16 params=fp16 rank=2 name=a/b"},
		{"an attribute of an object", "class Run:\n    def __init__(self):\n        self.model = get_peft_model(AutoModelForCausalLM.from_pretrained('a/b'), LoraConfig(r=2))\n" +
			"    def go(self):\n        Trainer(model=self.model, args=args).train()\n", "compute=fp32 rank=2 name=a/b"},
		{"model_init", "def init():\n    return AutoModelForCausalLM.from_pretrained('a/b', torch_dtype=torch.bfloat16)\nTrainer(model_init=init, args=args)\n",
			"compute=bf16 params=bf16 rank=0 name=a/b"},
		{"a classifier", "m = AutoModelForSequenceClassification.from_pretrained('a/b', num_labels=3)\nTrainer(m, args)\n", "compute=fp32 rank=0 loss=none name=a/b"},
		{"another adapter", "m = get_peft_model(AutoModelForCausalLM.from_pretrained('a/b'), peft.PrefixTuningConfig(num_virtual_tokens=4))\nTrainer(m, args)\n",
			"compute=fp32 rank=0 name=a/b not PrefixTuning"},
		{"a variant of LoRA", "m = get_peft_model(AutoModelForCausalLM.from_pretrained('a/b'), LoraConfig(r=4, use_dora=True))\nTrainer(m, args)\n",
			"compute=fp32 rank=4 name=a/b not DoRA"},
		{"not turned on", "m = get_peft_model(AutoModelForCausalLM.from_pretrained('a/b'), LoraConfig(r=4, use_dora=False, modules_to_save=None))\nTrainer(m, args)\n",
			"compute=fp32 rank=4 name=a/b"},
		{"a rank of the environment", "import os\nm = get_peft_model(AutoModelForCausalLM.from_pretrained('a/b'), LoraConfig(r=int(os.environ['R'])))\nTrainer(m, args)\n",
			"compute=fp32 name=a/b not LoRA of a rank that is not known"},
		{"an adapter that is loaded", "m = peft.PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained('a/b'), 'x', is_trainable=True)\nTrainer(m, args)\n",
			"compute=fp32 rank=0 name=a/b not an adapter that is loaded"},
		{"one of two", "import sys\nm = AutoModelForCausalLM.from_pretrained('a/b')\nif len(sys.argv) > 1:\n    m = get_peft_model(m, LoraConfig(r=4))\nTrainer(m, args)\n",
			"compute=fp32 rank=0 not a model that is one of several"},
		{"frozen by hand", "m = AutoModelForCausalLM.from_pretrained('a/b')\nfor p in m.parameters():\n    p.requires_grad = False\nTrainer(m, args)\n",
			"compute=fp32 rank=0 name=a/b not freezing of a part of the weights"},
		{"frozen by a comparison", "m = AutoModelForCausalLM.from_pretrained('a/b')\nfor n, p in m.named_parameters():\n    p.requires_grad = 'head' in n\nTrainer(m, args)\n",
			"compute=fp32 rank=0 name=a/b not freezing of a part of the weights"},
		{"frozen by a keyword", "m = AutoModelForCausalLM.from_pretrained('a/b')\nm.model.requires_grad_(requires_grad=False)\nTrainer(m, args)\n",
			"compute=fp32 rank=0 name=a/b not freezing of a part of the weights"},
		{"frozen by setattr", "m = AutoModelForCausalLM.from_pretrained('a/b')\nfor p in m.parameters():\n    setattr(p, 'requires_grad', False)\nTrainer(m, args)\n",
			"compute=fp32 rank=0 name=a/b not freezing of a part of the weights"},
		{"nothing frozen", "m = AutoModelForCausalLM.from_pretrained('a/b')\nm.requires_grad_()\nfor p in m.parameters():\n    p.requires_grad = True\nTrainer(m, args)\n",
			"compute=fp32 rank=0 name=a/b"},
		{"more trained beside an adapter", "m = get_peft_model(AutoModelForCausalLM.from_pretrained('a/b'), LoraConfig(r=4))\nm.lm_head.weight.requires_grad = True\nTrainer(m, args)\n",
			"compute=fp32 rank=4 name=a/b not training of more weights beside an adapter"},
		{"inputs of an adapter", "m = AutoModelForCausalLM.from_pretrained('a/b')\nfor p in m.parameters():\n    p.requires_grad = False\ndef hook(module, i, output):\n    output.requires_grad_(True)\nm = get_peft_model(m, LoraConfig(r=4))\nTrainer(m, args)\n",
			"compute=fp32 rank=4 name=a/b"},
		{"ranks by layer", "m = get_peft_model(AutoModelForCausalLM.from_pretrained('a/b'), LoraConfig(r=4, rank_pattern={'q_proj': 64}))\nTrainer(m, args)\n",
			"compute=fp32 rank=4 name=a/b not LoRA with rank_pattern"},
		{"all layers", "m = get_peft_model(AutoModelForCausalLM.from_pretrained('a/b'), LoraConfig(r=4, layers_to_transform=None))\nTrainer(m, args)\n",
			"compute=fp32 rank=4 name=a/b"},
		{"an optimizer of the script", "m = AutoModelForCausalLM.from_pretrained('a/b')\nTrainer(m, args, optimizers=(torch.optim.SGD(m.parameters(), lr=1), None))\n",
			"compute=fp32 rank=0 name=a/b not an optimizer that the script makes"},
		{"only a schedule of the script", "m = AutoModelForCausalLM.from_pretrained('a/b')\nTrainer(m, args, optimizers=(None, schedule))\n",
			"compute=fp32 rank=0 name=a/b"},
		{"a model of elsewhere", "import stuff\nTrainer(get_peft_model(stuff.make(), LoraConfig(r=4)), args)\n", "compute=fp32 rank=4"},
		{"an adapter put on it elsewhere", "import stuff\nm = stuff.make()\nstuff.adapt(m, LoraConfig(r=4))\nTrainer(m, args)\n",
			"compute=fp32 rank=0 not an adapter on a model that is not known"},
		{"added in place", "m = AutoModelForCausalLM.from_pretrained('a/b')\nm.add_adapter(LoraConfig(r=4))\nTrainer(m, args)\n",
			"compute=fp32 rank=0 name=a/b not an adapter on a model that is not known"},
		{"under a switch of TRL", "from trl import SFTConfig, SFTTrainer\nimport os\nc = LoraConfig(r=4) if os.environ.get('X') else None\nSFTTrainer('a/b', args=SFTConfig(max_steps=1), peft_config=c)\n",
			"compute=fp32 rank=0; compute=bf16 rank=0 ckpt=full name=a/b not an adapter"},
		{"a trainer of the project", "class Ours(Trainer):\n    pass\nm = get_peft_model(AutoModelForCausalLM.from_pretrained('a/b'), LoraConfig(r=4, target_modules=['q_proj', 'v_proj']))\nOurs(model=m, args=args)\n",
			"compute=fp32 rank=4 targets=q v name=a/b"},
		{"arguments from a dict", "cfg = {'r': 32, 'target_modules': 'all-linear'}\nm = get_peft_model(AutoModelForCausalLM.from_pretrained('a/b', **{'torch_dtype': torch.bfloat16}), LoraConfig(**cfg))\nTrainer(m, args)\n",
			"compute=bf16 params=bf16 rank=32 targets=q k v o up gate down name=a/b"},
		{"8 bits by a switch", "m = AutoModelForCausalLM.from_pretrained('a/b', load_in_8bit=True)\nm = get_peft_model(m, LoraConfig(r=4))\nTrainer(m, args)\n",
			"compute=fp32 rank=4 quant=int8 name=a/b"},
		{"bits by an object not known", "import stuff\nm = AutoModelForCausalLM.from_pretrained('a/b', quantization_config=stuff.q())\nTrainer(m, args)\n",
			"compute=fp32 rank=0 name=a/b not a quantization of its own"},
		{"Unsloth", "from unsloth import FastLanguageModel\nm, tok = FastLanguageModel.from_pretrained('a/b', load_in_4bit=True)\nm = FastLanguageModel.get_peft_model(m, r=16)\nTrainer(m, args)\n",
			"compute=fp32 rank=0 not Unsloth"},
		{"a head for values", "from trl import AutoModelForCausalLMWithValueHead\nm = AutoModelForCausalLMWithValueHead.from_pretrained('a/b')\nTrainer(m, args)\n",
			"compute=fp32 rank=0 name=a/b not AutoModelForCausalLMWithValueHead"},
		{"other quantization", "from transformers import HqqConfig\nm = AutoModelForCausalLM.from_pretrained('a/b', quantization_config=HqqConfig(nbits=4))\nTrainer(m, args)\n",
			"compute=fp32 rank=0 name=a/b not quantization by HqqConfig"},
		{"arguments of a preference loss", "from trl import DPOConfig\nDPOConfig(max_steps=4, bf16=True)\n", "compute=fp32 rank=0; compute=bf16 rank=0 ckpt=full not DPO training"},
		{"the project's own class", "class AutoModelForCausalLM:\n    @staticmethod\n    def from_pretrained(n, torch_dtype=None): return n\nm = AutoModelForCausalLM.from_pretrained('a/b', torch_dtype=torch.bfloat16)\nTrainer(m, args)\n",
			"compute=bf16 params=bf16 rank=0 name=a/b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v, _ := open(t, "-- a.py --\n"+head+test.text)
			var all []string
			for _, part := range v.Parts("a.py") {
				all = append(all, describeModel(&part.Plan))
			}
			if got := strings.Join(all, "; "); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestTrainedModelOfFlags: the arguments come from the command line, the model from the script.
func TestTrainedModelOfFlags(t *testing.T) {
	const script = `-- run.sh --
torchrun --nproc_per_node 1 train.py --per_device_train_batch_size 4 --learning_rate 1e-4 --num_train_epochs 1 --output_dir o --rank 32
-- train.py --
from dataclasses import dataclass
import torch
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments
from peft import LoraConfig, get_peft_model
@dataclass
class Own:
    rank: int = 8
    alpha: int = 16
parser = HfArgumentParser((Own, TrainingArguments))
own, args = parser.parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained('a/b', torch_dtype=torch.bfloat16)
model = get_peft_model(model, LoraConfig(r=own.rank, lora_alpha=own.alpha))
Trainer(model=model, args=args).train()
`
	v, _ := open(t, script)
	runs := v.Runs("run.sh")
	if len(runs) != 1 {
		t.Fatalf("%d runs", len(runs))
	}
	if got, want := describeModel(&runs[0].Plan), "compute=bf16 params=bf16 rank=32 name=a/b"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func describeModel(p *plan.Plan) string {
	var all []string
	for _, one := range [][2]string{{"dtype.compute", "compute"}, {"dtype.params", "params"}, {"lora.rank", "rank"}, {"lora.targets", "targets"},
		{"quantization.kind", "quant"}, {"checkpointing.kind", "ckpt"}, {"loss_kernel", "loss"}, {"model.name", "name"}} {
		fact, _ := plan.Lookup(p, one[0])
		value, ok := fact.Any()
		usual := slices.Contains([]string{"none", "fp32_copy"}, fmt.Sprint(value)) && fact.How() == plan.IsDefault
		if ok && !usual {
			all = append(all, fmt.Sprintf("%s=%v", one[1], value))
		}
	}
	for _, u := range p.Unmodelled {
		all = append(all, "not "+u.What)
	}
	return strings.Join(all, " ")
}

// TestAccumulationOfAccelerator: whether gradients are reduced for each micro-batch stands in a plugin.
func TestAccumulationOfAccelerator(t *testing.T) {
	for _, test := range []struct {
		text  string
		steps int64
		whole bool
	}{
		{"a = Accelerator(gradient_accumulation_steps=4)\n", 4, true},
		{"a = Accelerator(gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=8))\n", 8, true},
		{"p = GradientAccumulationPlugin(num_steps=8, sync_each_batch=True)\na = Accelerator(gradient_accumulation_plugin=p)\n", 8, false},
		{"a = Accelerator(gradient_accumulation_plugin=GradientAccumulationPlugin(2, sync_each_batch=False))\n", 2, true},
	} {
		v, _ := open(t, "-- a.py --\nfrom accelerate import Accelerator\nfrom accelerate.utils import GradientAccumulationPlugin\n"+test.text)
		parts := v.Parts("a.py")
		if len(parts) != 1 {
			t.Fatalf("%s%d parts", test.text, len(parts))
		}
		p := &parts[0].Plan
		if steps, _ := p.Batch.Accumulation.Get(); steps != test.steps || !p.FSDP.NoSync.Is(test.whole) {
			t.Errorf("%s%d steps, whole gradients %v", test.text, steps, p.FSDP.NoSync)
		}
	}
}
