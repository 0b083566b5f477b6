package constant

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// maxDigits bounds the digits of an integer that is read from text.
const maxDigits = 4300

// ParseInt is the integer that decimal digits stand for; None when they are too many.
func ParseInt(digits string) Value {
	if len(digits) <= maxDigits {
		if i, ok := new(big.Int).SetString(digits, 10); ok {
			return MakeBig(i)
		}
	}
	return Value{}
}

// Convert is what int(v), float(v), str(v) or bool(v) gives; ok is false where Python raises or the text is too long.
func Convert(to string, v Value) (out Value, ok bool) {
	text, isText := v.Str()
	text = strings.TrimSpace(text)
	switch to {
	case "bool":
		return MakeBool(v.Truth()), true
	case "str":
		if isText {
			return v, true
		}
		return MakeString(v.String()), v.kind != Bytes
	case "float":
		if isText {
			f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
			return MakeFloat(f), err == nil
		}
		f, ok := v.Number()
		return MakeFloat(f), ok
	case "int":
		switch {
		case isText:
			out := ParseInt(strings.TrimPrefix(strings.ReplaceAll(text, "_", ""), "+"))
			return out, out.kind == Int
		case v.kind == Float:
			if math.IsInf(v.f, 0) || math.IsNaN(v.f) || math.Abs(v.f) > 1e300 {
				return out, false
			}
			i, _ := big.NewFloat(math.Trunc(v.f)).Int(nil)
			return MakeBig(i), true
		}
		if i, ok := v.Int(); ok {
			return MakeInt(i), true
		}
		return v, v.kind == Int
	}
	return out, false
}
