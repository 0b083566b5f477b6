package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// verdict is what DeepSpeed's own loader said of a config. The lines of deepspeed_loader.jsonl were recorded with DeepSpeed 0.19.6,
// torch 2.8 and its CPU accelerator: DeepSpeedConfig of the text as a file, for so many ranks. Those of deepspeed_engine.jsonl are of
// deepspeed.initialize with a model of two layers, one step included; what a CPU alone refuses was left out.
type verdict struct {
	Kind, Key, Config string
	World             int
	OK                bool
	Error             string
	// LintErrorOK marks what the loader accepts, and what is an error all the same: a value that fails when the engine starts, or
	// a key or a section that is ignored.
	LintErrorOK bool `json:"lint_error_ok"`
}

// TestDeepSpeedLoader holds the findings on single configs against the loader: what it refuses must be an error, what it takes
// must be none. Known differences are listed, so that a new one shows.
func TestDeepSpeedLoader(t *testing.T) { compareVerdicts(t, "deepspeed_loader.jsonl") }

// TestDeepSpeedEngine does the same for what the engine refuses.
func TestDeepSpeedEngine(t *testing.T) { compareVerdicts(t, "deepspeed_engine.jsonl") }

func compareVerdicts(t *testing.T, name string) {
	known := map[string]bool{
		`{"train_batch_size": null}`: true, // a program, or HF's integration, may fill it in
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "configs", "dialect", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	lines := bufio.NewScanner(bytes.NewReader(text))
	agreed, all := 0, 0
	for lines.Scan() {
		var v verdict
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("ds_config.json", []byte(v.Config), 0o666); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		Main([]string{"check", "--isolated", "--format", "json", "--world-size", strconv.Itoa(v.World), "ds_config.json"}, nil, &out, io.Discard)
		var report struct {
			Findings []struct{ Rule, Severity, Message string }
		}
		if err := json.Unmarshal(out.Bytes(), &report); err != nil {
			t.Fatalf("%s: %v", v.Config, err)
		}
		said := ""
		for _, finding := range report.Findings {
			if finding.Severity == "error" {
				said = finding.Rule + ": " + finding.Message
			}
		}
		all++
		switch agree := v.OK == (said == "") || v.LintErrorOK; {
		case agree:
			agreed++
		case known[v.Config]:
		case v.OK:
			t.Errorf("%s %s: the loader takes %s\ntrainvet says %s", v.Kind, v.Key, v.Config, said)
		default:
			t.Errorf("%s %s: nothing is said of %s\nthe loader says %s", v.Kind, v.Key, v.Config, v.Error)
		}
	}
	t.Logf("%d of %d agree", agreed, all)
}
