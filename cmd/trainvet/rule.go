package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/nearest"
	"github.com/trainvet/trainvet/lint/output"
)

func (a *app) rule() *cobra.Command {
	return &cobra.Command{
		Use:   "rule [NAME...]",
		Short: "Explain rules; without a name, list them",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return a.ruleNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, names []string) error {
			if len(names) == 0 {
				return a.listRules()
			}
			for i, name := range names {
				rule := lint.Find(a.rules, name)
				if rule == nil {
					if near := nearest.Of(name, a.ruleNames()); near != "" {
						return usagef("no rule is called %q; did you mean %q?", name, near)
					}
					return usagef("no rule is called %q; `trainvet rule` lists them", name)
				}
				if i > 0 {
					fmt.Fprintln(a.stdout)
				}
				explain(a.stdout, rule, a.paint(a.stdout))
			}
			return nil
		},
	}
}

func (a *app) ruleNames() []string {
	names := make([]string, len(a.rules))
	for i, rule := range a.rules {
		names[i] = rule.Name
	}
	return names
}

func (a *app) listRules() error {
	sorted := slices.Clone(a.rules)
	slices.SortFunc(sorted, func(x, y *lint.Rule) int { return cmp.Or(cmp.Compare(x.Family, y.Family), cmp.Compare(x.Name, y.Name)) })
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, rule := range sorted {
		marks := ""
		if rule.Fix != lint.NoFix {
			marks = "fix"
		}
		if rule.Strict {
			marks = strings.TrimSpace(marks + " strict")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", rule.Name, rule.Family, rule.Severity, marks, rule.Summary())
	}
	return table.Flush()
}

// explain prints the document of a rule for a terminal: headings stand out, code is set in, fences and emphasis marks go.
func explain(out io.Writer, rule *lint.Rule, paint output.Paint) {
	title, rest, _ := strings.Cut(rule.Doc, "\n")
	fmt.Fprintf(out, "%s\n%s\n", paint.Bold(strings.TrimPrefix(title, "# ")), paint.Dim(about(rule)))
	fenced := false
	for line := range strings.Lines(rest) {
		line = strings.TrimRight(line, "\r\n")
		heading, isHeading := strings.CutPrefix(line, "## ")
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case fenced:
			fmt.Fprintln(out, strings.TrimRight("    "+line, " "))
		case isHeading:
			fmt.Fprintln(out, paint.Bold(heading))
		default:
			fmt.Fprintln(out, strings.NewReplacer("**", "", "`", "").Replace(line))
		}
	}
}

func about(rule *lint.Rule) string {
	facts := []string{"family " + rule.Family, rule.Severity.String(), "since " + rule.Since}
	switch rule.Fix {
	case lint.AlwaysFix:
		facts = append(facts, "always has a fix")
	case lint.SometimesFix:
		facts = append(facts, "sometimes has a fix")
	}
	if rule.Strict {
		facts = append(facts, "off by default (strict)")
	}
	return strings.Join(facts, " · ") + "\n" + rule.URL()
}
