// Package feature turns files, positions and findings into what editors show. Its functions keep nothing.
package feature

import (
	"strconv"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/lsp/internal/session"
	"github.com/trainvet/trainvet/lint/source"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"
)

// Source is the name under which editors show our findings.
const Source = "trainvet"

// Severity is how editors rank a finding.
func Severity(s lint.Severity) protocol.DiagnosticSeverity {
	switch s {
	case lint.Error:
		return protocol.DiagnosticSeverityError
	case lint.Warning:
		return protocol.DiagnosticSeverityWarning
	}
	return protocol.DiagnosticSeverityInformation
}

// Diagnostic is a finding with the document that shows it.
func Diagnostic(reader *session.Reader, file *source.File, finding check.Finding) (uri.URI, protocol.Diagnostic) {
	location := reader.Location(file, finding.At.Span)
	d := protocol.Diagnostic{
		Range:           location.Range,
		Severity:        Severity(finding.Severity),
		Code:            protocol.String(finding.Rule.Name),
		CodeDescription: protocol.CodeDescription{Href: uri.URI(finding.Rule.URL())},
		Source:          protocol.NewOptional(Source),
		Message:         protocol.String(message(finding)),
		Data:            data(finding),
	}
	for _, related := range finding.Related {
		if at, ok := reader.Place(related.At); ok {
			d.RelatedInformation = append(d.RelatedInformation, protocol.DiagnosticRelatedInformation{Location: at, Message: related.Message})
		}
	}
	return location.URI, d
}

// message is what a finding says, with the help that no edit can give.
func message(finding check.Finding) string {
	text := finding.Message
	for _, fix := range finding.Fixes {
		if fix.Safety == lint.Display || len(fix.Edits) == 0 {
			text += "\nhelp: " + fix.Title
		}
	}
	return text
}

// data tells clients what a finding is about, beside its rule.
func data(finding check.Finding) protocol.LSPAny {
	text := `{"rule":` + strconv.Quote(finding.Rule.Name) + `,"family":` + strconv.Quote(finding.Rule.Family)
	if finding.Key != "" {
		key, err := protocol.Marshal(protocol.String(finding.Key))
		if err == nil {
			text += `,"key":` + string(key)
		}
	}
	return protocol.LSPAny(text + "}")
}

// Diagnostics are the findings of a file by the documents that show them: one, but in a notebook one for each cell.
func Diagnostics(reader *session.Reader, file *source.File, findings []check.Finding) map[uri.URI][]protocol.Diagnostic {
	found := map[uri.URI][]protocol.Diagnostic{}
	for _, finding := range findings {
		u, d := Diagnostic(reader, file, finding)
		found[u] = append(found[u], d)
	}
	return found
}

// SettingsCode is the code of what is wrong with the settings; it is no rule.
const SettingsCode = "settings"

// Fault is something that is wrong with a settings file.
func Fault(text *session.Text, encoding session.Encoding, fault check.SettingsFault) protocol.Diagnostic {
	return protocol.Diagnostic{
		Range:    text.Range(int(fault.At.Start), int(fault.At.End), encoding),
		Severity: protocol.DiagnosticSeverityError,
		Code:     protocol.String(SettingsCode),
		Source:   protocol.NewOptional(Source),
		Message:  protocol.String(fault.Message),
	}
}
