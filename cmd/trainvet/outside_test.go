//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// outsideFiles lie beside the project. Each says CANARY in its own way, and none may be opened.
var outsideFiles = map[string]string{
	"ds.json":           `{"CANARY": 1, "train_batch_size": 3, "zero_optimization": {"stage": 9}}`,
	"model/config.json": `{"CANARY": 1, "model_type": "llama", "hidden_size": 64}`,
	"model.yaml":        "CANARY: 1\nlr: 1\n",
	"env.sh":            "export CANARY=1\ntorchrun canary.py\n",
	"run.sh":            "torchrun --nproc_per_node 2 canary.py\n",
	".env":              "CANARY=1\n",
	"canary.py":         "import torch\nCANARY = 1\nx = 1  # trainvet: ignore[canary]\n",
	"__init__.py":       "CANARY = 1\n",
	"requirements.txt":  "CANARY==1\ntorch==1.0\n",
	"accelerate.yaml":   "CANARY: 1\nmixed_precision: fp16\n",
	"trainvet.toml":     "CANARY = 1\n",
	"baseline.json":     `{"version": 1, "findings": [{"path": "CANARY", "rule": "x", "ordinal": 1}]}`,
	"ignored":           "CANARY\n",
}

// insideFiles name them; OUT stands for the folder outside, as an absolute path.
var insideFiles = map[string]string{
	"sound.py":               "x = 1  # trainvet: ignore[no-such-rule]\n",
	"args.yaml":              "per_device_train_batch_size: 4\ngradient_accumulation_steps: 2\nmodel_name_or_path: ../outside/model\ndeepspeed: ../outside/ds.json\noutput_dir: x\n",
	"args_abs.yaml":          "per_device_train_batch_size: 4\ngradient_accumulation_steps: 2\nmodel_name_or_path: OUT/model\ndeepspeed: OUT/ds.json\noutput_dir: x\n",
	"args_link.yaml":         "per_device_train_batch_size: 4\ngradient_accumulation_steps: 2\nmodel_name_or_path: linked/model\ndeepspeed: linked/ds.json\noutput_dir: x\n",
	"args_link2.yaml":        "per_device_train_batch_size: 4\ngradient_accumulation_steps: 2\ndeepspeed: ds_link.json\noutput_dir: x\n",
	"acc.yaml":               "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ../outside/ds.json\n",
	"run.sh":                 "source ../outside/env.sh\n. OUT/env.sh\nbash ../outside/run.sh\nbash linked/run.sh\ndeepspeed train.py --deepspeed ../outside/ds.json --model_name_or_path OUT/model\naccelerate launch --config_file ../outside/accelerate.yaml train.py --deepspeed linked/ds.json\ntorchrun ../outside/canary.py\n",
	"train.py":               "import json, yaml, torch\nimport linked.canary\nfrom linked import canary\nfrom ..outside import canary as c1\nfrom ...outside.canary import CANARY\nfrom outside.canary import CANARY as c2\nimport canary_link\nimport deepspeed\nfrom transformers import TrainingArguments, AutoConfig\nargs = TrainingArguments(output_dir='x', deepspeed='../outside/ds.json')\nargs = TrainingArguments(output_dir='x', deepspeed='OUT/ds.json')\nwith open('../outside/ds.json') as f:\n    cfg = json.load(f)\nwith open('linked/ds.json') as f:\n    cfg = json.load(f)\nmodel = AutoConfig.from_pretrained('../outside/model')\nengine, *_ = deepspeed.initialize(model=model, config='../outside/ds.json')\nfor batch in c2.loader:\n    engine.backward(engine(batch))\n    engine.step()\n",
	"pkg/deep/mod.py":        "import torch\nfrom ....outside import canary\nfrom ...outside.canary import CANARY\nfrom .....outside.canary import loader\nfor batch in loader:\n    CANARY(batch).backward()\n    canary.step()\n",
	"requirements.txt":       "torch==2.1\n-r ../outside/requirements.txt\n-r OUT/requirements.txt\n-c linked/requirements.txt\n-r req_link.txt\n",
	"pyproject.toml":         "[project]\nname = 'x'\ndynamic = ['dependencies']\n[tool.setuptools.dynamic]\ndependencies = {file = ['../outside/requirements.txt']}\n",
	"conf/config.yaml":       "defaults:\n- ../../outside/model\n- /../../outside/model\n- ../linked/model\n- _self_\nlr: 1\n",
	"compose.yaml":           "services:\n  a:\n    env_file: ../outside/.env\n    command: bash ../outside/run.sh\n    volumes: ['../outside:/x']\n",
	"job.yaml":               "apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n    spec:\n      containers:\n      - command: [bash, ../outside/run.sh]\n",
	"Dockerfile":             "FROM pytorch/pytorch:2.1.0\nCOPY ../outside/env.sh .\nRUN pip install -r ../outside/requirements.txt\nRUN bash ../outside/run.sh\n",
	"notebook.ipynb":         `{"cells":[{"cell_type":"code","source":["%run ../outside/canary.py\n","import torch\n"]}]}`,
	"extend/trainvet.toml":   "extend = \"../../outside/trainvet.toml\"\n",
	"extend/a.py":            "x = 1\n",
	"baseline/trainvet.toml": "baseline = \"../../outside/baseline.json\"\n",
	"baseline/a.py":          "x = 1\n",
	"settings/a.py":          "x = 1\n",
}

