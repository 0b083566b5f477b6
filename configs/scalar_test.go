package configs

import (
	"math"
	"math/big"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/lint/source"
)

// decodeValue reads a cell of scalars.tsv; ok is false for a value of another type, such as a date.
func decodeValue(t *testing.T, cell string) (v constant.Value, ok bool) {
	t.Helper()
	text := cell[1:]
	switch cell[0] {
	case 'n':
		return v, true
	case 'b':
		return constant.MakeBool(text == "True"), true
	case 'i':
		i, ok := new(big.Int).SetString(text, 10)
		return constant.MakeBig(i), ok
	case 'f':
		f, err := strconv.ParseFloat(text, 64)
		return constant.MakeFloat(f), err == nil
	case 's':
		return constant.MakeString(text), true
	}
	return v, false
}

func sameValue(a, b constant.Value) bool {
	if a.Kind() != b.Kind() {
		return false
	}
	if a.Kind() == constant.Float {
		x, _ := a.Number()
		y, _ := b.Number()
		return x == y || math.IsNaN(x) && math.IsNaN(y)
	}
	return a.Equal(b)
}

// TestScalars holds every loader against what the real one made of the same text.
func TestScalars(t *testing.T) {
	data, err := os.ReadFile("testdata/scalars.tsv")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	columns := strings.Split(strings.TrimPrefix(lines[0], "# "), "\t")
	loaders := map[string]Loader{"yaml11": LoaderYAML11, "ruamel": LoaderRuamel, "omegaconf": LoaderOmegaConf, "jsonargparse": LoaderJsonargparse,
		"json": LoaderJSON, "hjson": LoaderHJSON, "toml": LoaderTOML, "pydantic": LoaderPydantic, "flags": LoaderFlags}
	checked := map[string]int{}
	for _, line := range lines[1:] {
		cells := strings.Split(line, "\t")
		raw := cells[0]
		for i, column := range columns[1:] {
			cell := cells[i+1]
			name, wanted, _ := strings.Cut(column, ".")
			loader := loaders[name]
			if exempt(name, raw) {
				continue
			}
			node := scalarOf(t, name, raw)
			if node == nil {
				if cell != "ERR" {
					t.Errorf("%s: %s: not read, the loader gives %s", name, raw, cell)
				}
				continue
			}
			checked[column]++
			var got constant.Value
			ok := true
			switch wanted {
			case "":
				got, ok = loader.value(node)
			case "bool":
				b, is := node.Bool(loader)
				got, ok = constant.MakeBool(b), is
			case "int":
				n, is := node.Int(loader)
				got, ok = constant.MakeInt(n), is
			case "float":
				f, is := node.Float(loader)
				got, ok = constant.MakeFloat(f), is
			}
			if cell == "o" {
				if s, isText := got.Str(); !isText || s != raw {
					t.Errorf("%s: %s = %v, want the text of a date", name, raw, got)
				}
				continue
			}
			if cell == "ERR" {
				// What a loader refuses is no value; what only its parser refuses is not the resolver's business
				if ok && wanted != "" {
					t.Errorf("%s: %s = %v, the loader refuses it", column, raw, got)
				}
				continue
			}
			want, known := decodeValue(t, cell)
			if !known {
				t.Fatalf("bad cell %q", cell)
			}
			if _, fits := want.Int(); wanted == "int" && !fits {
				continue // beyond 64 bits
			}
			if !ok || !sameValue(got, want) {
				t.Errorf("%s: %s = %v (%v %v), the loader gives %s", column, raw, got, got.Kind(), ok, cell)
			}
		}
	}
	for _, column := range columns[1:] {
		if checked[column] < 100 {
			t.Errorf("%s: only %d values checked", column, checked[column])
		}
	}
}

// exempt are texts in which more than the resolver is at work.
func exempt(loader, raw string) bool {
	switch {
	case loader == "hjson" && raw == "FULL_SHARD":
		return true // a placeholder of a template to us
	case loader == "toml":
		return strings.Contains(raw, "#") // a comment
	case loader == "pydantic":
		return raw == "._5" || raw == "+_1" || raw == "1e_5" // underscores that neither Python nor YAML takes
	}
	return false
}

