package configs

import (
	"github.com/trainvet/trainvet/lint/source"
	"math/big"
	"strconv"
	"strings"

	"github.com/trainvet/trainvet/lint/constant"
)

// Loader is what reads a file at run time. The same text means different things to different ones: `1e-5` is text to
// PyYAML and a number to OmegaConf, `off` is false to PyYAML and text to ruamel.
type Loader uint8

// The loaders.
const (
	LoaderYAML11       Loader = iota // PyYAML (yaml.safe_load): YAML 1.1
	LoaderYAML12                     // the core schema of YAML 1.2
	LoaderRuamel                     // ruamel.yaml, YAML 1.2 by default
	LoaderOmegaConf                  // PyYAML with more forms of floats and no dates: Hydra, torchtune, LLaMA-Factory
	LoaderJsonargparse               // PyYAML with other floats and no dates: Lightning CLI, litgpt
	LoaderJSON                       // Python's json.load: NaN and Infinity are numbers
	LoaderHJSON                      // hjson.load: whole floats below 1e10 become integers
	LoaderTOML
	LoaderFlags    // argparse: everything is text
	LoaderPydantic // PyYAML's reading, then text that spells a number or a truth value becomes one where that is wanted
	LoaderPython   // literals of Python source
)

// Resolve is what the loader makes of a scalar. What is not known (an open scalar, a collection, a value the loader
// refuses) is None, and so is null; Node.Open tells them apart. A date is its text.
func (l Loader) Resolve(n *Node) constant.Value {
	v, _ := l.value(n)
	return v
}

// value is Resolve, and whether the loader takes the scalar.
func (l Loader) value(n *Node) (constant.Value, bool) {
	if n == nil || n.Kind != Scalar || n.Open {
		return constant.Value{}, false
	}
	if l == LoaderFlags {
		if n.Bare {
			return constant.MakeBool(true), true
		}
		return constant.MakeString(n.Raw), true
	}
	if n.Tag != "" {
		return l.tagged(n)
	}
	if n.Style != Plain {
		return constant.MakeString(n.Raw), true
	}
	switch l {
	case LoaderJSON, LoaderHJSON:
		return l.json(n.Raw), true
	case LoaderTOML:
		return resolveTOML(n.Raw), true
	case LoaderPython:
		v, ok := constant.Eval(n.Raw, nil)
		if !ok {
			v = constant.MakeString(n.Raw)
		}
		return v, true
	}
	return l.yaml(n.Raw)
}

// Float is the number at a node as the loader reads it: an integer counts; a truth value only for pydantic.
func (n *Node) Float(l Loader) (float64, bool) {
	v := l.Resolve(n)
	if l.coerces() && v.Kind() == constant.String {
		v, _ = constant.Convert("float", v)
	}
	if v.Kind() == constant.Bool && l != LoaderPydantic {
		return 0, false
	}
	return v.Number()
}

// Int is the integer at a node as the loader reads it. A float is none, except where the loader converts whole ones.
func (n *Node) Int(l Loader) (int64, bool) {
	v := l.Resolve(n)
	switch {
	case v.Kind() == constant.Bool && l != LoaderPydantic:
		return 0, false
	case v.Kind() == constant.String && l == LoaderFlags:
		v, _ = constant.Convert("int", v)
	case v.Kind() == constant.String && l == LoaderPydantic:
		text, _ := v.Str()
		if whole, zeros, cut := strings.Cut(strings.TrimSpace(text), "."); cut && strings.Trim(zeros, "0") == "" {
			text = whole
		}
		v, _ = constant.Convert("int", constant.MakeString(text))
	case v.Kind() == constant.Float && l == LoaderPydantic:
		if f, _ := v.Number(); f == float64(int64(f)) {
			return int64(f), true
		}
	}
	return v.Int()
}

// Bool is the truth value at a node as the loader reads it. Flags and pydantic take the usual words for one, and 0 and 1.
func (n *Node) Bool(l Loader) (value, ok bool) {
	v := l.Resolve(n)
	if l.coerces() {
		if i, ok := v.Int(); ok && (i == 0 || i == 1) {
			return i == 1, true
		}
		if f, ok := v.Number(); ok && (f == 0 || f == 1) {
			return f == 1, true
		}
		if text, ok := v.Str(); ok {
			switch strings.ToLower(text) {
			case "true", "t", "yes", "y", "on", "1":
				return true, true
			case "false", "f", "no", "n", "off", "0":
				return false, true
			}
		}
	}
	return v.Bool()
}

