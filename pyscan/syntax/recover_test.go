package syntax

import (
	"bytes"
	"os"
	"testing"

	"github.com/trainvet/trainvet/lint/source"
)

// pair is a call and the innermost loop, function or class around it: what a linter of training loops needs to be right.
type pair struct {
	line   int
	callee string
	kind   string
	head   int
}

func pairs(f *File) map[pair]int {
	found := map[pair]int{}
	var walk func(n Node, kind string, head int)
	walk = func(n Node, kind string, head int) {
		line := f.Source.Line(n.Span().Start)
		switch n := n.(type) {
		case *For:
			kind, head = "for", line
		case *While:
			kind, head = "while", line
		case *FunctionDef:
			kind, head = "def", line
		case *ClassDef:
			kind, head = "class", line
		case *Call:
			found[pair{line, dotted(n.Func), kind, head}]++
		}
		Children(n, func(child Node) { walk(child, kind, head) })
	}
	for _, s := range f.Body {
		walk(s, "module", 0)
	}
	return found
}

func dotted(e Expr) string {
	switch e := e.(type) {
	case *Name:
		return e.ID
	case *Attribute:
		return dotted(e.Value) + "." + e.Attr
	}
	return "?"
}

// score compares the pairs of damaged texts with those of the sound one.
type score struct{ hits, wanted, found int }

func (s *score) add(sound, damaged map[pair]int) {
	for p, n := range sound {
		s.wanted += n
		s.hits += min(n, damaged[p])
	}
	for _, n := range damaged {
		s.found += n
	}
}

func (s score) recall() float64    { return 100 * float64(s.hits) / float64(s.wanted) }
func (s score) precision() float64 { return 100 * float64(s.hits) / float64(s.found) }

// TestRecovery takes each bracket, quote and colon out of a training script in turn, and looks at how many of its calls are still
// found in their loops and functions.
func TestRecovery(t *testing.T) {
	text, err := os.ReadFile("testdata/train.py")
	if err != nil {
		t.Fatal(err)
	}
	parse := func(text []byte) *File {
		return Parse(&source.File{Path: "train.py", Kind: source.Python, Text: text})
	}
	whole := parse(text)
	if len(whole.Errors) > 0 {
		t.Fatal(whole.Errors)
	}
	sound := pairs(whole)
	for _, damage := range []struct {
		name, chars       string
		recall, precision float64 // a little under what is reached
	}{
		{"opening bracket", "([{", 98.5, 99},
		{"closing bracket", ")]}", 99.5, 99.5},
		{"quote", `"'`, 99.5, 99.5},
		{"colon", ":", 99.8, 99.8},
	} {
		t.Run(damage.name, func(t *testing.T) {
			var total score
			count := 0
			for i, c := range text {
				if bytes.IndexByte([]byte(damage.chars), c) < 0 {
					continue
				}
				broken := parse(append(bytes.Clone(text[:i]), text[i+1:]...))
				check(t, broken)
				if len(broken.Errors) == 0 {
					continue // still a sound file, of another meaning
				}
				count++
				var one score
				one.add(sound, pairs(broken))
				total.add(sound, pairs(broken))
				if one.recall() < 99.1 || one.precision() < 99.1 {
					t.Logf("line %d at %q: recall %.1f%%, precision %.1f%%, %v", whole.Source.Line(uint32(i))+1, text[max(0, i-20):min(len(text), i+20)], one.recall(), one.precision(), broken.Errors[0])
				}
			}
			t.Logf("%d damaged texts: recall %.2f%%, precision %.2f%%", count, total.recall(), total.precision())
			if count < 20 || total.recall() < damage.recall || total.precision() < damage.precision {
				t.Errorf("recall %.2f%% precision %.2f%%, want %.1f%% and %.1f%%", total.recall(), total.precision(), damage.recall, damage.precision)
			}
		})
	}
}
