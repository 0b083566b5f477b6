package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/output"
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
			report, err := check.Run(context.Background(), in.snapshot, in.targets, check.Options{Rules: a.rules, Settings: in.settings, NoBaseline: baseline})
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
		if baseline {
			return a.initRecord(in, report, from)
		}
		fmt.Fprintf(a.stdout, "%s holds already, and is left as it is\n", output.Escape(from))
		return nil
	}
	var text strings.Builder
	fmt.Fprintf(&text, "#:schema %s\n# docs/settings.md of trainvet says what else can stand here; `trainvet config` shows what holds.\nrules-version = %q # rules of later releases stay off until this is raised\n",
		check.SchemaID, check.Minor(release))
	if baseline {
		if err := a.record(in, report, initBaseline); err != nil {
			return err
		}
		text.WriteString(baselineLine)
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
			return slices.ContainsFunc(u.Missing, func(name string) bool { return strings.HasPrefix(name, fact.words) })
		}) {
			lines = append(lines, fact.line)
		}
	}
	return lines
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
