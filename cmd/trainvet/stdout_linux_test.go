package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/output"
	"github.com/trainvet/trainvet/rules"
)

// TestFullStdout holds that an answer that could not be written is told, whatever the command: a patch that is cut off would look whole.
func TestFullStdout(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("NO /dev/full: no stream fails here: ", err)
	}
	defer full.Close()
	t.Chdir(t.TempDir())
	write(t, "a.py", unusedLine)
	write(t, "ds_config.json", `{"train_batch_size": 8, "zero_optimization": {"stage": 2}}`)
	commands := []string{"check --diff .", "plan ds_config.json", "plan --format json ds_config.json", "fit --device h100-80g ds_config.json", "fit --format html ds_config.json", "rule", "rule unknown-key",
		"config .", "summary .", "version", "--version", "help", "completion fish", "ast --format json a.py", "check --output " + os.DevNull + " --output json=- ."}
	for _, format := range output.Names() {
		commands = append(commands, "check --fail-on never --format "+format+" .", "check --fail-on never --output "+format+"=/dev/full --output "+os.DevNull+" .")
	}
	for _, command := range commands {
		var stderr bytes.Buffer
		a := &app{stdin: strings.NewReader(""), stdout: full, stderr: &stderr, env: func(string) string { return "" }, rules: rules.All(), replace: check.Replace}
		if code := run(a, strings.Fields(command)); code != exitTrouble || !strings.Contains(stderr.String(), "trainvet: write /dev/full: no space left on device\n") {
			t.Errorf("%s: exit code %d\n%s", command, code, stderr.String())
		}
	}
}
