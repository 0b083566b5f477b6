package config

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed conflicting-precision.md
var docConflictingPrecision string

// ConflictingPrecision reports two precisions that are both on.
var ConflictingPrecision = &lint.Rule{
	Name:     "conflicting-precision",
	Family:   "config",
	Since:    "0.1",
	Doc:      docConflictingPrecision,
	Severity: lint.Error,
	Mentions: []string{"fp16", "bf16", "bfloat16"},
	Part: func(pass *lint.Pass, part *workspace.Part) {
		if part.Tree.Root == nil || part.Tree.Template {
			return
		}
		switch part.Dialect.Name {
		case "deepspeed":
			conflict(pass, part, "fp16.enabled", "bf16.enabled", "bfloat16.enabled")
			conflict(pass, part, "amp.enabled", "fp16.enabled", "bf16.enabled", "bfloat16.enabled")
			paramType(pass, part)
		case "gpt-neox":
			conflict(pass, part, "fp16.enabled", "bf16.enabled")
			neoxPrecision(pass, part)
		case "axolotl":
			bf16Wins(pass, part)
		case "llamafactory":
			conflict(pass, part, "fp16", "bf16")
			conflict(pass, part, "fp16_full_eval", "bf16_full_eval")
			pureAndHalf(pass, part)
		case "hf-training-args", "megatron":
			conflict(pass, part, "fp16", "bf16")
			conflict(pass, part, "fp16_full_eval", "bf16_full_eval")
		case "kohya":
			conflict(pass, part, "full_fp16", "full_bf16")
		}
	},
}

// entry finds the entry of a dotted path, in the spelling of the dialect.
func entry(part *workspace.Part, path string) *configs.Item {
	node := part.Tree.Root
	var found *configs.Item
	for _, name := range strings.Split(path, ".") {
		if node == nil || node.Kind != configs.Mapping {
			return nil
		}
		found = nil
		for i := range node.Items {
			if item := &node.Items[i]; part.Dialect.Spelled(part.Tree, item.Key) == name {
				found = item
			}
		}
		if found == nil {
			return nil
		}
		node = found.Value
	}
	return found
}

// isOn reports whether a switch is written and on for sure.
func isOn(part *workspace.Part, item *configs.Item) bool {
	if item == nil {
		return false
	}
	if item.Value != nil && item.Value.Bare {
		return true
	}
	v, ok := value(part, item.Value)
	if !ok {
		return false
	}
	if b, isBool := v.Bool(); isBool {
		return b
	}
	if n, isNumber := v.Number(); isNumber {
		return n == 1
	}
	s, _ := v.Str()
	s = strings.ToLower(s)
	return s == "true" || s == "full" || s == "yes" || s == "1"
}

// conflict reports the later one of two switches that are both on.
func conflict(pass *lint.Pass, part *workspace.Part, one string, others ...string) {
	first := entry(part, one)
	if !isOn(part, first) {
		return
	}
	for _, other := range others {
		second := entry(part, other)
		if !isOn(part, second) {
			continue
		}
		a, b, at, note := one, other, valueAt(second), first
		if first.KeyAt.Span.Start > second.KeyAt.Span.Start {
			a, b, at, note = other, one, valueAt(first), second
		}
		d := pass.Reportf(at, "%s is on beside %s: %s refuses two precisions", b, a, framework(part.Dialect))
		d.Note(note.KeyAt, "the first one")
		return
	}
}

// bf16Wins: axolotl takes both, and switches fp16 off where bf16 is on (0.19, choose_device). `bf16: auto` beside fp16 is off.
func bf16Wins(pass *lint.Pass, part *workspace.Part) {
	half := entry(part, "fp16")
	for _, name := range []string{"bf16", "bfloat16"} {
		if brain := entry(part, name); isOn(part, half) && isOn(part, brain) {
			pass.Reportf(valueAt(half), "fp16 has no effect: %s is on too, and axolotl trains in bf16", name).As(lint.Info).
				Note(brain.KeyAt, "bf16 is on here")
			return
		}
	}
}

// pureAndHalf: LLaMA-Factory takes pure_bf16 beside fp16 (0.9.5, hparams/parser.py): the one decides what the weights are, the other what
// the Trainer casts to.
func pureAndHalf(pass *lint.Pass, part *workspace.Part) {
	pure, half := entry(part, "pure_bf16"), entry(part, "fp16")
	if isOn(part, pure) && isOn(part, half) && !isOn(part, entry(part, "bf16")) {
		pass.Reportf(valueAt(half), "fp16 is on, but pure_bf16 loads the weights in bf16: "+
			"the Trainer casts to fp16 and scales the loss of a bf16 model").As(lint.Warning).Note(pure.KeyAt, "bf16 weights")
	}
}

func valueAt(item *configs.Item) source.Place {
	if item.Value == nil || item.Value.At.Span.Len() == 0 {
		return item.KeyAt
	}
	return item.Value.At
}

var precisions = map[string]string{
	"fp32": "fp32", "float32": "fp32", "float": "fp32", "torch.float32": "fp32", "fp16": "fp16", "float16": "fp16", "half": "fp16", "torch.float16": "fp16",
	"bf16": "bf16", "bfloat16": "bf16", "torch.bfloat16": "bf16",
}

// enabledPrecision is what the sections fp16 and bf16 switch on; "" where that cannot be told.
func enabledPrecision(part *workspace.Part) string {
	half, known := switchAt(part, "fp16", "enabled")
	brain, known2 := switchAt(part, "bf16", "enabled")
	switch {
	case !known || !known2 || half && brain:
		return ""
	case half:
		return "fp16"
	case brain:
		return "bf16"
	}
	return "fp32"
}

// paramType: the engine compares data_types.param_dtype with the precision that is on.
func paramType(pass *lint.Pass, part *workspace.Part) {
	item := entry(part, "data_types.param_dtype")
	enabled := enabledPrecision(part)
	if item == nil || enabled == "" {
		return
	}
	v, _ := value(part, item.Value)
	s, _ := v.Str()
	if written := precisions[s]; written != "" && written != enabled {
		pass.Reportf(valueAt(item), "data_types.param_dtype is %s, and the sections of the config switch %s on: DeepSpeed refuses it when the engine starts", s, enabled)
	}
}

// neoxPrecision: GPT-NeoX compares precision with the section that is on.
func neoxPrecision(pass *lint.Pass, part *workspace.Part) {
	item := entry(part, "precision")
	if item == nil {
		return
	}
	v, _ := value(part, item.Value)
	s, _ := v.Str()
	for section, name := range map[string]string{"fp16": "fp16", "bf16": "bf16"} {
		on := entry(part, section+".enabled")
		if written := precisions[s]; isOn(part, on) && written != "" && written != name {
			pass.Reportf(valueAt(item), "precision is %s, and %s.enabled is on: GPT-NeoX refuses the settings", s, section).Note(on.KeyAt, "the other precision")
		}
	}
}
