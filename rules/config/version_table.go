package config

import (
	"fmt"
	"sync"

	"github.com/trainvet/trainvet/configs/pep440"
	"github.com/trainvet/trainvet/lint"
)

// demand says that releases of one package need certain releases of another.
type demand struct {
	of      string // the package that makes the demand
	when    string // of which releases, as a specifier
	on      string // the other package
	needs   string // which releases of it work, as a specifier
	refused bool   // the package says so itself, so that an installer refuses the two or replaces the other one
	what    string // what happens otherwise
	as      lint.Severity
	source  string
}

// match is a table of releases that belong together: a release of the first package, and the one of the second that it was built for.
type match struct {
	of, on  string
	rows    [][2]string // specifiers
	refused bool
	what    string
	as      lint.Severity
	source  string
}

const pipRefuses = "an installer refuses the two together"

// demands are known from the requirements that the packages state, by release, and from reports of what fails. Those of one pair of packages
// are for releases apart.
var demands = []demand{
	{"transformers", ">=4.50,<4.52", "torch", ">=2.1", false, "importing its models fails on torch.compiler, which torch 2.0 does not have", lint.Error, "huggingface/transformers#37238"},
	{"transformers", ">=4.52,<5", "torch", ">=2.1", false, "it disables PyTorch when it is imported, and has no models then", lint.Error, "huggingface/transformers#37277, jingyaogong/minimind#588"},
	{"transformers", ">=5", "torch", ">=2.4", false, "it disables PyTorch when it is imported, and has no models then", lint.Error, "alibaba-damo-academy/Lumos#8"},
	{"transformers", "==4.52.*", "accelerate", ">=1.3", false, "the Trainer passes keep_torch_compile to unwrap_model, and the first step ends in a TypeError", lint.Error, "modelscope/ms-swift#4473, huggingface/accelerate#3282"},
	{"peft", ">=0.14,<0.16", "transformers", ">=4.42", false, "importing peft fails on EncoderDecoderCache", lint.Error, "huggingface/peft#2292, #2362"},
	{"peft", ">=0.16,<0.17.1", "transformers", ">=4.42,<5.2", false, "importing peft fails on a cache class that transformers does not have", lint.Error, "huggingface/transformers#44351, huggingface/peft#2735"},
	{"peft", ">=0.17.1", "transformers", ">=4.42", false, "importing peft fails on EncoderDecoderCache", lint.Error, "huggingface/peft#2292, #2362"},
	{"deepspeed", "<0.8.2", "torch", "<2", false, "importing deepspeed fails on torch._six, which torch 2.0 removed", lint.Error, "deepspeedai/DeepSpeed#2845, #2863"},
	{"deepspeed", ">=0.8.2,<0.14.1", "torch", "<2.4", false, "importing deepspeed fails on a name of torch's elastic agent that torch 2.4 does not have", lint.Error, "deepspeedai/DeepSpeed#5337, #5346"},
	{"numpy", ">=2", "torch", ">=2.3", false, "torch was built for NumPy 1, and its exchange with NumPy fails: RuntimeError: Numpy is not available", lint.Error, "pytorch/pytorch#107302, TorchIO-project/torchio#1183"},
	{"pydantic", ">=2", "deepspeed", "<0.9.1||>=0.11.2", true, pipRefuses, lint.Warning, "deepspeedai/DeepSpeed#3290, #4407"},
	{"deepspeed", ">=0.15", "pydantic", ">=2", true, pipRefuses, lint.Warning, "deepspeedai/DeepSpeed#5167"},
	{"deepspeed", ">=0.19.1", "torch", ">=2", true, pipRefuses, lint.Warning, "deepspeedai/DeepSpeed#7916"},
	{"accelerate", ">=0.21,<1.3", "torch", ">=1.10", true, pipRefuses, lint.Warning, "huggingface/accelerate#1662"},
	{"accelerate", ">=1.3", "torch", ">=2", true, pipRefuses, lint.Warning, "huggingface/accelerate#3331"},
	{"peft", ">=0.6", "torch", ">=1.13", true, pipRefuses, lint.Warning, "huggingface/peft#892"},
	{"peft", ">=0.6", "accelerate", ">=0.21", true, pipRefuses, lint.Warning, "huggingface/peft#892"},
	{"trl", ">=0.7.5,<0.12", "transformers", ">=4.31", true, pipRefuses, lint.Warning, "trl 0.7.5, setup.py"},
	{"trl", ">=0.12,<0.18", "transformers", ">=4.46", true, pipRefuses, lint.Warning, "huggingface/trl#2245"},
	{"trl", "==0.18.*", "transformers", ">=4.50", true, pipRefuses, lint.Warning, "trl 0.18, setup.cfg"},
	{"trl", "==0.19.*", "transformers", ">=4.51", true, pipRefuses, lint.Warning, "trl 0.19, setup.cfg"},
	{"trl", "==0.20.*", "transformers", ">=4.53.2", true, pipRefuses, lint.Warning, "trl 0.20, setup.cfg"},
	{"trl", ">=0.21,<0.23", "transformers", ">=4.55", true, pipRefuses, lint.Warning, "trl 0.21, setup.cfg"},
	{"trl", ">=0.23", "transformers", ">=4.56.1", true, pipRefuses, lint.Warning, "trl 0.23, pyproject.toml"},
	{"trl", ">=0.15,<0.19", "accelerate", ">=0.34", true, pipRefuses, lint.Warning, "trl 0.15, setup.cfg"},
	{"trl", ">=0.19", "accelerate", ">=1.4", true, pipRefuses, lint.Warning, "trl 0.19, setup.cfg"},
}