// Str is the text at a node as the loader reads it.
func (n *Node) Str(l Loader) (string, bool) { return l.Resolve(n).Str() }

func (l Loader) coerces() bool { return l == LoaderFlags || l == LoaderPydantic }

// tagged is a scalar with an explicit YAML tag.
func (l Loader) tagged(n *Node) (constant.Value, bool) {
	switch n.Tag {
	case "!!null":
		return constant.Value{}, true
	case "!!bool":
		b, ok := yamlWord(n.Raw, l != LoaderYAML12 && l != LoaderRuamel)
		return constant.MakeBool(b), ok
	case "!!int":
		return yamlInteger(n.Raw, l != LoaderYAML12 && l != LoaderRuamel)
	case "!!float":
		return yamlFloat(n.Raw)
	}
	return constant.MakeString(n.Raw), true
}

// plainNumber reads the numbers that mean the same to every loader: digits that do not begin with a needless 0, and such
// digits with a point and more digits behind them.
func plainNumber(raw string) (constant.Value, bool) {
	const safe = 18 // digits that an int64 holds whatever they are
	if len(raw) > safe || raw[0] < '0' || raw[0] > '9' || raw[0] == '0' && len(raw) > 1 && raw[1] != '.' {
		return constant.Value{}, false
	}
	point := -1
	for i := range len(raw) {
		switch c := raw[i]; {
		case c == '.' && point < 0 && i+1 < len(raw):
			point = i
		case c < '0' || c > '9':
			return constant.Value{}, false
		}
	}
	if point < 0 {
		i, err := strconv.ParseInt(raw, 10, 64)
		return constant.MakeInt(i), err == nil
	}
	f, err := strconv.ParseFloat(raw, 64)
	return constant.MakeFloat(f), err == nil
}

func (l Loader) json(raw string) constant.Value {
	switch raw {
	case "true", "false":
		return constant.MakeBool(raw == "true")
	case "null":
		return constant.Value{}
	case "NaN", "Infinity", "-Infinity":
		if l == LoaderHJSON {
			return constant.MakeString(raw)
		}
	}
	if raw != "" && l != LoaderHJSON {
		if v, ok := plainNumber(raw); ok {
			return v
		}
	}
	if strings.Trim(raw, "-0123456789") == "" {
		v, ok := constant.Convert("int", constant.MakeString(raw))
		if ok {
			return v
		}
	}
	v, ok := constant.Convert("float", constant.MakeString(raw))
	if !ok {
		return constant.MakeString(raw)
	}
	const wholeBelow = 1e10
	if f, _ := v.Number(); l == LoaderHJSON && f == float64(int64(f)) && f < wholeBelow && f > -wholeBelow {
		return constant.MakeInt(int64(f))
	}
	return v
}

