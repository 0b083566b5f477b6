package check

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// maxRounds bounds how often a project is fixed and checked again.
const maxRounds = 10

// Fixed is what Fix did.
type Fixed struct {
	Report  *Report        // of the files as they are now
	Files   []*source.File // those that changed, by path, in their last state
	Applied int            // fixes
	Refused []Fault        // fixes that were taken back, since a file did not parse with them
}

// Fix applies fixes to the text in memory, in rounds, until nothing changes; what overlaps waits for the next round. Nothing is
// written. Safe fixes are applied, and unsafe ones where unsafe is set. A fix that reaches into a file that is not among the
// targets is left alone.
func Fix(ctx context.Context, snapshot *workspace.Snapshot, targets []Target, options Options, unsafe bool) (*Fixed, error) {
	fixed := &Fixed{}
	changed := map[string]*source.File{}
	refused := map[string]bool{}
	for round := 0; ; round++ {
		report, err := Run(ctx, snapshot, targets, options)
		if err != nil {
			return nil, err
		}
		fixed.Report = report
		chosen := choose(report, targets, unsafe, refused)
		if round == maxRounds || len(chosen) == 0 {
			break
		}
		files, applied, broken := settle(snapshot, chosen)
		for _, fix := range broken {
			refused[fix.key()] = true
			if fix.finding.Rule.Name == syntaxError {
				continue // the file did not parse before either: what stood behind the mended fault is wrong, too
			}
			fixed.Refused = append(fixed.Refused, Fault{Path: fix.finding.At.Path, Rule: fix.finding.Rule.Name, Reason: "the file does not parse after its fix, which was taken back"})
		}
		fixed.Applied += applied
		for _, file := range files {
			if before, err := snapshot.File(file.Path); err == nil && options.New != nil {
				options.New = options.New.after(options.Settings.Absolute(file.Path), before, file)
			}
			changed[file.Path] = file
		}
		snapshot = snapshot.With(files...)
	}
	fixed.Files = slices.SortedFunc(maps.Values(changed), func(a, b *source.File) int { return cmp.Compare(a.Path, b.Path) })
	return fixed, nil
}

// keepComments takes the edits out of fixes that would delete a comment together with code, as in a call over several
// lines that is written anew: the comment may be for another tool. Whole lines that go, go with theirs.
func keepComments(file *source.File, comments []source.Span, findings []Finding) {
	if len(comments) == 0 {
		return
	}
	for i := range findings {
		for j := range findings[i].Fixes {
			fix := &findings[i].Fixes[j]
			if slices.ContainsFunc(fix.Edits, func(e lint.Edit) bool { return losesComment(file, comments, e) }) {
				findings[i].Fixes = slices.Clone(findings[i].Fixes)
				findings[i].Fixes[j] = lint.Fix{Title: fix.Title, Safety: lint.Display}
			}
		}
	}
}

func losesComment(file *source.File, comments []source.Span, edit lint.Edit) bool {
	at := edit.At.Span
	if edit.At.Path != file.Path || at.Len() <= 0 {
		return false
	}
	wholeLines := edit.Text == "" && file.LineSpan(file.Line(at.Start)).Start == at.Start && (int(at.End) == len(file.Text) || file.Text[at.End-1] == '\n')
	first, _ := slices.BinarySearchFunc(comments, at.Start, func(c source.Span, start uint32) int { return cmp.Compare(c.End, start+1) })
	for _, comment := range comments[first:] {
		if comment.Start >= at.End {
			break
		}
		text := file.Slice(comment)
		if !wholeLines && !strings.Contains(edit.Text, text) && !strings.Contains(text, strings.TrimSpace(file.Slice(at))) {
			return true
		}
	}
	return false
}

// chosenFix is a fix with the finding that it mends.
type chosenFix struct {
	finding Finding
	line    string // the text of its line up to the end of the finding: one message may be of many
	lint.Fix
}

// key tells a fix from others also after text around it has changed.
func (f *chosenFix) key() string {
	return strings.Join([]string{f.finding.Rule.Name, f.finding.At.Path, f.finding.Message, f.Title, f.line}, "\x00")
}

// choose takes of each finding the first fix that may be applied, as long as it does not touch what another one changes.
func choose(report *Report, targets []Target, unsafe bool, refused map[string]bool) (chosen []chosenFix) {
	listed := map[string]bool{}
	for _, target := range targets {
		listed[target.Path] = true
	}
	var taken []source.Place
	for _, finding := range report.Findings {
		for _, fix := range finding.Fixes {
			next := chosenFix{finding, lineTo(report, finding.At), fix}
			if len(fix.Edits) == 0 || fix.Safety == lint.Display || fix.Safety == lint.Unsafe && !unsafe || refused[next.key()] {
				continue
			}
			free := true
			for _, edit := range fix.Edits {
				free = free && listed[edit.At.Path] && !slices.ContainsFunc(taken, func(at source.Place) bool { return touch(at, edit.At) })
			}
			if free {
				chosen = append(chosen, next)
				for _, edit := range fix.Edits {
					taken = append(taken, edit.At)
				}
			}
			break
		}
	}
	return chosen
}

