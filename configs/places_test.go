package configs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint/source"
)

// Comments and extents are all that suppression needs.
var (
	_ source.Doc = (*Tree)(nil)
	_ source.Doc = (*Script)(nil)
)

func parseOne(name, text string) (*source.File, *Tree) {
	f := &source.File{Path: name, Kind: source.KindOf(name, nil), Text: []byte(text)}
	return f, parseKind(f)[0]
}

// TestLineEnds reads the same config with the three kinds of line ends.
func TestLineEnds(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"x.yaml", "a: 1 # c\nb:\n  c: \"x\"\n  d: |\n    t\n    u\ne: [1,\n 2]\n"},
		{"x.json", "{ // c\n\"a\": 1,\n\"b\": [1,\n2]\n}\n"},
		{"x.toml", "# c\na = 1\n[b]\nc = [1,\n2]\nd = \"\"\"\nx\n\"\"\"\n"},
	} {
		_, want := parseOne(c.name, c.text)
		for _, end := range []string{"\r\n", "\r"} {
			if end == "\r" && c.name == "x.toml" {
				continue // TOML has no such line end
			}
			f, got := parseOne(c.name, strings.ReplaceAll(c.text, "\n", end))
			checkTree(t, f, got)
			if a, b := outline(want.Root), outline(got.Root); a != strings.ReplaceAll(b, end, "\n") || len(got.Comments()) != 1 || len(got.Errors) > 0 {
				t.Errorf("%s with %q: %s, comments %v, errors %v; want %s", c.name, end, b, got.Comments(), got.Errors, a)
			}
		}
	}
	script := "N=8\r\ntorchrun --nproc_per_node $N \\\r\n  train.py --lr 1 # c\r\n"
	f := &source.File{Path: "x.sh", Text: []byte(script)}
	s := ParseShell(f)
	if len(s.Commands) != 1 || s.Commands[0].Program != "train.py" || s.Commands[0].Flags.Root.Get("--lr").Raw != "1" || s.Commands[0].LauncherFlags.Root.Get("--nproc_per_node").Raw != "8" {
		t.Errorf("script: %s", showScript(f, s))
	}
	if c := s.Comments(); len(c) != 1 || f.Slice(c[0]) != "# c" {
		t.Errorf("comments %v", c)
	}
}

// outline is a tree without its places.
func outline(n *Node) string {
	if n == nil {
		return "-"
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%d%q(", n.Kind, n.Raw)
	for _, item := range n.Items {
		fmt.Fprintf(&out, "%s:%s ", item.Key, outline(item.Value))
	}
	return out.String() + ")"
}

func TestInvisibleBlanks(t *testing.T) {
	for _, blank := range invisible {
		f, tree := parseOne("x.json", "{"+blank+"\"a\": 1}")
		if len(tree.Errors) != 1 || f.Slice(tree.Errors[0].At.Span) != blank || tree.Root.Get("a") == nil {
			t.Errorf("%+q: %v", blank, tree.Errors)
		}
	}
}

// TestTabs holds that a tab outside of quotes and blocks is a fault of YAML: PyYAML and ruamel refuse it.
func TestTabs(t *testing.T) {
	for text, faults := range map[string]int{
		"a:\t1\n": 1, "a: 1\t# c\n": 1, "a: x\ty\n": 1, "a: [1,\t2]\n": 1, "a: \"x\ty\"\n": 0, "a: 'x\ty'\n": 0, "a: |\n  x\ty\n": 0, "a: 1 # x\ty\n": 0, "a: 1\n\t\nb: 2\n": 1,
	} {
		if _, tree := parseOne("x.yaml", text); len(tree.Errors) != faults {
			t.Errorf("%q: %v", text, tree.Errors)
		}
	}
}

func TestEmptyValuePlaces(t *testing.T) {
	f, tree := parseOne("x.yaml", "a: &x # c\nb: !!str\nc:\nd: &y !!int\n\ne: 1\n")
	for key, want := range map[string]string{"a": "1:6", "b": "2:9", "c": "3:3", "d": "4:12"} {
		if at := tree.Root.Get(key).At.Span; f.Position(at.Start).String() != want || at.Len() != 0 {
			t.Errorf("%s at %s, %d bytes, want %s", key, f.Position(at.Start), at.Len(), want)
		}
	}
}

func TestGet(t *testing.T) {
	_, tree := parseOne("x.yaml", `
base: &base {lr: 1, a: {b: 2}}
two: &two {lr: 2, wd: 3}
list: {<<: [*two, *base]}
over: {lr: 4, <<: *base}
both: {<<: *base, <<: *two}
twice: {lr: 5, lr: 6}
`)
	for path, want := range map[string]string{
		"list.lr": "2", "list.wd": "3", "list.a.b": "2", "over.lr": "4", "both.lr": "2", "twice.lr": "6", "base.a.b": "2",
	} {
		n := tree.Root.Get(strings.Split(path, ".")...)
		if n == nil || n.Raw != want {
			t.Errorf("%s = %v, want %s", path, n, want)
		}
	}
	for _, path := range []string{"none", "base.lr.x", "base.a.none", "list.none"} {
		if n := tree.Root.Get(strings.Split(path, ".")...); n != nil {
			t.Errorf("%s = %v", path, n)
		}
	}
}

func TestExtent(t *testing.T) {
	for _, c := range []struct{ name, text, at, want string }{
		{"x.yaml", "# c\na:\n  b: 1\n  c: 2\nd: 3\n", "# c", "a:\n  b: 1\n  c: 2"},
		{"x.yaml", "a:\n  b: 1 # c\n  c: 2\nd: 3\n", "# c", "c: 2"},
		{"x.yaml", "a: 1\nd: 3 # c\n", "# c", ""},
		{"x.yaml", "a: &x {b: 1}\nc: *x # d\ne: *x\n", "# d", "e: *x"},
		{"x.yaml", "a:\n# c\n- 1\n- 2\n", "# c", "1"},
		{"x.json", "{\"a\": {\n// c\n\"b\": [1, 2]}}", "// c", "\"b\": [1, 2]"},
		{"x.toml", "[a]\n# c\nb = 1\n", "# c", "b = 1"},
		{"x.toml", "# c\n[a]\nb = 1\n", "# c", "[a]\nb = 1"},
	} {
		f, tree := parseOne(c.name, c.text)
		span := tree.Extent(uint32(strings.Index(c.text, c.at)))
		if got := f.Slice(span); strings.TrimSpace(got) != c.want {
			t.Errorf("%q after %q: %q, want %q", c.text, c.at, got, c.want)
		}
	}
	f := &source.File{Path: "x.sh", Text: []byte("A=1\n# c\npython x.py \\\n  --a\nls\n")}
	s := ParseShell(f)
	if got := f.Slice(s.Extent(4)); got != "python x.py \\\n  --a" {
		t.Errorf("script: %q", got)
	}
	if got := s.Extent(uint32(len(f.Text))); got.Len() != 0 {
		t.Errorf("script end: %v", got)
	}
}
