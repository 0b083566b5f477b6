// Package editors tests the settings for editors, with the editors themselves where they are installed.
package editors

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
)

const model = `import torch
from torch.utils.checkpoint import checkpoint


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = torch.nn.Embedding(1000, 64)

    def forward(self, x):
        return checkpoint(self.tok, x, use_reentrant=False)
`

// need skips loudly without a program.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("SKIPPED: %s is not installed, so nothing is known about it", program)
	}
}

// program builds trainvet, and gives the folder that it lies in.
func program(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	name := "trainvet"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if out, err := exec.Command("go", "build", "-o", filepath.Join(folder, name), "../cmd/trainvet").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return folder
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// patience bounds the run of a program that hangs; nothing else may be known by it, for a loaded machine can be slow.
const patience = 8 * time.Minute

// run runs a program, and gives what it writes.
func run(t *testing.T, folder string, env []string, name string, args ...string) string {
	t.Helper()
	command := exec.Command(name, args...)
	command.Dir, command.Env = folder, append(os.Environ(), env...)
	timer := time.AfterFunc(patience, func() { _ = command.Process.Kill() })
	defer timer.Stop()
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

func absolute(t *testing.T, name string) string {
	t.Helper()
	full, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return full
}

func TestNeovim(t *testing.T) {
	need(t, "nvim")
	bin, folder := program(t), t.TempDir()
	write(t, filepath.Join(folder, "model.py"), model)
	env := []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "TRAINVET_SETTINGS=" + absolute(t, "neovim/trainvet.lua"),
		"XDG_STATE_HOME=" + t.TempDir(), "XDG_CACHE_HOME=" + t.TempDir(), "XDG_DATA_HOME=" + t.TempDir()}
	out := run(t, folder, env, "nvim", "--headless", "-u", "NONE", "-c", "luafile "+absolute(t, "testdata/session.lua"), "-c", "cquit 1")
	for _, want := range []string{"10:15-10:59 trainvet checkpoint-embedding", "call it directly", "return self.tok(x)"} {
		if !strings.Contains(out, want) {
			t.Errorf("wanted %q in\n%s", want, out)
		}
	}
}

func TestEmacs(t *testing.T) {
	need(t, "emacs")
	if out, err := exec.Command("emacs", "--batch", "--eval", "(progn (package-initialize) (require 'eglot))").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: this Emacs has no Eglot: %s", out)
	}
	bin, folder := program(t), t.TempDir()
	write(t, filepath.Join(folder, "model.py"), model)
	env := []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	out := run(t, folder, env, "emacs", "--batch", "--eval", "(package-initialize)", "-l", absolute(t, "emacs/trainvet.el"), "-l", absolute(t, "testdata/session.el"))
	if !strings.Contains(out, "11 ") || !strings.Contains(out, "checkpoint-embedding") {
		t.Errorf("wanted the finding in line 11:\n%s", out)
	}
}

// modules are the packages of the VS Code extension, which the client in node uses too.
func modules(t *testing.T) {
	t.Helper()
	need(t, "node")
	need(t, "npm")
	if _, err := os.Stat("vscode/node_modules/.package-lock.json"); err != nil { // npm writes it when all packages are there
		t.Skip("SKIPPED: run `npm install` in editors/vscode first; nothing is known about the extension")
	}
}

func TestNodeClient(t *testing.T) {
	modules(t)
	bin, folder := program(t), t.TempDir()
	write(t, filepath.Join(folder, "model.py"), model)
	write(t, filepath.Join(folder, "args.yaml"), "per_device_train_batch_size: 4\ngradient_accumulation_steps: 8\nlearning_rate: 1e-5\nbf16: \n")
	write(t, filepath.Join(folder, "trainvet.toml"), "[run]\nworld-size = 8\n")
	out := run(t, folder, []string{"TRAINVET_MODULES=" + absolute(t, "vscode")}, "node", absolute(t, "testdata/client.mjs"), filepath.Join(bin, "trainvet"), folder)
	want := `encoding "utf-16"
pulled ["full",["checkpoint-embedding"]]
again "unchanged"
workspace [["args.yaml",false],["model.py",true]]
actions ["call it directly","Ignore checkpoint-embedding on this line","Ignore checkpoint-embedding in trainvet.toml for model.py"]
hover ["markdown",true]
hints ["global batch = 4 x 8 x 8 = 256","a string here"]
symbols ["per_device_train_batch_size","gradient_accumulation_steps","learning_rate","bf16"]
completion ["true","false"]
registered ["workspace/didChangeWatchedFiles"]
exit 0
`
	if out != want {
		t.Errorf("the client says\n%s\nwanted\n%s", out, want)
	}
}

