package output

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/source"
)

// The structs are the contract with other tools, field by field and in this order. Lines and columns count from 1, columns in
// code points, offsets in bytes of the file on disk; cell is there in notebooks only.
type (
	jsonFinding struct {
		Rule     string        `json:"rule"`
		Family   string        `json:"family"`
		Severity string        `json:"severity"`
		Path     string        `json:"path"`
		Start    jsonPosition  `json:"start"`
		End      jsonPosition  `json:"end"`
		Message  string        `json:"message"`
		URL      string        `json:"url"`
		Key      string        `json:"key,omitempty"`
		Related  []jsonRelated `json:"related"`
		Fixes    []jsonFix     `json:"fixes"`
	}
	jsonPosition struct {
		Cell   int `json:"cell,omitempty"`
		Line   int `json:"line"`
		Column int `json:"column"`
		Offset int `json:"offset"`
	}
	jsonRelated struct {
		Path    string       `json:"path"`
		Start   jsonPosition `json:"start"`
		End     jsonPosition `json:"end"`
		Message string       `json:"message"`
	}
	jsonFix struct {
		Title  string     `json:"title"`
		Safety string     `json:"safety"`
		Edits  []jsonEdit `json:"edits"`
	}
	jsonSkipped struct {
		Path   string `json:"path"`
		Reason string `json:"reason"`
	}
	jsonEdit struct {
		Path  string       `json:"path"`
		Start jsonPosition `json:"start"`
		End   jsonPosition `json:"end"`
		Text  string       `json:"text"`
	}
)

// writeJSON prints one object, with each finding on a line of its own.
func writeJSON(to io.Writer, report *check.Report, _ Paint) error {
	out := bufio.NewWriter(to)
	fmt.Fprint(out, "{\"version\": 1,\n \"findings\": [")
	for i, finding := range report.Findings {
		text, err := marshal(toJSON(report, finding))
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprint(out, ",")
		}
		fmt.Fprintf(out, "\n  %s", text)
	}
	if len(report.Findings) > 0 {
		fmt.Fprint(out, "\n ")
	}
	summary, err := marshal(report.Summary)
	if err != nil {
		return err
	}
	fmt.Fprint(out, "],\n")
	if len(report.Skipped) > 0 {
		skipped := make([]jsonSkipped, len(report.Skipped))
		for i, one := range report.Skipped {
			skipped[i] = jsonSkipped{one.Path, one.Reason}
		}
		text, err := marshal(skipped)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, " \"skipped\": %s,\n", text)
	}
	fmt.Fprintf(out, " \"summary\": %s}\n", summary)
	return out.Flush()
}

// WriteObject prints one object, indented for people, with the escapes of all our JSON.
func WriteObject(to io.Writer, object any) error {
	text, err := encode(object, " ")
	if err != nil {
		return err
	}
	_, err = to.Write(append(text, '\n'))
	return err
}

func marshal(v any) ([]byte, error) { return encode(v, "") }

// encode is JSON without escapes for HTML, but with escapes for all that must not reach a terminal raw.
func encode(v any, indent string) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	err := encoder.Encode(v)
	line := bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	raw := func(r rune) bool { return r != '\n' && unprintable(r) } // a newline is between values here, never in one
	if bytes.Contains(line, []byte("##")) {
		line = []byte(noCommand(string(line), `\u005b`)) // a # stands nowhere but in strings
	}
	if !bytes.ContainsFunc(line, raw) {
		return line, err
	}
	var safe []byte
	for _, r := range string(line) {
		if !raw(r) {
			safe = utf8.AppendRune(safe, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			safe = fmt.Appendf(safe, `\u%04x`, unit)
		}
	}
	return safe, err
}

func toJSON(report *check.Report, finding check.Finding) jsonFinding {
	start, end := jsonSpan(report, finding.At)
	f := jsonFinding{Rule: finding.Rule.Name, Family: finding.Rule.Family, Severity: finding.Severity.String(), Path: finding.At.Path, Start: start, End: end,
		Message: finding.Message, URL: finding.Rule.URL(), Key: finding.Key, Related: []jsonRelated{}, Fixes: []jsonFix{}}
	for _, related := range finding.Related {
		start, end := jsonSpan(report, related.At)
		f.Related = append(f.Related, jsonRelated{related.At.Path, start, end, related.Message})
	}
	for _, fix := range finding.Fixes {
		f.Fixes = append(f.Fixes, toJSONFix(report, fix))
	}
	return f
}

func toJSONFix(report *check.Report, fix lint.Fix) jsonFix {
	f := jsonFix{Title: fix.Title, Safety: fix.Safety.String(), Edits: []jsonEdit{}}
	for _, edit := range fix.Edits {
		start, end := jsonSpan(report, edit.At)
		f.Edits = append(f.Edits, jsonEdit{edit.At.Path, start, end, edit.Text})
	}
	return f
}

func jsonSpan(report *check.Report, at source.Place) (start, end jsonPosition) {
	first, last := span(report, at)
	return toJSONPosition(first), toJSONPosition(last)
}

func toJSONPosition(p source.Position) jsonPosition {
	return jsonPosition{p.Cell, p.Line, p.Column, p.Offset}
}
