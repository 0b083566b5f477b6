package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/compare"
	"github.com/trainvet/trainvet/lint/output"
)

// summary prints one page of Markdown about a project: its runs with their memory, and the findings. CI services show it beside a job.
func (a *app) summary() *cobra.Command {
	var f checkFlags
	command := &cobra.Command{
		Use:   "summary [flags] [PATH...]",
		Short: "A page of Markdown with the runs, their memory and the findings, for the summary of a CI job",
		RunE: func(_ *cobra.Command, paths []string) error {
			if _, err := f.settingsFlags.finish(); err != nil {
				return err
			}
			in := a.inputs(&f, paths)
			report, err := check.Run(context.Background(), in.snapshot, in.targets, check.Options{Rules: a.rules, Settings: in.settings})
			if a.settingsTrouble(err) {
				return nil
			}
			if err != nil {
				return err
			}
			report.AddUnreadable(in.problems)
			report.AddSkipped(in.walk.Skipped)
			a.tellInputs(report)
			if report.Failed() {
				a.raise(exitFindings)
			}
			snapshot := in.snapshot.WithFacts(in.settings.Facts).WithKnown(in.settings.Known)
			return output.Summary(a.stdout, compare.Overview(context.Background(), snapshot, in.settings, in.targets), report)
		},
	}
	f.settingsFlags.add(command.Flags())
	f.settingsFlags.addFailOn(command.Flags())
	return command
}
