package zero

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed zero3-weights-not-gathered.md
var zero3WeightsNotGatheredDoc string

// Zero3WeightsNotGathered finds models under ZeRO stage 3 that are saved without their weights.
var Zero3WeightsNotGathered = &lint.Rule{
	Name:     "zero3-weights-not-gathered",
	Family:   "zero",
	Since:    "0.1",
	Doc:      zero3WeightsNotGatheredDoc,
	Severity: lint.Warning,
	Mentions: []string{"zero_optimization", "zero_stage", "save_16bit_model", "save_fp16_model"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, site := range module.Calls {
			if last := pyscan.LastName(site.Call.Func); last == "save_16bit_model" || last == "save_fp16_model" {
				checkEngineSave(pass, site.Scope, site.Call, last)
			}
		}
		for _, run := range pass.Runs(module.File.Path) { // settings that stand in Python
			checkGathered(pass, run, module.File.Path)
		}
	},
	Run: func(pass *lint.Pass, run *workspace.Run) { checkGathered(pass, run, "") },
}

// checkEngineSave: the engine's own save gathers only where the config lets it, and otherwise gives False and writes nothing.
func checkEngineSave(pass *lint.Pass, scope *pyscan.Scope, call *syntax.Call, name string) {
	attr, ok := call.Func.(*syntax.Attribute)
	if !ok {
		return
	}
	engine, ok := engineOf(pass, pass.Eval(scope, nil, attr.Value))
	if !ok {
		return
	}
	config := pass.Engine(engine)
	if stage, _, known := config.Stage(); !known || stage != 3 || !config.Certain {
		return
	}
	var at switchOff
	for _, part := range config.Parts {
		if at, ok = gatherOff(part); !ok {
			return
		}
	}
	d := pass.Reportf(scope.Module.File.At(call.Span()), "%s writes no file: ZeRO stage 3 gathers the weights only with stage3_gather_16bit_weights_on_model_save, and the call returns False", name).As(lint.Error)
	d.Note(at.at, "%s", at.how()).Help("set zero_optimization.stage3_gather_16bit_weights_on_model_save to true")
}

// gatherKeys are the spellings of the switch in a DeepSpeed config.
var gatherKeys = []string{"stage3_gather_16bit_weights_on_model_save", "gather_16bit_weights_on_model_save", "stage3_gather_fp16_weights_on_model_save"}

// switchOff is where the weights are not gathered by: the switch, or the stage where it is left out.
type switchOff struct {
	at     source.Place
	key    string
	name   string
	absent bool
}

func (s switchOff) how() string {
	if s.absent {
		return s.name + " is left out, and off"
	}
	return s.name + " is off"
}

// gatherOff looks at a config of stage 3; false where it gathers the weights, or may.
func gatherOff(part *workspace.Part) (off switchOff, ok bool) {
	if sharding, known := part.Plan.Sharding.Get(); !known || sharding != plan.ZeRO3 || part.Tree.Template || part.Tree.Root.Open {
		return off, false
	}
	section, path, names, stage := part.Tree.Root, "", []string{"zero3_save_16bit_model"}, "zero_stage"
	switch part.Dialect {
	case dialect.DeepSpeed:
		section, path, names, stage = section.Get("zero_optimization"), "zero_optimization", gatherKeys, "stage"
	case dialect.Accelerate:
		section, path = section.Get("deepspeed_config"), "deepspeed_config"
		if section == nil || section.Get("deepspeed_config_file") != nil {
			return off, false
		}
		for _, misplaced := range gatherKeys {
			if section.Get(misplaced) != nil {
				return off, false // told as misplaced-key
			}
		}
	case dialect.DeepSpeedPlugin:
		if section.Get("hf_ds_config") != nil {
			return off, false
		}
	default:
		return off, false
	}
	if section == nil || section.Open || section.Kind != configs.Mapping {
		return off, false
	}
	for _, name := range names {
		item := section.Item(name)
		if item == nil {
			continue
		}
		if item.Value == nil || item.Value.Open || item.Value.Kind != configs.Scalar {
			return off, false
		}
		loader := part.Dialect.LoaderOf(part.Tree)
		on, known := item.Value.Bool(loader)
		if text, isText := loader.Resolve(item.Value).Str(); isText {
			on, known = strings.EqualFold(text, "true"), slices.Contains([]string{"true", "false", "auto"}, strings.ToLower(text))
		}
		if !known || on {
			return off, false
		}
		return switchOff{at: item.Value.At, key: part.Key(under(path, name)), name: name}, true
	}
	item := section.Item(stage)
	if item == nil || item.Value == nil {
		return off, false
	}
	return switchOff{at: item.Value.At, key: part.Key(path), name: names[0], absent: true}, true
}

func under(section, name string) string {
	if section == "" {
		return name
	}
	return section + "." + name
}

