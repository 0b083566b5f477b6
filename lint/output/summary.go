package output

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/compare"
)

// maxRuns bounds the runs that a summary lists.
const maxRuns = 30

// Summary prints the runs of a project and the findings, the worst first, for the summary of a CI job.
func Summary(out io.Writer, runs []compare.Run, report *check.Report) error {
	var text strings.Builder
	fmt.Fprintf(&text, "### trainvet: %s\n", Markdown(summary(report.Summary)))
	if len(runs) > 0 {
		columns := []string{"global batch", "micro-batch × accumulation", "precision", "sharding", "peak memory"}
		fmt.Fprintf(&text, "\n| run | %s |\n|---%s|\n", strings.Join(columns, " | "), strings.Repeat("|---", len(columns)))
		for i, run := range runs {
			if i == maxRuns {
				fmt.Fprintf(&text, "\n… and %d more runs\n", len(runs)-i)
				break
			}
			text.WriteString("| " + MarkdownCode(run.Name))
			for _, column := range columns {
				at := slices.IndexFunc(run.Rows, func(row compare.Row) bool { return row.Name == column })
				value := ""
				if at >= 0 {
					value = run.Rows[at].After
				}
				text.WriteString(" | " + Markdown(orDash(value)))
			}
			text.WriteString(" |\n")
		}
	}
	if len(report.Findings) > 0 {
		findings := slices.Clone(report.Findings)
		slices.SortStableFunc(findings, func(a, b check.Finding) int { return cmp.Compare(b.Severity, a.Severity) })
		text.WriteByte('\n')
		writeMarkdown(&text, report, findings)
	}
	if line := Unverified(report); line != "" {
		fmt.Fprintf(&text, "\n%s\n", Markdown(line))
	}
	_, err := io.WriteString(out, text.String())
	return err
}
