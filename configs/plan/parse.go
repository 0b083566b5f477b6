package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// MaxCount bounds every count in a plan. It keeps products of a few counts inside of int64.
const MaxCount = 1 << 52

// enum is implemented by the kinds of kinds.go: strings with a closed list.
type enum interface{ options() []string }

// parse reads a plain Go value into *v, a pointer to one of the types that values have.
func parse(v any, raw any) error {
	switch v := v.(type) {
	case *bool:
		b, ok := raw.(bool)
		if !ok {
			return wrong("true or false", raw)
		}
		*v = b
	case *int64:
		n, err := count(raw)
		if err != nil {
			return err
		}
		*v = n
	case *float64:
		f, ok := number(raw)
		if !ok || math.IsNaN(f) || math.IsInf(f, 0) {
			return wrong("a number", raw)
		}
		*v = f
	case *Targets:
		return parseTargets(v, raw)
	case *string:
		s, ok := raw.(string)
		if !ok {
			return wrong("text", raw)
		}
		*v = s
	case *Sharding:
		return choose(v, raw)
	case *Precision:
		return choose(v, raw)
	case *DType:
		return choose(v, raw)
	case *OptimizerType:
		return choose(v, raw)
	case *Kernel:
		return choose(v, raw)
	case *Checkpointing:
		return choose(v, raw)
	case *Attention:
		return choose(v, raw)
	case *MLPActivation:
		return choose(v, raw)
	case *LossKernel:
		return choose(v, raw)
	case *Stack:
		return choose(v, raw)
	case *Quantization:
		return choose(v, raw)
	case *Offload:
		return choose(v, raw)
	case *Norm:
		return choose(v, raw)
	case *QKNorm:
		return choose(v, raw)
	case *WarmupUnit:
		return choose(v, raw)
	default:
		return fmt.Errorf("a value of type %T cannot be read", v)
	}
	return nil
}

func choose[E interface {
	~string
	enum
}](v *E, raw any) error {
	options := (*v).options()
	s, ok := raw.(string)
	if !ok || !slices.Contains(options, s) {
		return wrong("one of "+strings.Join(options, ", "), raw)
	}
	*v = E(s)
	return nil
}

func parseTargets(v *Targets, raw any) error {
	var names []string
	switch raw := raw.(type) {
	case Targets:
		*v = raw
		return nil
	case []string:
		names = raw
	case []any:
		for _, item := range raw {
			name, ok := item.(string)
			if !ok {
				return wrong("a list of "+strings.Join(targetNames[:], ", "), raw)
			}
			names = append(names, name)
		}
	default:
		return wrong("a list of "+strings.Join(targetNames[:], ", "), raw)
	}
	set, err := ParseTargets(names...)
	if err == nil {
		*v = set
	}
	return err
}

// number widens any Go number; a bool is none.
func number(raw any) (float64, bool) {
	switch n := raw.(type) {
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// count reads a whole number from 0 to MaxCount; 5e8 is one.
func count(raw any) (int64, error) {
	f, ok := number(raw)
	if !ok || f != math.Trunc(f) || math.IsInf(f, 0) {
		return 0, wrong("a whole number", raw)
	}
	if f < 0 || f > MaxCount {
		return 0, wrong("a whole number from 0 to "+strconv.FormatInt(MaxCount, 10), raw)
	}
	return int64(f), nil
}

func wrong(wanted string, raw any) error {
	shown := fmt.Sprint(raw)
	if s, ok := raw.(string); ok {
		shown = strconv.Quote(s)
	}
	if runes := []rune(shown); len(runes) > 60 {
		shown = string(runes[:60]) + "..."
	}
	return fmt.Errorf("is %s, wanted %s", shown, wanted)
}
