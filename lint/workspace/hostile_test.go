package workspace

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/pyscan/loop"
)

// TestStarsInACircle looks for names in modules that all import all from each other: a walk over all ways would not end.
func TestStarsInACircle(t *testing.T) {
	const modules = 40
	var text strings.Builder
	for i := range modules {
		fmt.Fprintf(&text, "-- m%d.py --\n", i)
		for j := range modules {
			if i != j {
				fmt.Fprintf(&text, "from m%d import *\n", j)
			}
		}
		fmt.Fprintf(&text, "own%d = %d\n", i, i)
	}
	v, _ := open(t, text.String())
	for i := range modules {
		m := v.Module(fmt.Sprintf("m%d.py", i))
		for range 2 {
			if value := v.moduleName(m, "nowhere"); value != nil {
				t.Fatalf("m%d: nowhere is %s", i, v.Describe(value))
			}
			other := (i + modules/2) % modules
			if value := v.moduleName(m, fmt.Sprintf("own%d", other)); value == nil || v.Describe(value) != fmt.Sprint(other) {
				t.Fatalf("m%d does not find own%d", i, other)
			}
		}
	}
}

// TestStarsInAChain holds that a name is found behind many star imports, and not behind more than maxStars.
func TestStarsInAChain(t *testing.T) {
	var text strings.Builder
	for i := range 2 * maxStars {
		fmt.Fprintf(&text, "-- m%d.py --\nfrom m%d import *\n", i, i+1)
	}
	fmt.Fprintf(&text, "-- m%d.py --\nx = 1\n", 2*maxStars)
	v, _ := open(t, text.String())
	for _, from := range []int{0, 2*maxStars - 20, 0, 2*maxStars - 30} {
		value := v.moduleName(v.Module(fmt.Sprintf("m%d.py", from)), "x")
		if found := value != nil; found != (from > 0) {
			t.Errorf("from m%d: found is %v", from, found)
		}
	}
}

// TestDictInDicts holds that a dict that stands many times in others becomes a tree with a bound, and what is left out is open.
func TestDictInDicts(t *testing.T) {
	text := "c0 = {'train_batch_size': 8}\n"
	for i := range 12 {
		text += fmt.Sprintf("c%d = {'first': 1, %s}\n", i+1, strings.Repeat(fmt.Sprintf("'k': c%d, ", i), 20))
	}
	v, _ := open(t, "-- main.py --\n"+text)
	m := v.Module("main.py")
	tree := v.TreeOf(v.moduleName(m, "c12"))
	nodes, opened := 0, false
	var visit func(*configs.Node)
	visit = func(n *configs.Node) {
		nodes++
		opened = opened || n.Open && n.Kind == configs.Mapping
		for _, item := range n.Items {
			visit(item.Value)
		}
	}
	visit(tree.Root)
	if nodes > maxDictNodes+2*maxDictDepth || !opened || tree.Root.Get("first") == nil {
		t.Errorf("%d values, open: %v", nodes, opened)
	}
}

// TestManyKeywords holds that the parameters of a function are found by their names, be they few or many.
func TestManyKeywords(t *testing.T) {
	for _, count := range []int{3, manyParams, 3 * manyParams} {
		var params, args []string
		for i := range count {
			params, args = append(params, fmt.Sprintf("a%d=None", i)), append(args, fmt.Sprintf("a%d=%d", count-1-i, count-1-i))
		}
		v, _ := open(t, fmt.Sprintf("-- main.py --\ndef f(%s):\n    return a2\nx = f(%s)\n", strings.Join(params, ", "), strings.Join(args, ", ")))
		if value := v.moduleName(v.Module("main.py"), "x"); v.Describe(value) != "2" {
			t.Errorf("of %d: %s", count, v.Describe(value))
		}
	}
}

