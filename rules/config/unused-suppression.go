package config

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
)

//go:embed unused-suppression.md
var docUnusedSuppression string

// UnusedSuppression is reported by the engine, which knows what each comment hid.
var UnusedSuppression = &lint.Rule{
	Name:     "unused-suppression",
	Family:   "config",
	Since:    "0.1",
	Doc:      docUnusedSuppression,
	Severity: lint.Warning,
	Fix:      lint.AlwaysFix,
	Mentions: []string{"trainvet"},
}
