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
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed scalar-read-as-other-type.md
var docScalarReadAsOtherType string

// ScalarReadAsOtherType reports plain scalars of YAML that the framework's loader reads as something else than they look like.
var ScalarReadAsOtherType = &lint.Rule{
	Name:     "scalar-read-as-other-type",
	Family:   "config",
	Since:    "0.1",
	Doc:      docScalarReadAsOtherType,
	Severity: lint.Warning,
	Fix:      lint.SometimesFix,
	Mentions: named,
	Part: func(pass *lint.Pass, part *workspace.Part) {
		if loader := part.Dialect.LoaderOf(part.Tree); loader == configs.LoaderPydantic || loader == configs.LoaderJSON || part.Tree.Format != configs.YAML || part.Tree.Template || part.Section != "" && part.Dialect != dialect.DeepSpeed || throughArgparse(part) || byOmegaConf(pass, part) {
			return
		}
		sections := map[*configs.Node]bool{}
		for _, section := range part.Dialect.Sections(part.Tree) {
			sections[section.Tree.Root] = true
		}
		types := map[*configs.Node]*dialect.Key{}
		for _, s := range settings(part) {
			types[s.item().Value] = s.key
		}
		checkScalars(pass, part, part.Tree.Root, "", types, sections, 0)
	},
}

// byOmegaConf: DeepSpeed reads no YAML. A file of its keys alone is loaded by a program of the project, and where that knows OmegaConf,
// as all that use Hydra do, by that: 1e5 is a number then.
func byOmegaConf(pass *lint.Pass, part *workspace.Part) bool {
	return part.Dialect == dialect.DeepSpeed && part.Section == "" && part.Tree.Format == configs.YAML && (pass.Spells(part.Path, "OmegaConf") || pass.Spells(part.Path, "hydra.main"))
}

// throughArgparse: ms-swift, and Megatron's tests, turn a file into command-line arguments, of which argparse makes numbers.
func throughArgparse(part *workspace.Part) bool {
	if part.Dialect == dialect.Megatron && part.Tree.Root.Item("MODEL_ARGS") != nil {
		return true
	}
	if part.Dialect != dialect.HFTrainingArguments {
		return false
	}
	for _, name := range []string{"tuner_type", "train_type", "sft_type", "rlhf_type", "split_dataset_ratio"} {
		if part.Tree.Root.Item(name) != nil {
			return true
		}
	}
	return false
}

// spelledAsFlags: a program of the project that names the file spells flags with names that are filled in: it makes a command line of
// the keys, and argparse numbers of the values.
func spelledAsFlags(pass *lint.Pass, part *workspace.Part) bool {
	return slices.ContainsFunc(pass.NamedIn(part.Path), func(name string) bool {
		text := pass.Text(name)
		return text != nil && source.KindOf(name, nil) == source.Python && slices.ContainsFunc([]string{`f"--{`, "f'--{", `"--" +`, "'--' +", `"--%s`, "'--%s", `"--{}`, "'--{}"}, text.Has)
	})
}