// TestManyCalls holds that the loops of one file have a bound together, and those of its own text are looked at beyond it.
func TestManyCalls(t *testing.T) {
	text := "import torch\ndef f5(m, x):\n    m(x).backward()\n"
	for i := 4; i > 0; i-- {
		text += fmt.Sprintf("def f%d(m, x):\n%s", i, strings.Repeat(fmt.Sprintf("    f%d(m, x)\n", i+1), 16))
	}
	const loops = 120
	for i := range loops {
		text += fmt.Sprintf("def t%d(model, opt):\n    for b in loader:\n        f1(model, b)\n        model(b).backward()\n        opt.step()\n", i)
	}
	v, _ := open(t, "-- main.py --\n"+text)
	found, events := v.EveryLoop(v.Module("main.py")), 0
	for _, l := range found {
		l.All(func(*loop.Event, *loop.Loop) bool { events++; return true })
	}
	if len(found) < loops || events > 500_000 {
		t.Errorf("%d loops with %d events", len(found), events)
	}
}

// TestChoicesOfContexts holds that names for choices between names, and helpers that enter helpers, are followed up to a bound.
func TestChoicesOfContexts(t *testing.T) {
	text := "import torch\nfrom contextlib import contextmanager\n@contextmanager\ndef h0():\n    with model.no_sync():\n        yield\n"
	for i := range 20 {
		text += fmt.Sprintf("@contextmanager\ndef h%d():\n    with %s:\n        yield\n", i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("h%d(), ", i), 15), ", "))
	}
	text += "def train(model, opt):\n    c0 = model.no_sync()\n"
	for i := range 40 {
		text += fmt.Sprintf("    c%d = c%d if x else c%d\n", i+1, i, i)
	}
	text += "    for b in loader:\n        with c40, h20():\n            model(b).backward()\n        opt.step()\n"
	v, _ := open(t, "-- main.py --\n"+text)
	for _, l := range v.Loops(v.Module("main.py")) {
		l.All(func(e *loop.Event, _ *loop.Loop) bool {
			if len(e.Contexts) > 300 {
				t.Errorf("%d contexts", len(e.Contexts))
			}
			return true
		})
	}
}

// TestScriptOfManyLaunches asks for the runs of configs that one script names, each of them: what the script says must not be made
// anew for each, nor all of its runs to find the one.
func TestScriptOfManyLaunches(t *testing.T) {
	const configs = 300
	text, script := "", ""
	for i := range configs {
		text += fmt.Sprintf("-- c%d.yaml --\nper_device_train_batch_size: 4\noutput_dir: x\ndeepspeed: ds.json\n", i)
		script += fmt.Sprintf("torchrun train.py --config c%d.yaml\n", i)
	}
	text += "-- ds.json --\n{\"zero_optimization\": {\"stage\": 3}}\n-- train.py --\nimport torch\n-- go.sh --\n" + script
	v, _ := open(t, text)
	v.Forgetful()
	if links := v.commandLinks("go.sh"); len(links) != configs {
		t.Fatalf("%d commands", len(links))
	}
	for i := range configs {
		v.Reset()
		name := fmt.Sprintf("c%d.yaml", i)
		runs := v.Runs(name)
		if len(runs) != 1 || runs[0].Name != "go.sh" || runs[0].Parts[0].Path != name || runs[0].Parts[1].Path != "ds.json" {
			t.Fatalf("%s is part of %d runs", name, len(runs))
		}
		if len(v.kept.commands["go.sh"]) != configs {
			t.Fatalf("with %s what the script names was forgotten", name)
		}
		likely := 0
		for range v.start("go.sh", func(l link) bool { return v.reaches(l, name) }) {
			likely++
		}
		if likely != 1 {
			t.Fatalf("%d runs were assembled for %s", likely, name)
		}
	}
	if runs := v.Runs("ds.json"); len(runs) != maxRuns {
		t.Errorf("ds.json is part of %d runs", len(runs))
	}
}

