package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// action is what the test reads of action.yml.
type action struct {
	Inputs map[string]struct{ Default string } `yaml:"inputs"`
	Runs   struct {
		Steps []struct {
			Name, ID, If, Uses, Shell, Run string
			Env                            map[string]string
		} `yaml:"steps"`
	} `yaml:"runs"`
}

// TestAction runs the steps of action.yml one after the other, as a runner would: with the files by which steps talk to it, and with
// expressions filled in where they may stand.
func TestAction(t *testing.T) {
	bash := need(t, "bash")
	need(t, "git")
	isolateGit(t)
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var a action
	if err := yaml.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	binary, err := exec.LookPath("trainvet")
	if err != nil {
		t.Fatal(err)
	}
	dir, temp := t.TempDir(), t.TempDir()
	repository(t, dir, map[string]string{
		"ds.json":       `{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4, "bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}`,
		"old.py":        unknownLine,
		"-x $(id)\".py": "y = 1\n",
	})
	base := strings.TrimSpace(must(t, dir, 0, "git", "rev-parse", "HEAD"))
	for name, content := range map[string]string{
		"ds.json":       `{"train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 4, "bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}`,
		"-x $(id)\".py": "y = 1  # trainvet: ignore[other-rule]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	commit(t, dir)
	values := map[string]string{"github.action_path": root, "github.token": "t", "github.event.pull_request.base.sha": base, "steps.check.outputs.exit-code": "",
		"github.event.pull_request.number": "1", "github.event.pull_request.head.sha": base}
	for name, input := range a.Inputs {
		values["inputs."+name] = input.Default
	}
	values["inputs.binary"], values["inputs.only-new"] = binary, "true"
	values["inputs.paths"] = "old.py\n\nds.json\n-x $(id)\".py\n"
	expression := regexp.MustCompile(`\$\{\{\s*(.*?)\s*\}\}`)
	environment := append(os.Environ(), "RUNNER_TEMP="+temp)
	files := map[string]string{}
	for _, name := range []string{"GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"} {
		files[name] = filepath.Join(temp, name)
		environment = append(environment, name+"="+files[name])
	}
	read := func(name string) string {
		text, _ := os.ReadFile(files[name])
		return string(text)
	}
	log := ""
	last := 0
	for _, step := range a.Runs.Steps {
		if step.Run == "" || step.Name == "Review" {
			continue
		}
		if expression.MatchString(step.Run) {
			t.Errorf("step %s: an expression in a script lets a name run commands", step.Name)
		}
		command := exec.Command(bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run)
		command.Dir = dir
		command.Env = append(environment, strings.Fields(strings.ReplaceAll(read("GITHUB_ENV"), "\n", " "))...)
		for name, value := range step.Env {
			command.Env = append(command.Env, name+"="+expression.ReplaceAllStringFunc(value, func(text string) string {
				filled, known := values[expression.FindStringSubmatch(text)[1]]
				if !known {
					t.Errorf("step %s: %s is not known", step.Name, text)
				}
				return filled
			}))
		}
		output, _ := command.CombinedOutput()
		log += string(output)
		last = command.ProcessState.ExitCode()
		if last != 0 && step.Name != "Result" {
			t.Fatalf("step %s: exit code %d\n%s", step.Name, last, output)
		}
		if _, code, ok := strings.Cut(strings.TrimSpace(read("GITHUB_OUTPUT")), "exit-code="); ok {
			values["steps.check.outputs.exit-code"] = code
		}
	}
	if last != exitFindings {
		t.Errorf("the action ends with %d, want %d", last, exitFindings)
	}
	if !strings.Contains(log, "::warning file=-x $(id)\".py,line=1,") || strings.Contains(log, "old.py") || strings.Contains(log, "uid=") {
		t.Errorf("the log:\n%s", log)
	}
	summary := read("GITHUB_STEP_SUMMARY")
	for _, wanted := range []string{"| `ds.json` | ", "### What this change does", "| micro-batch × accumulation | 4 × 4 | 8 × 4 |"} {
		if !strings.Contains(summary, wanted) {
			t.Errorf("%q is not in the summary\n%s", wanted, summary)
		}
	}
	sarif, err := os.ReadFile(filepath.Join(dir, "trainvet.sarif"))
	if err != nil || !json.Valid(sarif) {
		t.Errorf("no SARIF: %v", err)
	}
}

// TestPackagingFiles holds that the files for other programs are YAML at all, and name what is there.
func TestPackagingFiles(t *testing.T) {
	root := filepath.Join("..", "..")
	var hooks []struct {
		ID, Entry, Language string
		Verbose             bool
		TypesOr             []string `yaml:"types_or"`
	}
	var release struct {
		Builds []struct{ Main string }
		Nfpms  []map[string]any
	}
	for name, into := range map[string]any{".pre-commit-hooks.yaml": &hooks, ".goreleaser.yaml": &release} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	found := map[string]string{}
	for _, hook := range hooks {
		found[hook.ID] = hook.Language
		if !hook.Verbose || len(hook.TypesOr) < 5 || !strings.HasPrefix(hook.Entry, "trainvet check ") {
			t.Errorf("hook %+v", hook)
		}
	}
	if found["trainvet"] != "golang" || found["trainvet-fix"] != "golang" || found["trainvet-system"] != "system" || found["trainvet-fix-system"] != "system" {
		t.Errorf("hooks %v", found)
	}
	for _, build := range release.Builds {
		if info, err := os.Stat(filepath.Join(root, build.Main)); err != nil || !info.IsDir() {
			t.Errorf("%s is not there", build.Main)
		}
	}
	if program, err := exec.LookPath("goreleaser"); err == nil {
		must(t, root, 0, program, "check")
	} else {
		t.Log("NO goreleaser: its settings are only read as YAML")
	}
}
