package output

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/compare"
)

// Compare prints what a change does, for a terminal; nothing where nothing moved.
func Compare(out io.Writer, result *compare.Result, paint Paint) error {
	for i, run := range result.Runs {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s\n", paint.Bold(LinePath(run.Name)+stateNote(run.State)))
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, row := range run.Rows {
			fmt.Fprintf(table, "  %s\t%s\t→  %s\n", Escape(row.Name), Escape(orDash(row.Before)), Escape(orDash(row.After)))
		}
		if err := table.Flush(); err != nil {
			return err
		}
		for _, note := range run.Notes {
			fmt.Fprintf(out, "  note: %s\n", Escape(note))
		}
	}
	separate := len(result.Runs) > 0
	for _, part := range []struct {
		title    string
		report   *check.Report
		findings []check.Finding
	}{{"new", result.After, result.New}, {"fixed", result.Before, result.Fixed}} {
		for i, finding := range part.findings {
			if i == 0 && separate {
				fmt.Fprintln(out)
			}
			start, _ := span(part.report, finding.At)
			fmt.Fprintf(out, "%s: %s %s %s\n", part.title, paint.Bold(Escape(finding.At.Path)+":"+start.String()+":"),
				paint.Severity(finding.Severity, finding.Severity.String()+"["+finding.Rule.Name+"]"), Escape(finding.Message))
			separate = false
		}
	}
	return nil
}

// CompareJSON prints what a change does: the contract with other tools.
func CompareJSON(out io.Writer, rev string, result *compare.Result) error {
	type run struct {
		Name  string        `json:"name"`
		State compare.State `json:"state"`
		Rows  []compare.Row `json:"rows"`
		Notes []string      `json:"notes"`
	}
	answer := struct {
		Version int           `json:"version"`
		Rev     string        `json:"rev"`
		Runs    []run         `json:"runs"`
		New     []jsonFinding `json:"new"`
		Fixed   []jsonFinding `json:"fixed"`
	}{1, rev, []run{}, []jsonFinding{}, []jsonFinding{}}
	for _, r := range result.Runs {
		answer.Runs = append(answer.Runs, run{r.Name, r.State, append([]compare.Row{}, r.Rows...), append([]string{}, r.Notes...)})
	}
	for _, finding := range result.New {
		answer.New = append(answer.New, toJSON(result.After, finding))
	}
	for _, finding := range result.Fixed {
		answer.Fixed = append(answer.Fixed, toJSON(result.Before, finding))
	}
	return WriteObject(out, answer)
}
