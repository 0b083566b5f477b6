package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/rules"
)

// TestWithHook holds that the entry is added to a list of repos in whatever form it is written, and that all else stays.
func TestWithHook(t *testing.T) {
	block, inline := strings.TrimSuffix(hookEntry(""), "\n"), hookInline()
	in := strings.TrimSuffix(hookEntry("  "), "\n")
	for _, c := range []struct{ before, after string }{
		{"repos:\n- repo: a\n  rev: 1\n", "repos:\n- repo: a\n  rev: 1\n" + block + "\n"},
		{"repos:\n  - repo: a # first\n    rev: 1\n\n# end\nci: {}\n", "repos:\n  - repo: a # first\n    rev: 1\n" + in + "\n\n# end\nci: {}\n"},
		{"repos:\n- repo: a", "repos:\n- repo: a\n" + block + "\n"},
		{"repos:\r\n- repo: a\r\n", "repos:\r\n- repo: a\r\n" + strings.ReplaceAll(block, "\n", "\r\n") + "\r\n"},
		{"\ufeffrepos:\n- repo: a\n", "\ufeffrepos:\n- repo: a\n" + block + "\n"},
		{"repos: []\n", "repos:\n" + block + "\n"},
		{"repos: []", "repos:\n" + block},
		{"repos: [ ]\r\nci: {}\r\n", "repos:\r\n" + strings.ReplaceAll(block, "\n", "\r\n") + "\r\nci: {}\r\n"},
		{"# top\nrepos:   []   # none yet\nci:\n  skip: [x] # why\n", "# top\nrepos:   # none yet\n" + block + "\nci:\n  skip: [x] # why\n"},
		{"\"repos\": []\n", "\"repos\":\n" + block + "\n"},
		{"repos: [\n  # none yet\n]\n", "repos: [\n  # none yet\n" + inline + "\n]\n"},
		{"repos: [{repo: a, hooks: []}]\n", "repos: [{repo: a, hooks: []}, " + inline + "]\n"},
		{"repos: [{repo: a, hooks: []},]\n", "repos: [{repo: a, hooks: []}, " + inline + ",]\n"},
		{"repos: [\n  {repo: a}, # first\n  {repo: b}  # second\n]\n", "repos: [\n  {repo: a}, # first\n  {repo: b},\n  " + inline + "  # second\n]\n"},
		{"repos:\nci: {}\n", "repos:\n" + block + "\nci: {}\n"},
		{"repos: # none\n", "repos: # none\n" + block + "\n"},
		{"repos: null # to come\n", "repos: # to come\n" + block + "\n"},
		{"ci:\n  skip: []\n", "ci:\n  skip: []\nrepos:\n" + block + "\n"},
		{"# settings of pre-commit\n", "# settings of pre-commit\nrepos:\n" + block + "\n"},
		{"", "repos:\n" + block + "\n"},
		{"---\n", "---\nrepos:\n" + block + "\n"},
		{"---\nrepos:\n- repo: a\n...\n", "---\nrepos:\n- repo: a\n" + block + "\n...\n"},
		{"repos: &all\n- repo: a\n", "repos: &all\n- repo: a\n" + block + "\n"},
		{"repos: text\n", ""},
		{"repos: {}\n", ""},
		{"- repo: a\n", ""},
		{"repos: [\n", ""},
		{"a: 1\n---\nrepos: []\n", ""},
		{"{repos: []}\n", ""},
	} {
		after, ok := withHook([]byte(c.before))
		if string(after) != c.after || ok != (c.after != "") {
			t.Errorf("%q\nbecame %q\nwant   %q", c.before, after, c.after)
		}
	}
}

