package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/nearest"
	"github.com/trainvet/trainvet/lint/output"
	"github.com/trainvet/trainvet/lint/workspace"
)

// checkFlags are the flags of `trainvet check`.
type checkFlags struct {
	format  string
	outputs []string
	settingsFlags
	stdinFilename string
	command       []string // after --
	writeBaseline string
	newFrom       newFromFlags
	ratchet       bool
	strict        bool // entries of a baseline that hide nothing fail
	fix           bool
	unsafeFixes   bool
	diff          bool
	requireFit    bool
	allowEmpty    bool
	statistics    bool
	jobs          int
	cache         bool
}

func (a *app) check() *cobra.Command {
	var f checkFlags
	command := &cobra.Command{
		Use:   "check [flags] [PATH...] [-- COMMAND...]",
		Short: "Check files and folders, or what a launch command would run (the default command)",
		Args:  cobra.ArbitraryArgs,
		RunE: func(command *cobra.Command, paths []string) error {
			if dash := command.ArgsLenAtDash(); dash >= 0 {
				f.command, paths = paths[dash:], paths[:dash]
				if err := recognised(f.command); err != nil {
					return err
				}
			}
			if err := misspelt(command, paths); err != nil {
				return err
			}
			return a.runCheck(&f, paths)
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.format, "format", "full", "how to write findings: "+strings.Join(output.Names(), ", "))
	flags.StringArrayVar(&f.outputs, "output", nil, "write to `FILE` instead of stdout; NAME=FILE writes in the format NAME besides, and may be repeated")
	f.settingsFlags.add(flags)
	f.settingsFlags.addFailOn(flags)
	flags.StringVar(&f.stdinFilename, "stdin-filename", "", "the name of the text on stdin, for the path -")
	flags.StringVar(&f.writeBaseline, "write-baseline", "", "record what is found now in `FILE`")
	flags.BoolVar(&f.ratchet, "update-baseline", false, "take out of the baseline what is gone; nothing is added")
	flags.BoolVar(&f.strict, "strict-baseline", false, "fail when the baseline records findings that are gone")
	f.newFrom.add(flags)
	flags.BoolVar(&f.fix, "fix", false, "apply safe fixes, and report what is left")
	flags.BoolVar(&f.unsafeFixes, "unsafe-fixes", false, "apply unsafe fixes as well")
	flags.BoolVar(&f.diff, "diff", false, "print what --fix would change, and change nothing")
	flags.BoolVar(&f.requireFit, "require-fit", false, "fail when the memory of a run could not be checked")
	flags.BoolVar(&f.allowEmpty, "allow-empty", false, "exit 0, not 2, when there is no file to check, as in a hook whose files are all excluded")
	flags.BoolVar(&f.statistics, "statistics", false, "count findings by rule on stderr")
	flags.BoolVar(&f.cache, "cache", false, "keep in the cache folder of the user where names occur in a project, so that a check of few files need not read the others")
	flags.IntVar(&f.jobs, "jobs", 0, "files to check at a time (default: as many as there are processors)")
	return command
}

// misspelt tells of a first word that is no file, and nearly a command: `trainvet chekc .`
func misspelt(command *cobra.Command, paths []string) error {
	if command.HasParent() || len(paths) == 0 {
		return nil
	}
	if _, err := os.Lstat(paths[0]); err == nil {
		return nil
	}
	var names []string
	for _, known := range command.Commands() {
		names = append(names, known.Name())
	}
	if near := nearest.Of(paths[0], names); near != "" {
		return usagef("no file or command is called %q; did you mean %q?", paths[0], near)
	}
	return nil
}

// runCheck goes from the command line to the exit code.
func (a *app) runCheck(f *checkFlags, paths []string) error {
	if err := f.finish(); err != nil {
		return err
	}
	sinks, err := a.sinks(f.format, f.outputs)
	if err != nil {
		return err
	}
	in := a.inputs(f, paths)
	options := check.Options{Rules: a.rules, Settings: in.settings, Jobs: f.jobs, Walk: in.walk, NoBaseline: f.writeBaseline != ""}
	if f.cache {
		options.Shelf = a.shelf()
	}
	if options.New, err = a.newCode(context.Background(), &f.newFrom, in.stdin != ""); err != nil {
		return err
	}
	var fixed *check.Fixed
	if f.fix || f.diff {
		fixed, err = check.Fix(context.Background(), in.snapshot, in.targets, options, f.unsafeFixes)
	} else {
		fixed = &check.Fixed{}
		fixed.Report, err = check.Run(context.Background(), in.snapshot, in.targets, options)
	}
	if a.settingsTrouble(err) {
		return nil
	}
	if err != nil {
		return err
	}
	fixed.Report.AddUnreadable(in.problems)
	fixed.Report.AddSkipped(in.walk.Skipped)
	if f.fix || f.diff {
		if done, err := a.applyFixes(f, in, fixed, options); done || err != nil {
			return err
		}
	}
	report := fixed.Report
	report.Version = versionNumber()
	if f.writeBaseline != "" {
		return a.recordBaseline(f, in, report)
	}
	if err := a.write(sinks, report); err != nil {
		return err
	}
	a.conclude(f, in, report)
	if err := options.Shelf.Save(); err != nil {
		a.complain("--cache: %s", output.Escape(err.Error()))
	}
	return nil
}

// shelf is where --cache keeps things. Another build of trainvet may see other names, and has its own.
func (a *app) shelf() *workspace.Shelf {
	folder, err := os.UserCacheDir()
	if err != nil {
		a.complain("--cache: %s", output.Escape(err.Error()))
		return nil
	}
	maker := versionText()
	if program, err := os.Executable(); err == nil {
		if info, err := os.Stat(program); err == nil {
			maker = fmt.Sprint(maker, info.Size(), info.ModTime().UnixNano())
		}
	}
	return workspace.NewShelf(filepath.Join(folder, "trainvet"), maker)
}

// finish turns flags into what they mean.
func (f *checkFlags) finish() error {
	if _, err := f.settingsFlags.finish(); err != nil {
		return err
	}
	if f.unsafeFixes && !f.fix && !f.diff {
		return usagef("--unsafe-fixes does nothing without --fix or --diff")
	}
	if f.jobs < 0 {
		return usagef("--jobs: wanted a whole number from 1, or 0 for as many as there are processors, not %d", f.jobs)
	}
	if f.writeBaseline != "" {
		if info, err := os.Stat(f.writeBaseline); err == nil && !info.Mode().IsRegular() {
			return usagef("--write-baseline %s: is not a file", f.writeBaseline)
		}
		if f.settings.Baseline != "" && clean(f.settings.Baseline) == clean(f.writeBaseline) {
			f.settings.Baseline = "" // it is made anew, and may not be there yet
		}
	}
	return nil
}

// conclude says on stderr what is not a finding, and decides the exit code.
func (a *app) conclude(f *checkFlags, in *inputs, report *check.Report) {
	a.concludeInputs(f, in, report)
	for _, fault := range report.Faults {
		where := "internal error"
		if fault.Rule != "" {
			where += " in rule " + fault.Rule
		}
		a.trouble("%s: %s: %s; this is a fault of trainvet, please report it", output.Escape(fault.Path), where, output.Escape(fault.Reason))
		if a.env("TRAINVET_STACK") != "" {
			io.WriteString(a.stderr, fault.Stack)
		}
	}
	if f.statistics {
		output.Statistics(a.stderr, report)
	}
	if text := output.Unverified(report); text != "" {
		a.complain("%s", text)
	}
	a.concludeBaselines(f, report)
	if report.Failed() || f.requireFit && report.Summary.Unverified > 0 {
		a.raise(exitFindings)
	}
}
