package check

import (
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/trainvet/trainvet/lint/changes"
	"github.com/trainvet/trainvet/lint/source"
)

// NewCode keeps findings that stand on new lines, or have evidence there: a setting that breaks an old loop is new.
type NewCode struct {
	Set        *changes.Set
	WholeFiles bool // all findings of a file in which something is new

	fixed map[string]changes.Lines // of files that were changed in memory, by absolute path
}

// keepNew takes out what is not new.
func (c *checker) keepNew(report *Report) {
	if c.options.New == nil {
		return
	}
	kept := report.Findings[:0:0]
	for _, finding := range report.Findings {
		is := c.isNew(report, finding.At)
		for _, related := range finding.Related {
			is = is || c.isNew(report, related.At)
		}
		if is {
			kept = append(kept, finding)
		}
	}
	report.Findings = kept
}

func (c *checker) isNew(report *Report, at source.Place) bool {
	file := report.File(at.Path)
	if file == nil {
		return false
	}
	if at.Path == StdinName {
		return true
	}
	lines := c.options.New.of(c.options.Settings.Absolute(at.Path))
	if c.options.New.WholeFiles {
		return lines.Whole || len(lines.Ranges) > 0
	}
	start, end := file.OnDisk(at.Span)
	last := end.Line
	if end.Column == 1 && last > start.Line {
		last--
	}
	return lines.Overlaps(start.Line, last)
}

// StdinName is what the text on stdin is called where it has no name of its own; all of it is new.
const StdinName = "-"

func (n *NewCode) of(absolute string) changes.Lines {
	if lines, known := n.fixed[absolute]; known {
		return lines
	}
	return n.Set.Of(absolute)
}

// after is what is new once a file was changed in memory: the same lines where they stand now, and the lines of the change.
func (n *NewCode) after(absolute string, before, after *source.File) *NewCode {
	lines := n.of(absolute)
	next := &NewCode{Set: n.Set, WholeFiles: n.WholeFiles, fixed: map[string]changes.Lines{absolute: lines}}
	for name, of := range n.fixed {
		if name != absolute {
			next.fixed[name] = of
		}
	}
	if lines.Whole || len(lines.Ranges) == 0 {
		return next
	}
	old, text := string(before.Raw), string(after.Raw)
	var moved changes.Lines
	take := func(first, last int) {
		if last >= first {
			moved.Ranges = append(moved.Ranges, changes.Range{First: first, Last: last})
		}
	}
	kept := func(first, last, shift int) { // the lines first to last of the old text are in the new one, shifted
		for _, r := range lines.Ranges {
			take(max(r.First, first)+shift, min(r.Last, last)+shift)
		}
	}
	from, shift := 1, 0
	for _, edit := range udiff.Lines(old, text) {
		first := 1 + strings.Count(old[:edit.Start], "\n")
		gone, came := lineCount(old[edit.Start:edit.End]), lineCount(edit.New)
		kept(from, first-1, shift)
		take(first+shift, first+shift+came-1)
		from, shift = first+gone, shift+came-gone
	}
	kept(from, 1+lineCount(old), shift)
	next.fixed[absolute] = moved
	return next
}

// lineCount counts lines, also a last one without an end.
func lineCount(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}
