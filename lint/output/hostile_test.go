package output

import (
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/source"
)

var documented = &lint.Rule{Name: "worse-thing", Family: "memory", Severity: lint.Warning,
	Doc: "# worse-thing\n\n## What it does\nFinds `</help>` & ]]> in\ntwo lines.\n\nMore.\n\n## Why\nIt costs 2**30 bytes.\n"}

// hostileMessage holds what ends, starts or breaks something in one of the formats; the bytes are a lone surrogate.
const hostileMessage = "a: 100% b, ]]> <x y='z'> \"q\" \x1b[31m\r\n::error file=x::y \u202eabc\u2066 \x00 \uFFFE \xed\xa0\x80 \u0085 \u2028 f[0](1) [a](http://b) ##[add-mask]x ##vso[task.setvariable]y"

// hostile is a report on names and texts of ill will, on a notebook, on files of another encoding or line end, and with fixes of all
// kinds.
func hostile(t *testing.T) *check.Report {
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
	find := func(file *source.File, text string) source.Place {
		at := strings.Index(string(file.Text), text)
		if at < 0 {
			t.Fatalf("%q is not in %s", text, file.Path)
		}
		return file.At(source.Span{Start: uint32(at), End: uint32(at + len(text))})
	}
	var findings []check.Finding
	report := func(rule *lint.Rule, at source.Place, severity lint.Severity, message string) *lint.Diagnostic {
		findings = append(findings, check.Finding{Rule: rule, Diagnostic: lint.Diagnostic{At: at, Severity: severity, Message: message}})
		return &findings[len(findings)-1].Diagnostic
	}
	names := add("a:b, 100%/]]>\"<&'\r\n::error::\x1b\u200f\xff.yaml", source.YAML, "k: 1\nk: 1\n")
	report(rule, find(names, "k: 1"), lint.Info, hostileMessage).Key = hostileMessage
	report(rule, find(names, "k"), lint.Warning, "of two equal lines").Note(find(names, "1\nk"), "%s", hostileMessage)

	latin := add("latin.py", source.Python, "# coding: latin-1\ns = '\xe9\xe8'; x = 1\n")
	report(documented, find(latin, "x = 1"), lint.Error, "behind Latin-1").
		Suggest("two edits", lint.Unsafe, lint.Edit{At: find(latin, "= 1"), Text: "= 'ü'"}, lint.Edit{At: find(latin, "s"), Text: "t"})

	crlf := add("crlf.yaml", source.YAML, "\xEF\xBB\xBF文: 值 # 𐐀 and\r\nb: 2\r\n")
	insertion := find(crlf, "b: 2")
	insertion.Span.End = insertion.Span.Start
	report(documented, find(crlf, "and"), lint.Error, "at the end of a line").
		Suggest("for people", lint.Display).
		Suggest("elsewhere", lint.Safe, lint.Edit{At: find(crlf, "值"), Text: "0"}, lint.Edit{At: find(latin, "x"), Text: "y"}).
		Suggest("insert [c](1)", lint.Safe, lint.Edit{At: insertion, Text: "c: \"3\"\n"}, lint.Edit{At: find(crlf, "# 𐐀 and"), Text: ""}).
		Suggest("never made", lint.Display, lint.Edit{At: find(crlf, "值"), Text: "7"})

	book := add("n b.ipynb", source.Notebook, "\xEF\xBB\xBF{\"cells\": [\n {\"cell_type\": \"markdown\", \"source\": []},\n"+
		" {\"cell_type\": \"code\", \"source\": [\"x = '\\u00e9\\t文'; f(x)\\n\",\n  \"g(\\\"a\\\")\\n\"]}\n]}\n")
	report(rule, find(book, "f(x)"), lint.Warning, "in a notebook").
		Suggest("write a quote", lint.Safe, lint.Edit{At: find(book, "f(x)"), Text: "f(\"x\")\nh()"})
	report(rule, find(book, "g(\"a\")\n"), lint.Warning, "over a line end of a notebook")

	commands := add("  ::error file=x::y.py", source.Python, "x = '##[stop-commands]z' # ::error::y\n")
	report(rule, find(commands, "[stop-commands]"), lint.Info, "::error::in a line that is a command to some")

	gone := source.Place{Path: "gone \u202e.py", Span: source.Span{Start: 3, End: 5}}
	report(rule, gone, lint.Warning, "in a file that is gone").
		Suggest("of no use", lint.Safe, lint.Edit{At: gone, Text: "x"})
	report(rule, source.Place{Path: "/tmp/a:b c.py"}, lint.Info, "far away").Note(gone, "and gone")
	return check.NewReport(func(name string) *source.File { return files[name] }, findings...)
}