// outsideLinks lead out of the project.
var outsideLinks = map[string]string{
	"linked":                 "../outside",
	"ds_link.json":           "../outside/ds.json",
	"canary_link.py":         "../outside/canary.py",
	"req_link.txt":           "OUT/requirements.txt",
	"conf/linked.yaml":       "../../outside/model.yaml",
	"settings/trainvet.toml": "../../outside/trainvet.toml",
	".gitignore":             "../outside/ignored",
}

// TestOutside holds that nothing outside of a project is opened, whatever the files of the project and its links name: it watches the
// system calls of every command that reads projects.
func TestOutside(t *testing.T) {
	strace := tracer(t)
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	outside, project := filepath.Join(top, "outside"), filepath.Join(top, "project")
	put := func(folder, name, text string) {
		t.Helper()
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(strings.ReplaceAll(text, "OUT", outside)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range outsideFiles {
		put(outside, name, text)
	}
	for name, text := range insideFiles {
		put(project, name, text)
	}
	put(project, ".git/HEAD", "ref: refs/heads/main\n")
	for name, to := range outsideLinks {
		if err := os.Symlink(strings.ReplaceAll(to, "OUT", outside), filepath.Join(project, name)); err != nil {
			t.Fatal(err)
		}
	}
	input := ""
	run := func(folder string, wantSound bool, args ...string) {
		t.Helper()
		trace := filepath.Join(top, "trace")
		command := exec.Command(strace, append([]string{"-f", "-y", "-o", trace, "-e", "trace=open,openat,openat2,execve", "trainvet"}, args...)...)
		command.Dir, command.Stdin = folder, strings.NewReader(input)
		out, err := command.CombinedOutput()
		if _, exited := err.(*exec.ExitError); err != nil && !exited {
			t.Fatal(err)
		}
		if strings.Contains(string(out), "CANARY") || strings.Contains(string(out), "internal error") {
			t.Errorf("%v: %s", args, out)
		}
		if wantSound && !strings.Contains(string(out), "no-such-rule") {
			t.Errorf("%v: the sound file was not checked:\n%s", args, out)
		}
		calls, err := os.ReadFile(trace)
		if err != nil {
			t.Fatal(err)
		}
		opened := 0
		for line := range strings.Lines(string(calls)) {
			if _, file, ok := strings.Cut(line, "= "); ok && strings.Contains(file, "<"+project) {
				opened++
			} else if ok && strings.Contains(file, "<"+outside) {
				t.Errorf("%v: opened outside of the project: %s", args, line)
			}
		}
		if opened == 0 {
			t.Errorf("%v: opened nothing at all, so this has shown nothing:\n%s", args, out)
		}
	}
	exclude := []string{"--exclude", "extend", "--exclude", "baseline", "--exclude", "settings"}
	run(project, true, append([]string{"check", "--format", "concise", "."}, exclude...)...)
	run(project, false, append([]string{"check", "--diff", "."}, exclude...)...)
	run(project, false, "check", "--format", "concise", "extend")
	run(project, false, "check", "--format", "concise", "baseline")
	run(project, false, "check", "--format", "concise", "settings")
	run(project, false, "check", "--format", "concise", "linked", "canary_link.py", "sound.py")
	run(project, false, "check", "--", "deepspeed", "train.py", "--deepspeed", "ds_link.json")
	run(project, false, "fit", "args.yaml", "args_abs.yaml", "args_link.yaml", "args_link2.yaml", "ds_link.json", "conf/linked.yaml")
	run(project, false, "plan", "args.yaml", "args_link.yaml", "run.sh", "train.py", "ds_link.json")
	run(project, false, "config", "extend/a.py")
	run(project, false, "init")
	run(top, false, "check", "--format", "concise", project+"/train.py", "project/pkg", project+"/pkg/deep/mod.py")
	run("/", false, "check", "--format", "concise", project)
	run(project+"/pkg", false, "check", "--format", "concise", "deep/mod.py", "../train.py", "../run.sh")
	run(project, false, "ast", "sound.py", "canary_link.py", "linked/canary.py")
	run(top, false, "ast", "project/sound.py", "project/canary_link.py")

	// The server, with the folder as its workspace and without one.
	for _, root := range []string{`"file://` + project + `"`, "null"} {
		input = outsideSession(project, root)
		run(project, root != "null", "lsp")
	}
	input = ""

	// What a change does, where both sides name what lies outside, and where a link takes the place of a file.
	git := need(t, "git")
	if err := os.RemoveAll(filepath.Join(project, ".git")); err != nil {
		t.Fatal(err)
	}
	do := func(args ...string) {
		t.Helper()
		command := exec.Command(git, append([]string{"-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "core.excludesFile=" + os.DevNull}, args...)...)
		command.Dir = project
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	do("init", "-q", "--template=")
	put(project, "becomes_link.json", `{"train_batch_size": 8}`)
	put(project, "becomes_link.py", "import torch\n")
	do("add", "-A")
	do("commit", "-qm", "x")
	for name, text := range insideFiles {
		if filepath.Ext(name) != ".ipynb" {
			put(project, name, text+"\n")
		}
	}
	for name, to := range map[string]string{"becomes_link.json": "../outside/ds.json", "becomes_link.py": "../outside/canary.py"} {
		if err := errors.Join(os.Remove(filepath.Join(project, name)), os.Symlink(to, filepath.Join(project, name))); err != nil {
			t.Fatal(err)
		}
	}
	run(project, false, "diff", "HEAD")
	run(project, false, append([]string{"diff", "HEAD", "."}, "train.py", "becomes_link.py", "ds_link.json", "linked/canary.py")...)
	run(project+"/pkg", false, "diff", "HEAD", "deep/mod.py", "../train.py", "../becomes_link.json")
}

// outsideSession opens, closes, changes on disk and asks about files of a project and links out of it.
func outsideSession(project, root string) string {
	var out strings.Builder
	say := func(body string) {
		body = strings.ReplaceAll(body, "PROJECT", "file://"+project)
		fmt.Fprintf(&out, "Content-Length: %d\r\n\r\n%s", len(body), body)
	}
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"rootUri":` + root + `,"capabilities":{}}}`)
	say(`{"jsonrpc":"2.0","method":"initialized","params":{}}`)
	shown := []string{"train.py", "sound.py", "canary_link.py", "linked/canary.py", "ds_link.json", "args_link.yaml", "run.sh", "settings/trainvet.toml", "settings/a.py", "req_link.txt", "conf/linked.yaml"}
	id := 1
	for _, event := range []string{"open", "ask", "watch", "ask", "close", "ask"} {
		for _, name := range shown {
			at := `{"uri":"PROJECT/` + name + `"`
			switch event {
			case "open":
				text, _ := json.Marshal(insideFiles[name])
				say(`{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":` + at + `,"languageId":"python","version":1,"text":` + string(text) + `}}}`)
			case "watch":
				say(`{"jsonrpc":"2.0","method":"workspace/didChangeWatchedFiles","params":{"changes":[` + at + `,"type":2},` + at + `,"type":1}]}}`)
			case "close":
				say(`{"jsonrpc":"2.0","method":"textDocument/didClose","params":{"textDocument":` + at + `}}}`)
			case "ask":
				for _, method := range []string{"diagnostic", "documentLink", "documentSymbol", "hover", "definition"} {
					id++
					say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"textDocument/%s","params":{"textDocument":%s},"position":{"line":2,"character":8}}}`, id, method, at))
				}
			}
		}
		id++
		say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"workspace/diagnostic","params":{"previousResultIds":[]}}`, id))
	}
	say(`{"jsonrpc":"2.0","id":9999,"method":"shutdown"}`)
	say(`{"jsonrpc":"2.0","method":"exit"}`)
	return out.String()
}
