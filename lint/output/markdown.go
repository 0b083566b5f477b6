package output

import (
	"fmt"
	"io"
	"strings"

	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/compare"
)

// maxListed bounds the findings that a comment lists; the rest is counted.
const maxListed = 20

// Markdown writes a text so that a forge shows it as it is: no markup, no link, no mention of people or issues, and no line of its own.
func Markdown(text string) string {
	var safe strings.Builder
	text = Escape(text)
	for i, r := range text {
		switch {
		case strings.ContainsRune("\\`*_{}[]<>|~$&", r):
			safe.WriteByte('\\')
			safe.WriteRune(r)
		case r == '@' || r == '#' || r == ':' && strings.HasPrefix(text[i:], "://"):
			safe.WriteRune(r)
			safe.WriteString("<!-- -->") // parts what would be a mention or a link
		default:
			safe.WriteRune(r)
		}
	}
	if start := strings.TrimLeft(text, " "); start != "" && strings.ContainsRune("+-=", rune(start[0])) {
		return `\` + strings.TrimLeft(safe.String(), " ")
	}
	return safe.String()
}

// MarkdownCode is a text as a code span, also inside of a table.
func MarkdownCode(text string) string {
	text = strings.ReplaceAll(Escape(text), "|", `\|`)
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return fence + text + fence
}

// writeMarkdown prints the findings as a list for a comment or a job summary, the worst first, and a line for the rest.
func writeMarkdown(out io.Writer, report *check.Report, findings []check.Finding) {
	for i, finding := range findings {
		if i == maxListed {
			fmt.Fprintf(out, "- … and %d more\n", len(findings)-i)
			break
		}
		start, _ := onDisk(report, finding.At)
		fmt.Fprintf(out, "- **%s** %s %s ([%s](%s))\n", finding.Severity, MarkdownCode(fmt.Sprintf("%s:%d", report.Relative(finding.At.Path), start.Line)),
			Markdown(told(report, finding.At, finding.Message)), finding.Rule.Name, finding.Rule.URL())
	}
}

// CompareMarkdown prints what a change does, for a comment on it; nothing where nothing moved.
func CompareMarkdown(out io.Writer, result *compare.Result) error {
	if result.Empty() {
		return nil
	}
	var text strings.Builder
	text.WriteString("### What this change does to the training runs\n")
	for i, run := range result.Runs {
		if i == maxRuns {
			fmt.Fprintf(&text, "\n… and %d more runs\n", len(result.Runs)-i)
			break
		}
		fmt.Fprintf(&text, "\n%s%s\n\n| | before | after |\n|---|---|---|\n", MarkdownCode(run.Name), stateNote(run.State))
		for _, row := range run.Rows {
			fmt.Fprintf(&text, "| %s | %s | %s |\n", Markdown(row.Name), Markdown(orDash(row.Before)), Markdown(orDash(row.After)))
		}
		if len(run.Notes) > 0 {
			text.WriteByte('\n')
		}
		for _, note := range run.Notes {
			fmt.Fprintf(&text, "> ⚠️ %s\n", Markdown(note))
		}
	}
	for _, part := range []struct {
		title    string
		report   *check.Report
		findings []check.Finding
	}{{"New findings", result.After, result.New}, {"Fixed findings", result.Before, result.Fixed}} {
		if len(part.findings) > 0 {
			fmt.Fprintf(&text, "\n**%s (%d)**\n\n", part.title, len(part.findings))
			writeMarkdown(&text, part.report, part.findings)
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func stateNote(state compare.State) string {
	switch state {
	case compare.Added:
		return " (new)"
	case compare.Removed:
		return " (removed)"
	}
	return ""
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}
