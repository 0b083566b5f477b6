package rules_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/linttest"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/rules"
)

// wide are files in so many levels, each of which names all of the next level: with every level the ways from the first to the last
// file are forty times as many.
func wide(levels int, name func(level, n int) string, text func(next []string) string) map[string]string {
	const width = 40
	files := map[string]string{}
	for level := range levels {
		var next []string
		if level+1 < levels {
			for n := range width {
				next = append(next, name(level+1, n))
			}
		}
		for n := range width {
			if level > 0 || n == 0 {
				files[name(level, n)] = text(next)
			}
		}
	}
	return files
}

// chain are files each of which names the next one, and the last one the first.
func chain(count int, name func(n int) string, text func(n int, next string) string) map[string]string {
	files := map[string]string{}
	for n := range count {
		files[name(n)] = text(n, name((n+1)%count))
	}
	return files
}

// TestChains checks files that include each other in chains, in circles and in more ways than could ever be followed. Without bounds the
// check does not end, or the stack does.
func TestChains(t *testing.T) {
	each := func(names []string, format string) string {
		var out strings.Builder
		for _, name := range names {
			fmt.Fprintf(&out, format, name)
		}
		return out.String()
	}
	module := func(n int) string { return fmt.Sprintf("m%d.py", n) }
	stem := func(name string) string { return strings.TrimSuffix(name, ".py") }
	for name, c := range map[string]struct {
		files map[string]string
		start string
	}{
		"hydra defaults": {wide(7, func(level, n int) string { return fmt.Sprintf("conf/l%d_%d.yaml", level, n) }, func(next []string) string {
			text := "defaults:\n- _self_\n"
			for _, name := range next {
				text += "- " + strings.TrimSuffix(strings.TrimPrefix(name, "conf/"), ".yaml") + "\n"
			}
			return text + "per_device_train_batch_size: 4\ngradient_accumulation_steps: 2\nlearning_rate: 1e-5\noutput_dir: x\n"
		}), "conf/l0_0.yaml"},
		"requirements": {wide(8, func(level, n int) string { return fmt.Sprintf("l%d_%d-requirements.txt", level, n) }, func(next []string) string {
			return each(next, "-r %s\n") + "torch==2.1\n"
		}), "l0_0-requirements.txt"},
		"scripts": {wide(6, func(level, n int) string { return fmt.Sprintf("l%d_%d.sh", level, n) }, func(next []string) string {
			return each(next, "bash %s\n") + "torchrun --nproc_per_node 2 train.py --bf16 True\n"
		}), "l0_0.sh"},
		"imports": {chain(3000, module, func(n int, next string) string {
			return fmt.Sprintf("import torch\nfrom %s import *\nfrom %s import value as v%d, make\nvalue = v%d\nclass M(v%d): pass\ndef f(x): return make(value)(x)\n", stem(next), stem(next), n, n, n)
		}), "m0.py"},
		"calls": {wide(6, func(level, n int) string { return fmt.Sprintf("l%d_%d.py", level, n) }, func(next []string) string {
			text := "import torch\n"
			for i, name := range next {
				text += fmt.Sprintf("from %s import f as f%d\n", stem(name), i)
			}
			text += "def f(model, x):\n    loss = model(x)\n"
			for i := range next {
				text += fmt.Sprintf("    loss = f%d(model, loss)\n", i)
			}
			return text + "    loss.backward()\n    return loss\nfor x in loader:\n    f(model, x)\n    optimizer.step()\n"
		}), "l0_0.py"},
		"configs that name configs": {chain(500, func(n int) string { return fmt.Sprintf("c%d.yaml", n) }, func(n int, next string) string {
			return "per_device_train_batch_size: 4\noutput_dir: x\nlearning_rate: 1e-5\ndeepspeed: " + next + "\n"
		}), "c0.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			c.files[".git/HEAD"] = ""
			snapshot := workspace.NewSnapshot(linttest.FS(c.files))
			costs(t, 1<<15, func() {
				report, err := check.Run(context.Background(), snapshot, []check.Target{{Path: c.start, Named: true}}, check.Options{Rules: rules.All(), Settings: resolver(snapshot), Jobs: 1})
				if err != nil {
					t.Fatal(err)
				}
				sane(t, report)
			})
		})
	}
}

// TestExtendChain holds that settings which extend settings end, with a message that says where.
func TestExtendChain(t *testing.T) {
	for name, want := range map[string]string{"chain": "extends more than", "circle": "extends itself"} {
		files := chain(400, func(n int) string { return fmt.Sprintf("s%d.toml", n) }, func(n int, next string) string { return "extend = \"" + next + "\"\n" })
		files["trainvet.toml"], files["a.py"], files[".git/HEAD"] = "extend = \"s0.toml\"\n", "x = 1\n", ""
		if name == "circle" {
			files["s3.toml"] = "extend = \"s1.toml\"\n"
		}
		snapshot := workspace.NewSnapshot(linttest.FS(files))
		_, err := check.Run(context.Background(), snapshot, []check.Target{{Path: "a.py"}}, check.Options{Rules: rules.All(), Settings: resolver(snapshot), Jobs: 1})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ".toml:1:10: ") {
			t.Errorf("%s: %.300v, want %q", name, err, want)
		}
	}
}
