package check

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/nearest"
	"github.com/trainvet/trainvet/lint/source"
)

// The rules that the engine itself reports.
const (
	syntaxError        = "syntax-error"
	unknownSuppression = "unknown-suppression"
	unusedSuppression  = "unused-suppression"
)

// Word marks the comments that are for trainvet. A file that contains it is looked at whatever else it holds.
const Word = "trainvet"

// directive is one suppression comment.
type directive struct {
	at     source.Span // of the directive, from its comment marker to the end of the reason
	names  []suppressed
	reason string
	whole  bool        // file-ignore
	covers source.Span // findings that start here are hidden
	faulty bool        // it cannot be read, and hides nothing
	more   bool        // it has more names than are read
}

// maxNames bounds the names in one directive: each is held against each finding that the directive covers.
const maxNames = 200

type suppressed struct {
	name string
	at   source.Span
	hid  bool
}

// A directive ends where the comment does, or at a comment for another tool in the same comment.
var (
	directiveStart = source.Pattern(`(?:#+|//+|/\*+|;)[ \t]*trainvet[ \t]*:[ \t]*`)
	otherTool      = source.Pattern(`[ \t]*#[ \t]*(?:noqa|type:|pylint:|fmt:|ruff:|pragma|pyright:|mypy:|nosec|isort:|yamllint)`)
	directiveWord  = source.Pattern(`^[A-Za-z-]+`)
	nameList       = source.Pattern(`^[ \t]*\[([^\]]*)\]`)
	nameInList     = source.Pattern(`[^\s,]+`)
)

// directives reads the suppression comments of a file.
func directives(file *source.File, doc source.Doc) []directive {
	if !file.Has(Word) {
		return nil
	}
	var all []directive
	comments := doc.Comments()
	next := sync.OnceValue(func() []int { return nextLines(file, comments) })
	for n, comment := range comments {
		text := file.Slice(comment)
		starts := directiveStart().FindAllStringIndex(text, -1)
		for i, start := range starts {
			end := len(text)
			if i+1 < len(starts) {
				end = starts[i+1][0]
			}
			if other := otherTool().FindStringIndex(text[start[1]:end]); other != nil {
				end = start[1] + other[0]
			}
			if d, ok := readDirective(text[:end], start[0], start[1], comment.Start); ok {
				d.covers = covered(file, doc, comment, d.whole, func() int { return next()[n] })
				all = append(all, d)
			}
		}
	}
	return all
}

// readDirective reads text[body:], which follows `trainvet:`. It gives false for prose that only begins like one.
func readDirective(text string, start, body int, offset uint32) (directive, bool) {
	span := func(from, to int) source.Span {
		return source.Span{Start: offset + uint32(from), End: offset + uint32(to)}
	}
	end := len(strings.TrimRight(text, " \t\r\n"))
	d := directive{at: span(start, end)}
	word := directiveWord().FindString(text[body:])
	switch word {
	case "ignore":
	case "file-ignore":
		d.whole = true
	default:
		d.faulty = true
		return d, didYouMean(word, []string{"ignore", "file-ignore"}) != ""
	}
	rest := body + len(word)
	list := nameList().FindStringSubmatchIndex(text[rest:])
	if list == nil {
		d.faulty = true
		return d, true
	}
	for i, name := range nameInList().FindAllStringIndex(text[rest+list[2]:rest+list[3]], maxNames+1) {
		if i == maxNames {
			d.more = true
			break
		}
		from, to := rest+list[2]+name[0], rest+list[2]+name[1]
		d.names = append(d.names, suppressed{name: text[from:to], at: span(from, to)})
	}
	d.reason = strings.Trim(strings.TrimSuffix(text[rest+list[1]:end], "*/"), " \t:-")
	return d, true
}

// covered is where findings must start to be hidden by a comment: on its line when something stands before it there, else in
// the next statement or key. A comment inside of a statement (between the arguments of a call) covers the next line.
func covered(file *source.File, doc source.Doc, comment source.Span, whole bool, nextLine func() int) source.Span {
	if whole {
		return source.Span{Start: 0, End: uint32(len(file.Text)) + 1}
	}
	line := file.Line(comment.Start)
	onLine := file.LineSpan(line)
	if len(bytes.TrimSpace(file.Text[onLine.Start:comment.Start])) > 0 {
		onLine.End++ // a finding may stand at the very end of the line
		return onLine
	}
	next := nextLine()
	extent := doc.Extent(comment.End)
	if next >= 0 && file.Line(extent.Start) != next {
		span := file.LineSpan(next)
		span.End++
		return span
	}
	if extent.Len() > 0 && (file.Kind.IsPython() || file.Kind == source.Shell || file.Kind == source.Requirements || file.Kind == source.Dockerfile) {
		extent.End = file.LineSpan(file.Line(extent.End)).End + 1 // `a; b` is one line to who comments it
	}
	return extent
}

