package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The generator works on the tree that it lies in, so a copy of it beside one rule is a whole project to it.
func TestNewRuleRefuses(t *testing.T) {
	text, err := os.ReadFile("newrule.go")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	generator, rule := filepath.Join(root, "cmd", "gen", "newrule.go"), filepath.Join(root, "rules", "data", "sampler-set-epoch.go")
	for name, content := range map[string][]byte{generator: text, rule: []byte("package data\n")} {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"config/sampler-set-epoch": "a rule sampler-set-epoch is there already",
		"data/sampler-set-epoch":   "a rule sampler-set-epoch is there already",
		"nosuch/some-rule":         `there is no family "nosuch"; the families are checkpointing, `,
		"data/Some_Rule":           "usage: ",
		"some-rule":                "usage: ",
	} {
		out, err := exec.Command("go", "run", generator, name).CombinedOutput()
		if err == nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("%s: %v, said %q, want %q", name, err, out, want)
		}
	}
	if made, _ := filepath.Glob(filepath.Join(root, "rules", "*", "*")); len(made) != 1 {
		t.Errorf("there are %q, want the one rule only", made)
	}
}
