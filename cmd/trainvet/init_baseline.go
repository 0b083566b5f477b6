package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/output"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/rules/custom"
)

const baselineLine = "baseline = \"" + initBaseline + "\"\n"

// record writes what was found to a baseline that is not there yet.
func (a *app) record(in *inputs, report *check.Report, name string) error {
	var text bytes.Buffer
	if err := check.WriteBaseline(&text, report, in.settings, name); err != nil {
		return err
	}
	err := createFile(name, text.Bytes())
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already; `trainvet check --write-baseline %s .` makes it anew", name, name)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "wrote %s with %d findings\n", output.Escape(name), len(report.Findings))
	return nil
}

// initRecord records today's findings where settings are there already: in the baseline that they name, or in a new one, of which they
// are told in a line of their own. Everything else in them stays.
func (a *app) initRecord(in *inputs, report *check.Report, settings string) error {
	holds := in.settings.For(a.dir)
	name := a.relative(holds.Baseline)
	if path.Dir(settings) != "." || path.IsAbs(name) {
		return fmt.Errorf("the settings that hold here are those of the folder above; run `trainvet init --baseline` there, so that the record is of the whole project")
	}
	if name != "" {
		if _, err := os.Stat(name); err == nil {
			fmt.Fprintf(a.stdout, "%s records findings already; `trainvet check --write-baseline %s .` makes it anew\n", output.Escape(name), output.Escape(name))
			return nil
		}
		return a.record(in, report, name)
	}
	old, err := os.ReadFile(settings)
	if err != nil {
		return err
	}
	next, ok := a.withBaseline(in, settings, old)
	if !ok {
		return fmt.Errorf("nothing is recorded: no line could be added to %s; add %s to its settings, then run this again", settings, strings.TrimSpace(baselineLine))
	}
	if err := a.record(in, report, initBaseline); err != nil {
		return err
	}
	if err := a.replace(settings, old, next); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "%s names it now\n", output.Escape(settings))
	return nil
}

// withBaseline adds the line that names the baseline; false where settings with it would not say that and all that they said before.
func (a *app) withBaseline(in *inputs, name string, old []byte) ([]byte, bool) {
	file, err := source.Decode(name, source.TOML, old)
	if err != nil {
		return nil, false
	}
	edit := baselineEdit(file, path.Base(name) == "pyproject.toml")
	if bytes.Contains(old, []byte("\r\n")) {
		edit.text = strings.ReplaceAll(edit.text, "\n", "\r\n")
	}
	raw := file.RawSpan(edit.at)
	next := slices.Concat(old[:raw.Start], []byte(edit.text), old[raw.End:])
	after, err := source.Decode(path.Join(a.dir, name), source.TOML, next)
	if err != nil {
		return nil, false
	}
	again := &check.Resolver{Snapshot: in.snapshot.With(after), Dir: a.dir, Rules: a.rules, Declare: custom.Rule, Release: release}
	holds, before := again.Effective(".", true), in.settings.Effective(".", true)
	if again.Err() != nil || again.For(a.dir).Baseline != path.Join(a.dir, initBaseline) || len(holds.Settings) != len(before.Settings)+1 {
		return nil, false
	}
	return next, true
}

// ownTable is the head of our table, or of one below it, in a pyproject.toml.
var ownTable = source.Pattern(`(?m)^[ \t]*\[\[?[ \t]*tool[ \t]*\.[ \t]*trainvet[ \t]*([.\]])`)

// baselineEdit puts the line behind the last key of its table, or before the first table of the file.
func baselineEdit(file *source.File, pyproject bool) textEdit {
	root := configs.ParseTOML(file).Root
	start := 0 // of the table
	if pyproject {
		head := ownTable().FindSubmatchIndex(file.Text)
		if head == nil {
			return textEdit{}
		}
		if at := uint32(head[0]); file.Text[head[2]] == '.' { // only a table below it has a head
			return textEdit{source.Span{Start: at, End: at}, "[tool.trainvet]\n" + baselineLine + "\n"}
		}
		root, start = root.Get("tool", "trainvet"), head[1]
	}
	end := len(file.Text) // of the keys of the table: where the next table starts
	if next := regexp.MustCompile(`(?m)^[ \t]*\[`).FindIndex(file.Text[start:]); next != nil {
		end = start + next[0]
	}
	last := uint32(0)
	var items []configs.Item
	if root != nil { // comments alone are no table
		items = root.Items
	}
	for _, item := range items {
		if item.Value.Kind != configs.Mapping && int(item.Value.At.Span.End) <= end {
			last = max(last, item.Value.At.Span.End)
		}
	}
	switch {
	case last > 0:
		return afterLine(file, last, baselineLine)
	case pyproject:
		return afterLine(file, uint32(start), baselineLine)
	case end == len(file.Text):
		at := uint32(end)
		return textEdit{source.Span{Start: at, End: at}, lineBreak(file) + baselineLine}
	}
	// before the first table, and the comment on it
	line := file.Line(uint32(end))
	for line > 0 && strings.HasPrefix(strings.TrimSpace(file.Slice(file.LineSpan(line-1))), "#") && !strings.HasPrefix(file.Slice(file.LineSpan(line-1)), "#:schema") {
		line--
	}
	at := file.Lines()[line]
	return textEdit{source.Span{Start: at, End: at}, baselineLine + "\n"}
}
