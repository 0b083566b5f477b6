package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
	"golang.org/x/tools/txtar"

	"github.com/trainvet/trainvet/lint/source"
)

// seed adds the files of the archive whose names end in one of the suffixes.
func seed(f *testing.F, archive string, suffixes ...string) {
	parsed, err := txtar.ParseFile(filepath.Join("testdata", archive))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range parsed.Files {
		for _, suffix := range suffixes {
			if strings.HasSuffix(file.Name, suffix) {
				f.Add(string(file.Data))
			}
		}
	}
}

// fileOf is a text as source.Decode would hand it out; nil for what it refuses.
func fileOf(name, text string) *source.File {
	if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 || strings.HasPrefix(text, "\uFEFF") {
		return nil
	}
	return &source.File{Path: name, Kind: source.KindOf(name, nil), Text: []byte(text)}
}

// checkTree holds what is true of every tree: spans lie in the text, children within their parents, and a key that is
// written plainly is the text at its place. What an alias or a merge key brings in stands elsewhere.
func checkTree(t *testing.T, f *source.File, tree *Tree) {
	t.Helper()
	inside := func(what string, p source.Place) {
		if p.Span.Start > p.Span.End || int(p.Span.End) > len(f.Text) {
			t.Fatalf("%s: span %v in %d bytes", what, p.Span, len(f.Text))
		}
	}
	var visit func(n *Node, depth int)
	visit = func(n *Node, depth int) {
		inside("value", n.At)
		if depth > MaxDepth+2 {
			t.Fatal("too deep")
		}
		for i := range n.Items {
			item := &n.Items[i]
			if item.Value == nil {
				t.Fatal("an item without a value")
			}
			if item.Merge || !item.Value.Via.IsZero() {
				continue
			}
			if !n.At.Span.Contains(item.Value.At.Span) {
				t.Fatalf("%v %q is not within %v %q", item.Value.At.Span, f.Slice(item.Value.At.Span), n.At.Span, f.Slice(n.At.Span))
			}
			if n.Kind == Mapping {
				inside("key", item.KeyAt)
				if !n.At.Span.Contains(item.KeyAt.Span) {
					t.Fatalf("key %v is not within %v", item.KeyAt.Span, n.At.Span)
				}
				text := f.Slice(item.KeyAt.Span)
				if text != item.Key && !strings.ContainsAny(text, "\"'\\*&!|>[{“”‘’`\r\n\u0085\u2028\u2029") {
					t.Fatalf("key %q stands at %q", item.Key, text)
				}
			}
			visit(item.Value, depth+1)
		}
	}
	if tree.Root != nil {
		visit(tree.Root, 0)
	}
	last := uint32(0)
	for _, c := range tree.Comments() {
		inside("comment", f.At(c))
		if c.Start < last {
			t.Fatalf("comments overlap or are out of order: %v", tree.Comments())
		}
		last = c.End
	}
	for _, errors := range [][]Error{tree.Errors, tree.StrictErrors} {
		for _, e := range errors {
			inside("error "+e.Message, e.At)
			if e.Fix != nil {
				inside("fix "+e.Fix.Title, f.At(e.Fix.Span))
			}
		}
	}
	if tree.Template {
		inside("template", tree.TemplateAt)
	}
	for offset := 0; offset <= len(f.Text); offset += 1 + len(f.Text)/16 {
		if span := tree.Extent(uint32(offset)); span.Start < uint32(offset) || span.Start > span.End || int(span.End) > len(f.Text) {
			t.Fatalf("extent at %d is %v", offset, span)
		}
	}
}

func FuzzJSON(f *testing.F) {
	seed(f, "json.txtar", ".json", ".hjson")
	f.Fuzz(func(t *testing.T, text string) {
		if file := fileOf("x.json", text); file != nil {
			checkTree(t, file, ParseJSON(file))
		}
	})
}

