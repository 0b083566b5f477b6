package dialect

import (
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/trainvet/trainvet/lint/constant"
)

// plain is a constant as plan.Set takes it.
func plain(v constant.Value) (any, bool) {
	switch v.Kind() {
	case constant.Bool:
		b, _ := v.Bool()
		return b, true
	case constant.Int:
		if n, ok := v.Int(); ok {
			return n, true
		}
		f, _ := v.Number()
		return f, true
	case constant.Float:
		f, _ := v.Number()
		return f, true
	case constant.String:
		s, _ := v.Str()
		return s, true
	}
	return nil, false
}

// isAuto reports whether the value is left to an integration that fills it in.
func isAuto(v constant.Value) bool {
	s, ok := v.Str()
	return ok && strings.EqualFold(s, "auto")
}

// isBlank reports whether the value is text that a reader is to replace: an ellipsis, ???, xxx. Text of no letter and no digit says nothing.
func isBlank(v constant.Value) bool {
	s, ok := v.Str()
	return ok && Blank(s)
}

// Blank reports whether text stands for a value that somebody is to fill in: it has neither letter nor digit, or is a row of x.
func Blank(text string) bool {
	if text == "" {
		return false
	}
	return strings.Trim(text, "xX") == "" && len(text) > 1 || !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// toBool reads text as pydantic, argparse and YAML 1.1 read a truth value.
func toBool(text string) (value, ok bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "yes", "on", "1":
		return true, true
	case "false", "no", "off", "0":
		return false, true
	}
	return false, false
}

// toNumber reads text as Python's float() does, but for the special values.
func toNumber(text string) (float64, bool) {
	v, ok := constant.Convert("float", constant.MakeString(text))
	if !ok {
		return 0, false
	}
	f, _ := v.Number()
	return f, !math.IsInf(f, 0) && !math.IsNaN(f)
}

// lower is text in lower case.
func lower(v constant.Value) (any, bool) {
	s, ok := v.Str()
	return strings.ToLower(s), ok
}

// positive is a number of which zero and less mean that something else decides.
func positive(v constant.Value) (any, bool) {
	if n, ok := v.Number(); !ok || n > 0 {
		return plain(v)
	}
	return nil, false
}

// atLeastOne is a size of which 0 means 1: the feature is off.
func atLeastOne(v constant.Value) (any, bool) {
	if n, ok := v.Number(); ok && n == 0 {
		return int64(1), true
	}
	return plain(v)
}

// choice reads text, in lower case, by a table; what is not in it is unknown.
func choice(table map[string]string) func(constant.Value) (any, bool) {
	return func(v constant.Value) (any, bool) {
		s, _ := v.Str()
		to, ok := table[strings.ToLower(s)]
		return to, ok
	}
}

// dtypes are the spellings of element types, in lower case.
func dtype(v constant.Value) (any, bool) {
	s, _ := v.Str()
	s = strings.TrimPrefix(strings.ToLower(s), "torch.")
	switch s {
	case "fp32", "float32", "float", "32", "32-true", "full", "no":
		return "fp32", true
	case "fp16", "float16", "half", "16", "16-mixed", "16-true", "amp_fp16":
		return "fp16", true
	case "bf16", "bfloat16", "bf16-mixed", "bf16-true", "amp_bf16":
		return "bf16", true
	case "fp8", "amp_fp8", "float8":
		return "fp8", true
	}
	return nil, false
}

// attention are the spellings of attention kernels, in lower case.
func attention(v constant.Value) (any, bool) {
	s, _ := v.Str()
	switch s = strings.ToLower(s); {
	case strings.HasPrefix(s, "flash"), s == "fa2", s == "fa3", s == "triton", s == "xformers", s == "flex_attention", s == "fused":
		return "flash", true
	case s == "sdpa", s == "torch":
		return "sdpa", true
	case s == "eager", s == "disabled", s == "unfused", s == "local":
		return "eager", true
	}
	return nil, false
}

// cpuOrNone is where something is offloaded: a switch, or a device.
func cpuOrNone(v constant.Value) (any, bool) {
	if on, ok := v.Bool(); ok {
		if on {
			return "cpu", true
		}
		return "none", true
	}
	return lower(v)
}

// lightningPrecision is a precision of Lightning's trainer: a number of bits, or a name.
func lightningPrecision(v constant.Value) (any, bool) {
	if n, ok := v.Int(); ok {
		v = constant.MakeString(strconv.FormatInt(n, 10))
	}
	return dtype(v)
}