// scalarOf reads the text as a value of the format that the loader is for, or gives nil where the text is no such value.
func scalarOf(t *testing.T, loader, raw string) *Node {
	switch loader {
	case "json", "hjson":
		tree := ParseJSON(&source.File{Path: "x.json", Text: []byte("{\"k\": " + raw + "\n}")})
		if len(tree.Errors) > 0 || loader == "json" && len(tree.StrictErrors) > 0 || tree.Template {
			return nil
		}
		return tree.Root.Get("k")
	case "toml", "flags":
		return &Node{Kind: Scalar, Raw: raw}
	}
	trees := ParseYAML(&source.File{Path: "x.yaml", Text: []byte("k: " + raw + "\n")})
	if len(trees[0].Errors) > 0 || trees[0].Root == nil {
		return nil
	}
	return trees[0].Root.Get("k")
}

func TestCoreSchema(t *testing.T) {
	for raw, want := range map[string]string{
		"1e-5": "1e-05", "1e5": "100000.0", "off": `"off"`, "017": "17", "0o17": "15", "0x1F": "31", "1_000": `"1_000"`, "12:30": `"12:30"`, ".inf": "inf",
		"-.INF": "-inf", ".NaN": "nan", "true": "True", "TRUE": "True", "tRUE": `"tRUE"`, "~": "None", "": "None", "Null": "None", ".5": "0.5", "1.": "1.0",
		"+12": "12", "-0x1F": `"-0x1F"`, "0b1": `"0b1"`, "=": `"="`, "-": `"-"`, ".": `"."`,
	} {
		if got := LoaderYAML12.Resolve(&Node{Kind: Scalar, Raw: raw}).String(); got != want {
			t.Errorf("%q = %s, want %s", raw, got, want)
		}
	}
}

// TestTags holds what PyYAML makes of explicit tags and quotes.
func TestTags(t *testing.T) {
	for text, want := range map[string]string{
		"!!str 5": `"5"`, "!!float 1e-5": "1e-05", "!!int \"3\"": "3", "!!bool yes": "True", "!!bool \"off\"": "False", "!!null x": "None", "! 5": `"5"`,
		"\"5\"": `"5"`, "'off'": `"off"`, "!!float 3": "3.0", "!custom 5": `"5"`, "!!int 0x10": "16", "|\n  5": `"5\n"`,
	} {
		trees := ParseYAML(&source.File{Path: "x.yaml", Text: []byte("k: " + text + "\n")})
		if got := LoaderYAML11.Resolve(trees[0].Root.Get("k")).String(); got != want {
			t.Errorf("%s = %s, want %s", text, got, want)
		}
	}
}

func TestCoercion(t *testing.T) {
	plain := func(raw string) *Node { return &Node{Kind: Scalar, Raw: raw} }
	quoted := func(raw string) *Node { return &Node{Kind: Scalar, Style: DoubleQuoted, Raw: raw} }
	if i, ok := quoted(" 8 ").Int(LoaderPydantic); !ok || i != 8 {
		t.Errorf("pydantic reads \" 8 \" as %d, %v", i, ok)
	}
	if i, ok := plain("5.0").Int(LoaderPydantic); !ok || i != 5 {
		t.Errorf("pydantic reads 5.0 as %d, %v", i, ok)
	}
	if _, ok := plain("5.5").Int(LoaderPydantic); ok {
		t.Error("pydantic refuses 5.5 for an integer")
	}
	if _, ok := quoted("8").Int(LoaderYAML11); ok {
		t.Error("PyYAML keeps quoted text")
	}
	if _, ok := plain("true").Int(LoaderJSON); ok {
		t.Error("a truth value is no integer")
	}
	if b, ok := (&Node{Kind: Scalar, Bare: true}).Bool(LoaderFlags); !ok || !b {
		t.Error("a bare flag is true")
	}
	if _, ok := (&Node{Kind: Scalar, Raw: "$N", Open: true}).Int(LoaderFlags); ok {
		t.Error("an open scalar has no value")
	}
	if _, ok := (*Node)(nil).Float(LoaderJSON); ok {
		t.Error("nothing has no value")
	}
	if s, ok := plain("off").Str(LoaderRuamel); !ok || s != "off" {
		t.Errorf("ruamel reads off as %q, %v", s, ok)
	}
}
