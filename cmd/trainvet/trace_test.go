//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tracer is strace, where it is installed and may trace: containers can forbid it.
func tracer(t *testing.T) string {
	t.Helper()
	strace := need(t, "strace")
	if output, err := exec.Command(strace, "-f", "-q", "-o", os.DevNull, "trainvet", "version").CombinedOutput(); err != nil {
		t.Skipf("strace may NOT trace here, so nothing is known about what is opened, started and sent: %v\n%s", err, output)
	}
	return strace
}

// systemCalls are the calls in what `strace -f -o` wrote, each once, whether it came back, was interrupted or did not end.
func systemCalls(log string) (calls []string) {
	for line := range strings.Lines(log) {
		_, call, _ := strings.Cut(strings.TrimSpace(line), " ") // before it stands who made it
		call = strings.TrimSpace(call)
		switch {
		case call == "", strings.HasPrefix(call, "---"), strings.HasPrefix(call, "+++"): // a signal, or an end
		case strings.HasPrefix(call, "<..."): // the second half of a call that was told
		case strings.HasPrefix(strings.TrimLeft(call, "?"), "("): // a thread was ended on its way into a call, before strace could ask which: it was not made
		default:
			calls = append(calls, call)
		}
	}
	return calls
}

// TestSystemCalls reads what strace 4.26 to 6.x write of threads that start, wait, and are ended in the middle of something.
func TestSystemCalls(t *testing.T) {
	log := `812   execve("/tmp/b/trainvet", ["trainvet", "check", "."], 0x7ffd3b0 /* 31 vars */) = 0
813   --- SIGURG {si_signo=SIGURG, si_code=SI_TKILL, si_pid=812, si_uid=0} ---
8140000 execve("/usr/bin/git", ["git", "rev-parse"], 0xc000192000 /* 35 vars */ <unfinished ...>
814   <... execve resumed>)             = 0
814   <... connect resumed> )           = -1 ENOENT (No such file or directory)
815   ???( <unfinished ...>
816   ????( <unfinished ...>
815   <... ??? resumed>)                = ?
817   connect(3, {sa_family=AF_INET, sin_port=htons(80)}, 16 <unfinished ...>
818   ????(0x1, 0x2)                    = ? <unavailable>
815   +++ exited with 0 +++
816   +++ killed by SIGKILL +++
817   +++ superseded by execve in pid 819 +++

820   socket(AF_INET, SOCK_STREAM, IPPROTO_TCP` // cut off
	var got []string
	for _, call := range systemCalls(log) {
		name, _, _ := strings.Cut(call, "(")
		got = append(got, name)
	}
	if want := []string{"execve", "execve", "connect", "socket"}; !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
}

// traced runs trainvet in a folder and gives the system calls that it and all that it starts make for the network and to start programs.
func traced(t *testing.T, strace, folder, stdin string, args ...string) (calls []string, out string) {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "trace")
	command := exec.Command(strace, append([]string{"-f", "-q", "-o", trace, "-s", "200", "-e", "trace=%network,execve,execveat", "trainvet"}, args...)...)
	command.Dir, command.Stdin = folder, strings.NewReader(stdin)
	text, err := command.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	if code := command.ProcessState.ExitCode(); code < 0 || code > 2 || strings.Contains(string(text), "internal error") {
		t.Errorf("%v: exit code %d\n%s", args, code, text)
	}
	log, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	return systemCalls(string(log)), string(text)
}

