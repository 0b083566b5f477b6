package workspace

import (
	"fmt"
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
