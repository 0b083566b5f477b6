package output

import (
	"crypto/sha256"
	"fmt"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/source"
)

const home = "https://github.com/trainvet/trainvet"

// onDisk gives both ends of a place for tools that open the file themselves. For a file that cannot be read any more they are 1:1.
func onDisk(report *check.Report, at source.Place) (start, end source.Spot) {
	file := report.File(at.Path)
	if file == nil {
		return source.Spot{Line: 1, Column: 1, Byte: 1}, source.Spot{Line: 1, Column: 1, Byte: 1}
	}
	return file.OnDisk(at.Span)
}

// told is a message for tools whose places are lines of the file: in notebooks it says the cell as well.
func told(report *check.Report, at source.Place, message string) string {
	if start, _ := span(report, at); start.Cell > 0 {
		return fmt.Sprintf("%s (cell %d, line %d)", message, start.Cell, start.Line)
	}
	return message
}

// Fingerprints are the identities of all findings of a report, one by one, as 32 hexadecimal digits.
func Fingerprints(report *check.Report) []string { return fingerprints(report) }

// fingerprints are the identities of all findings, one by one, as 32 hexadecimal digits.
func fingerprints(report *check.Report) []string {
	all := make([]string, len(report.Findings))
	for i, id := range report.Identities(report.Relative) {
		sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %d", id.Rule, id.Path, id.Key, id.Line, id.Ordinal))
		all[i] = fmt.Sprintf("%x", sum[:16])
	}
	return all
}

// replacement is an edit for tools that open the file themselves.
type replacement struct {
	path       string
	start, end source.Spot
	text       string
}

// replacements are the edits of a fix that a tool may offer; none where the fix is only for people to read, or a file is gone.
func replacements(report *check.Report, fix lint.Fix) []replacement {
	if fix.Safety == lint.Display {
		return nil
	}
	var all []replacement
	for _, edit := range fix.Edits {
		file := report.File(edit.At.Path)
		if file == nil {
			return nil
		}
		text, err := check.EditText(file, edit.Text)
		if err != nil {
			return nil
		}
		start, end := file.OnDisk(edit.At.Span)
		all = append(all, replacement{edit.At.Path, start, end, text})
	}
	return all
}
