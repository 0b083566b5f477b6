package main

import (
	"github.com/spf13/pflag"
	"github.com/trainvet/trainvet/lint/check"
)

// settingsFlags are the flags that win over settings files.
type settingsFlags struct {
	settings check.Flags
	failOn   string
	facts    factFlags
}

func (f *settingsFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.settings.Select, "select", nil, "rules, families or groups (recommended, strict, all) to check, in place of those of the settings")
	flags.StringSliceVar(&f.settings.ExtendSelect, "extend-select", nil, "rules, families or groups to check besides")
	flags.StringSliceVar(&f.settings.Ignore, "ignore", nil, "rules or families to leave out")
	flags.StringSliceVar(&f.settings.Exclude, "exclude", nil, "patterns of files to leave out, as in a .gitignore")
	flags.StringVar(&f.settings.Config, "config", "", "settings `FILE` that holds everywhere")
	flags.BoolVar(&f.settings.Isolated, "isolated", false, "read no settings file")
	flags.BoolVar(&f.settings.Tests, "tests", false, "check files in folders of tests and fixtures too, not only those named")
	flags.StringVar(&f.settings.Baseline, "baseline", "", "hide the findings that `FILE` records")
	f.facts.add(flags)
}

// finish turns the flags into what they mean.
func (f *settingsFlags) finish() (check.Flags, error) {
	if f.failOn != "" {
		var ok bool
		if f.settings.FailOn, ok = check.ParseThreshold(f.failOn); !ok {
			return f.settings, usagef("--fail-on must be error, warning, info or never, not %q", f.failOn)
		}
	}
	if f.settings.Isolated && f.settings.Config != "" {
		return f.settings, usagef("--isolated and --config exclude each other")
	}
	var err error
	f.settings.Run, err = f.facts.plan()
	return f.settings, err
}

// addFailOn adds the flag of commands whose exit code speaks of findings.
func (f *settingsFlags) addFailOn(flags *pflag.FlagSet) {
	flags.StringVar(&f.failOn, "fail-on", "", "mildest severity that fails the run: error, warning, info or never (default warning)")
}
