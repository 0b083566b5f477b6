package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// man writes manual pages, one a command, for packages.
func (a *app) man() *cobra.Command {
	var folder string
	command := &cobra.Command{
		Use:    "man --out FOLDER",
		Short:  "Write manual pages",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if folder == "" {
				return usagef("man wants --out FOLDER")
			}
			if err := os.MkdirAll(folder, 0o777); err != nil {
				return err
			}
			root := command.Root()
			root.InitDefaultCompletionCmd()
			return writeManuals(folder, root)
		},
	}
	command.Flags().StringVar(&folder, "out", "", "the `FOLDER` to write to")
	return command
}

func writeManuals(folder string, command *cobra.Command) error {
	if command.Hidden {
		return nil
	}
	command.InitDefaultHelpFlag()
	name := strings.ReplaceAll(command.CommandPath(), " ", "-")
	if err := os.WriteFile(filepath.Join(folder, name+".1"), []byte(manual(command, name)), 0o666); err != nil {
		return err
	}
	for _, inner := range command.Commands() {
		if err := writeManuals(folder, inner); err != nil {
			return err
		}
	}
	return nil
}

// manual is the page of one command, in the man macros.
func manual(command *cobra.Command, name string) string {
	var page strings.Builder
	fmt.Fprintf(&page, ".TH %s 1 \"\" \"trainvet %s\" \"trainvet\"\n.SH NAME\n%s \\- %s\n", strings.ToUpper(roff(name)), roff(versionNumber()), roff(name), roff(command.Short))
	fmt.Fprintf(&page, ".SH SYNOPSIS\n.B %s\n", roff(command.UseLine()))
	if command.Long != "" {
		page.WriteString(".SH DESCRIPTION\n")
		for paragraph := range strings.SplitSeq(command.Long, "\n\n") {
			fmt.Fprintf(&page, ".PP\n%s\n", roff(paragraph))
		}
	}
	options := func(title string, flags *pflag.FlagSet) {
		if !flags.HasAvailableFlags() {
			return
		}
		fmt.Fprintf(&page, ".SH %s\n", title)
		flags.VisitAll(func(flag *pflag.Flag) {
			if flag.Hidden {
				return
			}
			argument, usage := pflag.UnquoteUsage(flag)
			names := "--" + flag.Name
			if flag.Shorthand != "" {
				names = "-" + flag.Shorthand + ", " + names
			}
			if argument != "" {
				names += " " + argument
			}
			fmt.Fprintf(&page, ".TP\n.B %s\n%s\n", roff(names), roff(usage))
		})
	}
	options("OPTIONS", command.NonInheritedFlags())
	options("OPTIONS OF EVERY COMMAND", command.InheritedFlags())
	if parent := command.Parent(); parent != nil {
		fmt.Fprintf(&page, ".SH SEE ALSO\n.BR %s (1)\n", roff(strings.ReplaceAll(parent.CommandPath(), " ", "-")))
	} else {
		page.WriteString(".SH SEE ALSO\n")
		for _, inner := range command.Commands() {
			if !inner.Hidden {
				fmt.Fprintf(&page, ".BR %s (1)\n", roff(name+"-"+inner.Name()))
			}
		}
	}
	return page.String()
}

// roff escapes a text: hyphens are those of options, and no line begins a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}
