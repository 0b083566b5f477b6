package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/output"
	"github.com/trainvet/trainvet/lint/source"
)

const (
	initSettings  = "trainvet.toml"
	initPreCommit = ".pre-commit-config.yaml"
	initBaseline  = ".trainvet-baseline.json"
	hookRepo      = "https://github.com/trainvet/trainvet"
)

// init writes a settings file and the entry for pre-commit, for the project in the current folder. What is there already stays.
func (a *app) init() *cobra.Command {
	var baseline bool
	command := &cobra.Command{
		Use:   "init",
		Short: "Write settings and the pre-commit entry for the project in this folder",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			in := a.inputs(&checkFlags{}, []string{"."})
			report, err := check.Run(context.Background(), in.snapshot, in.targets, check.Options{Rules: a.rules, Settings: in.settings})
			if a.settingsTrouble(err) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := a.initSettings(in, report, baseline); err != nil {
				return err
			}
			if err := a.initHook(); err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "checked: %s\n", output.Counts(report.Summary))
			return nil
		},
	}
	command.Flags().BoolVar(&baseline, "baseline", false, "record today's findings in "+initBaseline+", so that only new ones fail")
	return command
}

// initSettings writes trainvet.toml, with the facts that the runs of the project lack as lines to fill in.
func (a *app) initSettings(in *inputs, report *check.Report, baseline bool) error {
	if from := in.settings.For(a.dir).Path; from != "" {
		fmt.Fprintf(a.stdout, "%s holds already, and is left as it is\n", output.Escape(from))
		return nil
	}
	var text strings.Builder
	fmt.Fprintf(&text, "#:schema %s\n# docs/settings.md of trainvet says what else can stand here; `trainvet config` shows what holds.\nrules-version = %q # rules of later releases stay off until this is raised\n",
		check.SchemaID, minor(versionNumber()))
	if baseline {
		var record bytes.Buffer
		if err := check.WriteBaseline(&record, report, in.settings, initBaseline); err != nil {
			return err
		}
		if err := createFile(initBaseline, record.Bytes()); err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "wrote %s with %d findings\n", initBaseline, len(report.Findings))
		fmt.Fprintf(&text, "baseline = %q\n", initBaseline)
	}
	if missing := missingFacts(report); len(missing) > 0 {
		text.WriteString("\n# What no file of the runs here says; with it their memory is checked.\n# [run]\n")
		for _, name := range missing {
			text.WriteString("# " + name + "\n")
		}
	}
	if err := createFile(initSettings, []byte(text.String())); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "wrote %s\n", initSettings)
	return nil
}

// missingFacts are lines for [run] that the runs found would need.
func missingFacts(report *check.Report) (lines []string) {
	for _, fact := range []struct{ words, line string }{{"world", "world-size = 8"}, {"device", `device = "h100-80g"`}, {"model", `model = "llama-3-8b"`}, {"seq", "seq-len = 4096"}} {
		if slices.ContainsFunc(report.Unverified, func(u check.Unverified) bool {
			return slices.ContainsFunc(u.Missing, func(name string) bool { return strings.Contains(name, fact.words) })
		}) {
			lines = append(lines, fact.line)
		}
	}
	return lines
}

// minor is the release without its last number: 0.1.3 -> 0.1.
func minor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 || strings.Trim(parts[0]+parts[1], "0123456789") != "" {
		return "0.1"
	}
	return parts[0] + "." + parts[1]
}

// createFile writes a file that is not there yet.
func createFile(name string, text []byte) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}

// initHook adds the hook to the settings of pre-commit.
func (a *app) initHook() error {
	old, err := os.ReadFile(initPreCommit)
	if errors.Is(err, fs.ErrNotExist) {
		if !inRepository(a.dir) {
			return nil
		}
		if err := createFile(initPreCommit, []byte("repos:\n"+hookEntry(""))); err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "wrote %s; `pre-commit install` switches it on\n", initPreCommit)
		return nil
	}
	if err != nil {
		return err
	}
	if bytes.Contains(old, []byte(hookRepo)) {
		fmt.Fprintf(a.stdout, "%s names trainvet already\n", initPreCommit)
		return nil
	}
	next, ok := withHook(old)
	if !ok {
		fmt.Fprintf(a.stdout, "%s has no list of repos that could be added to; the entry is:\n%s", initPreCommit, hookEntry(""))
		return nil
	}
	if err := a.replace(initPreCommit, old, next); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "added trainvet to %s\n", initPreCommit)
	return nil
}

func inRepository(dir string) bool {
	for ; ; dir = path.Dir(dir) {
		if _, err := os.Stat(path.Join(dir, ".git")); err == nil {
			return true
		}
		if path.Dir(dir) == dir {
			return false
		}
	}
}

// hookEntry is the entry of the list of repos, set in by indent.
func hookEntry(indent string) string {
	rev := "v" + versionNumber()
	if strings.Contains(rev, "-") { // of no release
		rev = "v" + release
	}
	return indent + "- repo: " + hookRepo + "\n" + indent + "  rev: " + rev + "\n" + indent + "  hooks:\n" + indent + "    - id: trainvet\n"
}

// withHook puts the entry behind the last one of `repos`; false where that is no list in blocks. Everything else stays.
func withHook(old []byte) ([]byte, bool) {
	file, err := source.Decode(initPreCommit, source.YAML, old)
	if err != nil {
		return nil, false
	}
	trees := configs.ParseYAML(file)
	if len(trees) != 1 || len(trees[0].Errors) > 0 {
		return nil, false
	}
	repos := trees[0].Root.Get("repos")
	if repos == nil || repos.Kind != configs.Sequence || repos.Style == configs.Flow || len(repos.Items) == 0 {
		return nil, false
	}
	line := file.LineSpan(file.Line(repos.Items[0].Value.At.Span.Start))
	text := file.Slice(line)
	dash := strings.Index(text, "- ")
	if dash < 0 || strings.TrimSpace(text[:dash]) != "" {
		return nil, false
	}
	last := file.Line(repos.Items[len(repos.Items)-1].Value.At.Span.End - 1)
	at := file.LineSpan(last).End
	end := "\n"
	if bytes.Contains(old, []byte("\r\n")) {
		end = "\r\n"
	}
	entry := end + strings.ReplaceAll(strings.TrimSuffix(hookEntry(text[:dash]), "\n"), "\n", end)
	raw := file.RawOffset(at)
	next := slices.Concat(old[:raw], []byte(entry), old[raw:])
	if raw == len(old) {
		next = append(next, end...)
	}
	again, err := source.Decode(initPreCommit, source.YAML, next)
	if err != nil {
		return nil, false
	}
	check := configs.ParseYAML(again)
	if len(check) != 1 || len(check[0].Errors) > 0 || len(check[0].Root.Get("repos").Items) != len(repos.Items)+1 {
		return nil, false
	}
	return next, true
}
