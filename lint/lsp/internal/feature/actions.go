package feature

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/lsp/internal/session"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"
)

// Edits are changes of several documents, and files that are made for them.
type Edits struct {
	Texts map[uri.URI][]protocol.TextEdit
	Order []uri.URI
	Made  []uri.URI
}

func (e *Edits) add(at protocol.Location, text string) {
	if e.Texts == nil {
		e.Texts = map[uri.URI][]protocol.TextEdit{}
	}
	if _, known := e.Texts[at.URI]; !known {
		e.Order = append(e.Order, at.URI)
	}
	e.Texts[at.URI] = append(e.Texts[at.URI], protocol.TextEdit{Range: at.Range, NewText: text})
}

// Actions makes the actions for findings of one file.
type Actions struct {
	Context context.Context
	State   *session.State
	Project *session.Project
	Reader  *session.Reader
	File    *source.File
	Create  bool // the client can make files
}

// Fix are the edits of a fix; false where it has none that an editor can make.
func (a *Actions) Fix(fix lint.Fix) (edits Edits, ok bool) {
	if fix.Safety == lint.Display || len(fix.Edits) == 0 {
		return edits, false
	}
	for _, edit := range fix.Edits {
		file := a.Project.File(edit.At.Path)
		if file == nil {
			return edits, false
		}
		text, err := a.written(file, edit.Text)
		if err != nil {
			return edits, false
		}
		edits.add(a.Reader.Location(file, edit.At.Span), text)
	}
	return edits, true
}

// written is text as it stands in the document that shows a file.
func (a *Actions) written(file *source.File, text string) (string, error) {
	if a.State.BookOf(a.Project.Absolute(file.Path)) != nil {
		return text, nil // a cell is a document of its own, not JSON
	}
	return check.EditText(file, text)
}

// existing is a suppression on a line to which a name can be added.
var existing = source.Pattern(`trainvet[ \t]*:[ \t]*ignore[ \t]*\[[^\]\n]*(\])`)