// gitProject is a work tree with a commit and a change, full of what would run something if anything here ran what it reads.
func gitProject(t *testing.T) string {
	t.Helper()
	git := need(t, "git")
	isolateGit(t)
	folder := t.TempDir()
	put := func(name, text string, mode os.FileMode) {
		t.Helper()
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	put("train.py", "import os, torch\nos.system('touch RAN')\nexec(\"open('RAN','w')\")\nx = 1  # trainvet: ignore[no-such-rule]\n", 0o666)
	put("setup.py", "open('RAN','w')\n", 0o666)
	put("run.sh", "touch RAN\nX=$(touch RAN)\ntorchrun --nproc_per_node `nproc` train.py $(touch RAN)\n", 0o777)
	put("ds.yaml", "x: !!python/object/apply:os.system ['touch RAN']\nlr: ${oc.env:HOME}\n", 0o666)
	put("Dockerfile", "FROM http://192.0.2.1/x\nADD http://192.0.2.1/y /\nRUN touch RAN\n", 0o666)
	put("requirements.txt", "-r http://192.0.2.1/requirements.txt\n--index-url http://192.0.2.1/\ntorch @ http://192.0.2.1/torch.whl\n", 0o666)
	put("plan.json", `{"trainvet_plan": 1, "model": {"name": "llama-7b"}, "device": "A100"}`, 0o666)
	run := func(args ...string) {
		t.Helper()
		command := exec.Command(git, append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		command.Dir = folder
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %s", args, out)
		}
	}
	run("init", "-q")
	run("add", ".")
	run("commit", "-qm", "one")
	put("ran.sh", "#!/bin/sh\ntouch '"+folder+"/RAN'\ncat\n", 0o777)
	put(".gitattributes", "*.py diff=evil filter=evil\n", 0o666)
	for _, hook := range []string{"post-index-change", "pre-commit", "post-checkout", "fsmonitor-watchman"} {
		put(".git/hooks/"+hook, "#!/bin/sh\ntouch '"+folder+"/RAN'\n", 0o777)
	}
	for _, key := range []string{"core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "core.askPass", "diff.external", "diff.evil.command", "diff.evil.textconv", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "credential.helper", "pager.diff"} {
		run("config", key, folder+"/ran.sh")
	}
	run("config", "extensions.partialClone", "origin")
	run("config", "remote.origin.url", "http://192.0.2.1/x.git")
	run("config", "remote.origin.promisor", "true")
	put("train.py", "import torch\ny = 1  # trainvet: ignore[no-such-rule]\n", 0o666)
	return folder
}

// TestTraced holds that no command but review opens the network, and that none starts anything but git: by the system calls of each of them,
// on a project that names programs and addresses in every way.
func TestTraced(t *testing.T) {
	strace := tracer(t)
	message := func(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }
	session := message(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"rootUri":null,"capabilities":{}}}`) +
		message(`{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"FOLDER/train.py","languageId":"python","version":1,"text":"import torch\nx = 1  # trainvet: ignore[no-such-rule]\n"}}}`) +
		message(`{"jsonrpc":"2.0","id":2,"method":"workspace/diagnostic","params":{"previousResultIds":[]}}`) +
		message(`{"jsonrpc":"2.0","id":3,"method":"shutdown"}`) + message(`{"jsonrpc":"2.0","method":"exit"}`)
	for _, c := range []struct {
		args  string
		git   bool
		stdin string
	}{
		{args: "check ."},
		{args: "check --format json --statistics --tests ."},
		{args: "check --write-baseline known.json ."},
		{args: "check --baseline known.json --update-baseline ."},
		{args: "check --diff --unsafe-fixes ."},
		{args: "check --stdin-filename a.py -", stdin: "import torch\n"},
		{args: "check -- torchrun --nproc_per_node 2 train.py --x $(touch RAN)"},
		{args: "check --new-from-rev HEAD .", git: true},
		{args: "check --new-from-merge-base HEAD .", git: true},
		{args: "check --new-from-patch - .", git: true, stdin: "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-a\n+b\n"},
		{args: "diff HEAD", git: true},
		{args: "diff HEAD .", git: true},
		{args: "fit plan.json ds.yaml"},
		{args: "fit --format json --world-size 8 plan.json"},
		{args: "plan train.py run.sh ds.yaml"},
		{args: "rule"}, {args: "rule syntax-error"}, {args: "config"}, {args: "config train.py"}, {args: "version"}, {args: "man"}, {args: "ast train.py"},
		{args: "completion bash"}, {args: "help"}, {args: "init"},
		{args: "lsp", stdin: session},
		{args: "check --fix --unsafe-fixes ."},
	} {
		t.Run(c.args, func(t *testing.T) {
			folder := gitProject(t)
			if strings.Contains(c.args, "update-baseline") {
				if err := os.WriteFile(filepath.Join(folder, "known.json"), []byte(`{"version": 1, "findings": []}`), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			calls, out := traced(t, strace, folder, strings.ReplaceAll(c.stdin, "FOLDER", "untitled:"), strings.Fields(c.args)...)
			started := 0
			for _, call := range calls {
				name, rest, _ := strings.Cut(call, "(")
				program, _, _ := strings.Cut(strings.TrimPrefix(rest, `"`), `"`)
				switch base := filepath.Base(program); {
				case name != "execve":
					t.Errorf("the network, or a program by other means: %s", call)
				case base == "trainvet":
					started++
				case base != "git" || !c.git:
					t.Errorf("started: %s", call)
				}
			}
			if started != 1 {
				t.Errorf("trainvet was started %d times, so this has shown nothing:\n%s", started, out)
			}
			if _, err := os.Stat(filepath.Join(folder, "RAN")); err == nil {
				t.Error("something in the project ran")
			}
		})
	}
}
