package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRead reads keys out of a small framework, in each of the ways.
func TestRead(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"arguments.py": `
def add(parser):
    parser.add_argument("-b", "--micro-batch-size", type=int, default=4)
    parser.add_argument("--style", choices=["linear", "cosine"], dest="decay")
    parser.add_argument("--sizes", nargs="+", type=int)
    ArgumentGroupFactory(Config, exclude=["hidden"])
`,
		"config.py": `
class Kind(StrEnum):
    a = "a"
    b = "b"

@dataclass
class Base:
    seed: int = 1

@dataclass
class Inner(Base):
    kind: Optional[Kind] = None

@dataclass
class Config(Base):
    fused: bool = True
    hidden: str = ""
    inner: Inner = field(default_factory=Inner)
    mode: Literal["x", "y"] = "x"
    ratio: float | None = 0.5
`,
		"pkg/__init__.py": "from ._builders import tiny\n",
		"pkg/_builders.py": `
def tiny(rank: int, *, dropout=0.0):
    pass
`,
		"base.yaml": "trainer: {devices: 8}\nname: a\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ from, want string }{
		{"options arguments.py", "disable_fused: bool, inner: , micro_batch_size: int|null = 4, mode: str = \"x\" of x y, no_fused: bool, ratio: float|null = 0.5, seed: int = 1, sizes: int|list|null, style: str|null of linear cosine"},
		{"dests arguments.py", "decay: str|null of linear cosine, disable_fused: bool, inner: , micro_batch_size: int|null = 4, mode: str = \"x\" of x y, no_fused: bool, ratio: float|null = 0.5, seed: int = 1, sizes: int|list|null"},
		{"fields config.py Config", "fused: bool = true, hidden: str = \"\", inner: mapping, inner.kind: str|null of a b, inner.seed: int = 1, mode: str = \"x\" of x y, ratio: float|null = 0.5, seed: int = 1"},
		{"settings base.yaml", "name: , trainer: , trainer.devices: "},
	} {
		words := append(strings.Fields(test.from), "")
		m := newMaker(map[string]string{"": "open"})
		m.root = root
		m.read(reading{kind: map[string]kind{"options": options, "dests": dests, "fields": fields, "settings": settings}[words[0]], files: words[1:2], class: words[2]})
		var got []string
		for _, name := range slices.Sorted(maps.Keys(m.keys)) {
			k := m.keys[name]
			line := name + ": " + k.Type
			if k.Default != nil {
				line += " = " + asJSON(k.Default)
			}
			for i, choice := range k.Choices {
				line += map[bool]string{true: " of ", false: " "}[i == 0] + choice.(string)
			}
			got = append(got, line)
		}
		if got := strings.Join(got, ", "); got != test.want {
			t.Errorf("%s:\n%s\nwanted\n%s", test.from, got, test.want)
		}
		if text := m.write("v", "c", []string{"more"}); !json.Valid(text) {
			t.Errorf("%s: not JSON:\n%s", test.from, text)
		}
	}
	m := newMaker(map[string]string{"": "open"})
	m.root = root
	m.read(reading{kind: builders, files: []string{"pkg"}})
	if params := m.constructors["pkg.tiny"]; params["rank"] == nil || params["dropout"] == nil || len(params) != 2 {
		t.Errorf("parameters of pkg.tiny: %v", params)
	}
}

// TestRecipes: each recipe makes a table that the program holds.
func TestRecipes(t *testing.T) {
	for name := range recipes {
		if _, err := os.Stat(filepath.Join("..", "..", "..", "configs", "dialect", "keys", name+".json")); err != nil {
			t.Error(err)
		}
	}
}
