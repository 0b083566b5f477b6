package config

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
)

//go:embed config-mismatch.md
var docConfigMismatch string

// ConfigMismatch compares what a DeepSpeed config or an accelerate config says with the arguments of HF's Trainer.
var ConfigMismatch = &lint.Rule{
	Name:     "config-mismatch",
	Family:   "config",
	Since:    "0.1",
	Doc:      docConfigMismatch,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Run: func(pass *lint.Pass, run *workspace.Run) {
		if part, named := run.Integrated(); part != nil {
			m := mismatch{pass, run, part, named}
			if !startsEngine(pass, part.Path) {
				m.deepspeed()
			}
			m.lightning()
			return
		}
		for _, part := range run.Parts {
			m := mismatch{pass, run, part, source.Place{}}
			switch part.Dialect {
			case dialect.Accelerate:
				m.accelerate()
			case dialect.DeepSpeed:
				m.lightning()
			}
		}
	},
}

// startsEngine reports whether the project hands its configs to deepspeed.initialize itself, and uses no Trainer of Hugging Face's: what it calls
// as the Trainer's arguments are called is compared with nothing then. Classes of that name in other libraries do not count.
func startsEngine(pass *lint.Pass, from string) bool {
	if !pass.Spells(from, "deepspeed.initialize") || pass.Spells(from, "transformers.Trainer") {
		return false
	}
	for _, trainer := range []string{"Trainer", "Seq2SeqTrainer", "SFTTrainer", "DPOTrainer", "GRPOTrainer", "RewardTrainer", "KTOTrainer", "ORPOTrainer", "SentenceTransformerTrainer"} {
		for _, name := range pass.ImportersOf(from, trainer) {
			if m := pass.Module(name); m == nil || slices.ContainsFunc(m.Imports, importsTrainer) {
				return false
			}
		}
	}
	return true
}

// onTrainer are the libraries whose trainers are Hugging Face's, or derive from it.
var onTrainer = []string{"transformers", "trl", "optimum", "sentence_transformers", "setfit", "swift", "llamafactory", "unsloth", "axolotl"}

func importsTrainer(i *pyscan.Import) bool {
	library, _, _ := strings.Cut(i.Module, ".")
	return i.Level == 0 && strings.HasSuffix(i.Member, "Trainer") && slices.Contains(onTrainer, library)
}

// mismatch compares one part with the Trainer of its run.
type mismatch struct {
	pass  *lint.Pass
	run   *workspace.Run
	part  *workspace.Part
	named source.Place // of who names the part
}

// filled are the keys of a DeepSpeed config that HF's integration fills in where they say "auto", and compares where they do
// not. gradient_accumulation_steps has a rule of its own, and train_batch_size follows from the others.
var filled = []struct {
	path   []string
	value  string // in the plan
	theirs string // the Trainer's name
}{
	{[]string{"train_micro_batch_size_per_gpu"}, "batch.micro", "per_device_train_batch_size"},
	{[]string{"gradient_clipping"}, "optimizer.clip", "max_grad_norm"},
	{[]string{"optimizer", "params", "lr"}, "optimizer.lr", "learning_rate"},
	{[]string{"optimizer", "params", "eps"}, "optimizer.eps", "adam_epsilon"},
	{[]string{"optimizer", "params", "weight_decay"}, "optimizer.weight_decay", "weight_decay"},
	{[]string{"scheduler", "params", "warmup_max_lr"}, "optimizer.lr", "learning_rate"},
	{[]string{"scheduler", "params", "warmup_num_steps"}, "schedule.warmup", "warmup_steps"},
	{[]string{"scheduler", "params", "total_num_steps"}, "schedule.total_steps", "max_steps"},
}

func (m mismatch) deepspeed() {
	root := m.part.Tree.Root
	for _, key := range filled {
		item := itemBelow(root, key.path)
		here, ok := m.number(item)
		there, fact := m.trainer(key.value)
		if ok && fact != nil && !same(here, there) {
			m.report(item, fact, fmt.Sprintf("%s here", item.Value.Raw), fmt.Sprintf("%s %s", key.theirs, strconv.FormatFloat(there, 'g', -1, 64)), true)
		}
	}
	m.betas()
	m.precision()
}

