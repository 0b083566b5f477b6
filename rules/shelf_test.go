package rules

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/workspace"
)

// shelved is a project in which what is found in one file depends on others: that the loop of train.py goes backward stands two calls away, and
// how many ranks run ds.json in a script.
var shelved = map[string]string{
	"train.py": `import torch
from lib.steps import advance


def train(model, loader, optimizer):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        advance(loss)
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.empty_cache()
`,
	"lib/__init__.py": "",
	"lib/steps.py":    "from .low import propagate\n\n\ndef advance(loss):\n    propagate(loss)\n",
	"lib/low.py":      "def propagate(loss):\n    pass\n",
	"main.py":         "import torch\nfrom train import train\n\nmodel = torch.nn.Linear(4, 4)\ntrain(model, [], torch.optim.SGD(model.parameters(), 0.1))\n",
	"launch.sh":       "torchrun --nproc_per_node 4 deep.py --deepspeed --deepspeed_config ds.json\n",
	"ds.json":         `{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4}`,
}

// TestShelf changes a project step by step, and wants from checks of single files with a shelf, as it was left by the step before, and as this
// one leaves it, what they find without one.
func TestShelf(t *testing.T) {
	folder, cache := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range shelved {
		write(name, text)
	}
	write(".git/HEAD", "")
	t.Chdir(folder)
	found := func(name string, keep bool) string {
		var shelf *workspace.Shelf
		if keep {
			shelf = workspace.NewShelf(cache, "test")
			shelf.Now = func() time.Time { return time.Now().Add(time.Hour) } // files are no longer young
		}
		snapshot := workspace.NewSnapshot(workspace.NewConfined(filepath.ToSlash(folder), name))
		settings := &check.Resolver{Snapshot: snapshot, Dir: filepath.ToSlash(folder), Rules: All(), Flags: check.Flags{Isolated: true}}
		walk := check.WalkAll([]string{name}, settings)
		report, err := check.Run(context.Background(), snapshot, walk.Targets, check.Options{Rules: All(), Settings: settings, Walk: walk, Shelf: shelf})
		if err != nil {
			t.Fatal(err)
		}
		if err := shelf.Save(); err != nil {
			t.Fatal(err)
		}
		return strings.Join(list(report), "\n")
	}
	kept := func() os.FileInfo {
		names, err := filepath.Glob(filepath.Join(cache, "*"))
		if err != nil || len(names) != 1 {
			t.Fatalf("on the shelf: %q, %v", names, err)
		}
		info, err := os.Stat(names[0])
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	remove := func(name string) {
		if err := os.Remove(filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	low := shelved["lib/low.py"]
	for _, step := range []struct {
		name   string
		change func()
		again  bool   // the project is read again
		target string // in which the step changes what is found
	}{
		{name: "nothing is kept", change: func() {}, again: true},
		{name: "a function goes backward", change: func() { write("lib/low.py", strings.Replace(low, "pass", "loss.backward()", 1)) }, target: "train.py"},
		{name: "and no longer", change: func() { write("lib/low.py", low) }, target: "train.py"},
		{name: "a new file does, that another imports", change: func() {
			write("lib/deep.py", "def propagate(loss):\n    loss.backward()\n")
			write("lib/steps.py", strings.Replace(shelved["lib/steps.py"], ".low", ".deep", 1))
		}, target: "train.py"},
		{name: "the new file goes", change: func() { remove("lib/deep.py") }, target: "train.py"},
		{name: "a file that was there goes", change: func() { write("lib/steps.py", shelved["lib/steps.py"]); remove("main.py") }, again: true},
		{name: "a script starts more ranks", change: func() { write("launch.sh", strings.Replace(shelved["launch.sh"], "4", "8", 1)) }, target: "ds.json"},
		{name: "it starts as many as before, and a new one more", change: func() {
			write("launch.sh", shelved["launch.sh"])
			write("scripts/wide.sh", strings.Replace(shelved["launch.sh"], "4", "16", 1))
		}, target: "ds.json"},
		{name: "the new one names another file", change: func() { write("scripts/wide.sh", "torchrun --nproc_per_node 16 deep.py\n") }, target: "ds.json"},
	} {
		targets := []string{"train.py", "lib/steps.py", "lib/low.py", "ds.json", "launch.sh"}
		before := map[string]string{}
		for _, name := range targets {
			before[name] = found(name, false)
		}
		step.change()
		var was os.FileInfo
		if step.name != "nothing is kept" {
			was = kept()
		}
		for _, name := range targets {
			want := found(name, false)
			if name == step.target && want == before[name] {
				t.Errorf("%s: nothing changes in %s:\n%s", step.name, name, want)
			}
			for range 2 {
				if got := found(name, true); got != want {
					t.Errorf("%s: %s with a shelf:\n%s\nwithout:\n%s", step.name, name, got, want)
				}
			}
		}
		if now := kept(); was != nil && os.SameFile(was, now) == step.again {
			t.Errorf("%s: the project was read again: %v, want %v", step.name, !step.again, step.again)
		}
	}
}
