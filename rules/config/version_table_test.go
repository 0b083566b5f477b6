package config

import (
	"testing"

	"github.com/trainvet/trainvet/configs/pep440"
)

// TestVersionTables holds that the tables can be read, that each row says where it is from, and that the rows of a pair are for releases
// apart: checks take them one by one.
func TestVersionTables(t *testing.T) {
	type row struct {
		when pep440.Range
		text string
	}
	pairs := map[string][]row{}
	add := func(of, on, when, needs, source string) {
		if source == "" {
			t.Errorf("%s %s has no source", of, when)
		}
		for _, set := range append(ranged(when), ranged(needs)...) {
			if set.Empty() {
				t.Errorf("%s %s: an empty range", of, when)
			}
		}
		one := ranged(when)[0]
		for _, other := range pairs[of+" "+on] {
			if other.when.Overlaps(one) {
				t.Errorf("%s to %s: %s and %s overlap", of, on, other.text, when)
			}
		}
		pairs[of+" "+on] = append(pairs[of+" "+on], row{one, when})
	}
	for _, d := range demands {
		if len(ranged(d.when)) != 1 {
			t.Errorf("%s %s: one set only", d.of, d.when)
		}
		add(d.of, d.on, d.when, d.needs, d.source)
	}
	for _, m := range matches {
		for _, r := range m.rows {
			add(m.of, m.on, r[0], r[1], m.source)
		}
	}
	for _, r := range npuToolkits {
		pep440.Must(r[0])
		pep440.Must(r[1])
	}
	for _, p := range provisions {
		if p.source == "" || len(ranged(p.in)) != 1 {
			t.Errorf("%s: %s", p.name, p.in)
		}
	}
}
