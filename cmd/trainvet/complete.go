package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/lint/output"
)

// complete tells shells the values of flags, for a command and all below it. The lists are made when a shell asks for them: who runs a
// command pays for none.
func (a *app) complete(command *cobra.Command) {
	fixed := func(words ...string) func() []string { return func() []string { return words } }
	values := map[string]func() []string{
		"fail-on": fixed("error", "warning", "info", "never"), "color": fixed("auto", "always", "never"), "warmup-unit": fixed("optimizer", "micro"),
		"device": deviceNames, "model": modelNames, "select": a.choices, "extend-select": a.choices, "ignore": a.rulesAndFamilies,
	}
	register := func(of *cobra.Command, name string, list func() []string) {
		_ = of.RegisterFlagCompletionFunc(name, func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return list(), cobra.ShellCompDirectiveNoFileComp
		}) // fails for one that is known only
	}
	var visit func(*cobra.Command)
	visit = func(of *cobra.Command) {
		for name, list := range values {
			if of.Flags().Lookup(name) != nil {
				register(of, name, list)
			}
		}
		if of.Flags().Lookup("statistics") != nil { // check
			register(of, "format", output.Names)
		}
		for _, inner := range of.Commands() {
			visit(inner)
		}
	}
	visit(command)
}

func deviceNames() (names []string) {
	for _, device := range catalog.Devices() {
		names = append(names, strings.ToLower(device.Name))
	}
	return names
}

func modelNames() (names []string) {
	for _, model := range catalog.Models() {
		names = append(names, model.Name)
	}
	return names
}

// rulesAndFamilies are what --ignore takes.
func (a *app) rulesAndFamilies() []string {
	names := a.ruleNames()
	seen := map[string]bool{}
	for _, rule := range a.rules {
		if !seen[rule.Family] {
			seen[rule.Family] = true
			names = append(names, rule.Family)
		}
	}
	return names
}

// choices are what --select takes.
func (a *app) choices() []string { return append(a.rulesAndFamilies(), "recommended", "strict", "all") }
