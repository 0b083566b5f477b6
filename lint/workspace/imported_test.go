package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// sameImports fails where reading the imports alone gives anything else than the tree.
func sameImports(t *testing.T, name string, text []byte) {
	file := &source.File{Path: name, Kind: source.Python, Text: text}
	var want []imported
	for _, one := range pyscan.New(syntax.Parse(file)).Imports {
		want = append(want, imported{one.Module, one.Member, one.Level})
	}
	if got := importsIn(text); !slices.Equal(got, want) {
		t.Errorf("%s: imports are %v, the tree has %v", name, got, want)
	}
}

func TestImportsIn(t *testing.T) {
	for _, text := range []string{
		"import a",
		"import a.b.c as d, e , f.g\n",
		"import a . b\n",
		"from a.b import c\n",
		"from . import a, b as c\n",
		"from .import a\n",
		"from ..a import *\n",
		"from ... import a\nfrom .... b import c\n",
		"from a import (b,\n  c as d, # from x import y\n\n  e,)\nimport f",
		"from a import (b,\r\n  c)\r\nimport d\r\n",
		"from a \\\n  import b, \\\n  c\n",
		"if a: import b; from c import d\nelse: import e\n",
		"class A:\n  def f(self):\n\timport b\n",
		"\"\"\"\nimport a\n\"\"\"\nimport b\n'''\\''' import c'''; import d\n",
		"a = 'import b' \"from c import d\" # import e\nimport f\n",
		"a = r'\\' + b'\\'import c'\nimport d\n",
		"a = f\"{b['import c']}\"\nimport d\n",
		"important = reimport = x.imports\nimport_module('a')\nimport b\n",
		"def f():\n  yield from importlib\n  raise A from b\n  import c\n",
		"a = {\n 'b': c,\n}\nimport d",
		"# import a\n",
		"from a import b # c\nfrom d import e # import f\n",
		"import é.ö\n",
	} {
		sameImports(t, text, []byte(text))
	}
	for _, text := range []string{"import", "from a import", "from a import (b", "from a import (b,", "import a.", "import a,", "from", "from .", "from a import b as", "from a import (b #"} {
		importsIn([]byte(text)) // ends, whatever it finds
	}
}

// TestImportsOfCases holds the same for the sources of all rules' cases.
func TestImportsOfCases(t *testing.T) {
	cases, _ := filepath.Glob("../../rules/*/*.txtar")
	if len(cases) == 0 {
		t.Fatal("there are no cases")
	}
	for _, name := range cases {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range txtar.Parse(text).Files {
			if filepath.Ext(file.Name) == ".py" {
				sameImports(t, name+" "+file.Name, file.Data)
			}
		}
	}
}
