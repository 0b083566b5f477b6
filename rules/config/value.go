package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/lint/nearest"
	"github.com/trainvet/trainvet/lint/workspace"
)

// fault is what is wrong with a value.
type fault struct {
	message  string // begins with a verb
	severity lint.Severity
	instead  string        // text of the value that was meant; "" where that is open
	pin      workspace.Pin // the release that decides, where one does
	since    string        // the release with which that changed
}

func refused(format string, args ...any) *fault {
	return &fault{message: fmt.Sprintf(format, args...), severity: lint.Error}
}

// converts reports whether the framework makes numbers and truth values of text that spells them.
func converts(s *setting) bool {
	if s.policy.Coerced || fromFlags(s.part) {
		return true
	}
	switch s.part.Dialect.LoaderOf(s.part.Tree) {
	case configs.LoaderPydantic, configs.LoaderJsonargparse, configs.LoaderFlags:
		return true
	}
	return false
}

// faultOf holds a value against the type, the choices and the range of its key.
func faultOf(s *setting) *fault {
	node := s.item().Value
	if s.key == nil || node.Open || node.Kind == configs.Invalid || s.key.Removed != "" {
		return nil
	}
	if node.Kind != configs.Scalar {
		return shapeFault(s, node)
	}
	v, ok := value(s.part, node)
	if !ok || isAuto(v) || node.Bare {
		return nil
	}
	if v.Kind() == constant.None {
		return nullFault(s)
	}
	if text, ok := v.Str(); ok && (strings.ContainsAny(text, "${}<>") || dialect.Blank(text)) {
		return nil // filled in by somebody
	}
	if f := choiceFault(s, v); f != nil || len(s.key.Choices) > 0 {
		return f
	}
	if f := typeFault(s, v); f != nil {
		return f
	}
	return rangeFault(s, v)
}

// shapeFault: one value was wanted, and a collection is written.
func shapeFault(s *setting, node *configs.Node) *fault {
	kind := map[configs.Kind]string{configs.Mapping: "mapping", configs.Sequence: "list"}[node.Kind]
	if s.key.Open() || s.key.Is(kind) || s.key.Type == "null" {
		return nil
	}
	if s.part.Tree.Format == configs.Flags || s.part.Dialect != dialect.DeepSpeed && (s.key.Is("str") || s.key.Of != "" || s.table.Elsewhere(s.name)) {
		return nil // scripts take lists of names, and some fields are read from text in JSON
	}
	if on, known := switchAt(s.part, "autotuning", "enabled"); kind == "list" && (on || !known) {
		return nil // the values that the autotuner is to try
	}
	return refused("is a %s, wanted %s", kind, wanted(s.key))
}

// nullFault: what nothing is written for is none of the values that pydantic takes, and no section.
func nullFault(s *setting) *fault {
	if s.part.Dialect != dialect.DeepSpeed || s.key.Is("null") {
		return nil
	}
	switch {
	case s.policy.Coerced && !s.key.Is("mapping"):
		return refused("is null, wanted %s: DeepSpeed refuses the config; leave the key out for the default", wanted(s.key))
	case s.section == "" && s.name == "wall_clock_breakdown":
		return refused("is null, wanted true or false: DeepSpeed fails when it loads the config")
	case s.section == "" && s.key.Is("mapping") && !slices.Contains([]string{"aio", "bf16", "bfloat16", "expert_parallel", "eigenvalue"}, s.name): // those are looked at
		return refused("is null, wanted a mapping: DeepSpeed fails when it loads the config; leave the section out")
	}
	return nil
}

// words spells the values that a key takes.
func words(choices []any) []string {
	var all []string
	for _, choice := range choices {
		switch c := choice.(type) {
		case string:
			all = append(all, c)
		case float64:
			all = append(all, strconv.FormatFloat(c, 'g', -1, 64))
		case bool:
			all = append(all, strconv.FormatBool(c))
		}
	}
	return all
}

