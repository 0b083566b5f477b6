package source

import (
	"fmt"
	"strings"
	"testing"
)

const sample = `{
 "cells": [
  {"cell_type": "markdown", "source": ["# Title\n"]},
  {"cell_type": "code", "metadata": {"x": [1, {"y": null}]}, "source": ["%matplotlib inline\n", "s = \"\u00e9\ud83d\ude00\"\n", "x = 1"], "outputs": []},
  {"cell_type": "code", "source": "%%bash\nls"},
  {"cell_type": "code", "source": "!pip install torch\nif x:\n\ty = 2\n"}
 ],
 "nbformat": 4
}`

func TestNotebook(t *testing.T) {
	file, err := Decode("n.ipynb", Notebook, []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	want := "#matplotlib inline\ns = \"é😀\"\nx = 1\n#pip install torch\nif x:\n\ty = 2\n"
	if string(file.Text) != want {
		t.Fatalf("text %q, want %q", file.Text, want)
	}
	for _, test := range []struct{ find, at, raw string }{
		{"s = ", "cell 2:2:1", "s = "},
		{"é", "cell 2:2:6", `\u00e9`},
		{"😀", "cell 2:2:7", `\ud83d\ude00`},
		{"x = 1", "cell 2:3:1", "x = 1"},
		{"if x", "cell 4:2:1", "if x"},
		{"\ty", "cell 4:3:1", `\ty`},
	} {
		start := uint32(strings.Index(string(file.Text), test.find))
		span := Span{start, start + uint32(len(test.find))}
		if got := fmt.Sprint(file.Position(start)); got != test.at {
			t.Errorf("%q stands at %s, want %s", test.find, got, test.at)
		}
		raw := file.RawSpan(span)
		if got := sample[raw.Start:raw.End]; got != test.raw {
			t.Errorf("%q comes from %q, want %q", test.find, got, test.raw)
		}
	}
}

// A line that asks for help is a comment, whatever else ends in a question mark stays.
func TestNotebookHelp(t *testing.T) {
	for line, want := range map[string]string{
		"x?": "#?", "torch.nn??": "#orch.nn??", "  np.*load*? ": "  #p.*load*? ", "?x": "#x", "x[0].f?": "#[0].f?", "größe?": "#röße?",
		"s = 'why?'": "s = 'why?'", "f(x)?": "f(x)?", "# why?": "# why?", "x???": "x???", "1?": "1?",
	} {
		file, err := Decode("n.ipynb", Notebook, []byte(`{"cells": [{"cell_type": "code", "source": "`+line+`"}]}`))
		if err != nil || string(file.Text) != want+"\n" {
			t.Errorf("%q became %q, want %q (%v)", line, file.Text, want, err)
		}
	}
}

// A command is a statement where a block has nothing else, and goes on in the lines below where it says so.
func TestNotebookCommands(t *testing.T) {
	for code, want := range map[string]string{
		`if x:\n  !pip install y\n  !pip list`:  "if x:\n  0#ip install y\n  #pip list\n",
		`if x:\n    ## first\n    %cd y\nz = 1`: "if x:\n    ## first\n    0#d y\nz = 1\n",
		`!run a \\\n    --b \\\n    --c\nd = 1`: "#run a \\\n    #-b \\\n    #-c\nd = 1\n",
		`x = (\"%d\"\n     % y)`:                "x = (\"%d\"\n     % y)\n",
		`if x:\n    !`:                          "if x:\n    0\n",
		`!run \\\n\ny = 1`:                      "#run \\\n\ny = 1\n",
	} {
		file, err := Decode("n.ipynb", Notebook, []byte(`{"cells": [{"cell_type": "code", "source": "`+code+`"}]}`))
		if err != nil || string(file.Text) != want {
			t.Errorf("%q became %q, want %q (%v)", code, file.Text, want, err)
		}
	}
}

func TestNotebookFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "is no notebook: line 1: an object was expected",
		`[]`:                               "is no notebook: line 1: an object was expected",
		`{"worksheets": []}`:               "is no notebook: it has no cells (nbformat 4 is read)",
		"{\n\"cells\": [{\"source\": 3}]}": "is no notebook: line 2: text was expected",
		`{"cells": [`:                      "is no notebook: line 1: an object was expected",
		`{"cells": [{"source": "\q"}]}`:    "is no notebook: line 1: an escape that JSON has not",
	} {
		file, err := Decode("n.ipynb", Notebook, []byte(text))
		if err != nil || file.Fault != want || len(file.Text) > 0 {
			t.Errorf("%s: %v, %v, want %s", text, file, err, want)
		}
	}
	_, err := Decode("n.ipynb", Notebook, []byte(`{"a": `+strings.Repeat("[", 99)))
	if want := "n.ipynb: line 1: nested more than 64 deep, not read"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func FuzzNotebook(f *testing.F) {
	f.Add(sample)
	f.Add(`{"cells": [{"cell_type": "code", "source": ["\u0041\n"]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Decode("n.ipynb", Notebook, []byte(text))
		if err != nil {
			return
		}
		last := 0
		for i := range file.Text {
			raw := file.RawOffset(uint32(i))
			if raw < last && i > 0 && file.segment(uint32(i)).Cell == file.segment(uint32(i-1)).Cell || raw > len(text) {
				t.Fatalf("offset %d leads to %d after %d", i, raw, last)
			}
			last = raw
			file.Position(uint32(i))
		}
	})
}
