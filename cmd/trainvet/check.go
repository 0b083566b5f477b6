package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/nearest"
	"github.com/trainvet/trainvet/lint/output"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// checkFlags are the flags of `trainvet check`.
type checkFlags struct {
	format        string
	outputs       []string
	failOn        string
	settings      check.Flags
	facts         factFlags
	stdinFilename string
	command       []string // after --
	writeBaseline string
	fix           bool
	unsafeFixes   bool
	diff          bool
	requireFit    bool
	statistics    bool
	jobs          int
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
			}
			return a.runCheck(&f, paths)
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.format, "format", "full", "how to write findings: "+strings.Join(output.Names(), ", "))
	flags.StringArrayVar(&f.outputs, "output", nil, "write to `FILE` instead of stdout; NAME=FILE writes in the format NAME besides, and may be repeated")
	flags.StringVar(&f.failOn, "fail-on", "", "mildest severity that fails the run: error, warning, info or never (default warning)")
	flags.StringSliceVar(&f.settings.Select, "select", nil, "rules, families or groups (recommended, strict, all) to check, in place of those of the settings")
	flags.StringSliceVar(&f.settings.ExtendSelect, "extend-select", nil, "rules, families or groups to check besides")
	flags.StringSliceVar(&f.settings.Ignore, "ignore", nil, "rules or families to leave out")
	flags.StringSliceVar(&f.settings.Exclude, "exclude", nil, "patterns of files to leave out, as in a .gitignore")
	flags.StringVar(&f.settings.Config, "config", "", "settings `FILE` that holds everywhere")
	flags.BoolVar(&f.settings.Isolated, "isolated", false, "read no settings file")
	flags.BoolVar(&f.settings.Tests, "tests", false, "check files in folders of tests and fixtures too, not only those named")
	flags.StringVar(&f.stdinFilename, "stdin-filename", "", "the name of the text on stdin, for the path -")
	f.facts.add(flags)
	flags.StringVar(&f.settings.Baseline, "baseline", "", "hide the findings that `FILE` records")
	flags.StringVar(&f.writeBaseline, "write-baseline", "", "record what is found now in `FILE`")
	flags.BoolVar(&f.fix, "fix", false, "apply safe fixes, and report what is left")
	flags.BoolVar(&f.unsafeFixes, "unsafe-fixes", false, "apply unsafe fixes as well")
	flags.BoolVar(&f.diff, "diff", false, "print what --fix would change, and change nothing")
	flags.BoolVar(&f.requireFit, "require-fit", false, "fail when the memory of a run could not be checked")
	flags.BoolVar(&f.statistics, "statistics", false, "count findings by rule on stderr")
	flags.IntVar(&f.jobs, "jobs", 0, "files to check at a time (default: as many as there are processors)")
	return command
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
	if len(paths) == 0 && len(f.command) == 0 {
		paths = []string{"."}
	}
	snapshot := workspace.NewSnapshot(workspace.Disk{})
	settings := &check.Resolver{Snapshot: snapshot, Dir: a.dir, Rules: a.rules, Flags: f.settings}
	named, stdin := withoutStdin(paths)
	targets, problems := check.Discover(named, settings)
	if stdin {
		file, target, problem := a.readStdin(f.stdinFilename)
		switch {
		case problem != nil:
			problems = append(problems, *problem)
		case !settings.Excludes(target.Path):
			snapshot = snapshot.With(file)
			targets = append(targets, target)
		}
	}
	if len(f.command) > 0 {
		file := commandFile(f.command)
		snapshot = snapshot.With(file)
		more, wrong := check.Discover(filesIn(f.command), settings)
		targets, problems = append(append(targets, check.Target{Path: file.Path, Named: true}), more...), append(problems, wrong...)
	}
	snapshot = check.GuessKinds(snapshot, targets)
	options := check.Options{Rules: a.rules, Settings: settings, Jobs: f.jobs, NoBaseline: f.writeBaseline != ""}
	var report *check.Report
	if f.fix || f.diff {
		var fixed *check.Fixed
		if fixed, err = check.Fix(context.Background(), snapshot, targets, options, f.unsafeFixes); err == nil {
			report = fixed.Report
			report.AddUnreadable(problems)
			done, err := a.applyFixes(f, snapshot, fixed, stdin)
			if done || err != nil {
				return err
			}
		}
	} else if report, err = check.Run(context.Background(), snapshot, targets, options); err == nil {
		report.AddUnreadable(problems)
	}
	if a.settingsTrouble(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if f.writeBaseline != "" {
		for i := range report.Findings {
			report.Findings[i].Fails = false
		}
		var text bytes.Buffer
		if err := check.WriteBaseline(&text, report, settings, f.writeBaseline); err != nil {
			return err
		}
		if err := os.WriteFile(f.writeBaseline, text.Bytes(), 0o666); err != nil {
			return err
		}
		a.complain("%s records %d findings", output.Escape(f.writeBaseline), len(report.Findings))
	} else if err := a.write(sinks, report); err != nil {
		return err
	}
	a.conclude(f, report)
	return nil
}

