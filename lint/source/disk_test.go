package source

import (
	"strings"
	"testing"
)

func TestOnDisk(t *testing.T) {
	const mark = "\xEF\xBB\xBF"
	book := "{\"cells\": [\n {\"cell_type\": \"code\", \"source\": [\"a\\n\",\n  \"é = '\\u00e9'; f(x)\\n\"]}\n]}\n"
	for _, test := range []struct {
		name string
		kind Kind
		raw  string
		part string
		want [2]Spot
	}{
		{"a.py", Python, "x = 1\ny = 2\n", "y", [2]Spot{{2, 1, 1}, {2, 2, 2}}},
		{"wide.py", Python, mark + "'文𐐀'; f()\n", "f()", [2]Spot{{1, 7, 12}, {1, 10, 15}}},
		{"lines.py", Python, "x\r\ny\rf(\n1)\n", "f(\n1)", [2]Spot{{3, 1, 1}, {4, 3, 3}}},
		{"latin.py", Python, "# coding: latin-1\n'\xe9'; f()\n", "f()", [2]Spot{{2, 6, 7}, {2, 9, 10}}},
		{"koi.py", Python, "# coding: koi8-r\n'\xc1\xc2'; f()\n", "f()", [2]Spot{{2, 7, 9}, {2, 10, 12}}},
		{"pairs.py", Python, "# coding: gbk\n'\xb0\x5c\xd6\xd0'; f()\n", "f()", [2]Spot{{2, 7, 11}, {2, 10, 14}}},
		{"b.ipynb", Notebook, book, "f(x)", [2]Spot{{3, 18, 19}, {3, 22, 23}}},
		{"marked.ipynb", Notebook, mark + book, "f(x)", [2]Spot{{3, 18, 19}, {3, 22, 23}}},
		{"marked.ipynb", Notebook, mark + book, "a\n", [2]Spot{{2, 36, 36}, {2, 39, 39}}},
		{"empty.ipynb", Notebook, mark + `{"cells": []}`, "", [2]Spot{{1, 1, 1}, {1, 1, 1}}},
	} {
		file, err := Decode(test.name, test.kind, []byte(test.raw))
		if err != nil {
			t.Fatal(err)
		}
		at := strings.Index(string(file.Text), test.part)
		if at < 0 {
			t.Fatalf("%q is not in %q", test.part, file.Text)
		}
		start, end := file.OnDisk(Span{uint32(at), uint32(at + len(test.part))})
		if got := [2]Spot{start, end}; got != test.want {
			t.Errorf("%s, %q: got %v, want %v", test.name, test.part, got, test.want)
		}
		if _, far := file.OnDisk(Span{9, 1 << 30}); far.Line < 1 {
			t.Errorf("%s: a span beyond the end gives %v", test.name, far)
		}
	}
}