func FuzzYAML(f *testing.F) {
	seed(f, "yaml.txtar", ".yaml")
	f.Fuzz(func(t *testing.T, text string) {
		if file := fileOf("x.yaml", text); file != nil {
			for _, tree := range ParseYAML(file) {
				checkTree(t, file, tree)
			}
		}
	})
}

// FuzzTOML also holds the scanner against the library: what that accepts has no faults, and the same keys.
func FuzzTOML(f *testing.F) {
	seed(f, "toml.txtar", ".toml")
	f.Fuzz(func(t *testing.T, text string) {
		file := fileOf("x.toml", text)
		if file == nil {
			return
		}
		checkTree(t, file, ParseTOML(file))
		checkTOML(t, file)
	})
}

func checkTOML(t *testing.T, file *source.File) {
	t.Helper()
	var into map[string]any
	meta, err := toml.Decode(string(file.Text), &into)
	tree := ParseTOML(file)
	if err != nil {
		if len(tree.Errors) == 0 && !tree.Template {
			t.Fatalf("no error; the library says %v", err)
		}
		return
	}
	if len(tree.Errors) > 0 {
		t.Fatalf("%v; the library accepts it", tree.Errors[0])
	}
	var want []string
	for _, key := range meta.Keys() {
		want = append(want, strings.Join(key, "\x00"))
	}
	if got := tomlKeys(file); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("keys\n%q\nthe library has\n%q", got, want)
	}
}

func FuzzShell(f *testing.F) {
	seed(f, "shell.txtar", ".sh")
	f.Fuzz(func(t *testing.T, text string) {
		file := fileOf("x.sh", text)
		if file == nil {
			return
		}
		checkScript(t, file, ParseShell(file))
	})
}

func checkScript(t *testing.T, f *source.File, s *Script) {
	t.Helper()
	inside := func(what string, p source.Place) {
		if p.Span.Start > p.Span.End || int(p.Span.End) > len(f.Text) {
			t.Fatalf("%s: span %v in %d bytes", what, p.Span, len(f.Text))
		}
	}
	var nodes func(n *Node)
	nodes = func(n *Node) {
		inside("value", n.At)
		inside("via", n.Via)
		for i := range n.Items {
			inside("key", n.Items[i].KeyAt)
			nodes(n.Items[i].Value)
		}
	}
	nodes(s.Env.Root)
	nodes(s.Directives.Root)
	for _, c := range s.Commands {
		inside("command", c.At)
		inside("launcher", c.LauncherAt)
		inside("program", c.ProgramAt)
		for outer := c; outer != nil; outer = outer.Outer {
			nodes(outer.LauncherFlags.Root)
		}
		nodes(c.Flags.Root)
		nodes(c.Env.Root)
		for _, arg := range c.Args {
			nodes(arg)
		}
	}
	for _, d := range s.Documents {
		inside("document", d.At)
		for _, tree := range d.Trees {
			checkTree(t, d.File, tree)
		}
	}
	for _, c := range s.Comments() {
		inside("comment", f.At(c))
	}
	for _, e := range s.Errors {
		inside("error", e.At)
	}
}

func FuzzCommand(f *testing.F) {
	f.Add("A=1\x00torchrun\x00--nnodes\x002\x00train.py\x00--x=1\x00--y\x00-1")
	f.Add("srun\x00-N2\x00bash\x00-c\x00python x.py; ls")
	f.Add("mpirun\x00-x\x00A=b\x00--mca\x00a\x00b\x00python\x00-m\x00torch.distributed.run\x00a.py")
	f.Fuzz(func(t *testing.T, text string) {
		words := strings.Split(text, "\x00")
		if c := ParseCommand(words); c != nil && int(c.At.Span.End) > len(strings.Join(words, " ")) {
			t.Fatal(c.At)
		}
	})
}

