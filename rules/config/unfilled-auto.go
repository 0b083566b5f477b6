package config

import (
	_ "embed"
	"path"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed unfilled-auto.md
var docUnfilledAuto string

// UnfilledAuto reports "auto" in DeepSpeed configs where nobody replaces it.
var UnfilledAuto = &lint.Rule{
	Name:     "unfilled-auto",
	Family:   "config",
	Since:    "0.1",
	Doc:      docUnfilledAuto,
	Severity: lint.Error,
	Mentions: []string{"auto"},
	Part: func(pass *lint.Pass, part *workspace.Part) {
		if part.Dialect != dialect.DeepSpeed {
			return
		}
		script := ""
		for _, s := range settings(part) {
			v, ok := value(part, s.item().Value)
			if !ok || !isAuto(v) || s.key == nil && s.section != "optimizer.params" && s.section != "scheduler.params" || autoIsDefault(s) {
				continue
			}
			if script == "" {
				script = bareLoader(pass, part)
			}
			if script == none {
				return
			}
			reportAuto(pass, s, script)
		}
	},
}

// none says that no program is known that hands the config to DeepSpeed as it is.
const none = "-"

// autoIsDefault: the word is one of the values that the key takes.
func autoIsDefault(s *setting) bool {
	return s.key != nil && (s.key.Default == "auto" || slices.Contains(s.key.Choices, any("auto")))
}

// bareLoader is a script that gives the config to deepspeed.initialize itself, and knows no library that would fill it in.
func bareLoader(pass *lint.Pass, part *workspace.Part) string {
	if part.Section != "" {
		return none // in the file of such a library
	}
	base := path.Base(part.Path)
	found := none
	programs := pass.Mentioning(part.Path, "initialize")
	if part.Tree.Format == configs.Python {
		base, programs = "", []string{part.Path} // a dict of the program itself
	}
	for _, name := range programs {
		module := pass.Module(name)
		if module == nil || !module.Says(base) || !module.Says("deepspeed") {
			continue
		}
		for _, library := range []string{"HfDeepSpeedConfig", "Trainer(", "Accelerator(", "HfTrainerDeepSpeedConfig", "fill_match", "\"auto\"", "'auto'", "lightning"} {
			if own := part.Tree.Format == configs.Python && strings.Contains(library, "auto"); !own && module.Says(library) {
				return none // it may fill the values in
			}
		}
		found = name
	}
	for _, run := range pass.Runs(part.Path) {
		for _, other := range run.Parts {
			if other.Dialect != dialect.DeepSpeed && other.Dialect.Trains() || other.Dialect == dialect.Accelerate {
				return none
			}
		}
	}
	return found
}

func reportAuto(pass *lint.Pass, s *setting, script string) {
	at := s.item().Value.At
	var d *lint.Diagnostic
	switch {
	case s.policy.Coerced:
		d = pass.Reportf(at, `%s is "auto", which deepspeed.initialize does not fill in: the default is used without a word`, s.path())
		if s.name != "enabled" && s.name != "stage" && s.name != "device" {
			d.As(lint.Warning)
		}
	case s.section == "":
		d = pass.Reportf(at, `%s is "auto", which deepspeed.initialize does not fill in: it takes the text for a number, and fails`, s.path())
	default:
		d = pass.Reportf(at, `%s is "auto", which deepspeed.initialize does not fill in: it is handed on as text, and fails`, s.path())
	}
	d.Help("only the Trainer of transformers and accelerate fill %q in; write a value (%s gives the file to deepspeed.initialize)", "auto", script)
}
