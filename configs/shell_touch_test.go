package configs

import (
	"slices"
	"testing"

	"github.com/trainvet/trainvet/lint/source"
)

func TestTouched(t *testing.T) {
	for text, want := range map[string][]Touch{
		"sed s/a/b/ t |\n  sed s/c/d/ > ${F}\n":  {{Name: "s/c/d/"}, {Name: "s/a/b/"}, {Name: "t"}, {Open: true, Tail: "", Name: "${F}"}},
		"F=a.json\nx > $F\n":                     {{Name: "a.json"}},
		"x >> logs/$N.log 2>&1\n":                {{Name: "logs/$N.log", Open: true, Tail: ".log"}},
		"echo a | tee \"$D/b-$(date).txt\"\n":    {{Name: "$D/b-$(date).txt", Open: true, Tail: ".txt"}},
		"python -c 'x'\n":                        {{Open: true}},
		"echo a.json; cd b; x < c > /dev/null\n": nil,
		"{ echo a; } &> b.json\n":                {{Name: "b.json"}},
		"mkdir out $MORE\n":                      {{Name: "out"}},
	} {
		script := ParseShell(&source.File{Path: "a.sh", Kind: source.Shell, Text: []byte(text)})
		key := func(a, b Touch) int { return len(a.Name) - len(b.Name) }
		got := slices.Clone(script.Touched)
		slices.SortStableFunc(got, key)
		slices.SortStableFunc(want, key)
		if len(got) != len(want) {
			t.Errorf("%q: %+v, wanted %+v", text, got, want)
			continue
		}
		for _, one := range want {
			if !slices.Contains(got, one) {
				t.Errorf("%q: %+v, wanted %+v", text, got, want)
			}
		}
	}
}
