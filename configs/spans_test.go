package configs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/trainvet/trainvet/lint/source"
)

var update = flag.Bool("update", false, "rewrite the expected sections of testdata/*.txtar")

// read parses a file by its name.
func read(name string, text []byte) []*Tree {
	return parseKind(&source.File{Path: name, Kind: source.KindOf(name, text), Text: text, Raw: text})
}

func parseKind(f *source.File) []*Tree {
	switch f.Kind {
	case source.TOML:
		return []*Tree{ParseTOML(f)}
	case source.YAML:
		return ParseYAML(f)
	case source.JSON:
		return []*Tree{ParseJSON(f)}
	}
	return nil
}

// show prints every path with the text of its key and value, then errors, comments and flags.
func show(f *source.File, t *Tree) string {
	var out strings.Builder
	var visit func(path string, n *Node)
	visit = func(path string, n *Node) {
		use := ""
		if t.Format != YAML {
			use = via(f, n.Via)
		}
		fmt.Fprintf(&out, "%s = %s%s%s\n", path, describe(f, n), openMark(n), use)
		for i, item := range n.Items {
			if item.KeyAt.IsZero() {
				visit(fmt.Sprintf("%s[%d]", path, i), item.Value)
				continue
			}
			key := item.Key
			if item.Merge {
				key = "<<" + key
			}
			if text := f.Slice(item.KeyAt.Span); text != item.Key {
				key += "(" + text + ")"
			}
			visit(path+"."+key, item.Value)
		}
	}
	if t.Root != nil {
		visit("", t.Root)
	}
	for _, e := range t.Errors {
		fmt.Fprintf(&out, "error %s\n", showError(f, e))
	}
	for _, e := range t.StrictErrors {
		fmt.Fprintf(&out, "strict %s\n", showError(f, e))
	}
	if t.Template {
		fmt.Fprintf(&out, "template %s %q\n", f.Position(t.TemplateAt.Span.Start), f.Slice(t.TemplateAt.Span))
	}
	for _, c := range t.Comments() {
		fmt.Fprintf(&out, "comment %q\n", f.Slice(c))
	}
	return out.String()
}

// showScript prints all commands of a script, then its variables and directives.
func showScript(f *source.File, s *Script) string {
	var out strings.Builder
	for _, c := range s.Commands {
		out.WriteString(showCommand(f, c))
	}
	section := func(name string, t *Tree) {
		if len(t.Root.Items) > 0 {
			fmt.Fprintf(&out, "%s\n%s", name, indent(show(f, t)))
		}
	}
	section("env", s.Env)
	section("directives", s.Directives)
	for _, d := range s.Documents {
		fmt.Fprintf(&out, "document %q %s %q\n", d.Name, d.File.Kind, short(f.Slice(d.At.Span)))
		for _, tree := range d.Trees {
			out.WriteString(indent(show(f, tree)))
		}
	}
	for _, e := range s.Errors {
		fmt.Fprintf(&out, "error %s\n", showError(f, e))
	}
	for _, c := range s.Comments() {
		fmt.Fprintf(&out, "comment %q\n", f.Slice(c))
	}
	return out.String()
}

func showCommand(f *source.File, c *Command) string {
	var out strings.Builder
	guarded := ""
	if c.Guarded {
		guarded = " guarded"
	}
	fmt.Fprintf(&out, "command%s %q\n", guarded, short(f.Slice(c.At.Span)))
	for outer := c; outer != nil; outer = outer.Outer {
		fmt.Fprintf(&out, "  launcher %s %q\n%s", outer.Launcher, f.Slice(outer.LauncherAt.Span), indent(show(f, outer.LauncherFlags)))
	}
	module := ""
	if c.Module {
		module = " module"
	}
	if c.ProgramOpen {
		module += " open"
	}
	fmt.Fprintf(&out, "  program%s %q %q%s\n%s", module, c.Program, f.Slice(c.ProgramAt.Span), via(f, c.ProgramVia), indent(show(f, c.Flags)))
	for _, arg := range c.Args {
		fmt.Fprintf(&out, "  arg %s%s%s\n", describe(f, arg), openMark(arg), via(f, arg.Via))
	}
	if len(c.Env.Root.Items) > 0 {
		fmt.Fprintf(&out, "  env\n%s", indent(show(f, c.Env)))
	}
	return out.String()
}