// matches are tables of releases that are built for each other.
var matches = []match{
	{"torchvision", "torch", oldTorchvisionRows(), true, "an installer rejects the two; forced together, torchvision can be imported, but its operators (nms, roi_align) raise RuntimeError", lint.Error, "github.com/pytorch/vision, README and extension.py"},
	{"torchvision", "torch", torchvisionRows(), true, "an installer rejects the two; forced together, importing torchvision raises RuntimeError, since its operators cannot be loaded", lint.Error, "github.com/pytorch/vision, README and _meta_registrations.py"},
	{"torchaudio", "torch", torchaudioRows(), false, "its extension is built for another release: loading it fails", lint.Error, "docs.pytorch.org/audio, compatibility matrix"},
	{"torch-npu", "torch", npuRows(), false, "its extension is built for another release: importing torch_npu fails", lint.Error, "Ascend/pytorch, COMPATIBILITY"},
}

// oldTorchvisionRows: 0.16 was built for torch 2.1, 0.15 for 2.0, 0.14 for 1.13 and so on down to 0.5 for 1.4. When the library of their
// operators cannot be loaded, these say so where one is called.
func oldTorchvisionRows() (rows [][2]string) {
	for minor := 4; minor <= 13; minor++ {
		rows = append(rows, [2]string{fmt.Sprintf("==0.%d.*", minor+1), fmt.Sprintf("==1.%d.*", minor)})
	}
	return append(rows, [2]string{"==0.15.*", "==2.0.*"}, [2]string{"==0.16.*", "==2.1.*"})
}

// torchvisionRows: from 0.17, for torch 2.2, on a fake nms is registered at import, for which the operator must be there. 0.29 works with
// all later releases.
func torchvisionRows() (rows [][2]string) {
	for minor := 2; minor <= 13; minor++ {
		rows = append(rows, [2]string{fmt.Sprintf("==0.%d.*", minor+15), fmt.Sprintf("==2.%d.*", minor)})
	}
	return append(rows, [2]string{">=0.29", ">=2.14"})
}

// torchaudioRows: from 2.0 on the numbers are those of torch, before 0.13 was for 1.13. 2.11 works with all later releases.
func torchaudioRows() (rows [][2]string) {
	for minor := 4; minor <= 13; minor++ {
		rows = append(rows, [2]string{fmt.Sprintf("==0.%d.*", minor), fmt.Sprintf("==1.%d.*", minor)})
	}
	for minor := 0; minor <= 10; minor++ {
		rows = append(rows, [2]string{fmt.Sprintf("==2.%d.*", minor), fmt.Sprintf("==2.%d.*", minor)})
	}
	return append(rows, [2]string{">=2.11", ">=2.11"})
}

// npuRows: torch_npu has the number of the torch that it is for, with a .post of its own.
func npuRows() (rows [][2]string) {
	for _, series := range []string{"1.8", "1.11", "2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "2.10", "2.11", "2.12"} {
		rows = append(rows, [2]string{"==" + series + ".*", "==" + series + ".*"})
	}
	return rows
}

