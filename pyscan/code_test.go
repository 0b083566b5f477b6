package pyscan

import (
	"testing"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// TestCode holds that comments and texts that are statements are no code, and that all else is as long as it was.
func TestCode(t *testing.T) {
	text := "\"\"\"call alpha\"\"\"\nx = 'beta'  # gamma\ndef f():\n    'delta'\n    return \"\"\"epsilon\n# zeta\"\"\"\n"
	file, err := source.New("a.py", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m := New(syntax.Parse(file))
	code := map[string]bool{"alpha": false, "beta": true, "gamma": false, "delta": false, "epsilon": true, "zeta": true, "f()": true}
	for word, want := range code {
		if m.Says(word) != want {
			t.Errorf("%q is code: %v, want %v", word, !want, want)
		}
	}
	if m.Says("alpha", "gamma") || !m.Says("alpha", "beta") {
		t.Error("of several words one must be code")
	}
	if got, want := m.Code(source.Span{Start: 17, End: 36}), "x = 'beta'         "; got != want {
		t.Errorf("the second line is %q, want %q", got, want)
	}
}