// nextLines are, for each comment of a file, the first line after it that holds more than comments; -1 where there is none.
func nextLines(file *source.File, comments []source.Span) []int {
	lines := make([]int, len(comments))
	for i := len(comments) - 1; i >= 0; i-- {
		after := comments[i].End
		for int(after) < len(file.Text) && bytes.IndexByte([]byte(" \t\r\n\f"), file.Text[after]) >= 0 {
			after++
		}
		switch {
		case i+1 < len(comments) && after >= comments[i+1].Start:
			lines[i] = lines[i+1]
		case int(after) >= len(file.Text):
			lines[i] = -1
		default:
			lines[i] = file.Line(after)
		}
	}
	return lines
}

// suppress takes out the findings that comments hide, and adds what is wrong with the comments themselves. On are the rules
// that were looked for; of the others nobody can say whether a suppression is of use.
func suppress(file *source.File, doc source.Doc, findings []Finding, rules []*lint.Rule, on func(*lint.Rule) bool, reason bool) (kept []Finding, hidden int) {
	all := directives(file, doc)
	if len(all) == 0 {
		return findings, 0
	}
	index := newDirectiveIndex(file, all)
	hide := func(findings []Finding) (kept []Finding) {
		for _, finding := range findings {
			if hides(index.at(file, finding.At.Span.Start), finding, reason) {
				hidden++
			} else {
				kept = append(kept, finding)
			}
		}
		return kept
	}
	kept = hide(findings)
	return append(kept, hide(complaints(file, all, rules, on, reason))...), hidden
}

// directiveIndex finds the directives that may cover a place: a file may hold as many of them as findings.
type directiveIndex struct {
	byLine map[int][]*directive // those that cover one line
	long   []*directive
}

// The directives that are held against each finding: those for more than a line, and those on one line.
const (
	maxLong   = 2000
	maxOnLine = 200
)

func newDirectiveIndex(file *source.File, all []directive) *directiveIndex {
	index := &directiveIndex{byLine: map[int][]*directive{}}
	for i := range all {
		d := &all[i]
		line := file.Line(d.covers.Start)
		if end := file.LineSpan(line).End + 1; d.covers.End <= end {
			if len(index.byLine[line]) < maxOnLine {
				index.byLine[line] = append(index.byLine[line], d)
			}
		} else if len(index.long) < maxLong {
			index.long = append(index.long, d)
		}
	}
	return index
}

// at are the directives that may cover an offset, in no order.
func (x *directiveIndex) at(file *source.File, offset uint32) []*directive {
	line := file.Line(offset)
	near := x.byLine[line]
	if line > 0 && len(x.byLine[line-1]) > 0 { // what covers a line covers its end as well
		near = append(near[:len(near):len(near)], x.byLine[line-1]...)
	}
	return append(near[:len(near):len(near)], x.long...)
}

func hides(near []*directive, finding Finding, reason bool) bool {
	hidden := false
	for _, d := range near {
		start := finding.At.Span.Start
		if d.faulty || reason && d.reason == "" || start < d.covers.Start || start >= d.covers.End && d.covers.Len() > 0 || d.covers.Len() == 0 {
			continue
		}
		for j := range d.names {
			if name := &d.names[j]; name.name == finding.Rule.Name || name.name == finding.Rule.Family {
				name.hid, hidden = true, true
			}
		}
	}
	return hidden
}

