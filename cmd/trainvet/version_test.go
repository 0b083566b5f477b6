package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/rules"
)

// TestVersionOf holds that a build from a clone without tags does not pass for release 0.0, of which no rule would be on.
func TestVersionOf(t *testing.T) {
	for stamped, want := range map[string]string{
		"":                                   release,
		"(devel)":                            release,
		"v1.2.3":                             "1.2.3",
		"v0.0.0-20261129235427-be2faf16e5a8": release + "+be2faf16e5a8",
		"v0.0.0-20261129235427-be2faf16e5a8+dirty":        release + "+be2faf16e5a8.dirty",
		"v1.2.4-0.20261129235427-be2faf16e5a8":            "1.2.4-0.20261129235427-be2faf16e5a8",
		"v1.2.4-rc.1":                                     "1.2.4-rc.1",
		"v1.2.4-rc.1.0.20261129235427-be2faf16e5a8+dirty": "1.2.4-rc.1.0.20261129235427-be2faf16e5a8+dirty",
	} {
		if got := versionOf(stamped); got != want {
			t.Errorf("%q: %q, want %q", stamped, got, want)
		}
	}
}

// TestSince holds that no rule is of a release that is still to come: `rules-version` as init writes it would switch it off.
func TestSince(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "trainvet.toml"), []byte("select = [\"all\"]\nrules-version = \""+check.Minor(release)+"\"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	output, code := runIn(t, dir, "config", "--format", "json", ".")
	var answer struct{ Rules []check.EffectiveRule }
	if err := json.Unmarshal([]byte(output), &answer); err != nil || code != exitClean || len(answer.Rules) != len(rules.All()) {
		t.Fatalf("exit code %d, %d rules: %v", code, len(answer.Rules), err)
	}
	for _, rule := range answer.Rules {
		if !rule.On {
			t.Errorf("%s is of a release after %s", rule.Name, release)
		}
	}
}
