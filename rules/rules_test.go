package rules

import (
	"testing"

	"github.com/trainvet/trainvet/lint/linttest"
)

// TestRules runs the cases and documents of every rule; `go test ./rules -run TestRules/FAMILY/NAME` those of one.
func TestRules(t *testing.T) { linttest.Run(t, All(), ".") }

// TestNames holds what the list and the folders promise.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, rule := range All() {
		if seen[rule.Name] {
			t.Errorf("two rules are called %s", rule.Name)
		}
		seen[rule.Name] = true
		if rule.Summary() == "" || len(rule.Summary()) > 400 {
			t.Errorf("%s: the first paragraph of its document must be a summary of one or two sentences", rule.Name)
		}
	}
	for _, rule := range All() {
		if seen[rule.Family] {
			t.Errorf("%s is a rule and a family", rule.Family)
		}
	}
}