// TestInitRecord holds that a baseline is recorded also where settings are there already, that they name it then, and that all else in
// them stays.
func TestInitRecord(t *testing.T) {
	const line = "baseline = \".trainvet-baseline.json\"\n"
	for _, c := range []struct{ name, before, after string }{
		{"trainvet.toml", "", line},
		{"trainvet.toml", "# ours", "# ours\n" + line},
		{".trainvet.toml", "fail-on = \"error\" # mild\n", "fail-on = \"error\" # mild\n" + line},
		{"trainvet.toml", "fail-on = \"error\"\r\n\r\n[run]\r\nworld-size = 8\r\n", "fail-on = \"error\"\r\n" + strings.TrimSuffix(line, "\n") + "\r\n\r\n[run]\r\nworld-size = 8\r\n"},
		{"trainvet.toml", "exclude = [\n  \"a\", # one\n]\n\n# facts\n[run]\nworld-size = 8\n", "exclude = [\n  \"a\", # one\n]\n" + line + "\n# facts\n[run]\nworld-size = 8\n"},
		{"trainvet.toml", "#:schema x\n# facts\n[run]\nworld-size = 8\n", "#:schema x\n" + line + "\n# facts\n[run]\nworld-size = 8\n"},
		{"trainvet.toml", "[[run]]\nworld-size = 8\n", line + "\n[[run]]\nworld-size = 8\n"},
		{"trainvet.toml", "\ufefffail-on = \"error\"\n", "\ufefffail-on = \"error\"\n" + line},
		{"pyproject.toml", "[project]\nname = \"x\"\n\n[tool.trainvet]\nfail-on = \"error\"\n\n[tool.trainvet.run]\nworld-size = 8\n", "[project]\nname = \"x\"\n\n[tool.trainvet]\nfail-on = \"error\"\n" + line + "\n[tool.trainvet.run]\nworld-size = 8\n"},
		{"pyproject.toml", "[tool.trainvet]\n[tool.black]\nx = 1\n", "[tool.trainvet]\n" + line + "[tool.black]\nx = 1\n"},
		{"pyproject.toml", "[tool.black]\nx = 1\n\n[tool.trainvet.run]\nworld-size = 8\n", "[tool.black]\nx = 1\n\n[tool.trainvet]\n" + line + "\n[tool.trainvet.run]\nworld-size = 8\n"},
		{"pyproject.toml", "[tool]\ntrainvet = {fail-on = \"error\"}\n", ""},
		{"trainvet.toml", "baseline = \"known.json\" # to come\n", "baseline = \"known.json\" # to come\n"},
	} {
		dir := t.TempDir()
		t.Chdir(dir)
		write(t, "a.py", unknownLine)
		write(t, c.name, c.before)
		ran := func(args ...string) (int, string) {
			var out bytes.Buffer
			a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &out, env: func(string) string { return "" }, rules: rules.All(), replace: check.Replace}
			return run(a, args), out.String()
		}
		code, said := ran("init", "--baseline")
		text, err := os.ReadFile(filepath.Join(dir, c.name))
		if err != nil {
			t.Fatal(err)
		}
		if c.after == "" {
			if left, _ := filepath.Glob(filepath.Join(dir, ".trainvet-*")); code != exitTrouble || string(text) != c.before || len(left) > 0 || !strings.Contains(said, "nothing is recorded") {
				t.Errorf("%q: exit code %d, became %q\n%s", c.before, code, text, said)
			}
			continue
		}
		if code != exitClean || string(text) != c.after {
			t.Errorf("%q: exit code %d, became\n%q, want\n%q\n%s", c.before, code, text, c.after, said)
		}
		if code, said := ran("check", "."); code != exitClean {
			t.Errorf("%q: with the record the exit code is %d\n%s", c.before, code, said)
		}
		if code, said := ran("init", "--baseline"); code != exitClean || !strings.Contains(said, "records findings already") {
			t.Errorf("%q: a second time: exit code %d\n%s", c.before, code, said)
		}
		sub := filepath.Join(dir, "sub")
		if err := os.Mkdir(sub, 0o777); err != nil {
			t.Fatal(err)
		}
		t.Chdir(sub)
		if code, said := ran("init", "--baseline"); code != exitTrouble || !strings.Contains(said, "the folder above") {
			t.Errorf("%q: in a folder below: exit code %d\n%s", c.before, code, said)
		}
	}
}