// The forms of plain scalars, by the loaders' own resolvers.
var (
	float11 = source.Pattern(`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
	int11   = source.Pattern(`^(?:[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+)$`)

	floatOmega        = source.Pattern(`^(?:[-+]?[0-9]+(?:_[0-9]+)*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+(?:_[0-9]+)*[eE][-+]?[0-9]+|\.[0-9]+(?:_[0-9]+)*(?:[eE][-+][0-9]+)?|[-+]?[0-9]+(?:_[0-9]+)*(?::[0-5]?[0-9])+\.[0-9_]*)$`)
	floatJsonargparse = source.Pattern(`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+|\.[0-9_]+(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)

	floatRuamel = source.Pattern(`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+|[-+]?\.[0-9_]+(?:[eE][-+][0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
	intRuamel   = source.Pattern(`^(?:[-+]?0b[01_]+|[-+]?0o?[0-7_]+|[-+]?[0-9_]+|[-+]?0x[0-9a-fA-F_]+)$`)

	float12 = source.Pattern(`^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
	int12   = source.Pattern(`^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$`)
)

// yaml is a plain scalar.
func (l Loader) yaml(raw string) (constant.Value, bool) {
	switch raw {
	case "", "~", "null", "Null", "NULL":
		return constant.Value{}, true
	}
	old := l != LoaderYAML12 && l != LoaderRuamel
	if b, ok := yamlWord(raw, old); ok {
		return constant.MakeBool(b), true
	}
	if strings.IndexByte("-+.0123456789", raw[0]) < 0 {
		return constant.MakeString(raw), true
	}
	if v, ok := plainNumber(raw); ok {
		return v, true
	}
	var isInt, isFloat bool
	switch l {
	case LoaderYAML12:
		isInt = int12().MatchString(raw)
		isFloat = float12().MatchString(raw)
	case LoaderRuamel:
		isFloat = floatRuamel().MatchString(raw)
		isInt = !isFloat && intRuamel().MatchString(raw)
	case LoaderOmegaConf:
		isFloat = float11().MatchString(raw)
		isInt = !isFloat && int11().MatchString(raw)
		isFloat = isFloat || !isInt && floatOmega().MatchString(raw)
	case LoaderJsonargparse:
		isInt = int11().MatchString(raw)
		isFloat = floatJsonargparse().MatchString(raw)
	default:
		isInt = int11().MatchString(raw)
		isFloat = float11().MatchString(raw)
	}
	switch {
	case isInt:
		return yamlInteger(raw, old)
	case isFloat:
		return yamlFloat(raw)
	}
	return constant.MakeString(raw), true
}

// yamlWord reads a truth value: true and false in three spellings, and in YAML 1.1 yes, no, on and off too.
func yamlWord(raw string, old bool) (value, ok bool) {
	lower := strings.ToLower(raw)
	if raw != lower && raw != strings.ToUpper(raw) && raw != strings.ToUpper(lower[:1])+lower[1:] {
		return false, false
	}
	switch lower {
	case "true", "false":
		return lower == "true", true
	case "yes", "on":
		return true, old
	case "no", "off":
		return false, old
	}
	return false, false
}

// yamlInteger reads an integer that a resolver has recognised: with underscores, a base, and in YAML 1.1 octal after 0
// and base 60.
func yamlInteger(raw string, old bool) (constant.Value, bool) {
	digits := strings.ReplaceAll(raw, "_", "")
	negative := strings.HasPrefix(digits, "-")
	digits = strings.TrimLeft(digits, "+-")
	base := 10
	switch {
	case strings.HasPrefix(digits, "0b"):
		base, digits = 2, digits[2:]
	case strings.HasPrefix(digits, "0x"):
		base, digits = 16, digits[2:]
	case strings.HasPrefix(digits, "0o"):
		base, digits = 8, digits[2:]
	case old && strings.Contains(digits, ":"):
		return sexagesimal(digits, negative, false)
	case old && len(digits) > 1 && digits[0] == '0':
		base = 8
	}
	if len(digits) > constant.MaxBits/3 {
		return constant.Value{}, false
	}
	i, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return constant.Value{}, false
	}
	if negative {
		i.Neg(i)
	}
	return constant.MakeBig(i), true
}

func yamlFloat(raw string) (constant.Value, bool) {
	digits := strings.ToLower(strings.ReplaceAll(raw, "_", ""))
	negative := strings.HasPrefix(digits, "-")
	bare := strings.TrimLeft(digits, "+-")
	switch {
	case bare == ".inf" || bare == ".nan":
		digits = strings.Replace(digits, ".", "", 1)
	case strings.Contains(bare, ":"):
		return sexagesimal(bare, negative, true)
	}
	return constant.Convert("float", constant.MakeString(digits))
}

// sexagesimal reads `1:30` as 90: parts to base 60.
func sexagesimal(digits string, negative, float bool) (constant.Value, bool) {
	total := 0.0
	whole := new(big.Int)
	for _, part := range strings.Split(digits, ":") {
		f, err := strconv.ParseFloat(part, 64)
		if err != nil || len(digits) > constant.MaxBits/3 {
			return constant.Value{}, false
		}
		total = total*60 + f
		if i, ok := new(big.Int).SetString(part, 10); ok {
			whole.Add(whole.Mul(whole, big.NewInt(60)), i)
		}
	}
	if float {
		if negative {
			total = -total
		}
		return constant.MakeFloat(total), true
	}
	if negative {
		whole.Neg(whole)
	}
	return constant.MakeBig(whole), true
}

// resolveTOML is a bare TOML value. Dates are their text.
func resolveTOML(raw string) constant.Value {
	switch raw {
	case "true", "false":
		return constant.MakeBool(raw == "true")
	}
	digits := strings.ReplaceAll(raw, "_", "")
	switch strings.TrimLeft(digits, "+-") {
	case "inf", "nan":
		v, _ := constant.Convert("float", constant.MakeString(digits))
		return v
	}
	if len(digits) > 2 && digits[0] == '0' && strings.IndexByte("xob", digits[1]) >= 0 {
		v, _ := yamlInteger(digits, false)
		return v
	}
	if v, ok := constant.Convert("int", constant.MakeString(digits)); ok {
		return v
	}
	if v, ok := constant.Convert("float", constant.MakeString(digits)); ok {
		return v
	}
	return constant.MakeString(raw)
}
