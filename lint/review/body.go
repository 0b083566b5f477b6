package review

import (
	"fmt"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/changes"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/output"
	"github.com/trainvet/trainvet/lint/source"
)

// The marks by which comments are known again. What they hold is ours alone: hexadecimal digits.
const (
	markStart   = "<!-- trainvet:"
	markEnd     = " -->"
	summaryMark = markStart + "summary" + markEnd
	moreMark    = markStart + "more" + markEnd
)

func mark(print string) string { return markStart + print + markEnd }

// printOf is the fingerprint that a comment carries; "" for comments of others.
func printOf(body string) string {
	_, rest, found := strings.Cut(body, markStart)
	print, _, ended := strings.Cut(rest, markEnd)
	if !found || !ended || len(print) != 32 || strings.Trim(print, "0123456789abcdef") != "" {
		return ""
	}
	return print
}

// comment is what is said about a finding at the lines first to last of its file.
func comment(report *check.Report, finding check.Finding, print, path string, lines changes.Lines) newComment {
	file := report.File(finding.At.Path)
	start, _ := file.OnDisk(finding.At.Span)
	c := newComment{Path: path, Line: start.Line, Side: "RIGHT", print: print}
	var body strings.Builder
	fmt.Fprintf(&body, "**%s** %s ([%s](%s))\n", finding.Severity, output.Markdown(finding.Message), finding.Rule.Name, finding.Rule.URL())
	for _, related := range finding.Related {
		if other := report.File(related.At.Path); other != nil {
			at, _ := other.OnDisk(related.At.Span)
			fmt.Fprintf(&body, "\n%s %s\n", output.MarkdownCode(fmt.Sprintf("%s:%d", report.Relative(related.At.Path), at.Line)), output.Markdown(related.Message))
		}
	}
	if fix, text, first, last, ok := suggestion(file, finding, lines); ok {
		fmt.Fprintf(&body, "\n%s (%s):\n%s", output.Markdown(fix.Title), fix.Safety, fenced("suggestion", text))
		c.Line = last
		if first < last {
			c.StartLine, c.StartSide = first, "RIGHT"
		}
	} else if len(finding.Fixes) > 0 {
		fmt.Fprintf(&body, "\n%s\n", output.Markdown(finding.Fixes[0].Title))
	}
	c.Body = body.String() + "\n" + mark(print)
	return c
}

// fenced is a block of code, in more backticks than it holds in a row.
func fenced(language, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return fence + language + "\n" + text + fence + "\n"
}

// maxSuggestion bounds the text of a suggestion, in bytes: a config on one line can be longer than a comment may be.
const maxSuggestion = 16 << 10

// suggestion is the first fix that stays in lines that are new, as the text of whole lines. A forge writes UTF-8 with the line ends that
// it likes, so files of another kind get none.
func suggestion(file *source.File, finding check.Finding, lines changes.Lines) (fix lint.Fix, text string, first, last int, ok bool) {
	if file.Latin1 || file.Kind == source.Notebook || strings.Contains(string(file.Text), "\r") {
		return fix, "", 0, 0, false
	}
	for _, fix := range finding.Fixes {
		if fix.Safety == lint.Display || len(fix.Edits) == 0 {
			continue
		}
		first, last := 0, 0
		inside := true
		for _, edit := range fix.Edits {
			inside = inside && edit.At.Path == finding.At.Path
			from := file.Line(edit.At.Span.Start) + 1
			to := from
			if end := edit.At.Span.End; end > edit.At.Span.Start {
				to = file.Line(end-1) + 1
			}
			if first == 0 {
				first, last = from, to
			}
			first, last = min(first, from), max(last, to)
		}
		for line := first; line <= last; line++ {
			inside = inside && lines.Overlaps(line, line)
		}
		if !inside {
			continue
		}
		after, err := check.Edited(file, fix.Edits)
		if err != nil {
			continue
		}
		begin := file.Lines()[first-1]
		end := len(file.Text)
		if last < len(file.Lines()) {
			end = int(file.Lines()[last])
		}
		if end-int(begin)+len(after.Text)-len(file.Text) > maxSuggestion {
			continue
		}
		return fix, string(after.Text[begin : len(after.Text)-(len(file.Text)-end)]), first, last, true
	}
	return fix, "", 0, 0, false
}

const goneText = "This is no longer found."

// gone is what a comment says once its finding is no longer there.
func gone(print string) string {
	return goneText + "\n\n" + mark(print)
}
