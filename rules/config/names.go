package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint/nearest"
	"github.com/trainvet/trainvet/lint/workspace"
)

func sortedNames[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

func nearestOf(word string, names []string) string { return nearest.Of(word, names) }

// offloadDevice is the device that a section of zero_optimization offloads to, in lower case; false where nothing is offloaded.
func offloadDevice(part *workspace.Part, section string) (string, bool) {
	device := textAt(part, "zero_optimization", section, "device")
	return device, device == "cpu" || device == "nvme"
}

// oneOf spells choices: "a, b or c".
func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
