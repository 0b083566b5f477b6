// Package output writes the result of a check, one file a format.
package output

import (
	"io"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/source"
)

// Format is one way to write a report.
type Format struct {
	Name  string
	Doc   string
	Write func(io.Writer, *check.Report, Paint) error
}

// formats is the list of all formats. Those for machines take no notice of the paint.
var formats = [...]Format{
	{"full", "message, source line, caret and help (the default)", writeFull},
	{"concise", "path:line:col: severity[rule] message, one line a finding", writeConcise},
	{"json", "one JSON object", writeJSON},
	{"jsonl", "one JSON object a finding, each on its line", writeJSONLines},
	{"sarif", "SARIF 2.1.0, for code scanning", writeSARIF},
	{"github", "workflow commands of GitHub Actions, the worst finding first", writeGitHub},
	{"gitlab", "GitLab's code quality report", writeGitLab},
	{"junit", "JUnit XML, one failed test a finding", writeJUnit},
	{"checkstyle", "Checkstyle XML", writeCheckstyle},
	{"rdjson", "reviewdog's diagnostics, with suggested changes", writeRDJSON},
}

// Lookup is the format of that name.
func Lookup(name string) (Format, bool) {
	for _, format := range formats {
		if format.Name == name {
			return format, true
		}
	}
	return Format{}, false
}

// Names are the names of all formats.
func Names() []string {
	names := make([]string, len(formats))
	for i, format := range formats {
		names[i] = format.Name
	}
	return names
}

// span gives the positions of both ends of a place. For a file that cannot be read any more they are 1:1.
func span(report *check.Report, at source.Place) (start, end source.Position) {
	file := report.File(at.Path)
	if file == nil {
		return source.Position{Line: 1, Column: 1}, source.Position{Line: 1, Column: 1}
	}
	return file.Position(at.Span.Start), file.Position(at.Span.End)
}

// help is the title of the fix to show to people; "" where there is none.
func help(fixes []lint.Fix) string {
	if len(fixes) == 0 {
		return ""
	}
	fix := fixes[0]
	if len(fix.Edits) == 0 || fix.Safety == lint.Display {
		return fix.Title
	}
	return fix.Title + " (" + fix.Safety.String() + " fix)"
}
