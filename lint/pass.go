package lint

import (
	"fmt"
	"slices"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// Pass is one rule at work on one file. Its View answers what the project says; there is no other way to files.
type Pass struct {
	*workspace.View
	Rule    *Rule
	options map[string]any
	found   []*Diagnostic
	once    map[any]any
}

// NewPass prepares a rule for work. Options hold what the settings say; what they leave out has its default.
func NewPass(view *workspace.View, rule *Rule, options map[string]any) *Pass {
	return &Pass{View: view, Rule: rule, options: options}
}

// Report takes a finding. What it gives back may still be added to.
func (p *Pass) Report(d Diagnostic) *Diagnostic {
	p.found = append(p.found, &d)
	return &d
}

// Reportf takes a finding of the rule's own severity.
func (p *Pass) Reportf(at source.Place, format string, args ...any) *Diagnostic {
	return p.Report(Diagnostic{At: at, Message: fmt.Sprintf(format, args...)})
}

// Once gives what make gives, which is called for the first question with that key alone, as long as the rule looks at the same file. What
// takes a walk over a function or a file is asked so where it is asked for each of its loops or calls: thousands stand in one file.
// The key has a type that no other question of the rule has.
func Once[K comparable, T any](p *Pass, key K, make func() T) T {
	if known, ok := p.once[key]; ok {
		return known.(T)
	}
	made := make()
	if p.once == nil {
		p.once = map[any]any{}
	}
	p.once[key] = made
	return made
}

// Findings are the findings so far, each with its severity.
func (p *Pass) Findings() []Diagnostic {
	findings := make([]Diagnostic, len(p.found))
	for i, d := range p.found {
		findings[i] = *d
		for _, related := range d.Related {
			p.Placed(related.At.Path) // the finding is made anew when that place moves
		}
		if d.Severity == RuleSeverity {
			findings[i].Severity = p.Rule.Severity
		}
	}
	return findings
}

// Each visits the findings so far; they may be changed.
func (p *Pass) Each(visit func(*Diagnostic)) {
	for _, d := range p.found {
		visit(d)
	}
}

// Drop takes out findings.
func (p *Pass) Drop(which func(*Diagnostic) bool) { p.found = slices.DeleteFunc(p.found, which) }

// Again is the rule at work once more, on another file, with nothing found yet.
func (p *Pass) Again() *Pass { return NewPass(p.View, p.Rule, p.options) }

// OptionOf is the value of an option of the rule that is at work. It panics for an option that the rule does not declare,
// or declares with another type.
func OptionOf[T string | bool | int64 | float64 | []string](p *Pass, name string) T {
	if value, given := p.options[name]; given {
		return value.(T)
	}
	for _, option := range p.Rule.Options {
		if option.Name == name {
			return option.Default.(T)
		}
	}
	panic(fmt.Sprintf("rule %s declares no option %q", p.Rule.Name, name))
}
