package check

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
)

// FuzzBaseline: what is read as a baseline is written so that it is read as the same one, in one form only.
func FuzzBaseline(f *testing.F) {
	for _, text := range []string{
		`{"version": 1, "findings": []}`, `{"version": 1, "findings": [{"path": "a.py", "rule": "b", "line": "x = 1", "ordinal": 1}, {"path": "a.json", "rule": "b", "key": "x.y", "ordinal": 2}]}`,
		`{"version": 2}`, `{"version": 1, "findings": null}`, `{"version": 1, "x": 1}`, `{"version": 1, "findings": [{"path": "../../etc/passwd", "rule": "\u0000", "ordinal": -1}]}`, ``, `[]`, `{} {}`, strings.Repeat("[", 100),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		known, err := ReadBaseline(text)
		if err != nil {
			if err.Error() == "" || strings.Contains(err.Error(), "\n") {
				t.Fatalf("the error is %q", err)
			}
			return
		}
		var first, second bytes.Buffer
		if err := writeIdentities(&first, slices.Collect(maps.Keys(known))); err != nil {
			t.Fatal(err)
		}
		again, err := ReadBaseline(first.Bytes())
		if err != nil || !maps.Equal(known, again) {
			t.Fatalf("%v became %v (%v)", known, again, err)
		}
		if err := writeIdentities(&second, slices.Collect(maps.Keys(again))); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("%s is written as %s (%v)", first.Bytes(), second.Bytes(), err)
		}
	})
}

// FuzzIgnore reads any text as a .gitignore: what it says of a name does not change when it is asked again, lines that say nothing change
// nothing, and the last line that names a file has the last word.
func FuzzIgnore(f *testing.F) {
	for _, text := range []string{"*.py\n!a.py\n/b/\n", "a/**/b\n**\n\\#x\n", "[a-\n[!a]\n[]]\n", "{a,b}\n", "a\\ \nb \n", "**/**/**/**/x\n", strings.Repeat("*", 200) + "\n", strings.Repeat("a*", 60) + "\n", "\uFEFFa\r\n"} {
		f.Add(text, "b/a.py")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		if len(text) > 4<<10 || len(name) > 200 || name == "" || strings.ContainsAny(name, "\n\r\x00\\*?[]{}! #") || strings.Contains("/"+name+"/", "//") || strings.Contains("/"+name+"/", "/./") || strings.Contains("/"+name+"/", "/../") {
			return
		}
		malformed(strings.Split(text, "\n"))
		p := parseIgnore("/x", text)
		word := p.of("/x/"+name, false)
		if again := parseIgnore("/x", text+"\n\n# "+name+"\n").of("/x/"+name, false); again != word {
			t.Fatalf("%v, with a comment %v", word, again)
		}
		if got := parseIgnore("/x", text+"\n/"+name).of("/x/"+name, false); got != leftOut {
			t.Fatalf("%q, named last, is %v", name, got)
		}
		if got := parseIgnore("/x", text+"\n!/"+name).of("/x/"+name, false); got != keptIn {
			t.Fatalf("%q, taken back last, is %v", name, got)
		}
		if p.of("/y/"+name, false) != silent || p.covers("/y/"+name) {
			t.Fatalf("a file elsewhere is covered")
		}
	})
}
