package configs

import (
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint/source"
)

// TestManyInnerScripts holds that a script inside of a script is followed, and in a long one not behind more of them than it may have.
func TestManyInnerScripts(t *testing.T) {
	for _, count := range []int{10, 10_000} {
		text := strings.Repeat("eval \"$a$a\"\n", count) + "bash -c \"torchrun last.py\"\n"
		f := &source.File{Path: "run.sh", Kind: source.Shell, Text: []byte(text)}
		found := len(ParseShell(f).Commands) > 0
		if want := count < f.Affordable(); found != want {
			t.Errorf("behind %d: found is %v", count, found)
		}
	}
}