func checkScalars(pass *lint.Pass, part *workspace.Part, node *configs.Node, key string, types map[*configs.Node]*dialect.Key, skip map[*configs.Node]bool, depth int) {
	if node == nil || skip[node] || depth > configs.MaxDepth {
		return
	}
	if node.Kind != configs.Scalar {
		for i := range node.Items {
			item := &node.Items[i]
			name := item.Key
			if node.Kind == configs.Sequence {
				name = key
			}
			if !item.Merge && (item.Value == nil || item.Value.Via.IsZero()) {
				checkScalars(pass, part, item.Value, name, types, skip, depth+1)
			}
		}
		return
	}
	if node.Style != configs.Plain || node.Open || node.Tag != "" || node.At.Span.Len() == 0 {
		return
	}
	v, ok := value(part, node)
	known := types[node]
	switch text, isText := v.Str(); {
	case !ok:
	case isText && known == nil && !looksNumeric(node.Raw) && almostNumeric(node.Raw) && judgedNumber(part, node):
		pass.Reportf(node.At, "%s: %s is read as text, not as a number", key, text)
	case isText && looksNumeric(node.Raw) && (known == nil || known.Is("float") || known.Is("int")):
		if spelledAsFlags(pass, part) {
			return
		}
		number := dotted(node.Raw)
		d := pass.Reportf(node.At, "%s: %s is read as text, not as a number: PyYAML wants a point and a sign in the exponent", key, text)
		if part.Dialect == dialect.MindSpeedFSDP2 {
			d.As(lint.Info) // its own examples are written so: it seems to make numbers of them
		}
		d.Suggest(fmt.Sprintf("write %s", number), lint.Safe, lint.Edit{At: node.At, Text: number})
	case v.Kind() == constant.Bool && isWord(node.Raw) && known != nil && !known.Open() && !known.Is("bool") && known.Is("str"):
		d := pass.Reportf(node.At, "%s: %s without quotes is read as the truth value %s, not as text", key, node.Raw, v)
		if len(known.Choices) > 0 && part.Dialect != dialect.Accelerate {
			d.As(lint.Error) // it is held against the words that it knows
		}
		d.Suggest("put it in quotes", lint.Safe, lint.Edit{At: node.At, Text: "'" + node.Raw + "'"})
	case v.Kind() == constant.Int && known != nil && (known.Is("int") || known.Is("float")) && !known.Open() && octal().MatchString(node.Raw):
		pass.Reportf(node.At, "%s: %s is read as %s: a leading zero makes it octal", key, node.Raw, v).
			Suggest("leave the zero out", lint.Unsafe, lint.Edit{At: node.At, Text: strings.TrimLeft(node.Raw, "0")})
	case strings.Contains(node.Raw, ":") && (v.Kind() == constant.Int || v.Kind() == constant.Float):
		d := pass.Reportf(node.At, "%s: %s is read as the number %s, to base 60", key, node.Raw, v)
		d.Suggest("put it in quotes", lint.Safe, lint.Edit{At: node.At, Text: "'" + node.Raw + "'"})
	}
}

var (
	exponent = source.Pattern(`^([-+]?)([0-9][0-9_]*)?(\.[0-9_]*)?[eE]([-+]?)([0-9]+)$`)
	octal    = source.Pattern(`^0[0-9]+$`)
)

// looksNumeric reports whether people read text as a number with an exponent: 1e-5, 1E5, .5e3.
func looksNumeric(text string) bool {
	if !strings.ContainsAny(text, "eE") || strings.IndexByte("-+.0123456789", text[0]) < 0 {
		return false // most texts, without the price of a match
	}
	m := exponent().FindStringSubmatch(text)
	return m != nil && (m[2] != "" || len(m[3]) > 1)
}

// dotted writes a number with an exponent as every YAML loader reads it.
func dotted(text string) string {
	m := exponent().FindStringSubmatch(text)
	whole, fraction, sign := m[2], m[3], m[4]
	if whole == "" {
		whole = "0"
	}
	if len(fraction) < 2 {
		fraction = ".0"
	}
	if sign == "" {
		sign = "+"
	}
	return m[1] + whole + fraction + "e" + sign + m[5]
}

// isWord: yes, no, on and off, which YAML 1.1 takes for truth values.
func isWord(raw string) bool {
	switch strings.ToLower(raw) {
	case "yes", "no", "on", "off":
		return true
	}
	return false
}

var nearNumber = source.Pattern(`^[-+]?[0-9][0-9_]*\.?[0-9_]*[eE][-+_]*[0-9_]+$`)

// almostNumeric: text that people read as a number with an exponent, slips of the pen included: 1e-5, 1.0e_8.
func almostNumeric(text string) bool {
	return looksNumeric(text) || strings.ContainsAny(text, "eE") && strings.IndexByte("-+0123456789", text[0]) >= 0 && nearNumber().MatchString(text)
}

// judgedNumber reports whether the plan wanted a number of a value.
func judgedNumber(part *workspace.Part, node *configs.Node) bool {
	for _, fault := range part.Faults {
		if fault.At == node.At {
			return true
		}
	}
	return false
}
