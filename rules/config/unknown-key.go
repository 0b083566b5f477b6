package config

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
)

//go:embed unknown-key.md
var docUnknownKey string

// UnknownKey reports keys that the framework does not know.
var UnknownKey = &lint.Rule{
	Name:     "unknown-key",
	Family:   "config",
	Since:    "0.1",
	Doc:      docUnknownKey,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: named,
	Part: func(pass *lint.Pass, part *workspace.Part) {
		if fromFlags(part) && part.Tree.Format != configs.Flags && (part.Tree.Format != configs.Python || part.Tree.Root.Open) {
			return
		}
		own := ownSettings(part)
		for _, s := range settings(part) {
			if own && s.section == "" {
				s.policy.Unknown = dialect.Accepted
			}
			if s.key != nil && s.key.Added != "" {
				checkAdded(pass, s)
			}
			if s.key == nil && (fromFlags(part) || home(s) == "") {
				checkUnknown(pass, s)
			}
		}
	},
}

// checkAdded reports a key that came with a later release than the one that is asked for.
func checkAdded(pass *lint.Pass, s *setting) {
	owner := strings.ToLower(strings.Fields(s.table.Version)[0])
	if pin := pass.Pin(s.part.Path, owner); pin.Since(s.key.Added) == pyscan.No {
		pass.Reportf(s.item().KeyAt, "%s came with %s %s: %s refuses the settings", s.name, strings.Fields(s.table.Version)[0], s.key.Added, pin).Pinned(pin, s.key.Added).Help("ask for %s>=%s, or leave the key out", owner, s.key.Added)
	}
}

// strictPrecision is the release of DeepSpeed from which the sections fp16 and bf16 refuse keys that they do not know; before, they were
// ignored (deepspeedai/DeepSpeed#6976).
const strictPrecision = "0.17.1"

// strictness is what the release of DeepSpeed that is asked for does with an unknown key; since says from which one on, where that is open.
func strictness(pass *lint.Pass, s *setting, policy dialect.Unknown) (_ dialect.Unknown, since string, pin workspace.Pin) {
	if policy != dialect.Rejected || s.part.Dialect != dialect.DeepSpeed || s.section != "fp16" && s.section != "bf16" {
		return policy, "", pin
	}
	pin = pass.Pin(s.part.Path, "deepspeed")
	switch pin.Since(strictPrecision) {
	case pyscan.No:
		return dialect.Ignored, "", pin
	case pyscan.Maybe:
		return policy, ", from " + strictPrecision + " on", pin
	}
	return policy, "", pin
}

