package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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

// runner runs the steps of action.yml one after the other, as that of GitHub would: with the files by which steps talk to it, and with
// expressions filled in where they may stand.
type runner struct {
	t      *testing.T
	action action
	dir    string
	env    []string
	values map[string]string // of expressions
}

// outcome is what a job says, and its exit code.
type outcome struct {
	log, summary string
	code         int
}

var expression = regexp.MustCompile(`\$\{\{\s*(.*?)\s*\}\}`)

func (r *runner) run(bash string, inputs map[string]string) (o outcome) {
	t := r.t
	t.Helper()
	values := maps.Clone(r.values)
	for name, input := range r.action.Inputs {
		values["inputs."+name] = input.Default
	}
	for name, value := range inputs {
		if _, known := r.action.Inputs[name]; !known {
			t.Fatalf("the action has no input %q", name)
		}
		values["inputs."+name] = value
	}
	temp := t.TempDir()
	environment := append(slices.Clone(r.env), "RUNNER_TEMP="+temp)
	read := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(temp, name))
		return string(text)
	}
	for _, name := range []string{"GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"} {
		environment = append(environment, name+"="+filepath.Join(temp, name))
	}
	for _, step := range r.action.Runs.Steps {
		if step.Run == "" || step.Name == "Review" && values["inputs.review"] != "true" && values["inputs.comment"] != "true" {
			continue
		}
		if expression.MatchString(step.Run) {
			t.Errorf("step %s: an expression in a script lets a name run commands", step.Name)
		}
		command := exec.Command(bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run)
		command.Dir = r.dir
		command.Env = append(slices.Clone(environment), strings.Fields(strings.ReplaceAll(read("GITHUB_ENV"), "\n", " "))...)
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
		o.log += string(output)
		o.code = command.ProcessState.ExitCode()
		if o.code != 0 && step.Name != "Result" {
			t.Fatalf("step %s: exit code %d\n%s", step.Name, o.code, output)
		}
		if _, code, ok := strings.Cut(strings.TrimSpace(read("GITHUB_OUTPUT")), "exit-code="); ok {
			values["steps.check.outputs.exit-code"] = code
		}
	}
	o.summary = read("GITHUB_STEP_SUMMARY")
	return o
}

// TestAction runs the action on a change, with a server in the place of GitHub.
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
	r := runner{t: t, dir: t.TempDir()}
	if err := yaml.Unmarshal(text, &r.action); err != nil {
		t.Fatal(err)
	}
	binary, err := exec.LookPath("trainvet")
	if err != nil {
		t.Fatal(err)
	}
	const config = `{"train_micro_batch_size_per_gpu": %d, "gradient_accumulation_steps": 4, "bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}`
	repository(t, r.dir, map[string]string{"ds.json": fmt.Sprintf(config, 4), "old.py": unknownLine, "-x $(id)\".py": "y = 1\n"})
	base := strings.TrimSpace(must(t, r.dir, 0, "git", "rev-parse", "HEAD"))
	for name, content := range map[string]string{"ds.json": fmt.Sprintf(config, 8), "-x $(id)\".py": "y = 1  # trainvet: ignore[other-rule]\n"} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	commit(t, r.dir)
	f := &forge{t: t, dir: r.dir}
	server := httptest.NewServer(f)
	defer server.Close()
	r.env = append(os.Environ(), "GITHUB_REPOSITORY=acme/train", "GITHUB_API_URL="+server.URL)
	r.values = map[string]string{"github.action_path": root, "github.token": "s3cret", "github.event.pull_request.base.sha": base, "steps.check.outputs.exit-code": "",
		"github.event.pull_request.number": "7", "github.event.pull_request.head.sha": strings.TrimSpace(must(t, r.dir, 0, "git", "rev-parse", "HEAD"))}
	inputs := map[string]string{"binary": binary, "only-new": "true", "paths": "old.py\n\nds.json\n-x $(id)\".py\n", "token": "s3cret"}
	const moved = "| micro-batch × accumulation | 4 × 4 | 8 × 4 |"

	f.mu.Lock() // the server answers only while the action runs
	defer f.mu.Unlock()
	run := func() outcome {
		f.mu.Unlock()
		defer f.mu.Lock()
		return r.run(bash, inputs)
	}
	o := run()
	if o.code != exitFindings || len(f.writes) > 0 {
		t.Errorf("the action ends with %d, want %d; posted %v", o.code, exitFindings, f.writes)
	}
	if !strings.Contains(o.log, "::warning file=-x $(id)\".py,line=1,") || strings.Contains(o.log, "old.py") || strings.Contains(o.log, "uid=") {
		t.Errorf("the log:\n%s", o.log)
	}
	for _, wanted := range []string{"| `ds.json` | ", "### What this change does", moved} {
		if strings.Count(o.summary, wanted) != 1 {
			t.Errorf("%q is not in the summary once\n%s", wanted, o.summary)
		}
	}
	sarif, err := os.ReadFile(filepath.Join(r.dir, "trainvet.sarif"))
	if err != nil || !json.Valid(sarif) {
		t.Errorf("no SARIF: %v", err)
	}

	// the comment is posted once; a token that only reads leaves it to the summary, which says it once
	inputs["comment"] = "true"
	for range 2 {
		if o = run(); o.code != exitFindings || len(f.said) != 1 || !strings.Contains(fmt.Sprint(f.said[0]["body"]), moved) || len(f.reviews) > 0 {
			t.Errorf("the action ends with %d; comments %v, reviews %v\n%s", o.code, f.said, f.reviews, o.log)
		}
	}
	if want := []string{"POST /repos/acme/train/issues/7/comments"}; !slices.Equal(f.writes, want) {
		t.Errorf("two runs posted %v, want %v", f.writes, want)
	}
	f.said, f.reader = nil, true
	for _, diff := range []string{"true", "false"} {
		inputs["diff"] = diff
		o = run()
		if o.code != exitFindings || strings.Count(o.summary, moved) != 1 || !strings.Contains(o.log, "::notice title=trainvet::The token of this job may not write") {
			t.Errorf("with diff: %s the action ends with %d\n%s\nthe summary:\n%s", diff, o.code, o.log, o.summary)
		}
	}
	if len(f.said) > 0 {
		t.Errorf("a token that only reads posted %v", f.said)
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
