package lint

import (
	"fmt"
	"strings"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
)

// Diagnostic is one finding.
type Diagnostic struct {
	At       source.Place
	Severity Severity // RuleSeverity: that of the rule
	Message  string   // what is wrong and what will happen at run time; one line, no full stop at the end
	Key      string   // dotted path of the key, in configs; filled in by the engine where a rule leaves it out
	Related  []Related
	Fixes    []Fix
	Cause    source.Place // what is at fault, where that is not At: findings with one cause can hide each other
}

// Related is evidence that stands elsewhere.
type Related struct {
	At      source.Place
	Message string
}

// Fix is one way to mend a finding. Fixes of a finding are alternatives, and every fix is an independent change to the same
// text. A fix without edits says in its title what to do.
type Fix struct {
	Title  string
	Safety Safety
	Edits  []Edit
}

// Edit replaces the text at a place; an empty span inserts, an empty text deletes.
type Edit struct {
	At   source.Place
	Text string
}

// Safety says who may apply a fix.
type Safety uint8

// The safeties.
const (
	Safe    Safety = iota // the run stays what its author wrote, minus the fault
	Unsafe                // a guess about what was meant
	Display               // for people to read; never applied
)

func (s Safety) String() string { return [...]string{"safe", "unsafe", "display"}[s] }

// As sets the severity, where it depends on the case.
func (d *Diagnostic) As(severity Severity) *Diagnostic {
	d.Severity = severity
	return d
}

// Note adds evidence that stands elsewhere. A place that no file holds is left out.
func (d *Diagnostic) Note(at source.Place, format string, args ...any) *Diagnostic {
	if !at.IsZero() {
		d.Related = append(d.Related, Related{at, fmt.Sprintf(format, args...)})
	}
	return d
}

// Pinned adds where a release is asked for, where that decides about what changed with a version.
func (d *Diagnostic) Pinned(pin workspace.Pin, version string) *Diagnostic {
	if pin.Since(version) == pyscan.Maybe {
		return d
	}
	return d.Note(pin.At(), "%s is asked for here", pin)
}

// Help says what to do where no edit can do it.
func (d *Diagnostic) Help(format string, args ...any) *Diagnostic {
	return d.Suggest(fmt.Sprintf(format, args...), Display)
}

// Suggest adds a fix.
func (d *Diagnostic) Suggest(title string, safety Safety, edits ...Edit) *Diagnostic {
	d.Fixes = append(d.Fixes, Fix{title, safety, edits})
	return d
}

// From names the cause, where that is not the place of the finding.
func (d *Diagnostic) From(cause source.Place) *Diagnostic {
	d.Cause = cause
	return d
}

// Code is a piece of code as a message shows it: in backticks, so that a name like `every` is not read as a word; a number as it is.
func Code(text string) string {
	if strings.Trim(text, "0123456789._") == "" {
		return text
	}
	return "`" + text + "`"
}