// betas are one list here, and two arguments there.
func (m mismatch) betas() {
	item := itemBelow(m.part.Tree.Root, []string{"optimizer", "params", "betas"})
	if item == nil || item.Value == nil || item.Value.Kind != configs.Sequence || len(item.Value.Items) != 2 {
		return
	}
	for i, name := range []string{"optimizer.beta1", "optimizer.beta2"} {
		here, ok := m.number(&item.Value.Items[i])
		there, fact := m.trainer(name)
		if ok && fact != nil && !same(here, there) {
			m.report(item, fact, fmt.Sprintf("%s as beta %d here", item.Value.Items[i].Value.Raw, i+1), fmt.Sprintf("adam_beta%d %s", i+1, strconv.FormatFloat(there, 'g', -1, 64)), true)
			return
		}
	}
}

// precision: fp16.enabled and bf16.enabled, where they are written, are the Trainer's fp16 and bf16.
func (m mismatch) precision() {
	fact := m.run.Trainer("dtype.compute")
	compute, ok := fact.(plan.Value[plan.DType])
	if !ok {
		return
	}
	dtype, _ := compute.Get()
	if pin, asks := m.trl(); asks && compute.How() == plan.IsDefault && pin.Known() {
		switch pin.Since(brainByDefault) {
		case pyscan.Maybe:
			return
		case pyscan.No:
			dtype = plan.Float32
		}
	}
	for name, kind := range map[string]plan.DType{"fp16": plan.Float16, "bf16": plan.BFloat16} {
		item := itemBelow(m.part.Tree.Root, []string{name, "enabled"})
		if item == nil || item.Value == nil || item.Value.Kind != configs.Scalar || item.Value.Open {
			continue
		}
		on, known := item.Value.Bool(configs.LoaderJSON)
		if m.part.Tree.Format != configs.JSON {
			on, known = item.Value.Bool(configs.LoaderYAML11)
		}
		if !known || on == (dtype == kind) || compute.How() == plan.IsDerived {
			continue // also where the model's own type decides: nobody asked the Trainer for mixed precision then
		}
		there := name + " on"
		if on {
			there = name + " off"
		}
		here := "on here"
		if !on {
			here = "off here"
		}
		m.report(item, fact, here, there, true)
	}
}

// brainByDefault is the release of TRL from which on its arguments say bf16 where nobody sets fp16.
const brainByDefault = "0.19.0"

// trl is what is asked for of TRL, where the Trainer's arguments are of a class of its.
func (m mismatch) trl() (workspace.Pin, bool) {
	for _, part := range m.run.Parts {
		if part.OfTrainer() && strings.HasPrefix(part.Tree.Class, "trl.") {
			return m.pass.Pin(part.Path, "trl"), true
		}
	}
	return workspace.Pin{}, false
}

// number is what a key says, if it is a plain number.
func (m mismatch) number(item *configs.Item) (float64, bool) {
	if item == nil || item.Value == nil || item.Value.Kind != configs.Scalar || item.Value.Open || item.Value.Style == configs.DoubleQuoted || item.Value.Style == configs.SingleQuoted {
		return 0, false
	}
	n, err := strconv.ParseFloat(item.Value.Raw, 64)
	return n, err == nil
}

// trainer is the Trainer's number.
func (m mismatch) trainer(name string) (float64, plan.Fact) {
	fact := m.run.Trainer(name)
	switch value := fact.(type) {
	case plan.Value[int64]:
		n, ok := value.Get()
		if ok {
			return float64(n), fact
		}
	case plan.Value[float64]:
		n, ok := value.Get()
		if ok && !(name == "schedule.warmup" && value.How() != plan.IsWritten && value.How() != plan.IsDefault) {
			return n, fact
		}
	}
	return 0, nil
}

func same(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b)) }

