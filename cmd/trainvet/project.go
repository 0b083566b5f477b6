package main

import (
	"context"
	"errors"
	"io"
	"path"

	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/output"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/rules/custom"
)

// project are the files that `fit` and `plan` are asked about.
type project struct {
	view  *workspace.View
	files []string // those that can be read
}

// openAs is open for a command that answers as text or JSON. No project without an error means that the trouble was told.
func (a *app) openAs(format string, files []string, facts *factFlags) (*project, error) {
	if format != "text" && format != "json" {
		return nil, usagef("--format must be text or json, not %q", format)
	}
	given, err := facts.plan()
	if err != nil {
		return nil, err
	}
	return a.open(files, given), nil
}

// open reads the named files, with the facts of the flags and of the settings above each file. Nil means that the settings are
// wrong, and that this was said.
func (a *app) open(names []string, facts plan.Plan) *project {
	snapshot := workspace.NewSnapshot(workspace.NewConfined(a.dir, names...))
	settings := &check.Resolver{Snapshot: snapshot, Dir: a.dir, Rules: a.rules, Declare: custom.Rule, Release: release, Flags: check.Flags{Run: facts}}
	p := &project{}
	var targets []check.Target
	for _, name := range names {
		if name == "" {
			a.unreadable(`""`, check.ErrEmptyName.Error())
			continue
		}
		name = clean(name)
		settings.For(path.Dir(name))
		if _, err := snapshot.File(name); err != nil {
			a.unreadable(name, err.Error())
			continue
		}
		targets = append(targets, check.Target{Path: name, Named: true})
		p.files = append(p.files, name)
	}
	if a.settingsTrouble(settings.Err()) {
		return nil
	}
	snapshot = check.GuessKinds(snapshot, targets).WithFacts(settings.Facts)
	p.view = snapshot.View(context.Background())
	return p
}

// settingsTrouble tells what is wrong with the settings, and whether anything is.
func (a *app) settingsTrouble(err error) bool {
	var wrong check.SettingsError
	if !errors.As(err, &wrong) {
		return false
	}
	for _, line := range wrong {
		io.WriteString(a.stderr, output.LinePath(line)+"\n")
	}
	a.raise(exitTrouble)
	return true
}

// runs are the runs of which the files are parts, each once. Named says which file asked for it.
func (p *project) runs() (all []*workspace.Run) {
	seen := map[string]bool{}
	for _, file := range p.files {
		for _, run := range p.view.Runs(file) {
			key := run.Name
			for _, part := range run.Parts {
				key += "\x00" + part.Path + "\x00" + part.Section
				if part.Tree != nil && part.Tree.Root != nil {
					key += part.Tree.Root.Raw + string(rune(part.Tree.Root.At.Span.Start))
				}
			}
			if !seen[key] {
				seen[key] = true
				all = append(all, run)
			}
		}
	}
	return all
}

// line is the number from 1 of the line where a place starts; 0 where there is no file.
func (p *project) line(at source.Place) int {
	file, err := p.view.Snapshot.File(at.Path)
	if err != nil {
		return 0
	}
	return file.Position(at.Span.Start).Line
}

// planValue is a value of the plan in JSON.
type planValue struct {
	Value any         `json:"value"`
	How   string      `json:"how"`
	From  []planPlace `json:"from"`
	Note  string      `json:"note,omitempty"`
}

type planPlace struct {
	Path string `json:"path"`
	Line int    `json:"line"`
}

// values are all values of a plan by dotted name; unknown ones where all is set.
func (p *project) values(of *plan.Plan, all bool) map[string]planValue {
	found := map[string]planValue{}
	for name, fact := range plan.Values(of) {
		value, known := fact.Any()
		if !known && !all {
			continue
		}
		v := planValue{Value: value, How: fact.How().String(), From: []planPlace{}, Note: fact.Note()}
		for _, at := range fact.From() {
			v.From = append(v.From, planPlace{at.Path, p.line(at)})
		}
		found[name] = v
	}
	return found
}