func checkUnknown(pass *lint.Pass, s *setting) {
	policy, params := s.policy.Unknown, constructorParams(s)
	if policy == dialect.Rejected && widened(s.part) {
		policy = dialect.Accepted
	}
	if params != nil {
		policy = dialect.Rejected
	}
	near := ""
	switch {
	case s.part.Tree.Format == configs.Flags:
		// The program may have arguments of its own, which its source would spell.
		section, last := cutPath(s.name)
		if !spelledOut(s.part.Dialect) && section == "" && s.table.Abbreviates(last) {
			return
		}
		if slices.Contains(launchers, s.part.Dialect) { // what stands before the program is its own alone
			if near = s.table.Nearest("", last); near == "" {
				return // of another release
			}
			break
		}
		policy = dialect.Accepted
		if near = s.table.Slip(section, last); near == "" || s.table.Elsewhere(last) || pass.Spells(s.part.Path, last) || added(pass, s) {
			return
		}
		near = under(section, near)
	case s.part.Tree.Format == configs.Python && s.section == "":
		// Arguments of a class of the library, of whatever release.
		if s.part.Dialect != dialect.DeepSpeed {
			policy = dialect.Rejected
		}
		if near = s.table.Slip("", s.name); near == "" || s.table.Elsewhere(s.name) {
			return
		}
	case policy == dialect.Mixed || policy == dialect.Ignored && remark(s.name):
		return
	case policy == dialect.Rejected && ownField(pass, s):
		return
	case policy == dialect.Accepted:
		// Others may read it: only what is all but a known key is a mistake.
		if near = s.table.Slip(s.section, s.name); near == "" || s.table.Elsewhere(s.name) || ownField(pass, s) {
			return
		}
	case params != nil:
		near = nearestParam(s.name, params)
	default:
		near = s.table.Nearest(s.section, s.name)
	}
	if near != "" && s.within.Item(near) != nil {
		if near = ""; policy == dialect.Accepted {
			return
		}
	}
	if near == "" && s.part.Dialect == dialect.DeepSpeed && s.section == "" && s.within.Item(elsewhere[s.name]) == nil {
		near = elsewhere[s.name]
	}
	policy, since, deepspeed := strictness(pass, s, policy)
	consequence, allowed := effect(s.part.Dialect, policy)+since, extraAllowed(pass, s)
	switch allowed {
	case pyscan.Yes:
		consequence = ": HfArgumentParser ignores it, as extra keys are allowed"
	case pyscan.Maybe:
		consequence = ": HfArgumentParser ignores it where extra keys are allowed, else it rejects the file"
	}
	d := pass.Reportf(s.item().KeyAt, "%s is no key of %s%s%s", s.name, place(s), consequence, meant(near)).Pinned(deepspeed, strictPrecision)
	switch {
	case allowed != pyscan.No:
		d.As(lint.Warning) // the program runs on, for all that is known
	case policy == dialect.Ignored && near == "" && empty(s):
		d.As(lint.Info) // nothing that could have an effect
	case policy == dialect.Ignored && deepspeed.Since(strictPrecision) == pyscan.No:
		d.As(lint.Warning) // a later release refuses it
	case policy == dialect.Ignored && near == "" && (s.section != "" || s.part.Dialect != dialect.DeepSpeed):
		d.As(lint.Warning) // it may be the program's own
	case near == "" && s.part.Dialect == dialect.Torchtune:
		d.As(lint.Warning) // other releases of the builder take other arguments
	}
	if near != "" {
		rename(pass, d, s.item(), s.name, near, lint.Unsafe)
	}
}

// extraAllowed: the programs of the project that read the file pass allow_extra_keys to HfArgumentParser.
func extraAllowed(pass *lint.Pass, s *setting) pyscan.Truth {
	if s.part.Dialect != dialect.HFTrainingArguments || fromFlags(s.part) {
		return pyscan.No
	}
	readers := pass.KeyReaders(s.part.Path)
	if !readers.Known {
		return pyscan.No
	}
	return readers.Lenient
}

// ownField: the project declares a field of this name. Programs that are made from a framework's source, and other releases of it,
// have classes of settings of their own; those of DeepSpeed and Accelerate are installed.
func ownField(pass *lint.Pass, s *setting) bool {
	return s.part.Dialect != dialect.DeepSpeed && s.part.Dialect != dialect.Accelerate && pass.Spells(s.part.Path, s.name+":")
}

// launchers read the flags before the program with argparse.
var launchers = []*dialect.Dialect{dialect.Launcher("torchrun"), dialect.Launcher("deepspeed"), dialect.Launcher("accelerate")}

// spelledOut reports whether the program reads its command line with allow_abbrev=False. The others take the beginning of a flag for it.
func spelledOut(d *dialect.Dialect) bool {
	return d == dialect.Megatron || d == dialect.Launcher("accelerate")
}

// empty: the key has no value.
func empty(s *setting) bool {
	v, ok := value(s.part, s.item().Value)
	return ok && v.Kind() == constant.None
}

// added: Hydra takes +key=value and ++key=value for a key that is to be new.
func added(pass *lint.Pass, s *setting) bool {
	at := s.item().KeyAt
	file := pass.Text(at.Path)
	return file != nil && at.Span.Start > 0 && int(at.Span.Start) <= len(file.Text) && file.Text[at.Span.Start-1] == '+'
}

// place says where a key stands that is not known there.
func place(s *setting) string {
	if s.section == "" {
		return framework(s.part.Dialect)
	}
	return s.section
}

