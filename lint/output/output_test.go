package output

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/source"
)

var update = flag.Bool("update", false, "rewrite testdata")

var rule = &lint.Rule{Name: "bad-thing", Family: "config", Severity: lint.Error}

// sample is a report on files that hold what makes output hard: tabs, wide characters, a byte order mark, control characters,
// long lines, and places at the very end.
func sample(t *testing.T) *check.Report {
	t.Helper()
	files := map[string]*source.File{}
	add := func(name string, kind source.Kind, text string) *source.File {
		file, err := source.Decode(name, kind, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = file
		return file
	}
	wide := add("dir/wide 文.yaml", source.YAML, "\xEF\xBB\xBF学習: 値  # 注\nother: 1\n")
	tabs := add("tabs.py", source.Python, "def f():\n\tif x:\n\t\treturn g(\n\t\t\t1)\n")
	nasty := add("nasty\n::error::.yaml", source.YAML, "k\u202e: \"\x1b[31mred\"\r\nb: 2\r\n")
	long := add("long.json", source.JSON, `{"`+strings.Repeat("x", 5000)+`": 1, "here": 2, "`+strings.Repeat("界", 3000)+`": 3}`)
	empty := add("empty.yaml", source.YAML, "")
	find := func(file *source.File, text string) source.Place {
		at := strings.Index(string(file.Text), text)
		if at < 0 {
			t.Fatalf("%q is not in %s", text, file.Path)
		}
		return file.At(source.Span{Start: uint32(at), End: uint32(at + len(text))})
	}
	end := func(file *source.File) source.Place {
		n := uint32(len(file.Text))
		return file.At(source.Span{Start: n, End: n})
	}
	finding := func(at source.Place, severity lint.Severity, message string) *check.Finding {
		return &check.Finding{Rule: rule, Diagnostic: lint.Diagnostic{At: at, Severity: severity, Message: message}}
	}
	first := finding(find(wide, "値"), lint.Error, "the value is wrong, <so> & so")
	first.Key = "学習"
	first.Note(find(tabs, "return g(\n\t\t\t1)"), "it is used here")
	first.Suggest("write 1", lint.Safe, lint.Edit{At: find(wide, "値"), Text: "1"})
	second := finding(find(tabs, "g(\n\t\t\t1)"), lint.Warning, "a span of two lines")
	second.Help("do something else")
	third := finding(find(nasty, "\x1b[31mred"), lint.Info, "a message\nof two lines \x1b]0;title\a")
	third.Key = "k\u202e\U000e0041"
	fourth := finding(find(long, `"here"`), lint.Warning, "in the middle of a long line")
	fifth := finding(end(tabs), lint.Info, "at the end of the file")
	sixth := finding(end(empty), lint.Info, "in an empty file")
	gone := finding(source.Place{Path: "gone.py", Span: source.Span{Start: 3, End: 5}}, lint.Info, "a file that is gone")
	report := check.NewReport(func(name string) *source.File { return files[name] }, *first, *second, *third, *fourth, *fifth, *sixth, *gone)
	report.Summary.Files = 5
	return report
}

// reports are those that every format is tried on.
var reports = map[string]func(*testing.T) *check.Report{"sample": sample, "hostile": hostile, "clean": clean}

func clean(*testing.T) *check.Report {
	return check.NewReport(func(string) *source.File { return nil })
}

func written(t *testing.T, name string, report *check.Report) string {
	t.Helper()
	format, ok := Lookup(name)
	if !ok {
		t.Fatalf("no format %s", name)
	}
	var out bytes.Buffer
	if err := format.Write(&out, report, NewPaint(false)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestAlike holds that advice which is the same in many places is printed once for people, and everything else each time.
func TestAlike(t *testing.T) {
	report := sample(t)
	one := report.Findings[0]
	one.Severity, one.Message, one.Related, one.Fixes, one.Fails = lint.Info, "write it otherwise", nil, nil, false
	report.Findings = nil
	for range 12 {
		report.Findings = append(report.Findings, one)
	}
	full := written(t, "full", report)
	if strings.Count(full, "write it otherwise") != 1 || !strings.Contains(full, "the same in 11 other places:") || !strings.Contains(full, "and 3 more") {
		t.Errorf("advice in twelve places:\n%s", full)
	}
	if concise := written(t, "concise", report); strings.Count(concise, "write it otherwise") != 12 {
		t.Errorf("concise leaves some out:\n%s", concise)
	}
	report.Findings[3].Fails = true
	for i := range report.Findings[:3] {
		report.Findings[i].Message = "another"
	}
	if full := written(t, "full", report); strings.Count(full, "write it otherwise") != 2 || strings.Count(full, "another") != 3 {
		t.Errorf("three, one that fails the run, and eight:\n%s", full)
	}
}

// TestFormats compares every format with its golden files.
func TestFormats(t *testing.T) {
	for _, format := range formats {
		for name, make := range reports {
			t.Run(format.Name+"/"+name, func(t *testing.T) {
				out := written(t, format.Name, make(t))
				if again := written(t, format.Name, make(t)); again != out {
					t.Errorf("a second run differs:\n%s\nand\n%s", out, again)
				}
				golden := filepath.Join("testdata", name+"."+format.Name+".golden")
				if *update {
					if err := os.WriteFile(golden, []byte(out), 0o666); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if out != string(want) {
					t.Errorf("got:\n%s\nwant:\n%s", out, want)
				}
				if !utf8.ValidString(out) {
					t.Error("the output is no UTF-8")
				}
				for _, r := range out {
					if unprintable(r) && r != '\n' {
						t.Errorf("%U reaches the terminal raw", r)
					}
				}
				commands := 0
				if format.Name == "github" {
					commands = len(make(t).Findings)
				}
				if got := strings.Count("\n"+out, "\n::"); got != commands {
					t.Errorf("%d lines of the output begin with a workflow command, want %d", got, commands)
				}
			})
		}
	}
}

// TestJSONIsOneObject reads the output back.
func TestJSONIsOneObject(t *testing.T) {
	for name, report := range map[string]*check.Report{"sample": sample(t), "clean": check.NewReport(func(string) *source.File { return nil })} {
		var out bytes.Buffer
		if err := writeJSON(&out, report, Paint{}); err != nil {
			t.Fatal(err)
		}
		var object struct {
			Version  int
			Findings []struct {
				Start, End struct{ Line, Column, Offset int }
			}
			Summary check.Summary
		}
		if err := json.Unmarshal(out.Bytes(), &object); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out.Bytes())
		}
		if object.Version != 1 || object.Findings == nil || len(object.Findings) != len(report.Findings) {
			t.Errorf("%s: got %+v", name, object)
		}
		if name == "sample" {
			// behind a byte order mark (3 bytes), two characters of three bytes, a colon and a blank
			if at := object.Findings[0].Start; at.Line != 1 || at.Column != 5 || at.Offset != 3+6+2 {
				t.Errorf("the first finding starts at %+v", at)
			}
		}
	}
}

func TestColored(t *testing.T) {
	for _, test := range []struct {
		choice   ColorChoice
		env      string
		terminal bool
		want     bool
	}{
		{ColorAuto, "", true, true},
		{ColorAuto, "", false, false},
		{ColorAlways, "NO_COLOR=1 TERM=dumb", false, true},
		{ColorNever, "FORCE_COLOR=1", true, false},
		{ColorAuto, "NO_COLOR=1", true, false},
		{ColorAuto, "NO_COLOR=", true, true},
		{ColorAuto, "NO_COLOR=1 FORCE_COLOR=1", true, false},
		{ColorAuto, "FORCE_COLOR=1", false, true},
		{ColorAuto, "FORCE_COLOR=0", false, false},
		{ColorAuto, "FORCE_COLOR=0", true, true},
		{ColorAuto, "CLICOLOR_FORCE=1", false, true},
		{ColorAuto, "CLICOLOR_FORCE=0", false, false},
		{ColorAuto, "FORCE_COLOR=1 TERM=dumb", false, true},
		{ColorAuto, "TERM=dumb", true, false},
	} {
		env := map[string]string{}
		for _, pair := range strings.Fields(test.env) {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		if got := Colored(test.choice, func(name string) string { return env[name] }, test.terminal); got != test.want {
			t.Errorf("%+v: got %v", test, got)
		}
	}
}

// TestPaint holds that colour adds escapes and changes nothing else.
func TestPaint(t *testing.T) {
	var plain, colored bytes.Buffer
	if err := writeFull(&plain, sample(t), NewPaint(false)); err != nil {
		t.Fatal(err)
	}
	if err := writeFull(&colored, sample(t), NewPaint(true)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(colored.String(), "\x1b[") {
		t.Error("no colour")
	}
	var stripped strings.Builder
	for i, part := range strings.Split(colored.String(), "\x1b[") {
		if i > 0 {
			_, part, _ = strings.Cut(part, "m")
		}
		stripped.WriteString(part)
	}
	if stripped.String() != plain.String() {
		t.Errorf("colour changes the text:\n%s", stripped.String())
	}
}

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"plain 文":               "plain 文",
		"a\nb\r\t":              `a\nb\r\t`,
		"\x1b[31m":              `\x1b[31m`,
		"\x7f\u0085\u009b":      `\x7f\x85\x9b`,
		"\u202eabc\u2066":       `\u202eabc\u2066`,
		"zero\u200bwidth\ufeff": `zero\u200bwidth\ufeff`,
		"family 👨\u200d👩":       "family 👨\u200d👩",
		"\u2028\u2029":          `\u2028\u2029`,
		"bad \xff\xfe":          `bad \xff\xfe`,
		"tag \U000e0041":        `tag \U000e0041`,
		"real \uFFFD":           "real \uFFFD",
	} {
		if got := Escape(text); got != want {
			t.Errorf("Escape(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("a\x1b\n\u202e\xff")
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range Escape(text) {
			if unprintable(r) {
				t.Fatalf("%U is left in %q", r, Escape(text))
			}
		}
	})
}
