package linttest

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"golang.org/x/tools/txtar"
)

// recorder is a test that may fail without failing ours.
type recorder struct {
	testing.TB
	said []string
}

func (r *recorder) Helper()                   {}
func (r *recorder) Error(args ...any)         { r.said = append(r.said, fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, a ...any) { r.said = append(r.said, fmt.Sprintf(f, a...)) }
func (r *recorder) Fatal(args ...any)         { r.Error(args...); panic(r) }
func (r *recorder) Fatalf(f string, a ...any) { r.Errorf(f, a...); panic(r) }

func record(work func(t testing.TB)) (said string) {
	r := &recorder{}
	defer func() {
		if stop := recover(); stop != nil && stop != r {
			panic(stop)
		}
		said = strings.Join(r.said, "\n")
	}()
	work(r)
	return
}

// TestSixWaysCatch holds that each kind of rule that only seems to work is found out.
func TestSixWaysCatch(t *testing.T) {
	place := func(m *pyscan.Module, n uint32) source.Place {
		return m.File.At(source.Span{Start: n, End: n + 1})
	}
	var calls atomic.Int32
	for name, test := range map[string]struct {
		rule lint.Rule
		want string
	}{
		"a sound rule": {lint.Rule{Module: func(pass *lint.Pass, m *pyscan.Module) { pass.Reportf(place(m, 0), "here") }}, ""},
		"it finds something without its words": {lint.Rule{Mentions: []string{"absent"}, Module: func(pass *lint.Pass, m *pyscan.Module) {
			pass.Reportf(place(m, 0), "here")
		}}, "without the prefilter finds:"},
		"it remembers": {lint.Rule{Module: func(pass *lint.Pass, m *pyscan.Module) {
			pass.Reportf(place(m, 0), "call %d", calls.Add(1))
		}}, "one thread finds:"},
		"it panics": {lint.Rule{Module: func(*lint.Pass, *pyscan.Module) { panic("oh") }}, "a.py: rule some-rule: oh"},
	} {
		rule := test.rule
		rule.Name, rule.Family, rule.Severity = "some-rule", "other", lint.Warning
		files := project{{"a.py", "x = 1\n"}, {"b.py", "import a\n"}}
		got := record(func(t testing.TB) { newRunner(&rule, []*lint.Rule{&rule}, files, nil).sixWays(t) })
		if test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: said:\n%s\nwant %s", name, got, test.want)
		}
	}
}

func TestMarkers(t *testing.T) {
	files := project{
		{"a.py", "x  # want: some-rule\ny\n# want@-1: some-rule warning, other-rule error\r\nz # want: not a rule\n"},
		{"b.json", "{ // want: some-rule\n}\n"},
	}
	var all []want
	said := record(func(t testing.TB) { all = files.markers(t) })
	got := fmt.Sprint(all)
	if got != "[a.py:1 some-rule a.py:2 some-rule warning a.py:2 other-rule error b.json:1 some-rule]" {
		t.Error(got)
	}
	if said != `a.py:4: cannot read "# want: not a rule"` {
		t.Errorf("said %s", said)
	}
}

func TestCompare(t *testing.T) {
	rules := []*lint.Rule{{Name: "some-rule", Severity: lint.Error}}
	said := record(func(t testing.TB) {
		compare(t, []want{{"a.py", 1, "some-rule", 0}, {"a.py", 2, "some-rule", lint.Info}, {"a.py", 3, "no-rule", 0}, {"a.py", 4, "some-rule", 0}},
			[]want{{"a.py", 1, "some-rule", lint.Error}, {"a.py", 2, "some-rule", lint.Error}, {"a.py", 4, "some-rule", lint.Error}, {"a.py", 4, "some-rule", lint.Error}}, rules)
	})
	want := "wanted is no-rule, which is no rule\nwanted but not found: a.py:2 some-rule info\nfound but not wanted: a.py:2 some-rule error\nfound but not wanted: a.py:4 some-rule error"
	if said != want {
		t.Errorf("said:\n%s\nwant:\n%s", said, want)
	}
}

func TestSplit(t *testing.T) {
	archive := txtar.Parse([]byte("text\n-- case one --\nprose\n-- a.py --\nx\n-- want --\n-- fixed a.py --\ny\n-- look-alike two --\n-- b.py --\n-- case three --\n"))
	examples, faults := split(archive)
	if len(examples) != 3 || examples[0].title != "one" || examples[0].want != 2 || examples[0].fixed["a.py"] != 3 || examples[0].files.get("a.py") != "x\n" ||
		!examples[1].lookAlike || examples[1].want != -1 {
		t.Errorf("%+v", examples)
	}
	if !slices.Equal(faults, []string{"`three` has no files"}) {
		t.Error(faults)
	}
	if _, faults := split(txtar.Parse([]byte("-- a.py --\n"))); len(faults) != 1 {
		t.Error(faults)
	}
}

func TestBlocks(t *testing.T) {
	document := "# x\n\n## Example\n```python bad\nbad()\n```\n```json bad other.json\n{}\n```\n```text output\nout\n```\n## Use instead\n```yaml good\na: 1\n```\n```python\nleft alone\n```\n```cobol bad\n```\n```toml worse\n```\n"
	all, faults := blocks(document)
	var got []string
	for _, b := range all {
		got = append(got, fmt.Sprintf("%s/%s/%s/%s", b.heading, b.mark, b.file.name, strings.TrimSpace(document[b.from:b.to])))
	}
	want := "Example/bad/train.py/bad() Example/bad/other.json/{} Example/output//out Use instead/good/config.yaml/a: 1 Use instead/bad// Use instead/worse/config.toml/"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
	if len(faults) != 2 {
		t.Error(faults)
	}
}