// effect says what the framework does with a key that it does not know.
func effect(d *dialect.Dialect, policy dialect.Unknown) string {
	switch policy {
	case dialect.Rejected:
		return fmt.Sprintf(": %s refuses the settings", framework(d))
	case dialect.Ignored:
		return fmt.Sprintf(": %s ignores it without a word", framework(d))
	}
	return ""
}

func meant(near string) string {
	if near == "" {
		return ""
	}
	return fmt.Sprintf("; %s is one", near)
}

// constructorParams are the keys that the type of an optimizer or scheduler takes; nil where the setting is none of its
// arguments, or they are not known.
func constructorParams(s *setting) map[string]*dialect.Key {
	if params := componentParams(s.part, s.table, s.within); params != nil {
		return params
	}
	owner, ok := strings.CutSuffix(s.section, ".params")
	if !ok || s.part.Dialect != dialect.DeepSpeed {
		return nil
	}
	kind := textAt(s.part, owner, "type")
	if on, known := switchAt(s.part, owner, "params", "torch_adam"); on || !known {
		if known && owner == "optimizer" && (kind == "adam" || kind == "adamw") {
			return torchAdamParams
		}
		return nil
	}
	if _, offload := offloadDevice(s.part, "offload_optimizer"); kind == "adagrad" && !offload {
		return nil // torch.optim.Adagrad
	}
	if written, _ := s.part.Tree.Root.Get(owner, "type").Str(s.part.Dialect.LoaderOf(s.part.Tree)); owner == "optimizer" && written == "SGD" {
		return torchSGDParams
	}
	return s.table.Params(owner, kind)
}

// torchSGDParams are the arguments of torch.optim.SGD, which DeepSpeed has no optimizer of its own for.
var torchSGDParams = paramsNamed("lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize", "foreach", "differentiable", "fused")

func paramsNamed(names ...string) map[string]*dialect.Key {
	params := map[string]*dialect.Key{}
	for _, name := range names {
		params[name] = &dialect.Key{Path: "optimizer.params." + name}
	}
	return params
}

// torchAdamParams are the arguments of torch's Adam and AdamW, and the two with which DeepSpeed chooses them.
var torchAdamParams = func() map[string]*dialect.Key {
	params := map[string]*dialect.Key{}
	for _, name := range []string{"lr", "betas", "eps", "weight_decay", "amsgrad", "maximize", "foreach", "capturable", "differentiable", "fused", "decoupled_weight_decay", "torch_adam", "adam_w_mode"} {
		params[name] = &dialect.Key{Path: "optimizer.params." + name}
	}
	return params
}()

func nearestParam(word string, params map[string]*dialect.Key) string {
	return nearestOf(word, sortedNames(params))
}

// widened: with these switches on LLaMA-Factory hands its arguments to another trainer too, which has more of them.
func widened(part *workspace.Part) bool {
	for _, name := range []string{"use_mca", "use_megatron_bridge", "use_hyper_parallel", "use_kt"} {
		if on, known := switchAt(part, name); part.Dialect == dialect.LLaMAFactory && (on || !known) {
			return true
		}
	}
	return part.Dialect == dialect.LLaMAFactory && part.Tree.Root.Item("tensor_model_parallel_size") != nil // of Megatron
}

// elsewhere are names that other frameworks, and other parts of DeepSpeed, have for keys of its top level.
var elsewhere = map[string]string{
	"micro_batch_size": "train_micro_batch_size_per_gpu", "train_micro_batch_size": "train_micro_batch_size_per_gpu", "per_device_train_batch_size": "train_micro_batch_size_per_gpu",
	"batch_size": "train_batch_size", "global_batch_size": "train_batch_size", "gas": "gradient_accumulation_steps", "accumulate_grad_batches": "gradient_accumulation_steps",
	"max_grad_norm": "gradient_clipping", "clip_grad": "gradient_clipping", "grad_clip": "gradient_clipping", "gradient_clip_val": "gradient_clipping", "comms_config": "comms_logger",
}