func choiceFault(s *setting, v constant.Value) *fault {
	if len(s.key.Choices) == 0 {
		return nil
	}
	known := words(s.key.Choices)
	text, isText := v.Str()
	if !isText {
		return choiceNumber(s, v, known)
	}
	for _, word := range known {
		if text == word || (s.key.Fold || s.key.Others) && strings.EqualFold(text, word) {
			return nil
		}
	}
	if s.key.Is("int") && !s.key.Is("str") && converts(s) {
		if n, ok := constant.Convert("float", constant.MakeString(strings.TrimSpace(text))); ok {
			return choiceNumber(s, n, known)
		}
	}
	near := nearest.Of(text, known)
	if s.key.Others && (nearest.Within(text, known, 2) == "" || digitsDiffer(text, near) || closeClass(s.name, s.section, text)) {
		return nil
	}
	if s.part.Dialect != dialect.DeepSpeed && s.part.Dialect != dialect.Accelerate && near == "" && s.policy.Unknown == dialect.Accepted {
		return nil // another release may know it
	}
	if s.part.Tree.Format == configs.Flags && s.part.Dialect == dialect.Megatron {
		near = nearest.Within(text, known, 1) // programs on top have choices of their own
		if near == "" || digitsDiffer(text, near) || ofFork(s) {
			return nil
		}
	}
	f := refused("is %q, wanted %s", text, oneOf(known))
	if near != "" {
		f.message += "; " + near + " is meant, it seems"
		if raw := s.item().Value.Raw; raw == text {
			f.instead = requote(s, near)
		}
	}
	return f
}

// ofFork reports whether the command line has a flag that Megatron itself does not know, nor anything near it: the program is made from
// Megatron (Megatron-DeepSpeed is), and its words for a choice may differ from Megatron's in case or ending.
func ofFork(s *setting) bool {
	return slices.ContainsFunc(s.within.Items, func(item configs.Item) bool {
		name := s.part.Dialect.Spelled(s.part.Tree, item.Key)
		return s.table.Lookup(name) == nil && s.table.Nearest("", name) == "" && !s.table.Abbreviates(name)
	})
}

// closeClass: names of torch's own classes that are close to one of DeepSpeed's.
func closeClass(name, section, text string) bool {
	if name != "type" {
		return false
	}
	if section == "optimizer" {
		return slices.Contains([]string{"Adadelta", "Adagrad", "Adam", "AdamW", "SparseAdam", "Adamax", "ASGD", "LBFGS", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD", "Adafactor", "Muon",
			"FusedAdam", "DeepSpeedCPUAdam", "FusedLamb", "FusedLion"}, text)
	}
	return strings.HasSuffix(text, "LR") && !strings.Contains(strings.ToLower(text), "warm")
}

// requote writes a word in the quotes of the value that it replaces.
func requote(s *setting, word string) string {
	switch s.item().Value.Style {
	case configs.DoubleQuoted:
		return strconv.Quote(word)
	case configs.SingleQuoted:
		return "'" + word + "'"
	}
	if s.part.Tree.Format == configs.JSON || s.part.Tree.Format == configs.TOML {
		return strconv.Quote(word)
	}
	return word
}

func choiceNumber(s *setting, v constant.Value, known []string) *fault {
	n, ok := v.Number()
	if b, isBool := v.Bool(); isBool {
		if s.key.Is("bool") || s.key.Is("str") && !s.policy.Coerced {
			return nil // `no` in YAML, which scalar-read-as-other-type tells
		}
		n, ok = map[bool]float64{true: 1}[b], true
	}
	if !ok {
		return nil
	}
	if slices.Contains(known, strconv.FormatFloat(n, 'g', -1, 64)) {
		return nil
	}
	return refused("is %s, wanted %s", v, oneOf(known))
}

// wanted spells the type of a key.
func wanted(key *dialect.Key) string {
	var kinds []string
	for _, kind := range strings.Split(key.Type, "|") {
		if word := map[string]string{"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text", "list": "a list", "mapping": "a mapping"}[kind]; word != "" {
			kinds = append(kinds, word)
		}
	}
	return oneOf(kinds)
}

