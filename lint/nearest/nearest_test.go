package nearest

import "testing"

func TestOf(t *testing.T) {
	words := []string{"select", "extend-select", "ignore", "exclude", "fail-on", "run", "known"}
	for word, want := range map[string]string{
		"selct":         "select",
		"slecet":        "select",
		"Extend_Select": "extend-select",
		"fial-on":       "fail-on",
		"rnu":           "run",
		"ru":            "run",
		"x":             "",
		"":              "",
		"severity":      "",
		"knwon":         "known",
		"ïgnore":        "ignore",
	} {
		if got := Of(word, words); got != want {
			t.Errorf("Of(%q) = %q, want %q", word, got, want)
		}
	}
	if got := Of("run", words); got != "run" {
		t.Errorf("an exact word gave %q", got)
	}
	if got := Of("abcd", []string{"abce", "abcd"}); got != "abcd" {
		t.Errorf("the closest must win over the first, got %q", got)
	}
}
