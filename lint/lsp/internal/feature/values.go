package feature

import (
	"fmt"
	"strings"

	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint/workspace"
)

// writeValues lists the values of the plan of a run that are known, and where each comes from.
func writeValues(text *strings.Builder, view *workspace.View, run *workspace.Run) {
	for name, fact := range plan.Values(&run.Plan) {
		value, known := fact.Any()
		if !known {
			continue
		}
		var from []string
		for _, at := range fact.From() {
			if file, err := view.Snapshot.File(at.Path); err == nil {
				from = append(from, fmt.Sprintf("%s:%d", at.Path, file.Position(at.Span.Start).Line))
			}
		}
		if len(from) == 0 && fact.Note() != "" {
			from = append(from, fact.Note())
		}
		fmt.Fprintf(text, "| %s | %v | %s | %s |\n", name, value, fact.How(), strings.Join(from, ", "))
	}
}
