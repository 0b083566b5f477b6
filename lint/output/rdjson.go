package output

import (
	"io"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/source"
)

// The structs are reviewdog's Diagnostic Format. Columns count bytes of UTF-8 from 1; ends are exclusive.
type (
	rdResult struct {
		Source      rdSource       `json:"source"`
		Diagnostics []rdDiagnostic `json:"diagnostics"`
	}
	rdSource struct {
		Name string `json:"name"`
		URL  string `json:"url"`
	}
	rdDiagnostic struct {
		Message     string         `json:"message"`
		Location    rdLocation     `json:"location"`
		Severity    string         `json:"severity"`
		Code        rdCode         `json:"code"`
		Suggestions []rdSuggestion `json:"suggestions,omitempty"`
	}
	rdLocation struct {
		Path  string  `json:"path"`
		Range rdRange `json:"range"`
	}
	rdRange struct {
		Start rdPosition `json:"start"`
		End   rdPosition `json:"end"`
	}
	rdPosition struct {
		Line   int `json:"line"`
		Column int `json:"column"`
	}
	rdCode struct {
		Value string `json:"value"`
		URL   string `json:"url"`
	}
	rdSuggestion struct {
		Range rdRange `json:"range"`
		Text  string  `json:"text"`
	}
)

// writeRDJSON prints what reviewdog turns into comments on a change, with suggestions that can be taken by a click.
func writeRDJSON(to io.Writer, report *check.Report, _ Paint) error {
	result := rdResult{rdSource{"trainvet", home}, []rdDiagnostic{}}
	for _, finding := range report.Findings {
		result.Diagnostics = append(result.Diagnostics, rdDiagnostic{
			Message:     told(report, finding.At, finding.Message),
			Location:    rdLocation{report.Relative(finding.At.Path), toRDRange(onDisk(report, finding.At))},
			Severity:    strings.ToUpper(finding.Severity.String()),
			Code:        rdCode{finding.Rule.Name, finding.Rule.URL()},
			Suggestions: suggestions(report, finding),
		})
	}
	return WriteObject(to, result)
}

// suggestions are the edits of the first fix that can be offered and stays in the file: other fixes are alternatives, which cannot be
// taken together with it, and a suggestion cannot name another file.
func suggestions(report *check.Report, finding check.Finding) (all []rdSuggestion) {
	for _, fix := range finding.Fixes {
		if elsewhere(fix, finding.At.Path) {
			continue
		}
		for _, edit := range replacements(report, fix) {
			all = append(all, rdSuggestion{toRDRange(edit.start, edit.end), edit.text})
		}
		if len(all) > 0 {
			break
		}
	}
	return all
}

func elsewhere(fix lint.Fix, path string) bool {
	for _, edit := range fix.Edits {
		if edit.At.Path != path {
			return true
		}
	}
	return false
}

func toRDRange(start, end source.Spot) rdRange {
	return rdRange{rdPosition{start.Line, start.Byte}, rdPosition{end.Line, end.Byte}}
}