// IgnoreHere are the edits that hide a finding by a comment at the end of its line; false where the format has no comments, or where the
// line ends inside of a text.
func (a *Actions) IgnoreHere(finding check.Finding) (edits Edits, ok bool) {
	line := a.File.LineSpan(a.File.Line(finding.At.Span.Start))
	at, text := source.Span{Start: line.End, End: line.End}, ""
	if known := existing().FindSubmatchIndex(a.File.Text[line.Start:line.End]); known != nil {
		bracket := line.Start + uint32(known[2])
		at, text = source.Span{Start: bracket, End: bracket}, ", "+finding.Rule.Name
		if a.File.Text[bracket-1] == '[' {
			text = finding.Rule.Name
		}
	} else {
		marker := a.marker()
		if marker == "" || strings.HasSuffix(strings.TrimRight(a.File.Slice(line), " \t"), `\`) {
			return edits, false
		}
		text = "  " + marker + " trainvet: ignore[" + finding.Rule.Name + "]"
	}
	if !a.isComment(at, text) {
		return edits, false
	}
	text, err := a.written(a.File, text)
	if err != nil {
		return edits, false
	}
	edits.add(a.Reader.Location(a.File, at), text)
	return edits, true
}

// marker begins a comment in the format of the file; "" where it has none.
func (a *Actions) marker() string {
	switch a.File.Kind {
	case source.Python, source.Notebook, source.YAML, source.TOML, source.Shell:
		return "#"
	case source.JSON:
		switch strings.ToLower(path.Ext(a.File.Path)) {
		case ".jsonc", ".json5", ".hjson":
			return "//"
		}
		for _, tree := range a.Project.View(a.Context).Trees(a.File.Path) {
			if tree.Syntax&(configs.HasComments|configs.HasHJSON) != 0 {
				return "//"
			}
		}
	}
	return ""
}

// isComment reports whether text that is put at a place is part of a comment there.
func (a *Actions) isComment(at source.Span, text string) bool {
	edited, err := check.Edited(a.File, []lint.Edit{{At: a.File.At(at), Text: text}})
	if err != nil {
		return false
	}
	view := workspace.NewSnapshot(nowhere{}).With(edited).View(a.Context)
	inside := at.Start + uint32(len(text)) - 1
	for _, comment := range comments(view, edited) {
		if comment.Start <= inside && inside < comment.End {
			return true
		}
	}
	return false
}

// comments are those of a file of any kind.
func comments(view *workspace.View, file *source.File) []source.Span {
	switch file.Kind {
	case source.Python, source.Notebook:
		if m := view.Module(file.Path); m != nil {
			return m.Tree.Comments()
		}
		return nil
	case source.Shell:
		if script := view.Script(file.Path); script != nil {
			return script.Comments()
		}
		return nil
	}
	var all []source.Span
	for _, tree := range view.Trees(file.Path) {
		all = append(all, tree.Comments()...)
	}
	return all
}

// FixAll are the edits that apply all safe fixes to the fixed point, in this file; false where there is nothing to do.
func (a *Actions) FixAll() (edits Edits, ok bool, err error) {
	fixed, err := a.Project.Fixed(a.Context, a.File.Path)
	if err != nil || fixed == nil {
		return edits, false, err
	}
	if a.State.BookOf(a.Project.Absolute(a.File.Path)) != nil {
		for _, edit := range udiff.Strings(string(a.File.Text), string(fixed.Text)) {
			edits.add(a.Reader.Location(a.File, source.Span{Start: uint32(edit.Start), End: uint32(edit.End)}), edit.New)
		}
		return edits, len(edits.Order) > 0, nil
	}
	before, after := string(a.File.Raw), string(fixed.Raw)
	if a.File.Latin1 {
		before, after = string(a.File.Text), string(fixed.Text)
	}
	location := a.Reader.Location(a.File, source.Span{})
	text := session.NewText(before)
	for _, edit := range udiff.Lines(before, after) {
		location.Range = text.Range(edit.Start, edit.End, a.State.Encoding)
		edits.add(location, edit.New)
	}
	return edits, len(edits.Order) > 0, nil
}

// IgnoreInSettings are the edits that leave a rule out for the file in the settings above it, or for one key of it; false where the client
// cannot make a settings file and there is none.
func (a *Actions) IgnoreInSettings(finding check.Finding) (edits Edits, title string, ok bool) {
	absolute := a.Project.Absolute(a.File.Path)
	settings := a.Project.Settings().For(path.Dir(absolute))
	file := a.Project.Settings().Absolute(settings.Path)
	if settings.Path == "" {
		if !a.Create {
			return edits, "", false
		}
		file = path.Join(a.Project.Root, "trainvet.toml")
		edits.Made = append(edits.Made, session.URIOf(file))
	}
	glob, inside := strings.CutPrefix(absolute, path.Dir(file)+"/")
	if !inside {
		return edits, "", false
	}
	glob = globEscaped(glob)
	if finding.Key != "" {
		glob += ":" + finding.Key
	}
	text := a.State.TextAt(file)
	u := session.URIOf(file)
	if doc := a.State.Document(u); doc != nil {
		u = doc.Shown
	}
	at, insert := perFileEntry(text.String(), glob, finding.Rule.Name, path.Base(file) == "pyproject.toml")
	edits.add(protocol.Location{URI: u, Range: text.Range(at, at, a.State.Encoding)}, insert)
	return edits, fmt.Sprintf("Ignore %s in %s for %s", finding.Rule.Name, path.Base(file), glob), true
}

// globEscaped is a file name as a pattern that matches it alone.
func globEscaped(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "!", `\!`).Replace(name)
}

// perFileEntry is where and what to insert into settings so that [per-file-ignores] leaves out a rule for a pattern.
func perFileEntry(text, glob, rule string, pyproject bool) (at int, insert string) {
	table := "per-file-ignores"
	if pyproject {
		table = "tool.trainvet.per-file-ignores"
	}
	quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(glob) + `"`
	header := regexp.MustCompile(`(?m)^[ \t]*\[[ \t]*` + regexp.QuoteMeta(table) + `[ \t]*\][^\n]*(?:\n|$)`)
	found := header.FindStringIndex(text)
	if found == nil {
		lead := "\n"
		switch {
		case text == "":
			lead = ""
		case !strings.HasSuffix(text, "\n"):
			lead = "\n\n"
		}
		return len(text), lead + "[" + table + "]\n" + quoted + " = [\"" + rule + "\"]\n"
	}
	body := text[found[1]:]
	if next := regexp.MustCompile(`(?m)^[ \t]*\[`).FindStringIndex(body); next != nil {
		body = body[:next[0]]
	}
	if entry := regexp.MustCompile(`(?m)^[ \t]*` + regexp.QuoteMeta(quoted) + `[ \t]*=[ \t]*\[`).FindStringIndex(body); entry != nil {
		more := "\"" + rule + "\""
		if !strings.HasPrefix(strings.TrimLeft(body[entry[1]:], " \t\r\n"), "]") {
			more += ", "
		}
		return found[1] + entry[1], more
	}
	lead := ""
	if !strings.HasSuffix(text[:found[1]], "\n") {
		lead = "\n"
	}
	return found[1], lead + quoted + " = [\"" + rule + "\"]\n"
}
