package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/lint/output"
)

// complete tells shells the values of flags, for a command and all below it.
func (a *app) complete(command *cobra.Command) {
	var devices, models, families []string
	for _, device := range catalog.Devices() {
		devices = append(devices, strings.ToLower(device.Name))
	}
	for _, model := range catalog.Models() {
		models = append(models, model.Name)
	}
	seen := map[string]bool{}
	for _, rule := range a.rules {
		if !seen[rule.Family] {
			seen[rule.Family] = true
			families = append(families, rule.Family)
		}
	}
	rules := append(a.ruleNames(), families...)
	choices := append(append([]string(nil), rules...), "recommended", "strict", "all")
	values := map[string][]string{
		"fail-on": {"error", "warning", "info", "never"}, "color": {"auto", "always", "never"}, "warmup-unit": {"optimizer", "micro"},
		"device": devices, "model": models, "select": choices, "extend-select": choices, "ignore": rules,
	}
	var visit func(*cobra.Command)
	visit = func(of *cobra.Command) {
		for name, list := range values {
			if of.Flags().Lookup(name) != nil {
				_ = of.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)) // fails for one that is known only
			}
		}
		if of.Flags().Lookup("statistics") != nil { // check
			_ = of.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(output.Names(), cobra.ShellCompDirectiveNoFileComp))
		}
		for _, inner := range of.Commands() {
			visit(inner)
		}
	}
	visit(command)
}