// report says what differs. A default of the Trainer may be another one in the script, so that it is no error.
func (m mismatch) report(item *configs.Item, fact plan.Fact, here, there string, refused bool) *lint.Diagnostic {
	where := "the Trainer's default is "
	if at, key, ok := m.run.Written(fact); ok {
		where = fmt.Sprintf("%s (%s) gives ", at.Path, key)
	}
	end := "HF's integration refuses the config when the Trainer starts"
	if !refused {
		end = "the Trainer's counts, without a word"
	}
	d := m.pass.Reportf(item.KeyAt, "%s is %s and %s%s: %s", item.Key, here, where, there, end)
	if fact.How() == plan.IsDefault || !refused {
		d.As(lint.Warning)
	}
	for _, place := range fact.From() {
		d.Note(place, "the Trainer has %s from here", there)
	}
	d.Note(m.named, "the config is named here")
	if m.part.Dialect == dialect.DeepSpeed && item.Value.Via.IsZero() && item.Value.At.Span.Len() > 0 {
		d.Suggest(`set it to "auto", which takes what the Trainer has`, lint.Unsafe, lint.Edit{At: item.Value.At, Text: `"auto"`})
	}
	return d
}

// accelerate: without a DeepSpeed file of its own, accelerate makes one of its section, and the Trainer compares it.
func (m mismatch) accelerate() {
	root := m.part.Tree.Root
	section := root.Get("deepspeed_config")
	deepspeed := root.Get("distributed_type") != nil && root.Get("distributed_type").Raw == "DEEPSPEED"
	if section.Item("deepspeed_config_file") != nil {
		return
	}
	if item := section.Item("gradient_clipping"); deepspeed && item != nil {
		here, ok := m.number(item)
		there, fact := m.trainer("optimizer.clip")
		if ok && fact != nil && !same(here, there) {
			m.report(item, fact, item.Value.Raw+" here", fmt.Sprintf("max_grad_norm %s", strconv.FormatFloat(there, 'g', -1, 64)), true)
		}
	}
	item := root.Item("mixed_precision")
	theirs, ok := m.run.Trainer("dtype.compute").(plan.Value[plan.DType])
	here, known := m.part.Plan.DType.Compute.Get()
	if item == nil || !ok || !known || !here.Is16() || m.part.Plan.DType.Compute.How() != plan.IsWritten || theirs.How() == plan.IsDerived {
		return
	}
	there, _ := theirs.Get()
	switch {
	case there == here:
	case theirs.How() == plan.IsDefault && there == plan.Float32:
		if deepspeed {
			d := m.pass.Reportf(item.KeyAt, "mixed_precision is %s here, and the Trainer's arguments set neither fp16 nor bf16: HF's integration compares both under DeepSpeed, and refuses the config", item.Value.Raw)
			m.trainerPart(d)
		}
	case workspace.Stated(theirs):
		m.report(item, theirs, item.Value.Raw+" here", string(there), deepspeed)
	}
}

// trainerPart points at the arguments.
func (m mismatch) trainerPart(d *lint.Diagnostic) {
	for _, part := range m.run.Parts {
		if part.OfTrainer() && len(part.Tree.Root.Items) > 0 {
			d.Note(part.Tree.Root.Items[0].KeyAt, "the Trainer's arguments")
			return
		}
	}
}

// lightning: Lightning sets the clipping itself, and refuses a config that has one.
func (m mismatch) lightning() {
	item := m.part.Tree.Root.Item("gradient_clipping")
	if item == nil {
		return
	}
	for _, part := range m.run.Parts {
		if part.Dialect == dialect.LightningCLI {
			d := m.pass.Reportf(item.KeyAt, "gradient_clipping stands in the DeepSpeed config of a Lightning Trainer, which sets it from gradient_clip_val and refuses the config")
			for _, place := range part.Plan.Optimizer.Clip.From() {
				d.Note(place, "the Trainer's value")
			}
			d.Help("take it out here, and set gradient_clip_val")
			return
		}
	}
}

// itemBelow is the entry at a path of keys.
func itemBelow(n *configs.Node, path []string) *configs.Item {
	for _, key := range path[:len(path)-1] {
		n = n.Get(key)
	}
	return n.Item(path[len(path)-1])
}
