// Package lint is the vocabulary a rule is written in: what a rule is, what it sees, and what it says.
//
// A rule is a value. It sets the functions for what it looks at, and each of them gets a Pass, which answers questions
// about the project and takes findings:
//
//	//go:embed embedding-recomputed.md
//	var doc string
//
//	var EmbeddingRecomputed = &lint.Rule{
//		Name: "embedding-recomputed", Family: "checkpointing", Since: "0.1", Severity: lint.Error, Doc: doc,
//		Mentions: []string{"checkpoint"},
//		Module:   func(pass *lint.Pass, module *pyscan.Module) { ... pass.Reportf(place, "the embedding ...") ... },
//	}
package lint

import (
	"fmt"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
)

// Severity says how bad a finding is.
type Severity uint8

// The severities, from the mildest. The zero value stands for the rule's own severity.
const (
	RuleSeverity Severity = iota
	Info                  // advice; never fails a run by default
	Warning               // probably wrong, or a large cost
	Error                 // a wrong result, a crash or a hang
)

var severityNames = [...]string{"default", "info", "warning", "error"}

func (s Severity) String() string { return severityNames[s] }

// ParseSeverity reads info, warning or error.
func ParseSeverity(name string) (Severity, bool) {
	for severity := Info; severity <= Error; severity++ {
		if severityNames[severity] == name {
			return severity, true
		}
	}
	return RuleSeverity, false
}

// Availability says whether findings of a rule come with a fix.
type Availability uint8

// The availabilities.
const (
	NoFix Availability = iota
	SometimesFix
	AlwaysFix
)

func (a Availability) String() string { return [...]string{"none", "sometimes", "always"}[a] }

// Rule is one check. A rule without any function is one that the engine itself reports (syntax-error).
type Rule struct {
	Name   string // kebab-case; says the bad thing; never reused
	Family string // the folder under rules
	Since  string // the release that brought it, as "0.1"
	Doc    string // the text of NAME.md

	Severity Severity     // of its findings, unless one says otherwise
	Fix      Availability // whether findings come with edits
	Strict   bool         // in the group "strict": off by default, since it is right too seldom or asks for taste

	// Mentions are byte strings of which a file must contain at least one before a finding of this rule can stand in it.
	// Empty: any file. They only spare work: a rule must find nothing in a file without them anyway.
	Mentions []string
	// Looks are the other byte strings that the rule asks of a file (source.File.Has). All words of all rules are searched for in one pass.
	Looks []string
	// Hides are the rules whose findings on the same cause say nothing new beside one of this rule. Findings have the same
	// cause when they overlap in the text, or name the same Diagnostic.Cause.
	Hides []string
	// Options are what [rules.NAME] of the settings may hold.
	Options []Option

	// A rule with Module or Loop reads Python itself: Part and Run are then called for other files only.
	Module func(*Pass, *pyscan.Module)  // each Python file
	Loop   func(*Pass, *loop.Loop)      // each loop of a Python file that trains, outermost ones; and what a framework runs in a loop
	Part   func(*Pass, *workspace.Part) // each piece of settings: a config file, a launch command, a dict or call in Python
	Run    func(*Pass, *workspace.Run)  // each run of which the file is a part

	// Tree looks at each document of a config file, whether or not it is in a known dialect, and at the flags and variables of a
	// launch script.
	Tree func(*Pass, *configs.Tree)

	// Packages looks at a file that asks for packages: requirements of any form, image files, scripts that install.
	Packages func(*Pass, string)

	// Variables looks at the environment variables that a file of any kind sets, all at once and in order.
	Variables func(*Pass, []workspace.Variable)
}

// Option is a setting of one rule. The type of Default (string, bool, int64, float64 or []string) is the type of the value.
type Option struct {
	Name    string
	Doc     string
	Default any
	Choices []string // the only values of a text; empty: any
}

// Site is where the text of the rules lives.
const Site = "https://github.com/trainvet/trainvet/blob/main/rules/"

// OwnRules is the page about the rules that settings declare.
const OwnRules = "https://github.com/trainvet/trainvet/blob/main/docs/settings.md#rules-of-your-own"

// URL is the page of the rule.
func (r *Rule) URL() string {
	if r.Family == CustomFamily {
		return OwnRules
	}
	return Site + r.Family + "/" + r.Name + ".md"
}

// Section is the text under the heading `## title` of the rule's document, without blank lines around it; "" when it has
// none.
func (r *Rule) Section(title string) string {
	var text strings.Builder
	inside, fenced := false, false
	for line := range strings.Lines(r.Doc) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if heading, ok := strings.CutPrefix(line, "## "); ok && !fenced {
			inside = strings.TrimSpace(heading) == title
			continue
		}
		if inside {
			text.WriteString(line)
		}
	}
	return strings.TrimSpace(text.String())
}

// The sections that every rule's document has, in this order; FixSafety only where there is a fix.
const (
	WhatItDoes = "What it does"
	Why        = "Why"
	Example    = "Example"
	UseInstead = "Use instead"
	FixSafety  = "Fix safety"
	References = "References"
)

// Summary is the first paragraph of "What it does", on one line.
func (r *Rule) Summary() string {
	paragraph, _, _ := strings.Cut(r.Section(WhatItDoes), "\n\n")
	return strings.Join(strings.Fields(paragraph), " ")
}

// Find is the rule of that name among rules, or nil.
func Find(rules []*Rule, name string) *Rule {
	for _, rule := range rules {
		if rule.Name == name {
			return rule
		}
	}
	return nil
}

// Validate reports what is missing or wrong in the declaration of a rule.
func (r *Rule) Validate() error {
	fault := func(format string, args ...any) error {
		return fmt.Errorf("rule %q: %s", r.Name, fmt.Sprintf(format, args...))
	}
	switch {
	case r.Name == "" || strings.Trim(r.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		return fault("the name is not kebab-case")
	case r.Family == "":
		return fault("it has no family")
	case r.Since == "":
		return fault("it does not say since which release it exists")
	case r.Severity == RuleSeverity:
		return fault("it has no severity")
	case !strings.HasPrefix(r.Doc, "# "+r.Name+"\n"):
		return fault("its document does not start with `# %s`", r.Name)
	}
	sections := []string{WhatItDoes, Why, Example, UseInstead}
	if r.Fix != NoFix {
		sections = append(sections, FixSafety)
	}
	for _, title := range sections {
		if r.Section(title) == "" {
			return fault("its document has no section %q", title)
		}
	}
	for _, option := range r.Options {
		switch option.Default.(type) {
		case string, bool, int64, float64, []string:
		default:
			return fault("option %q has a default of type %T", option.Name, option.Default)
		}
	}
	return nil
}
