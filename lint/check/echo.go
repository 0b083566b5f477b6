package check

import (
	"slices"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan/loop"
)

// loops lets a rule look at the loops of the file. A finding about what a called function does stands at the call, in the file of the
// loop; where the rule says it of that function too, or of a call further down, as loudly, once is enough.
func (s *subject) loops(pass *lint.Pass) {
	loops := s.view.Loops(s.module)
	for _, l := range loops {
		pass.Rule.Loop(pass, l)
	}
	below := s.below(pass, loops)
	if len(below) == 0 {
		return
	}
	files := map[string][]lint.Diagnostic{s.file.Path: pass.Findings()}
	pass.Drop(func(d *lint.Diagnostic) bool {
		for _, at := range below[d.At] {
			said, known := files[at.Path]
			if !known {
				said = s.saidOf(pass, at.Path)
				files[at.Path] = said
			}
			if slices.ContainsFunc(said, func(other lint.Diagnostic) bool { return other.At == at && other.Severity >= loudness(pass, d) }) {
				return true
			}
		}
		return false
	})
}

func loudness(pass *lint.Pass, d *lint.Diagnostic) lint.Severity {
	if d.Severity == lint.RuleSeverity {
		return pass.Rule.Severity
	}
	return d.Severity
}

// below are, for calls that findings stand at, the calls and events that they lead to.
func (s *subject) below(pass *lint.Pass, loops []*loop.Loop) map[source.Place][]source.Place {
	var reported map[source.Place]bool
	pass.Each(func(d *lint.Diagnostic) {
		if reported == nil {
			reported = map[source.Place]bool{}
		}
		reported[d.At] = true
	})
	if len(reported) == 0 {
		return nil
	}
	below := map[source.Place][]source.Place{}
	for _, l := range loops {
		for event := range l.All {
			if len(event.Via) == 0 || !reported[event.Via[0]] {
				continue
			}
			for _, at := range append(event.Via[1:len(event.Via):len(event.Via)], event.At) {
				if !slices.Contains(below[event.Via[0]], at) {
					below[event.Via[0]] = append(below[event.Via[0]], at)
				}
			}
		}
	}
	return below
}

// saidOf is what the rule says of the loops of another file, where it looks at that file at all.
func (s *subject) saidOf(pass *lint.Pass, name string) []lint.Diagnostic {
	m := s.view.Module(name)
	if m == nil || !slices.ContainsFunc(pass.Rule.Mentions, m.File.Has) {
		return nil
	}
	other := pass.Again()
	for _, l := range s.view.Loops(m) {
		pass.Rule.Loop(other, l)
	}
	return other.Findings()
}