func TestExtension(t *testing.T) {
	modules(t)
	folder := t.TempDir() // other tests read the tree meanwhile
	if err := os.CopyFS(filepath.Join(folder, "src"), os.DirFS("vscode/src")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"vscode/package.json", "vscode/tsconfig.json", "vscode/.vscodeignore", "vscode/README.md", "../LICENSE"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, filepath.Base(name)), string(text))
	}
	if err := os.Symlink(absolute(t, "vscode/node_modules"), filepath.Join(folder, "node_modules")); err != nil {
		t.Skip("SKIPPED: no links here: ", err)
	}
	run(t, folder, nil, "npm", "run", "-s", "check")
	run(t, folder, nil, "npm", "run", "-s", "bundle")
	out := run(t, folder, nil, "npm", "run", "-s", "package")
	info, err := os.Stat(filepath.Join(folder, "trainvet.vsix"))
	if err != nil || info.Size() < 10_000 || !strings.Contains(out, "trainvet.vsix") {
		t.Errorf("no package: %v\n%s", err, out)
	}
}

// TestManifest holds the names in the manifest, the source and the server together.
func TestManifest(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var manifest struct {
		Contributes struct {
			Commands      []struct{ Command string }
			Configuration struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal([]byte(read("vscode/package.json")), &manifest); err != nil {
		t.Fatal(err)
	}
	source, server := read("vscode/src/extension.ts"), read("../lint/lsp/commands.go")
	if len(manifest.Contributes.Commands) != 4 {
		t.Errorf("%d commands", len(manifest.Contributes.Commands))
	}
	for _, command := range manifest.Contributes.Commands {
		if !strings.Contains(source, `registerCommand("`+command.Command+`"`) {
			t.Errorf("the source does not register %s", command.Command)
		}
	}
	for _, command := range []string{"trainvet.fit", "trainvet.plan", "trainvet.showMemory"} {
		if !strings.Contains(source, `"`+command+`"`) || !strings.Contains(server, `"`+command+`"`) {
			t.Errorf("%s is not known on both sides", command)
		}
	}
	for setting := range manifest.Contributes.Configuration.Properties {
		if name := strings.TrimPrefix(setting, "trainvet."); !strings.Contains(source, `"`+name+`"`) {
			t.Errorf("the source does not read %s", setting)
		}
	}
}

// TestShapes reads the settings of editors that are not run here as those editors read them.
func TestShapes(t *testing.T) {
	var helix struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `toml:"language-server"`
		Languages []struct {
			Name    string
			Servers []string `toml:"language-servers"`
		} `toml:"language"`
	}
	if _, err := toml.DecodeFile("helix/languages.toml", &helix); err != nil {
		t.Fatal(err)
	}
	if s := helix.Servers["trainvet"]; s.Command != "trainvet" || strings.Join(s.Args, " ") != "lsp" || len(helix.Languages) != 5 {
		t.Errorf("helix: %+v", helix)
	}
	for _, language := range helix.Languages {
		if !strings.Contains(strings.Join(language.Servers, " "), "trainvet") {
			t.Errorf("helix: %s has no trainvet", language.Name)
		}
	}
	text, err := os.ReadFile("zed/settings.json")
	if err != nil {
		t.Fatal(err)
	}
	var zed struct {
		LSP map[string]struct {
			Binary struct {
				Path      string
				Arguments []string
			}
		}
		Languages map[string]struct {
			Servers []string `json:"language_servers"`
		}
	}
	if err := json.Unmarshal(regexp.MustCompile(`(?m)^//.*$`).ReplaceAll(text, nil), &zed); err != nil {
		t.Fatal(err)
	}
	for _, name := range zed.Languages["Python"].Servers {
		if name != "..." && zed.LSP[name].Binary.Path != "trainvet" {
			t.Errorf("zed: %+v", zed)
		}
	}
}
