package output

import (
	"io"
	"os"

	"github.com/fatih/color"
	"github.com/mattn/go-isatty"
	"github.com/trainvet/trainvet/lint"
)

// ColorChoice is the value of --color.
type ColorChoice string

// The choices.
const (
	ColorAuto   ColorChoice = "auto"
	ColorAlways ColorChoice = "always"
	ColorNever  ColorChoice = "never"
)

// Colored decides whether one stream carries colour: the flag, then NO_COLOR, then FORCE_COLOR and CLICOLOR_FORCE, then
// TERM=dumb, then whether the stream is a terminal.
func Colored(choice ColorChoice, env func(string) string, terminal bool) bool {
	set := func(name string) bool { return env(name) != "" && env(name) != "0" }
	switch {
	case choice == ColorAlways:
		return true
	case choice == ColorNever || env("NO_COLOR") != "":
		return false
	case set("FORCE_COLOR") || set("CLICOLOR_FORCE"):
		return true
	case env("TERM") == "dumb":
		return false
	}
	return terminal
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream io.Writer) bool {
	if inner, wrapped := stream.(interface{ Unwrap() io.Writer }); wrapped {
		stream = inner.Unwrap()
	}
	file, ok := stream.(*os.File)
	return ok && (isatty.IsTerminal(file.Fd()) || isatty.IsCygwinTerminal(file.Fd()))
}

// Paint colours the parts of a text, or leaves them as they are.
type Paint struct{ bold, dim, errors, warnings, infos, help, added, removed *color.Color }

// NewPaint is the paint for one stream. The colours are its own: the package color knows one switch for the whole program,
// which follows the standard output and is not touched here.
func NewPaint(colored bool) Paint {
	make := func(attributes ...color.Attribute) *color.Color {
		c := color.New(attributes...)
		if colored {
			c.EnableColor()
		} else {
			c.DisableColor()
		}
		return c
	}
	return Paint{bold: make(color.Bold), dim: make(color.FgBlue, color.Bold), errors: make(color.FgRed, color.Bold), warnings: make(color.FgYellow, color.Bold),
		infos: make(color.FgCyan, color.Bold), help: make(color.FgGreen, color.Bold), added: make(color.FgGreen), removed: make(color.FgRed)}
}

// Bold makes the main words of a line stand out.
func (p Paint) Bold(text string) string { return p.bold.Sprint(text) }

// Dim is for frames and numbers.
func (p Paint) Dim(text string) string { return p.dim.Sprint(text) }

// Help is for what to do.
func (p Paint) Help(text string) string { return p.help.Sprint(text) }

// Added is for new lines of a diff.
func (p Paint) Added(text string) string { return p.added.Sprint(text) }

// Removed is for old lines of a diff.
func (p Paint) Removed(text string) string { return p.removed.Sprint(text) }

// Severity is the colour of a severity.
func (p Paint) Severity(severity lint.Severity, text string) string {
	switch severity {
	case lint.Error:
		return p.errors.Sprint(text)
	case lint.Warning:
		return p.warnings.Sprint(text)
	}
	return p.infos.Sprint(text)
}
