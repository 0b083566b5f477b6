package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/output"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/rules/custom"
)

// config prints the settings that hold for a file or folder, each with where it comes from. The text is TOML itself.
func (a *app) config() *cobra.Command {
	var format string
	var flags settingsFlags
	command := &cobra.Command{
		Use:   "config [flags] [PATH]",
		Short: "The settings that hold for a file or folder, and where each comes from",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, paths []string) error {
			if format != "text" && format != "json" {
				return usagef("--format must be text or json, not %q", format)
			}
			name := "."
			if len(paths) > 0 {
				name = clean(paths[0])
			}
			given, err := flags.finish()
			if err != nil {
				return err
			}
			info, err := os.Stat(filepath.FromSlash(name))
			if err != nil {
				a.unreadable(name, osReason(err))
				return nil
			}
			resolver := &check.Resolver{Snapshot: workspace.NewSnapshot(workspace.NewConfined(a.dir)), Dir: a.dir, Rules: a.rules, Declare: custom.Rule, Release: release, Flags: given}
			effective := resolver.Effective(name, info.IsDir())
			if a.settingsTrouble(resolver.Err()) {
				return nil
			}
			if format == "json" {
				return a.configJSON(name, effective)
			}
			return a.printConfig(name, effective)
		},
	}
	command.Flags().StringVar(&format, "format", "text", "text or json")
	flags.add(command.Flags())
	flags.addFailOn(command.Flags())
	return command
}

// configJSON is the contract with other tools.
func (a *app) configJSON(name string, e check.Effective) error {
	answer := struct {
		Version  int                      `json:"version"`
		Path     string                   `json:"path"`
		Files    []string                 `json:"files"`
		Excluded bool                     `json:"excluded"`
		Settings []check.EffectiveSetting `json:"settings"`
		Rules    []check.EffectiveRule    `json:"rules"`
	}{1, name, append([]string{}, e.Files...), e.Excluded, e.Settings, e.Rules}
	return output.WriteObject(a.stdout, answer)
}

func (a *app) printConfig(name string, e check.Effective) error {
	from := "no settings file; these are the defaults"
	if len(e.Files) > 0 {
		from = strings.Join(e.Files, ", which extends ")
	}
	fmt.Fprintf(a.stdout, "# %s: %s\n", output.Escape(name), output.Escape(from))
	if e.Excluded {
		fmt.Fprintln(a.stdout, "# it is excluded, so nothing in it is checked")
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, setting := range e.Settings {
		line := setting.TOMLKey() + " = " + setting.TOML()
		if strings.HasPrefix(setting.Key, "custom.") {
			line = "# [[custom]] " + strings.TrimPrefix(setting.Key, "custom.") + ": " + fmt.Sprint(setting.Value)
		}
		fmt.Fprintf(table, "%s\t# %s\n", output.Escape(line), output.Escape(setting.From))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	var off []string
	for _, rule := range e.Rules {
		if !rule.On {
			off = append(off, rule.Name)
		}
	}
	a.complain("%d of %d rules are on%s", len(e.Rules)-len(off), len(e.Rules), offNames(off))
	return nil
}

// offNames is a clause with the names of rules that are off; they are many where few are selected.
func offNames(off []string) string {
	const shown = 12
	switch {
	case len(off) == 0:
		return ""
	case len(off) > shown:
		return "; --format json lists them"
	}
	return "; off: " + strings.Join(off, ", ")
}
