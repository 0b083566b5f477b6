package constant

import (
	"errors"
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
			return parseFloat(text)
		}
		f, ok := v.Number()
		return MakeFloat(f), ok && (!math.IsInf(f, 0) || v.kind == Float)
	case "int":
		switch {
		case isText:
			return parseInteger(text)
		case v.kind == Float:
			if math.IsInf(v.f, 0) || math.IsNaN(v.f) {
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

// parseInteger is int(text): decimal digits with a sign, blanks around, single underscores between digits.
func parseInteger(text string) (Value, bool) {
	digits := strings.TrimSpace(text)
	negative := strings.HasPrefix(digits, "-")
	if negative || strings.HasPrefix(digits, "+") {
		digits = digits[1:]
	}
	if digits == "" || strings.Trim(digits, "0123456789_") != "" || !underscoresFit(digits) {
		return Value{}, false
	}
	v := ParseInt(strings.ReplaceAll(digits, "_", ""))
	if v.kind == Int && negative {
		v = MakeBig(new(big.Int).Neg(v.i))
	}
	return v, v.kind == Int
}

// parseFloat is float(text): a decimal number, inf, infinity or nan in any case, with a sign and blanks around.
func parseFloat(text string) (Value, bool) {
	number := strings.TrimSpace(text)
	bare := strings.ToLower(strings.TrimLeft(number, "+-"))
	if len(number)-len(bare) > 1 || len(number) > maxDigits {
		return Value{}, false
	}
	switch bare {
	case "inf", "infinity", "nan":
	default:
		if bare == "" || strings.Trim(bare, "0123456789_.e+-") != "" || !underscoresFit(bare) {
			return Value{}, false
		}
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(number, "_", ""), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return Value{}, false
	}
	return MakeFloat(f), true
}
