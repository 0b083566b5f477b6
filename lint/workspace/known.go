package workspace

import (
	"maps"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
)

// ScalesLoss is the property of a function of the project that divides the loss by the number of micro-batches before it runs backward.
const ScalesLoss = "scales-loss"

// Meanings is a text that holds the library names that in-house names mean, as code would call them: what is looked for
// by words is looked for in it as well.
func Meanings(known map[string]string) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if meaning := known[name]; strings.Contains(meaning, ".") {
			text.WriteString("." + meaning + "()\n")
		}
	}
	return text.String()
}

// Properties are what the settings can say of an in-house function besides the name of a library's.
func Properties() []string { return []string{ScalesLoss} }

// Declared reports whether the settings give a property to a function that an event stands in or was reached through. The settings are those
// of the file the loop stands in.
func (v *View) Declared(l *loop.Loop, event *loop.Event, property string) bool {
	if l.Scope == nil || event.Scope == nil {
		return false
	}
	known := v.knownIn(l.Scope.Module)
	if len(known) == 0 {
		return false
	}
	if declared(known, event.Scope, property) {
		return true
	}
	for frame := event.Frame; frame != nil; frame = frame.In {
		if declared(known, frame.Scope, property) {
			return true
		}
	}
	return false
}

// declared goes by the end of the dotted name: the folder that imports start from may lie above or below the current one.
func declared(known map[string]string, scope *pyscan.Scope, property string) bool {
	if scope == nil || scope.Kind != pyscan.FuncScope {
		return false
	}
	name := "." + dottedModule(scope.Module.File.Path) + "." + scope.Qualified()
	for dotted, meaning := range known {
		if meaning == property && strings.HasSuffix(name, "."+dotted) {
			return true
		}
	}
	return false
}
