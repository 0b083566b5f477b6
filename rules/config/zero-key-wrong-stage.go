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
)

//go:embed zero-key-wrong-stage.md
var docZeroKeyWrongStage string

// ZeroKeyWrongStage reports keys of zero_optimization that have no effect in the stage that is written beside them.
var ZeroKeyWrongStage = &lint.Rule{
	Name:     "zero-key-wrong-stage",
	Family:   "config",
	Since:    "0.1",
	Doc:      docZeroKeyWrongStage,
	Severity: lint.Warning,
	Mentions: []string{"zero_optimization"},
	Part: func(pass *lint.Pass, part *workspace.Part) {
		stage, known := zeroStage(part)
		at := part.Tree.Root.Get("zero_optimization").Item("stage")
		if part.Dialect != dialect.DeepSpeed || !known || at == nil {
			return
		}
		for _, s := range settings(part) {
			key := s.key
			if key == nil || len(key.Stages) == 0 || slices.Contains(key.Stages, stage) || key.Deprecated || !strings.HasPrefix(s.section, "zero_optimization") || idle(s) {
				continue
			}
			if s.section == "zero_optimization.offload_param" || s.name == "ratio" {
				continue // told at the section; refused by invalid-value
			}
			if strings.HasSuffix(s.name, "gather_16bit_weights_on_model_save") && splitTensors(part) {
				continue // which is saved by the same switch
			}
			if stage == 0 && !slices.Contains(key.Stages, 3) {
				continue // ZeRO is switched off as a whole
			}
			d := pass.Reportf(s.item().KeyAt, "%s has no effect with ZeRO stage %d: only %s reads it", s.name, stage, stagesText(key.Stages))
			d.Note(at.KeyAt, "the stage")
		}
	},
}

// splitTensors reports whether the weights may be split by tensor parallelism: Accelerate gathers them, as those of stage 3, where
// gather_16bit_weights_on_model_save is set.
func splitTensors(part *workspace.Part) bool {
	size := part.Tree.Root.Get("tensor_parallel").Item("autotp_size")
	if size == nil {
		return false
	}
	v, known := value(part, size.Value)
	n, whole := v.Int()
	return !known || !whole || n > 1
}

func stagesText(stages []int) string {
	var all []string
	for _, stage := range stages {
		all = append(all, fmt.Sprint(stage))
	}
	return "stage " + oneOf(all)
}

// idle: the setting says what holds anyway, or leaves it to others.
func idle(s *setting) bool {
	node := s.item().Value
	if node.Kind == configs.Mapping && (s.name == "offload_param" || s.name == "offload_optimizer") {
		device := textAt(s.part, "zero_optimization", s.name, "device")
		return device != "cpu" && device != "nvme"
	}
	v, ok := value(s.part, node)
	if !ok {
		return node.Kind == configs.Scalar
	}
	b, isBool := v.Bool()
	return isAuto(v) || v.Kind() == constant.None || isBool && b == (s.key.Default == true)
}