func typeFault(s *setting, v constant.Value) *fault {
	key := s.key
	if key.Open() || s.part.Tree.Format == configs.Flags {
		return nil
	}
	wrong := func() *fault { return refused("is %s, wanted %s%s", v, wanted(key), effectOfType(s)) }
	strict := s.policy.Coerced || s.part.Dialect == dialect.DeepSpeed
	number := key.Is("int") || key.Is("float")
	switch v.Kind() {
	case constant.String:
		text, _ := v.Str()
		text = strings.TrimSpace(text)
		switch {
		case key.Is("str") || key.Type == "null":
			return nil
		case number:
			n, numeric := constant.Convert("float", constant.MakeString(text))
			if !numeric {
				if !converts(s) && !strict && (key.Is("list") || key.Is("mapping") || key.Is("bool")) {
					return nil
				}
				return wrong()
			}
			if s.policy.Coerced && !key.Is("float") && strings.ContainsAny(text, "eE") {
				return wrong() // pydantic takes 5e8 for a whole number, and "5e8" for none
			}
			if converts(s) {
				if f, _ := n.Number(); key.Is("float") || f == math.Trunc(f) {
					return nil
				}
				return wrong()
			}
			if s.item().Value.Style == configs.Plain && s.part.Tree.Format == configs.YAML {
				return nil // scalar-read-as-other-type tells why
			}
			if f, known := launcherText(s, text); known {
				return f
			}
			f := refused("is the text %q, wanted %s: nothing converts it", text, wanted(key))
			f.instead = configs.JSONNumber(text) // as every format writes it
			return f
		case key.Is("bool"):
			return boolFault(s, text)
		case key.Is("mapping") && s.part.Dialect != dialect.DeepSpeed || key.Is("list") && !s.policy.Coerced:
			return nil // files that hold it, JSON in text
		}
		return wrong()
	case constant.Bool:
		switch {
		case key.Is("bool") || number && strict || key.Type == "str" && !s.policy.Coerced:
			return nil
		case number || key.Is("str"):
			if !strict {
				return nil
			}
			return wrong()
		case key.Is("mapping"):
			if !strict {
				return nil
			}
			return wrong()
		}
		return nil
	}
	n, ok := v.Number()
	if !ok {
		return nil
	}
	whole := n == math.Trunc(n)
	switch {
	case key.Is("float") || key.Is("int") && whole:
		return nil
	case key.Is("int"):
		if !strict && !slices.Contains([]string{"int", "int|null"}, key.Type) {
			return nil
		}
		return wrong()
	case key.Is("bool"):
		if n == 0 || n == 1 || !strict {
			return nil
		}
		return wrong()
	case key.Is("str"):
		if s.policy.Coerced {
			return wrong()
		}
		return nil
	case key.Is("mapping") && strict, key.Is("list") && s.policy.Coerced:
		return wrong()
	}
	return nil
}

func effectOfType(s *setting) string {
	if s.part.Dialect == dialect.DeepSpeed && s.policy.Coerced {
		return ": DeepSpeed refuses the config"
	}
	return ""
}

// boolFault: text is true for Python, whatever it says, unless somebody reads it.
func boolFault(s *setting, text string) *fault {
	switch strings.ToLower(text) {
	case "true", "yes", "on", "1", "t", "y":
		return nil
	case "false", "no", "off", "0", "f", "n":
		if converts(s) || s.part.Dialect == dialect.Accelerate {
			return nil
		}
		f := refused("is the text %q, which counts as true: only the word without quotes is false", text)
		f.instead = "false"
		return f
	}
	if !s.policy.Coerced && s.part.Dialect != dialect.DeepSpeed && !converts(s) && nearest.Of(text, []string{"true", "false"}) == "" {
		return nil
	}
	return refused("is %q, wanted true or false", text)
}

func rangeFault(s *setting, v constant.Value) *fault {
	n, ok := v.Number()
	if text, isText := v.Str(); isText && converts(s) {
		f, numeric := constant.Convert("float", constant.MakeString(strings.TrimSpace(text)))
		n, ok = 0, false
		if numeric {
			n, ok = f.Number()
		}
	}
	if b, isBool := v.Bool(); isBool {
		n, ok = map[bool]float64{true: 1}[b], s.policy.Coerced
	}
	if !ok {
		return nil
	}
	spell := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	switch key := s.key; {
	case key.Above != nil && n <= *key.Above:
		return refused("is %s, wanted more than %s", v, spell(*key.Above))
	case key.Min != nil && n < *key.Min:
		return refused("is %s, wanted at least %s", v, spell(*key.Min))
	case key.Max != nil && n > *key.Max:
		return refused("is %s, wanted at most %s", v, spell(*key.Max))
	}
	return nil
}