// finish turns flags into what they mean.
func (f *checkFlags) finish() error {
	if f.failOn != "" {
		var ok bool
		if f.settings.FailOn, ok = check.ParseThreshold(f.failOn); !ok {
			return usagef("--fail-on must be error, warning, info or never, not %q", f.failOn)
		}
	}
	if f.settings.Isolated && f.settings.Config != "" {
		return usagef("--isolated and --config exclude each other")
	}
	var err error
	f.settings.Run, err = f.facts.plan()
	return err
}

// conclude says on stderr what is not a finding, and decides the exit code.
func (a *app) conclude(f *checkFlags, report *check.Report) {
	for _, problem := range report.Unreadable {
		a.unreadable(problem.Path, problem.Reason)
	}
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
	if report.Failed() || f.requireFit && report.Summary.Unverified > 0 {
		a.raise(exitFindings)
	}
}

// withoutStdin takes `-` out of the paths.
func withoutStdin(paths []string) (named []string, stdin bool) {
	for _, path := range paths {
		if path == "-" {
			stdin = true
		} else {
			named = append(named, path)
		}
	}
	return named, stdin
}

// readStdin takes the text of one file from stdin. Its path is what --stdin-filename says.
func (a *app) readStdin(name string) (*source.File, check.Target, *check.Problem) {
	if name == "" {
		name = "-"
	} else {
		name = clean(name)
	}
	raw, err := io.ReadAll(io.LimitReader(a.stdin, source.MaxSize+1))
	if err != nil {
		return nil, check.Target{}, &check.Problem{Path: name, Reason: err.Error()}
	}
	file, err := source.Decode(name, source.KindOf(name, raw[:min(len(raw), 128)]), raw)
	if err != nil {
		return nil, check.Target{}, &check.Problem{Path: name, Reason: reason(err)}
	}
	return file, check.Target{Path: name, Named: true}, nil
}

// reason is what an error of package source says beside the path.
func reason(err error) string {
	var inner *source.Error
	if errors.As(err, &inner) {
		return inner.Reason
	}
	return err.Error()
}

// sink is one place that findings are written to.
type sink struct {
	format output.Format
	file   string // "" or "-": stdout
}

// sinks reads --format and --output. A plain file takes the place of stdout; NAME=FILE comes besides.
func (a *app) sinks(format string, outputs []string) ([]sink, error) {
	main := sink{}
	var err error
	if main.format, err = lookupFormat(format); err != nil {
		return nil, err
	}
	var more []sink
	plain := false
	for _, text := range outputs {
		name, file, named := strings.Cut(text, "=")
		switch {
		case !named || strings.Contains(name, "/"):
			if plain {
				return nil, usagef("--output names two files for one format; write --output NAME=FILE for more formats")
			}
			plain, main.file = true, text
		default:
			next := sink{file: file}
			if next.format, err = lookupFormat(name); err != nil {
				return nil, err
			}
			if file == "" {
				return nil, usagef("--output %s names no file", text)
			}
			more = append(more, next)
		}
	}
	for _, next := range more {
		if next.file == "-" && !plain { // it takes stdout
			return more, nil
		}
	}
	return append([]sink{main}, more...), nil
}

func lookupFormat(name string) (output.Format, error) {
	format, ok := output.Lookup(name)
	if ok {
		return format, nil
	}
	if near := nearest.Of(name, output.Names()); near != "" {
		return format, usagef("unknown format %q; did you mean %q?", name, near)
	}
	return format, usagef("unknown format %q; there are %s", name, strings.Join(output.Names(), ", "))
}

// factFlags are the flags for what no file of a run holds.
type factFlags struct {
	world, seqLength          int64
	device, model, warmupUnit string
}

func (f *factFlags) add(flags flagSet) {
	flags.Int64Var(&f.world, "world-size", 0, "number of ranks of the run")
	flags.StringVar(&f.device, "device", "", "accelerator, by name (h100-80g) or size (56GB)")
	flags.StringVar(&f.model, "model", "", "model, by name (llama-3-8b)")
	flags.Int64Var(&f.seqLength, "seq-len", 0, "tokens of one sequence")
	flags.StringVar(&f.warmupUnit, "warmup-unit", "", "what warmup_steps counts where the files do not say: optimizer or micro")
}

type flagSet interface {
	Int64Var(p *int64, name string, value int64, usage string)
	StringVar(p *string, name, value, usage string)
}

// plan holds the facts given.
func (f *factFlags) plan() (p plan.Plan, err error) {
	for _, fact := range []struct {
		name  string
		given bool
		value any
	}{
		{"world-size", f.world != 0, f.world}, {"device", f.device != "", f.device}, {"model", f.model != "", f.model},
		{"seq-len", f.seqLength != 0, f.seqLength}, {"warmup-unit", f.warmupUnit != "", f.warmupUnit},
	} {
		if fact.given {
			if err := check.SetFact(&p, fact.name, fact.value); err != nil {
				return p, usagef("--%s: %s", fact.name, err)
			}
		}
	}
	return p, nil
}
