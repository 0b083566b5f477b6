package config

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed config-file-missing.md
var docConfigFileMissing string

// ConfigFileMissing reports settings files that a launch command names and that are nowhere in the project.
var ConfigFileMissing = &lint.Rule{
	Name:     "config-file-missing",
	Family:   "config",
	Since:    "0.1",
	Doc:      docConfigFileMissing,
	Severity: lint.Warning,
	Mentions: []string{"accelerate", "deepspeed"},
	Run: func(pass *lint.Pass, run *workspace.Run) {
		for _, file := range run.Absent {
			if !file.Certain {
				continue
			}
			reader := file.Reader
			if reader == "" {
				reader = "the program"
			}
			d := pass.Reportf(file.At, "%s names %s, which is not in this project: %s stops when it opens it",
				file.Flag, file.File, reader)
			if file.Set {
				d.Severity = lint.Info // a setting at the top of a script is often there for the user to change
			}
		}
	},
}
