package config

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
)

//go:embed unknown-suppression.md
var docUnknownSuppression string

// UnknownSuppression is reported by the engine, which reads the comments.
var UnknownSuppression = &lint.Rule{
	Name:     "unknown-suppression",
	Family:   "config",
	Since:    "0.1",
	Doc:      docUnknownSuppression,
	Severity: lint.Warning,
	Fix:      lint.SometimesFix,
	Mentions: []string{"trainvet"},
}
