package check

import (
	"slices"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
)

// cascade takes out the findings of rules that another finding hides: it has the same cause and says it better.
func cascade(findings []Finding) []Finding {
	hidden := make([]bool, len(findings))
	for _, above := range findings {
		if len(above.Rule.Hides) == 0 {
			continue
		}
		for i, below := range findings {
			if slices.Contains(above.Rule.Hides, below.Rule.Name) && sameCause(above.Diagnostic, below.Diagnostic) {
				hidden[i] = true
			}
		}
	}
	kept := findings[:0:0]
	for i, finding := range findings {
		if !hidden[i] {
			kept = append(kept, finding)
		}
	}
	return kept
}

func sameCause(a, b lint.Diagnostic) bool {
	if overlap(a.At, b.At) {
		return true
	}
	cause := func(d lint.Diagnostic) source.Place {
		if d.Cause.IsZero() {
			return d.At
		}
		return d.Cause
	}
	return overlap(cause(a), cause(b))
}

// overlap holds for places that share a byte, and for two empty ones at the same offset.
func overlap(a, b source.Place) bool {
	return a.Path == b.Path && (a.Span == b.Span || a.Span.Start < b.Span.End && b.Span.Start < a.Span.End)
}
