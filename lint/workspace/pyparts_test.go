package workspace

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/configs/plan"
)

// TestPythonParts says which settings Python files state: the dialect, a few values, and whether more may be set.
func TestPythonParts(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"arguments", "from transformers import TrainingArguments as T\nN = 2 * 4\na = T('out', gradient_accumulation_steps=N, learning_rate=1e-4)\n",
			"hf-training-args accumulation=8 lr=0.0001"},
		{"a dict behind two stars", "import transformers\nbase = dict(per_device_train_batch_size=3)\na = transformers.Seq2SeqTrainingArguments(output_dir='x', **base)\n",
			"hf-training-args micro=3 accumulation=1"},
		{"unknown behind two stars", "from trl import SFTConfig\na = SFTConfig(max_steps=7, **load())\n", "hf-training-args steps=7 open"},
		{"a class of the project", "from transformers import TrainingArguments\nclass Ours(TrainingArguments):\n    pass\na = Ours(max_steps=7)\n", "hf-training-args steps=7 open"},
		{"of the command line", "import argparse\nfrom transformers import TrainingArguments\np = argparse.ArgumentParser()\np.add_argument('--n', default=4)\na = TrainingArguments(output_dir='o', gradient_accumulation_steps=p.parse_args().n)\n",
			"hf-training-args"},
		{"accelerate", "from accelerate import Accelerator, DeepSpeedPlugin\na = Accelerator(gradient_accumulation_steps=4, deepspeed_plugin=DeepSpeedPlugin(zero_stage=2, gradient_clipping=1.0))\n",
			"accelerator accumulation=4; deepspeed-plugin sharding=zero2"},
		{"a section", "from transformers import TrainingArguments\na = TrainingArguments(output_dir='o', deepspeed={'zero_optimization': {'stage': 3}, 'gradient_accumulation_steps': 2})\n",
			"hf-training-args accumulation=1; deepspeed accumulation=2 sharding=zero3"},
		{"nanoGPT", "import time\nbatch_size = 8\nblock_size = 256\nn_layer = 6\nmax_iters = 100 * 3\n", "nanogpt-py micro=8 steps=300"},
		{"XTuner", "from mmengine.config import read_base\nwith read_base():\n    from .base import *\nbatch_size = 2\naccumulative_counts = 16\nmax_norm = 1\n", "xtuner-py micro=2 accumulation=16 open"},
		{"a program", "batch_size = 8\nblock_size = 256\nn_layer = 6\nmax_iters = 100\nfor i in range(max_iters):\n    step()\n", ""},
		{"another class of the name", "class TrainingArguments:\n    pass\na = TrainingArguments(max_steps=7)\n", ""},
		{"damaged", "from transformers import TrainingArguments\na = TrainingArguments(max_steps=, **, x=(\n", "hf-training-args open"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v, _ := open(t, "-- a.py --\n"+test.text)
			var all []string
			for _, part := range v.Parts("a.py") {
				all = append(all, describePart(part))
			}
			if got := strings.Join(all, "; "); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func describePart(part *Part) string {
	text := part.Dialect.Name
	for _, one := range [][2]string{{"batch.micro", "micro"}, {"batch.accumulation", "accumulation"}, {"optimizer.lr", "lr"}, {"schedule.total_steps", "steps"}, {"sharding", "sharding"}} {
		fact, _ := plan.Lookup(&part.Plan, one[0])
		if value, ok := fact.Any(); ok && (fact.How() == plan.IsWritten || one[1] == "accumulation") {
			text += fmt.Sprintf(" %s=%v", one[1], value)
		}
	}
	if part.Tree.Root.Open {
		text += " open"
	}
	return text
}

// TestPythonRuns: a run joins a script, the DeepSpeed config that its arguments name, and the command that launches it.
func TestPythonRuns(t *testing.T) {
	v, _ := open(t, `
-- conf/ds.json --
{"zero_optimization": {"stage": 2}, "gradient_accumulation_steps": "auto"}
-- train.py --
from transformers import TrainingArguments
args = TrainingArguments(output_dir="o", per_device_train_batch_size=2, gradient_accumulation_steps=4, deepspeed="conf/ds.json")
-- run.sh --
torchrun --nproc_per_node 8 train.py
`)
	for _, name := range []string{"conf/ds.json", "train.py", "run.sh"} {
		runs := v.Runs(name)
		if len(runs) != 1 {
			t.Fatalf("%s is part of %d runs, want 1", name, len(runs))
		}
		var dialects []string
		for _, part := range runs[0].Parts {
			dialects = append(dialects, part.Dialect.Name)
		}
		slices.Sort(dialects)
		if got := strings.Join(dialects, " "); got != "deepspeed hf-training-args torchrun" {
			t.Errorf("%s: parts %s", name, got)
		}
		if n, _ := runs[0].Plan.Batch.Global.Get(); n != 2*4*8 {
			t.Errorf("%s: global batch %d, want 64", name, n)
		}
		if config, named := runs[0].Integrated(); config == nil || named.Path != "train.py" {
			t.Errorf("%s: the Trainer completes %v, named at %v", name, config, named)
		}
	}
}
