package dialect

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/configs"
)

// TestEveryKeyHasADecision: of each known key of each framework it is written down whether the plan reads it, whether it makes the
// memory of a run unknown, or that it has no effect on it. A new release of a framework brings keys that have none.
func TestEveryKeyHasADecision(t *testing.T) {
	for name := range keyTables {
		table, err := readKeys(name)
		if err != nil {
			t.Fatal(err)
		}
		decided := map[string]bool{}
		var patterns []string
		for of := effects()[name]; of != nil; of = effects()[of.base] {
			for _, e := range of.unmodelled {
				decided[e.key] = true
			}
			for _, line := range slices.Concat(of.read, of.none) {
				for _, word := range strings.Fields(line) {
					if decided[word] = true; strings.HasSuffix(word, "*") {
						patterns = append(patterns, strings.TrimSuffix(word, "*"))
					}
				}
			}
		}
		if d := Named(name); d != nil {
			for path := range allPaths(d) {
				decided[path] = true
			}
		}
		for _, key := range slices.Sorted(keysIn(table)) {
			if !decided[key] && !slices.ContainsFunc(patterns, func(p string) bool { return strings.HasPrefix(key, p) }) {
				t.Errorf("%s: nothing says what %s does to memory (effects.txt)", name, key)
			}
		}
	}
}

func keysIn(table *KeyTable) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range table.keys {
			if !yield(key) {
				return
			}
		}
	}
}

// TestEffects: the lines are of dialects, their tests are known ones, none says two things of a key, and what is read is in the source.
func TestEffects(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, name := range files {
		if !strings.HasSuffix(name, "_test.go") {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			source.Write(text)
		}
	}
	text := source.String()
	for name, of := range effects() {
		if Named(name) == nil && name != Accelerator.Name && keyTables[name] == nil {
			t.Errorf("[%s] is no dialect", name)
		}
		seen := map[string]string{}
		say := func(key, kind string) {
			if other := seen[key]; other != "" && other != kind {
				t.Errorf("%s: %s is %s and %s", name, key, other, kind)
			}
			seen[key] = kind
		}
		for _, e := range of.unmodelled {
			say(e.key, "unmodelled")
			if e.thing == "" || !slices.Contains([]string{"", "is", "not", "has", ">"}, e.test) || e.test != "" && len(e.values) == 0 {
				t.Errorf("%s: %+v", name, e)
			}
			for _, value := range e.values {
				if _, err := path.Match(value, ""); err != nil || value != strings.ToLower(value) {
					t.Errorf("%s: %s: value %q", name, e.key, value)
				}
			}
		}
		for _, line := range of.read {
			for key := range strings.FieldsSeq(line) {
				say(key, "read")
				last := key[strings.LastIndexByte(key, '.')+1:]
				last = strings.TrimPrefix(last, "fsdp_")
				if last != "*" && !strings.Contains(text, last+`"`) && !strings.Contains(text, `"`+key+".") {
					t.Errorf("%s: %s is said to be read, and no dialect names it", name, key)
				}
			}
		}
		for _, line := range of.none {
			for key := range strings.FieldsSeq(line) {
				say(key, "none")
			}
		}
	}
}

// TestUnmodelled: a line counts for the values that switch the thing on, and for those that are filled in later.
func TestUnmodelled(t *testing.T) {
	scalar := func(raw string) *configs.Node { return &configs.Node{Kind: configs.Scalar, Raw: raw} }
	list := func(words ...string) *configs.Node {
		n := &configs.Node{Kind: configs.Sequence}
		for _, word := range words {
			n.Items = append(n.Items, configs.Item{Value: scalar(word)})
		}
		return n
	}
	for _, test := range []struct {
		line  string
		value *configs.Node
		want  bool
	}{
		{"k: X", scalar("true"), true}, {"k: X", scalar("false"), false}, {"k: X", scalar("null"), false}, {"k: X", scalar("0"), false},
		{"k: X", scalar("4"), true}, {"k: X", scalar("0.5"), true}, {"k: X", scalar("none"), false}, {"k: X", scalar("a/b"), true},
		{"k: X", list(), false}, {"k: X", list("a"), true}, {"k: X", &configs.Node{Kind: configs.Mapping}, false},
		{"k: X", &configs.Node{Kind: configs.Scalar, Raw: "$K", Open: true}, true}, {"k > 1: X", scalar("1"), false}, {"k > 1: X", scalar("2"), true},
		{"k is a b: X", scalar("B"), true}, {"k is a b: X", scalar("c"), false}, {"k not a b: X", scalar("c"), true}, {"k not a b: X", scalar("a"), false},
		{"k not a b: X", scalar("null"), false}, {"k not a: X", scalar(""), false}, {"k has a*: X", list("b", "abc"), true}, {"k has a*: X", list("b"), false},
		{"k has a*: X", scalar("b, abc"), true}, {"k has a*: X", scalar("b"), false},
	} {
		tree := &configs.Tree{Format: configs.YAML, Root: &configs.Node{Kind: configs.Mapping, Items: []configs.Item{{Key: "k", Value: test.value}}}}
		r := &reader{lookup: HFTrainingArguments.lookup(tree), dialect: HFTrainingArguments}
		e := effectOf(test.line)
		if got := r.asks(&e, r.find("k")); got != test.want {
			t.Errorf("%s with %+v: %v", test.line, *test.value, got)
		}
	}
}