// TestFiles reads whatever configs and scripts the folder in TRAINVET_CONFIGS holds, and checks what the fuzz targets do.
func TestFiles(t *testing.T) {
	folder := os.Getenv("TRAINVET_CONFIGS")
	if folder == "" {
		t.Skip("TRAINVET_CONFIGS names no folder with configs")
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			continue
		}
		f, err := source.Decode(entry.Name(), source.KindOf(entry.Name(), text), text)
		if err != nil {
			t.Logf("%v", err)
			continue
		}
		trees := parseKind(f)
		for _, tree := range trees {
			checkTree(t, f, tree)
			for _, e := range tree.Errors {
				t.Logf("%s:%s", f.Path, showError(f, e))
			}
			if tree.Template {
				t.Logf("%s:%s: template", f.Path, f.Position(tree.TemplateAt.Span.Start))
			}
		}
		switch f.Kind {
		case source.TOML:
			checkTOML(t, f)
		case source.Shell:
			s := ParseShell(f)
			checkScript(t, f, s)
			for _, e := range s.Errors {
				t.Logf("%s:%s", f.Path, showError(f, e))
			}
		}
	}
}

// tomlKeys are the keys of a file in the order and form in which BurntSushi lists them, joined by NUL.
func tomlKeys(f *source.File) []string {
	r := newTOMLReader(f)
	var keys []string
	r.list = func(path string) { keys = append(keys, path) }
	r.scan()
	return keys
}

// FuzzRequirements reads any text as each of the files about packages. What they say must stand in the text, and each reading must end.
func FuzzRequirements(f *testing.F) {
	for _, text := range []string{
		"torch==2.3.1+cu121 # a\n-r b.txt\n-c c.txt\nnumpy>=1,\\\n<2 ; python_version < '3.9'\n",
		"FROM pytorch/pytorch:2.3.0-cuda12.1 AS a\nENV A=1 B=2\nARG C\nRUN --mount=x \\\n # b\n pip install \"torch==$A\" -r x.txt\nRUN <<EOF\npip install peft\nEOF\nCMD [\"torchrun\", \"a.py\"]\n",
		"[options]\ninstall_requires =\n  torch>=2\n  # x\n[options.extras_require]\na = b==1\n",
		"[[package]]\nname = \"torch\"\nversion = \"2.1\"\nsource = { git = \"x\" }\n",
		"[project]\ndependencies = ['torch>=2', \"a[b]~=1.0;extra=='x'\"]\n[tool.poetry.dependencies]\nx = {version = \"^1.2\", python = \"<3\"}\ny = \"~1 || 2.*\"\n",
		"dependencies:\n- pytorch=2.3\n- 'numpy>=1|2'\n- pip:\n  - torch==1\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file := fileOf("requirements.txt", text)
		if file == nil || len(text) > 1<<14 {
			return
		}
		check := func(what string, r *Requirements) {
			if r == nil {
				return
			}
			for _, one := range r.List {
				if one.Name == "" || one.At.Span.Start > one.At.Span.End || int(one.At.Span.End) > len(text) {
					t.Fatalf("%s: %q at %v of %d bytes", what, one.Name, one.At.Span, len(text))
				}
			}
			for _, span := range append(r.comments, r.extents...) {
				if span.Start > span.End || int(span.End) > len(text) {
					t.Fatalf("%s: %v of %d bytes", what, span, len(text))
				}
			}
			for offset := uint32(0); ; {
				next := r.Extent(offset)
				if next.Len() == 0 {
					break
				}
				offset = next.End
			}
		}
		check("requirements", ParseRequirements(file))
		check("setup.cfg", SetupRequirements(file))
		check("lock", LockRequirements(file))
		check("pyproject", ProjectRequirements(file, ParseTOML(file)))
		check("Pipfile", PipfileRequirements(ParseTOML(file)))
		check("conda", CondaRequirements(file, ParseYAML(file)))
		script := ParseDockerfile(file)
		check("Dockerfile", &Requirements{List: script.Installs.List, comments: script.comments, extents: script.extents})
		check("shell", &Requirements{List: ParseShell(file).Installs.List})
	})
}
