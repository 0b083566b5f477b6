package check

import (
	"context"
	"slices"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// result is what the check of one file gave.
type result struct {
	findings   []Finding
	suppressed int
	unverified []Unverified
	unreadable string // why it could not be read
	skipped    string // of one that could not: why it counts as data
	faults     []Fault
}

// memoryRule is the rule that compares a run with its device. Who has switched it off is not told what it could not check.
const memoryRule = "hbm-overflow"

func folderOf(name string) string { return source.Dir(name) }

// subject checks one file.
func (c *checker) subject(ctx context.Context, view *workspace.View, target Target, settings *Settings) (r *result) {
	if r := c.options.Cache.get(c.snapshot, target, settings); r != nil {
		return r
	}
	r = &result{}
	if fault := guard(target.Path, "", func() {
		file, err := c.snapshot.File(target.Path)
		if err != nil {
			r.unreadable, r.skipped = err.Error(), c.skipped(target, err)
			return
		}
		if c.options.Cache != nil {
			view = c.snapshot.View(ctx)
			view.Placed(file.Path) // also where nothing is looked for: the text decides that
		}
		c.look(view, file, target, settings, r)
	}); fault != nil {
		r.faults = append(r.faults, *fault)
	}
	if c.options.Cache != nil && view != nil && len(r.faults) == 0 && ctx.Err() == nil {
		c.options.Cache.put(target, settings, view.Reads(), r)
	}
	return r
}

// look runs the rules that have something to look for in the file, and passes the findings down the line.
func (c *checker) look(view *workspace.View, file *source.File, target Target, settings *Settings, r *result) {
	named := target.Named
	if !named && isData(file) {
		return
	}
	chosen := c.chosen(file, target, settings)
	if !chosen.any && !file.Has(Word) {
		return
	}
	c.lookAhead(view.Context(), file.Path)
	subject := subject{view: view, file: file, names: chosen.names}
	subject.parse()
	if r.unreadable = subject.bound(); r.unreadable != "" {
		r.skipped = subject.skippedBound(target)
		return
	}
	var findings []Finding
	var pass lint.Pass // of one rule after another
	run := func(rule *lint.Rule, has bool) {
		pass = *lint.NewPass(view, rule, settings.Options[rule.Name])
		if fault := guard(file.Path, rule.Name, func() { subject.run(&pass, has || named) }); fault != nil {
			r.faults = append(r.faults, *fault)
			return
		}
		for _, d := range pass.Findings() {
			if d.At.Path == file.Path {
				findings = append(findings, Finding{Rule: rule, Diagnostic: d})
			}
		}
	}
	for i, rule := range c.options.Rules {
		if chosen.flags[i]&woken != 0 {
			run(rule, chosen.flags[i]&hasWord != 0)
		}
	}
	for _, own := range chosen.custom {
		if own.flags&woken != 0 {
			run(own.rule, own.flags&hasWord != 0)
		}
	}
	if ctx := view.Context(); ctx != nil && ctx.Err() != nil {
		return
	}
	findings = cascade(findings)
	if doc := subject.doc(); doc != nil && len(r.faults) == 0 {
		all := append(slices.Clip(c.options.Rules), settings.customRules()...)
		findings, r.suppressed = suppress(file, doc, findings, all, chosen.on, settings.RequireReason)
	}
	if doc := subject.doc(); doc != nil {
		keepComments(file, doc.Comments(), findings)
	}
	findings, ignored := c.perFile(file, findings, settings)
	r.suppressed += ignored
	for i := range findings {
		if severity, changed := settings.Severity[findings[i].Rule.Name]; changed {
			findings[i].Severity = severity
		}
	}
	r.findings = sortFindings(findings)
	c.keep(r.findings)
	rule := lint.Find(c.options.Rules, memoryRule)
	if rule == nil || chosen.on(rule) {
		if fault := guard(file.Path, "", func() { r.unverified = subject.unverified() }); fault != nil {
			r.faults = append(r.faults, *fault)
		}
	}
}

// isData reports whether a file is of a kind of settings and too large to hold any.
func isData(file *source.File) bool {
	return (file.Kind == source.JSON || file.Kind == source.YAML || file.Kind == source.TOML) && len(file.Text) > workspace.MaxSettings
}

// lookAhead begins, beside the check of the first file, with what nearly every check of a file asks for in the end: which files name it.
// One file alone is checked by one goroutine, and would wait for that.
func (c *checker) lookAhead(ctx context.Context, name string) {
	if c.options.Cache != nil {
		return
	}
	c.prepare.Do(func() {
		work := func() {}
		guard(name, "", func() { work = c.snapshot.Survey(ctx, name) }) // a fault shows again where it is asked for
		c.ahead.Go(func() { guard(name, "", work) })
	})
}

// keep holds on to the files that findings point into.
func (c *checker) keep(findings []Finding) {
	for _, f := range findings {
		c.snapshot.Keep(f.At.Path)
		for _, related := range f.Related {
			c.snapshot.Keep(related.At.Path)
		}
		for _, fix := range f.Fixes {
			for _, edit := range fix.Edits {
				c.snapshot.Keep(edit.At.Path)
			}
		}
	}
}

// chosen says of the rules which are on for a file, which have a word in it, also where the prefilter is off, and which look at it.
func (c *checker) chosen(file *source.File, target Target, settings *Settings) *choice {
	found := c.words.find.in(file.Text)
	meanings := workspace.Meanings(settings.Known)
	file.Know(c.words.number, found)
	file.Mean(meanings)
	if meanings != "" && file.Kind.IsPython() {
		found = found.Or(c.words.find.in([]byte(meanings)))
	}
	made := &choice{index: c.words.index, flags: make([]uint8, len(c.options.Rules))}
	kind := kindFor(file.Kind.IsPython(), c.options.NoPrefilter || workspace.MayState(file))
	tested := target.Test && !settings.Tests
	for i, selected := range c.selected[settings] {
		want := &c.words.wants[i]
		if !selected || tested && !want.engine {
			continue
		}
		flags := isOn
		if want.always || want.words.Meets(found) || want.syntax && file.Fault != "" { // of which the words were not read
			flags |= hasWord
		}
		if want.kinds[kind] && (flags&hasWord != 0 || c.options.NoPrefilter || want.syntax && target.Named) {
			flags |= woken
			made.any, made.names = true, made.names || !want.engine
		}
		made.flags[i] = flags
	}
	absolute := ""
	if len(settings.Custom) > 0 {
		absolute = c.options.Settings.Absolute(file.Path)
	}
	for i := range settings.Custom {
		own := &settings.Custom[i]
		rule := own.Rule
		if !settings.selected[rule] || target.Test && !settings.Tests || !own.all && !own.files.covers(absolute) {
			continue
		}
		flags := isOn
		if len(rule.Mentions) == 0 || slices.ContainsFunc(rule.Mentions, file.Has) {
			flags |= hasWord
		}
		if flags&hasWord != 0 || c.options.NoPrefilter {
			flags |= woken
			made.any, made.names = true, made.names || !ofEngine(rule)
		}
		made.custom = append(made.custom, ownChoice{rule, flags})
	}
	return made
}

// choice says what the rules do with a file.
type choice struct {
	index  map[*lint.Rule]int
	flags  []uint8     // by the number of a rule
	custom []ownChoice // of the settings' own rules, those that are on

	any   bool // one of them looks at the file
	names bool // and of these one is not of the engine
}

type ownChoice struct {
	rule  *lint.Rule
	flags uint8
}

const (
	isOn uint8 = 1 << iota
	hasWord
	woken
)

func (c *choice) on(rule *lint.Rule) bool {
	if i, known := c.index[rule]; known {
		return c.flags[i] != 0
	}
	return slices.ContainsFunc(c.custom, func(own ownChoice) bool { return own.rule == rule })
}

// kinds are how many kinds of files there are for a rule: Python or not, which may state settings or not.
const kinds = 4

func kindFor(python, states bool) (kind int) {
	if python {
		kind |= 1
	}
	if states {
		kind |= 2
	}
	return kind
}

// looksAt is false for a rule that looks at Python alone, where the file is none, and for one that looks at settings, where a Python file states none.
func looksAt(rule *lint.Rule, kind int) bool {
	if rule.Packages != nil || rule.Variables != nil || ofEngine(rule) {
		return true
	}
	python, states := kind&1 != 0, kind&2 != 0
	settings := rule.Tree != nil || rule.Part != nil || rule.Run != nil
	return settings && (states || !python) || python && (rule.Module != nil || rule.Loop != nil)
}

// ofEngine holds for the rules that the engine itself reports: they are about the text, not about training.
func ofEngine(rule *lint.Rule) bool {
	return rule.Module == nil && rule.Loop == nil && rule.Tree == nil && rule.Part == nil && rule.Run == nil
}

// perFile takes out the findings that [per-file-ignores] names.
func (c *checker) perFile(file *source.File, findings []Finding, settings *Settings) (kept []Finding, hidden int) {
	if len(settings.PerFile) == 0 {
		return findings, 0
	}
	absolute := c.options.Settings.Absolute(file.Path)
	for _, finding := range findings {
		ignored := false
		for _, entry := range settings.PerFile {
			ignored = ignored || entry.hides(finding, absolute)
		}
		if ignored {
			hidden++
		} else {
			kept = append(kept, finding)
		}
	}
	return kept, hidden
}

func (p *PerFileIgnore) hides(finding Finding, absolute string) bool {
	if p.key != "" && finding.Key != p.key && !isBelow(finding.Key, p.key) || !p.files.covers(absolute) {
		return false
	}
	for _, name := range p.names {
		if belongs(finding.Rule, name) {
			return true
		}
	}
	return false
}

func isBelow(key, above string) bool {
	return len(key) > len(above) && key[:len(above)] == above && key[len(above)] == '.'
}

// subject is one parsed file.
type subject struct {
	view   *workspace.View
	file   *source.File
	names  bool           // somebody asks what names of a Python file mean
	tree   *syntax.File   // of a Python file
	module *pyscan.Module // of one whose names are asked for
	trees  []*configs.Tree
	script *configs.Script
}