// lineTo is the text of a line up to the end of a place.
func lineTo(report *Report, at source.Place) string {
	file := report.File(at.Path)
	if file == nil {
		return ""
	}
	return file.Slice(source.Span{Start: file.LineSpan(file.Line(at.Span.Start)).Start, End: at.Span.End})
}

// touch holds for edits whose order would matter: they overlap, or one ends where the other begins.
func touch(a, b source.Place) bool {
	return a.Path == b.Path && a.Span.Start <= b.Span.End && b.Span.Start <= a.Span.End
}

// settle makes the edits, and leaves out the fixes that break a file.
func settle(snapshot *workspace.Snapshot, chosen []chosenFix) (files []*source.File, applied int, broken []chosenFix) {
	if files, sound := rewrite(snapshot, chosen); sound {
		return files, len(chosen), nil
	}
	var good []chosenFix
	for _, fix := range chosen {
		if _, sound := rewrite(snapshot, []chosenFix{fix}); sound {
			good = append(good, fix)
		} else {
			broken = append(broken, fix)
		}
	}
	files, sound := rewrite(snapshot, good)
	if !sound { // only together do they break it: one now, the others in the next round
		good = good[:1]
		files, _ = rewrite(snapshot, good)
	}
	return files, len(good), broken
}

// rewrite gives the files as they are with these fixes, and whether all of them parse as well as before.
func rewrite(snapshot *workspace.Snapshot, chosen []chosenFix) (files []*source.File, sound bool) {
	edits := map[string][]lint.Edit{}
	for _, fix := range chosen {
		for _, edit := range fix.Edits {
			edits[edit.At.Path] = append(edits[edit.At.Path], edit)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(edits)) {
		before, err := snapshot.File(name)
		if err != nil {
			return nil, false
		}
		after, err := Edited(before, edits[name])
		if err != nil {
			return nil, false
		}
		if bytes.Equal(before.Raw, after.Raw) {
			continue
		}
		if syntaxErrors(snapshot.With(after), after) > syntaxErrors(snapshot, before) {
			return nil, false
		}
		files = append(files, after)
	}
	return files, true
}

// syntaxErrors counts the faults of a file.
func syntaxErrors(snapshot *workspace.Snapshot, file *source.File) int {
	s := subject{view: snapshot.View(context.Background()), file: file}
	s.parse()
	count := 0
	if file.Fault != "" {
		count++
	}
	if s.tree != nil {
		count += len(s.tree.Errors)
	}
	for _, tree := range s.trees {
		count += len(tree.Errors)
	}
	return count
}

var (
	errOverlap  = errors.New("edits overlap")
	errEncoding = errors.New("the text of an edit cannot be written in the encoding of the file")
)

// Edited is the file with edits made, none of which may overlap. Every byte outside of them stays; new lines get the line ends
// of the file.
func Edited(file *source.File, edits []lint.Edit) (*source.File, error) {
	edits = slices.SortedFunc(slices.Values(edits), func(a, b lint.Edit) int {
		return cmp.Or(cmp.Compare(a.At.Span.Start, b.At.Span.Start), cmp.Compare(a.At.Span.End, b.At.Span.End))
	})
	var raw []byte
	done := uint32(0)
	for _, edit := range edits {
		span := file.RawSpan(edit.At.Span)
		if span.Start < done || int(span.End) > len(file.Raw) || span.End < span.Start {
			return nil, errOverlap
		}
		text, err := encode(file, edit.Text)
		if err != nil {
			return nil, err
		}
		raw = append(append(raw, file.Raw[done:span.Start]...), text...)
		done = span.End
	}
	raw = append(raw, file.Raw[done:]...)
	return source.Decode(file.Path, file.Kind, raw)
}

// EditText is the text of an edit as it stands in the file once made: with the line ends of the file, and in a notebook as a part of
// a JSON string.
func EditText(file *source.File, text string) (string, error) {
	if bytes.Contains(file.Text, []byte("\r\n")) {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
	}
	if file.Kind != source.Notebook {
		return text, nil
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		return "", err
	}
	return string(quoted[1 : len(quoted)-1]), nil
}

// encode turns the text of an edit into bytes of the file.
func encode(file *source.File, text string) ([]byte, error) {
	text, err := EditText(file, text)
	if err != nil || !file.Latin1 {
		return []byte(text), err
	}
	raw, ok := file.Encode(text)
	if !ok {
		return nil, errEncoding
	}
	return raw, nil
}