func via(f *source.File, at source.Place) string {
	if at.IsZero() {
		return ""
	}
	return fmt.Sprintf(" via %s %q", f.Position(at.Span.Start), f.Slice(at.Span))
}

func indent(s string) string {
	if s == "" {
		return ""
	}
	return "    " + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n    ") + "\n"
}

func showError(f *source.File, e Error) string {
	s := fmt.Sprintf("%s %q: %s", f.Position(e.At.Span.Start), f.Slice(e.At.Span), e.Message)
	if e.Fix != nil {
		s += fmt.Sprintf(" | %s: %q -> %q", e.Fix.Title, f.Slice(e.Fix.Span), e.Fix.Text)
	}
	return s
}

func openMark(n *Node) string {
	if n.Open {
		return " open"
	}
	return ""
}

var styleNames = [...]string{"plain", "single", "double", "block", "unquoted", "flow"}

func describe(f *source.File, n *Node) string {
	text := f.Slice(n.At.Span)
	tag := ""
	if n.Tag != "" {
		tag = n.Tag + " "
	}
	switch n.Kind {
	case Mapping:
		return fmt.Sprintf("%smapping %s %q", tag, styleNames[n.Style], short(text))
	case Sequence:
		return fmt.Sprintf("%ssequence %s %q", tag, styleNames[n.Style], short(text))
	case Invalid:
		return fmt.Sprintf("invalid %q", text)
	}
	if n.Bare {
		return fmt.Sprintf("bare %q", text)
	}
	if text == n.Raw {
		return fmt.Sprintf("%s%s %q", tag, styleNames[n.Style], text)
	}
	return fmt.Sprintf("%s%s %q from %q", tag, styleNames[n.Style], n.Raw, text)
}

// short keeps both ends of a long text, which is where spans go wrong.
func short(s string) string {
	if len(s) > 40 {
		return s[:18] + "…" + s[len(s)-18:]
	}
	return s
}

// TestSpans reads testdata/*.txtar: each file of an archive is followed by a file of the same name with .want behind it.
func TestSpans(t *testing.T) {
	archives, _ := filepath.Glob("testdata/*.txtar")
	if len(archives) == 0 {
		t.Fatal("no cases")
	}
	for _, name := range archives {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		wants := map[string]string{}
		for _, file := range archive.Files {
			if base, ok := strings.CutSuffix(file.Name, ".want"); ok {
				wants[base] = string(file.Data)
			}
		}
		out := &txtar.Archive{Comment: archive.Comment}
		for _, file := range archive.Files {
			if strings.HasSuffix(file.Name, ".want") {
				continue
			}
			text := file.Data
			// A last line "∎" stands for: no newline before this
			if cut, ok := strings.CutSuffix(string(text), "∎\n"); ok {
				text = []byte(cut)
			}
			got := showAll(file.Name, text)
			out.Files = append(out.Files, file, txtar.File{Name: file.Name + ".want", Data: []byte(got)})
			if !*update && got != wants[file.Name] {
				t.Errorf("%s: %s:\n%s", name, file.Name, lineDiff(wants[file.Name], got))
			}
		}
		if *update {
			if err := os.WriteFile(name, txtar.Format(out), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func showAll(name string, text []byte) string {
	f := &source.File{Path: name, Text: text}
	if source.KindOf(name, text) == source.Shell {
		return showScript(f, ParseShell(f))
	}
	var parts []string
	for _, tree := range read(name, text) {
		parts = append(parts, show(f, tree))
	}
	return strings.Join(parts, "----\n")
}

func lineDiff(want, got string) string {
	var out strings.Builder
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			fmt.Fprintf(&out, "  line %d\n    want %s\n    got  %s\n", i+1, x, y)
		}
	}
	return out.String()
}
