package config

import (
	_ "embed"
	"fmt"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
)

//go:embed invalid-value.md
var docInvalidValue string

// InvalidValue reports values that the framework refuses: of another type, out of range, or none of the words it knows.
var InvalidValue = &lint.Rule{
	Name:     "invalid-value",
	Family:   "config",
	Since:    "0.1",
	Doc:      docInvalidValue,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: named,
	Hides:    []string{"zero-unsupported"},
	Part: func(pass *lint.Pass, part *workspace.Part) {
		told := map[source.Place]bool{}
		for _, s := range settings(part) {
			fault := faultOf(s)
			if fault == nil {
				fault = ruleOfFramework(pass, s)
			} else if ownWord(pass, s) || plainNumeric(s) && byOmegaConf(pass, part) {
				fault = nil
			} else {
				fault = fault.until(pass, s)
			}
			if fault == nil {
				continue
			}
			at := s.item().Value.At
			if at.Span.Len() == 0 {
				at = s.item().KeyAt
			}
			told[at] = true
			d := pass.Reportf(at, "%s %s", s.path(), fault.message).As(fault.severity).Pinned(fault.pin, fault.since)
			d.Key = part.Key(s.path())
			if fault.instead != "" {
				d.Suggest(fmt.Sprintf("write %s", fault.instead), lint.Unsafe, lint.Edit{At: s.item().Value.At, Text: fault.instead})
			}
		}
		for _, fault := range part.Faults {
			if fault.At.Path == part.Path && !told[fault.At] && fault.Key != "" && !part.Tree.Template && !readsAsNumber(part, fault.At) && !judged(part, fault.Key) {
				d := pass.Reportf(fault.At, "%s %s", fault.Key, fault.Message)
				if fromFlags(part) {
					d.As(lint.Warning) // a program of its own may have a flag of this name
				}
			}
		}
	},
}

// until holds a fault of the sections fp16 and bf16 against the release that is asked for: before strictPrecision DeepSpeed took their values as
// they are.
func (f *fault) until(pass *lint.Pass, s *setting) *fault {
	if s.part.Dialect != dialect.DeepSpeed || !s.policy.Coerced || s.section != "fp16" && s.section != "bf16" || f.since != "" {
		return f
	}
	pin := pass.Pin(s.part.Path, "deepspeed")
	switch pin.Since(strictPrecision) {
	case pyscan.No:
		return nil
	case pyscan.Maybe:
		f.message += ", from " + strictPrecision + " on"
		f.pin, f.since = pin, strictPrecision
	}
	return f
}

// plainNumeric: a plain scalar that people read as a number with an exponent.
func plainNumeric(s *setting) bool {
	node := s.item().Value
	return node.Kind == configs.Scalar && node.Style == configs.Plain && looksNumeric(node.Raw)
}

// ownWord: the project, whose program may have choices of its own for a flag of this name, spells the word that is given for it.
func ownWord(pass *lint.Pass, s *setting) bool {
	if s.part.Tree.Format != configs.Flags || len(s.key.Choices) == 0 {
		return false
	}
	word := s.item().Value.Raw
	return pass.Spells(s.part.Path, "'"+word+"'") || pass.Spells(s.part.Path, `"`+word+`"`)
}

// readsAsNumber: a plain scalar that looks like a number, and that the loader takes for text: scalar-read-as-other-type tells
// how that comes.
func readsAsNumber(part *workspace.Part, at source.Place) bool {
	node := nodeAt(part.Tree.Root, at)
	return node != nil && node.Style == configs.Plain && part.Tree.Format == configs.YAML && almostNumeric(node.Raw)
}

func nodeAt(node *configs.Node, at source.Place) *configs.Node {
	if node == nil || node.At == at {
		return node
	}
	for i := range node.Items {
		if found := nodeAt(node.Items[i].Value, at); found != nil {
			return found
		}
	}
	return nil
}

// judged: the table says more of the key than the plan does, which takes no text for a number where pydantic would.
func judged(part *workspace.Part, path string) bool {
	table := dialect.Keys(part.Dialect)
	if table == nil || fromFlags(part) {
		return false
	}
	key := table.Lookup(part.Dialect.Spelled(part.Tree, path))
	return key != nil && !key.Open()
}
