package config

import (
	_ "embed"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed json-not-strict.md
var docJSONNotStrict string

// JSONNotStrict reports comments, commas and quotes in a DeepSpeed config that DeepSpeed takes, and that the program which
// loads the file does not.
var JSONNotStrict = &lint.Rule{
	Name:     "json-not-strict",
	Family:   "config",
	Since:    "0.1",
	Doc:      docJSONNotStrict,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: named,
	Run: func(pass *lint.Pass, run *workspace.Run) {
		for _, part := range run.Parts {
			if part.Dialect != dialect.DeepSpeed || part.Section != "" || part.Tree.Format != configs.JSON || part.Tree.Template || len(part.Tree.StrictErrors) == 0 {
				continue
			}
			reader, at := strictReader(pass, run, part)
			if reader == "" {
				continue
			}
			fault := part.Tree.StrictErrors[0] // the first one stops the run
			d := pass.Reportf(fault.At, "%s: %s reads the file with json.load and stops there, though DeepSpeed's own loader takes it", fault.Message, reader)
			d.Note(at, "it is named here")
			if fix := fault.Fix; fix != nil {
				d.Suggest(fix.Title, lint.Safe, lint.Edit{At: source.Place{Path: fault.At.Path, Span: fix.Span}, Text: fix.Text})
			}
		}
	},
}

// jsonLoaders are who reads the DeepSpeed config that a part names, where that is json.load and not DeepSpeed itself.
var jsonLoaders = map[string]string{
	"hf-training-args": "the Trainer", "llamafactory": "the Trainer", "axolotl": "axolotl", "accelerate": "accelerate", "lightning-cli": "Lightning", "accelerator": "accelerate", "deepspeed-plugin": "accelerate", "deepspeed-strategy": "Lightning",
}

// strictReader is the program of a run that reads a DeepSpeed config as strict JSON, and where it is told to; "" where none is
// known to.
func strictReader(pass *lint.Pass, run *workspace.Run, part *workspace.Part) (string, source.Place) {
	for _, other := range run.Parts {
		reader := jsonLoaders[other.Dialect.Name]
		if reader == "" || other == part {
			continue
		}
		for _, reference := range other.Dialect.References(other.Tree) {
			if !reference.Model && pass.Named(other.Path, reference.File) == part.Path {
				return reader, reference.At
			}
		}
	}
	return "", source.Place{}
}