// saver is what a run saves its model with.
type saver struct {
	call    source.Place // zero where it is known without one
	certain bool         // it is called for sure
	raises  bool         // it stops the run, where others save the partitions
}

// checkGathered looks at the configs of a run; with a file, at those in it alone.
func checkGathered(pass *lint.Pass, run *workspace.Run, file string) {
	for _, part := range run.Parts {
		if file != "" && part.Path != file {
			continue
		}
		off, ok := gatherOff(part)
		if !ok {
			continue
		}
		by, ok := saves(pass, run)
		if !ok {
			return
		}
		var d *lint.Diagnostic
		if by.raises {
			d = pass.Reportf(off.at, "%s with ZeRO stage 3: accelerator.get_state_dict raises \"Cannot get 16bit model weights\", after the training", off.how()).As(lint.Error)
		} else {
			d = pass.Reportf(off.at, "%s with ZeRO stage 3: the Trainer warns and saves the partitions of DeepSpeed instead of the model, which from_pretrained does not load", off.how())
			if !by.certain {
				d.As(lint.Info)
			}
			d.Help("set it to true, or convert what is saved with zero_to_fp32.py")
		}
		d.Key = off.key
		if by.call != (source.Place{}) {
			d.Note(by.call, "the model is saved here")
		}
		return
	}
}

// Words of programs that save otherwise: only an adapter, or partitions that are converted.
var (
	adapterWords = []string{"peft", "lora", "LoRA", "Lora", "adapter"}
	convertWords = []string{"zero_to_fp32", "fp32_state_dict_from_zero_checkpoint", "convert_zero_checkpoint", "load_state_dict_from_zero_checkpoint"}
)

// saves tells how a run saves its whole model through the Trainer or accelerate; false where it does not, or may do otherwise.
func saves(pass *lint.Pass, run *workspace.Run) (by saver, ok bool) {
	trainer := false
	rank, known := run.Plan.LoRA.Rank.Get() // 0: no adapter
	if rank > 0 {
		return by, false
	}
	for _, part := range run.Parts {
		if !part.OfTrainer() {
			continue
		}
		trainer = true
		if part.Dialect != dialect.HFTrainingArguments {
			if !known {
				return by, false
			}
			by.certain = true // both save the model at the end
		}
	}
	for _, file := range programs(pass, run) {
		m := pass.Module(file)
		if m == nil {
			continue
		}
		if slices.ContainsFunc(convertWords, m.File.Has) || trainer && slices.ContainsFunc(adapterWords, m.File.Has) {
			return by, false
		}
		for _, site := range m.Calls {
			attr, is := site.Call.Func.(*syntax.Attribute)
			if !is {
				continue
			}
			switch attr.Attr {
			case "save_model":
				if trainer && pass.IsA(pass.Eval(site.Scope, nil, attr.Value), "transformers.Trainer", "transformers.Seq2SeqTrainer", "trl.SFTTrainer", "trl.DPOTrainer", "trl.GRPOTrainer", "trl.RewardTrainer", "trl.KTOTrainer") != pyscan.No {
					by.call, by.certain = m.File.At(site.Call.Span()), true
				}
			case "get_state_dict":
				if pass.IsA(pass.Eval(site.Scope, nil, attr.Value), "accelerate.Accelerator", "accelerate.accelerator.Accelerator") == pyscan.Yes && alone(m, site.Scope, site.Call) {
					return saver{call: m.File.At(site.Call.Span()), certain: true, raises: true}, true
				}
			}
		}
	}
	return by, trainer
}

// alone reports whether nothing that asks how the model is sharded, and no try, stands around a call.
func alone(m *pyscan.Module, scope *pyscan.Scope, call *syntax.Call) bool {
	around := workspace.Around(scope, call)
	for i, statement := range around {
		text := ""
		switch s := statement.(type) {
		case *syntax.If:
			text = m.Code(s.Test.Span())
		case *syntax.Try:
			return false
		default:
			if i == len(around)-1 { // `x if is_fsdp else None`
				text = m.Code(statement.Span())
			}
		}
		if slices.ContainsFunc([]string{"fsdp", "FSDP", "deepspeed", "DEEPSPEED", "zero", "stage", "distributed_type"}, func(word string) bool { return strings.Contains(text, word) }) {
			return false
		}
	}
	return true
}

// maxPrograms bounds the files of a program that are looked at.
const maxPrograms = 8

// programs are the Python files of a run: those that hold its settings, and what the launched program imports.
func programs(pass *lint.Pass, run *workspace.Run) []string {
	var files []string
	for _, part := range run.Parts {
		if part.Tree.Format == configs.Python && !slices.Contains(files, part.Path) {
			files = append(files, part.Path)
		}
	}
	if run.Program != "" {
		for _, file := range pass.Closure(run.Program) {
			if !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	return files[:min(len(files), maxPrograms)]
}