// TestOneOfMany holds that a document or command that is made alone is what it is among all of its file.
func TestOneOfMany(t *testing.T) {
	v, _ := open(t, "-- a.yaml --\ntrain_batch_size: 8\nzero_optimization: {stage: 2}\n---\nnothing: known\n---\ntrain_batch_size: 8\nzero_optimization: {stage: 3}\n"+
		"-- train.py --\nimport torch\n-- in.sh --\ntorchrun --nproc_per_node 2 train.py\ntorchrun --nproc_per_node 3 train.py --config a.yaml\n"+
		"-- go.sh --\necho\ntorchrun --nproc_per_node 1 train.py\n"+strings.Repeat("bash in.sh\n", maxScriptRuns+2)+"torchrun --nproc_per_node 4 train.py\n"+
		"-- big.sh --\n"+strings.Repeat("torchrun --nproc_per_node 2 train.py\n", 3*commandsOfRun)+"-- many.sh --\n"+strings.Repeat("bash big.sh\n", maxScriptRuns))
	documents, links := v.documents("a.yaml"), v.documentLinks("a.yaml")
	if len(documents) != 2 || len(links) != 2 {
		t.Fatalf("%d documents, %d links", len(documents), len(links))
	}
	for i, l := range links {
		v.settings.documents = map[string][]document{"a.yaml": documents}
		if held := v.document("a.yaml", l); !slices.Equal(held, documents[i].parts) {
			t.Errorf("document %d is held as %v", i, held)
		}
		v.settings = settings{}
		if alone := v.document("a.yaml", l); len(alone) != 1 || alone[0].Tree != documents[i].parts[0].Tree {
			t.Errorf("document %d is %v", i, alone)
		}
	}
	const most = (maxScriptRuns/4 + 1) * 3 * commandsOfRun
	for script, count := range map[string][2]int{"go.sh": {2*maxScriptRuns - 4, 2*maxScriptRuns + 2}, "many.sh": {most - 6*commandsOfRun, most}} {
		commands, links := v.commands(script), v.commandLinks(script)
		if len(commands) < count[0] || len(commands) > count[1] || len(links) != len(commands) {
			t.Fatalf("%s: %d commands, %d links", script, len(commands), len(links))
		}
		for i, l := range links {
			v.settings.commands = map[string][]*command{script: commands}
			if held := v.command(script, l); held != commands[i] {
				t.Errorf("%s: command %d is held as %v", script, i, held)
			}
			if v.settings.commands = nil; i%commandsOfRun == 0 {
				v.settings = settings{}
			}
			alone := v.command(script, l)
			if alone == nil || len(alone.parts) != len(commands[i].parts) || alone.parts[0].Tree != commands[i].parts[0].Tree || len(alone.files) != len(commands[i].files) {
				t.Errorf("%s: command %d is %v", script, i, alone)
			}
		}
	}
}

// TestKeptIsBounded holds that of many long scripts not all that they name is kept.
func TestKeptIsBounded(t *testing.T) {
	var k kept
	for i := range 10 {
		k.makeRoom(maxKept / 4)
		k.commands[fmt.Sprint(i)] = nil
		if k.count > maxKept || len(k.commands) > 4 {
			t.Fatalf("%d links of %d scripts are kept", k.count, len(k.commands))
		}
	}
}

// TestReachesInACircle holds that a config is found behind configs that name each other.
func TestReachesInACircle(t *testing.T) {
	v, _ := open(t, "-- a.yaml --\noutput_dir: x\nper_device_train_batch_size: 1\ndeepspeed: b.json\n"+
		"-- b.json --\n{\"train_batch_size\": 8, \"deepspeed\": \"a.yaml\"}\n-- c.json --\n{\"train_batch_size\": 8}\n")
	from := link{files: []string{"a.yaml"}}
	for name, want := range map[string]bool{"a.yaml": true, "b.json": true, "c.json": false} {
		if v.reaches(from, name) != want {
			t.Errorf("%s: want %v", name, want)
		}
	}
}
