package output

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/source"
)

const (
	frameWidth = 160 // columns of a source line that are shown
	tabWidth   = 4   // columns that a tab takes
)

// writeFull prints each finding with its source line, a caret, what else bears on it, and what to do; then a summary.
func writeFull(to io.Writer, report *check.Report, paint Paint) error {
	out := bufio.NewWriter(to)
	same := repeated(report.Findings)
	for i, finding := range report.Findings {
		rest := same[i]
		if rest != nil && rest[0] != i {
			continue
		}
		fmt.Fprintf(out, "%s: %s\n", paint.Severity(finding.Severity, finding.Severity.String()+"["+finding.Rule.Name+"]"), paint.Bold(Escape(finding.Message)))
		gutter := gutterWidth(report, finding.Diagnostic)
		writeFrame(out, report, paint, finding.At, gutter, "-->", "", func(text string) string { return paint.Severity(finding.Severity, text) })
		for _, related := range finding.Related {
			writeFrame(out, report, paint, related.At, gutter, ":::", ": "+Escape(related.Message), paint.Dim)
		}
		if text := help(finding.Fixes); text != "" {
			fmt.Fprintf(out, "%s %s %s\n", paint.Dim(blanks(gutter)+" ="), paint.Help("help:"), Escape(text))
		}
		writeRest(out, report, paint, gutter, rest)
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out, summary(report.Summary))
	return out.Flush()
}

// gutterWidth is the room for the largest line number of a finding.
func gutterWidth(report *check.Report, finding lint.Diagnostic) int {
	width := 0
	take := func(at source.Place) {
		start, _ := span(report, at)
		width = max(width, len(fmt.Sprint(start.Line)))
	}
	take(finding.At)
	for _, related := range finding.Related {
		take(related.At)
	}
	return width
}

// writeFrame prints where a place is, its first line, and a line of carets under it.
func writeFrame(out io.Writer, report *check.Report, paint Paint, at source.Place, gutter int, arrow, remark string, caret func(string) string) {
	start, _ := span(report, at)
	fmt.Fprintf(out, "%s %s\n", paint.Dim(blanks(gutter)+arrow), Escape(at.Path)+":"+start.String()+remark)
	file := report.File(at.Path)
	if file == nil || len(file.Text) == 0 {
		return
	}
	line := file.LineSpan(file.Line(at.Span.Start))
	before, marked, after := cut(file, line, at.Span)
	edge := paint.Dim(blanks(gutter) + " |")
	fmt.Fprintln(out, edge)
	fmt.Fprintf(out, "%s %s\n", paint.Dim(fmt.Sprintf("%*d |", gutter, start.Line)), noCommand(strings.TrimRight(before+marked+after, " "), `\x5b`)) // also where the parts make one together
	fmt.Fprintf(out, "%s %s%s\n", edge, blanks(runewidth.StringWidth(before)), caret(strings.Repeat("^", max(1, runewidth.StringWidth(marked)))))
}

// cut gives the parts of a line before, in and after a span, as they are shown: long lines lose their ends.
func cut(file *source.File, line, at source.Span) (before, marked, after string) {
	end := max(min(at.End, line.End), at.Start)
	line.Start, line.End = nearby(file, at.Start, line.Start), nearby(file, end, line.End)
	shown := func(from, to uint32) string { return visible(file.Slice(source.Span{Start: from, End: to})) }
	before, marked, after = shown(line.Start, at.Start), shown(at.Start, nearby(file, at.Start, end)), shown(end, line.End)
	if runewidth.StringWidth(before) > frameWidth/2 && runewidth.StringWidth(before)+runewidth.StringWidth(marked) > frameWidth {
		before = "…" + keepLast(before, frameWidth/3)
	}
	marked = keepFirst(marked, frameWidth-runewidth.StringWidth(before))
	after = keepFirst(after, max(1, frameWidth-runewidth.StringWidth(before)-runewidth.StringWidth(marked)))
	return before, marked, after
}

// nearby is to, or the beginning of a character that is only a few frames' widths away from from: a line may be megabytes long.
func nearby(file *source.File, from, to uint32) uint32 {
	const reach = 8 * frameWidth
	switch {
	case to > from+reach:
		to = from + reach
	case to+reach < from:
		to = from - reach
	}
	for to > 0 && int(to) < len(file.Text) && !utf8.RuneStart(file.Text[to]) {
		to--
	}
	return to
}

// visible is a piece of a line with tabs widened and control characters escaped.
func visible(text string) string {
	return Escape(strings.ReplaceAll(text, "\t", blanks(tabWidth)))
}

func keepFirst(text string, width int) string {
	return runewidth.Truncate(text, width, "…")
}

func keepLast(text string, width int) string {
	from := len(text)
	for from > 0 {
		r, size := utf8.DecodeLastRuneInString(text[:from])
		if width -= runewidth.RuneWidth(r); width < 0 {
			break
		}
		from -= size
	}
	return text[from:]
}

func blanks(n int) string { return strings.Repeat(" ", n) }

func summary(s check.Summary) string {
	found := s.Errors + s.Warnings + s.Infos
	if found == 0 {
		return fmt.Sprintf("no findings in %s", count(s.Files, "file"))
	}
	var parts []string
	for _, part := range []struct {
		n    int
		word string
	}{{s.Errors, "error"}, {s.Warnings, "warning"}, {s.Infos, "info"}} {
		if part.n > 0 {
			parts = append(parts, count(part.n, part.word))
		}
	}
	return fmt.Sprintf("%s in %s", strings.Join(parts, ", "), count(s.Files, "file"))
}

// Counts says in a few words what a run found, and in how many files.
func Counts(s check.Summary) string { return summary(s) }

func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