// complaints are the findings about the suppressions themselves.
func complaints(file *source.File, all []directive, rules []*lint.Rule, on func(*lint.Rule) bool, reason bool) []Finding {
	var found []Finding
	report := func(name string, d directive, message string) *Finding {
		rule := lint.Find(rules, name)
		if rule == nil || !on(rule) {
			return &Finding{}
		}
		found = append(found, Finding{Rule: rule, Diagnostic: lint.Diagnostic{At: file.At(d.at), Severity: rule.Severity, Message: message}})
		return &found[len(found)-1]
	}
	type answer struct {
		unknown    bool
		near, hint string // the rule that may be meant, and the words for that
	}
	answers := map[string]answer{} // by name: a file may say one many thousand times
	named := func(name string) answer {
		a, asked := answers[name]
		if !asked {
			if a.unknown = unknownName(rules, name, false) != ""; a.unknown {
				a.near = nearest.Of(name, namesOf(rules))
			}
			if a.near != "" {
				a.hint = fmt.Sprintf("; did you mean %q?", a.near)
			}
			answers[name] = a
		}
		return a
	}
	for _, d := range all {
		switch {
		case d.faulty && directiveIsIgnore(file.Slice(d.at)):
			report(unknownSuppression, d, "this suppression names no rule, so it hides nothing").Help("write ignore[RULE], with the name of the rule")
			continue
		case d.faulty:
			word := directiveWord().FindString(directiveStart().ReplaceAllString(file.Slice(d.at), ""))
			report(unknownSuppression, d, fmt.Sprintf("unknown word %q%s", word, didYouMean(word, []string{"ignore", "file-ignore"})))
			continue
		case len(d.names) == 0:
			report(unknownSuppression, d, "the brackets of this suppression are empty, so it hides nothing").Help("write the name of the rule between them")
			continue
		case reason && d.reason == "":
			report(unknownSuppression, d, "this suppression gives no reason, so it hides nothing (require-reason)").Help("write after the brackets why the finding is wrong here")
			continue
		}
		if d.more {
			report(unknownSuppression, d, fmt.Sprintf("more than %d names in one suppression; the rest is not read", maxNames))
			continue // nothing is taken out of what was not read
		}
		var unused []int
		for i, name := range d.names {
			if a := named(name.name); a.unknown {
				finding := report(unknownSuppression, d, fmt.Sprintf("no rule is called %q%s", name.name, a.hint))
				if a.near != "" {
					finding.Suggest("write "+a.near, lint.Unsafe, lint.Edit{At: file.At(name.at), Text: a.near})
				}
			} else if !name.hid && looksFor(rules, on, name.name) {
				unused = append(unused, i)
			}
		}
		if len(unused) == 0 {
			continue
		}
		names := make([]string, len(unused))
		for i, at := range unused {
			names[i] = d.names[at].name
		}
		finding := report(unusedSuppression, d, "this suppression of "+strings.Join(names, ", ")+" hides nothing")
		finding.Suggest("remove it", lint.Safe, lint.Edit{At: file.At(removal(file, d, unused)), Text: without(file, d, unused)})
	}
	return found
}

func directiveIsIgnore(text string) bool {
	word := directiveWord().FindString(directiveStart().ReplaceAllString(text, ""))
	return word == "ignore" || word == "file-ignore"
}

// looksFor reports whether a rule of that name or family is on.
func looksFor(rules []*lint.Rule, on func(*lint.Rule) bool, name string) bool {
	for _, rule := range rules {
		if (rule.Name == name || rule.Family == name) && on(rule) {
			return true
		}
	}
	return false
}

// removal is the text that goes when names are taken out of a directive: all of it when none is left, with the blanks before
// it, or with its line when nothing else stands there.
func removal(file *source.File, d directive, unused []int) source.Span {
	if len(unused) < len(d.names) {
		return source.Span{Start: d.names[0].at.Start, End: d.names[len(d.names)-1].at.End}
	}
	line := file.Line(d.at.Start)
	span, onLine := d.at, file.LineSpan(line)
	for span.Start > onLine.Start && (file.Text[span.Start-1] == ' ' || file.Text[span.Start-1] == '\t') {
		span.Start--
	}
	if span.Start == onLine.Start && d.at.End == onLine.End {
		if lines := file.Lines(); line+1 < len(lines) {
			span.End = lines[line+1]
		}
	}
	return span
}

func without(file *source.File, d directive, unused []int) string {
	if len(unused) == len(d.names) {
		return ""
	}
	var left []string
	for i, name := range d.names {
		if len(unused) > 0 && unused[0] == i {
			unused = unused[1:]
			continue
		}
		left = append(left, name.name)
	}
	return strings.Join(left, ", ")
}