// npuToolkits says, by release of torch_npu, for which release of CANN it was made (Ascend/pytorch, COMPATIBILITY). Later toolkits run what was
// made for earlier ones; earlier ones lack what it calls.
var npuToolkits = [][2]string{
	{"2.12.0", "9.1.0"}, {"2.11.0", "9.1.0"}, {"2.10.0.post4", "9.1.0"}, {"2.9.0.post6", "9.1.0"}, {"2.7.1.post8", "9.1.0"},
	{"2.9.0.post2", "9.0.0"}, {"2.8.0.post4", "9.0.0"}, {"2.7.1.post4", "9.0.0"},
	{"2.9.0", "8.5.0"}, {"2.8.0.post2", "8.5.0"}, {"2.7.1.post2", "8.5.0"}, {"2.6.0.post5", "8.5.0"},
	{"2.8.0", "8.3rc1"}, {"2.7.1", "8.3rc1"}, {"2.6.0.post3", "8.3rc1"}, {"2.1.0.post17", "8.3rc1"},
	{"2.6.0", "8.2rc1"}, {"2.5.1.post1", "8.2rc1"}, {"2.1.0.post13", "8.2rc1"},
	{"2.5.1", "8.1rc1"}, {"2.4.0.post4", "8.1rc1"}, {"2.3.1.post6", "8.1rc1"}, {"2.1.0.post12", "8.1rc1"},
	{"2.4.0.post2", "8.0.0"}, {"2.3.1.post4", "8.0.0"}, {"2.1.0.post10", "8.0.0"},
	{"2.4.0", "8.0rc3"}, {"2.3.1.post2", "8.0rc3"}, {"2.1.0.post8", "8.0rc3"},
	{"2.3.1", "8.0rc2"}, {"2.2.0.post2", "8.0rc2"}, {"2.1.0.post6", "8.0rc2"},
	{"2.2.0", "8.0rc1"}, {"2.1.0.post4", "8.0rc1"},
}

// provided is a name that only some releases of a package have.
type provided struct {
	name    string // dotted, as imports reach it
	of      string // the package
	in      string // the releases that have it
	removed bool   // by later ones: without a pin the newest release is installed, which lacks it
	instead string
	source  string
}

var provisions = []provided{
	{"torch._six", "torch", "<2", true, "take inf from torch and the string types from the standard library", "pytorch/pytorch#94709, deepspeedai/DeepSpeed#2845"},
	{"transformers.AdamW", "transformers", "<4.50", true, "use torch.optim.AdamW", "huggingface/transformers#36177"},
	{"transformers.optimization.AdamW", "transformers", "<4.50", true, "use torch.optim.AdamW", "huggingface/transformers#36177"},
	{"torch.distributed.fsdp.fully_shard", "torch", ">=2.6", false, "take it from torch.distributed._composable.fsdp", "pytorch/pytorch#141868"},
	{"torch.distributed.fsdp.FSDPModule", "torch", ">=2.6", false, "take it from torch.distributed._composable.fsdp", "huggingface/trl#7260"},
	{"torch.distributed.fsdp.MixedPrecisionPolicy", "torch", ">=2.6", false, "take it from torch.distributed._composable.fsdp", "huggingface/trl#7260"},
	{"torch.accelerator", "torch", ">=2.6", false, "", "huggingface/trl#7260"},
	{"torch.amp.GradScaler", "torch", ">=2.3", false, "use torch.cuda.amp.GradScaler", "meta-pytorch/tnt#751, ultralytics/ultralytics#14677"},
	{"torch.compiler", "torch", ">=2.1", false, "", "huggingface/transformers#37238"},
}

// specifiers are those of the tables, each read once: all of them are asked for with each file of requirements.
var specifiers = sync.OnceValue(func() map[string][]pep440.Range {
	read := map[string][]pep440.Range{}
	add := func(specs ...string) {
		for _, spec := range specs {
			if read[spec] == nil {
				read[spec] = ranged(spec)
			}
		}
	}
	for i := range demands {
		add(demands[i].when, demands[i].needs)
	}
	for i := range matches {
		for _, row := range matches[i].rows {
			add(row[:]...)
		}
	}
	for i := range provisions {
		add(provisions[i].in)
	}
	return read
})

// ranged reads a specifier of the tables, in which || stands between sets.
func ranged(spec string) []pep440.Range {
	var sets []pep440.Range
	for _, one := range splitSets(spec) {
		r, ok := pep440.ParseRange(one)
		if !ok {
			panic("no specifier: " + one)
		}
		sets = append(sets, r)
	}
	return sets
}
