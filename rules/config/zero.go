package config

import (
	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/lint/workspace"
)

// zeroStage is the stage of ZeRO that a DeepSpeed config says, 0 where it says none; false where that cannot be told, such as
// for "auto".
func zeroStage(part *workspace.Part) (int, bool) {
	root := part.Tree.Root
	zero := root.Get("zero_optimization")
	switch {
	case root.Open || zero != nil && (zero.Open || zero.Kind == configs.Invalid):
		return 0, false
	case zero == nil:
		return 0, true
	case zero.Kind == configs.Scalar:
		on, known := switchAt(part, "zero_optimization")
		return map[bool]int{true: 1}[on], known
	}
	node := zero.Get("stage")
	if node == nil {
		return 0, true
	}
	v, ok := value(part, node)
	if !ok {
		return 0, false
	}
	if v.Kind() == constant.String {
		if v, ok = constant.Convert("float", v); !ok {
			return 0, false
		}
	}
	if b, isBool := v.Bool(); isBool {
		return map[bool]int{true: 1}[b], true
	}
	n, ok := v.Number()
	return int(n), ok && n >= 0 && n <= 3 && n == float64(int(n))
}
