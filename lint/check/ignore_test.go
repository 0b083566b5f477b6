package check

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
)

func TestPatterns(t *testing.T) {
	for _, test := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.py", "/r/a.py", true},
		{"*.py", "/r/deep/down/a.py", true},
		{"/*.py", "/r/a.py", true},
		{"/*.py", "/r/deep/a.py", false},
		{"build/", "/r/build", false}, // a file of that name
		{"build/", "/r/build/a.py", true},
		{"build", "/r/x/build", true},
		{"a/b", "/r/a/b/c.py", true},
		{"a/b", "/r/x/a/b", false},
		{"a/**", "/r/a/b.py", true},
		{"a/**/z.py", "/r/a/z.py", true},
		{"a/**/z.py", "/r/a/b/c/z.py", true},
		{"**/logs", "/r/x/logs/a.py", true},
		{`\#odd`, "/r/#odd", true},
		{`\!odd`, "/r/!odd", true},
		{"#odd", "/r/#odd", false},
		{"{a,b}", "/r/a", false},
		{"{a,b}", "/r/{a,b}", true},
		{"[ab].py", "/r/b.py", true},
		{"[!ab].py", "/r/c.py", true},
		{"[!ab].py", "/r/a.py", false},
		{"[", "/r/[", false},
		{"blank  ", "/r/blank", true},
		{`blank\ `, "/r/blank ", true},
		{"crlf.py\r", "/r/crlf.py", true},
		{"a.py", "/elsewhere/a.py", false},
		{"a.py", "/ra.py", false},
	} {
		if got := newPatterns("/r", []string{test.pattern}).covers(test.name); got != test.want {
			t.Errorf("%q covers %q: got %v, want %v", test.pattern, test.name, got, test.want)
		}
	}
}

// TestShortcutsOfPatterns holds that what is told by the beginning and the end of a pattern is what all of it says.
func TestShortcutsOfPatterns(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(letters []string, longest int) (text string) {
		for range 1 + random.IntN(longest) {
			text += letters[random.IntN(len(letters))]
		}
		return text
	}
	matched := 0
	for range 100_000 {
		line, name := word([]string{"a", "b", "/", "*", "**/", "?", "[ab]", "[!a]", `\*`, `\a`, "]"}, 6), strings.Trim(path.Clean(word([]string{"a", "b", "/", "*", "]"}, 6)), "/")
		if name == "" {
			continue
		}
		for _, p := range newPatterns("/", []string{line}).list {
			glob, of := p.glob, name
			if p.last != "" {
				glob, of = p.last, path.Base(name)
			}
			want, err := doublestar.Match(glob, of)
			if got := p.matches(name); got != (want && err == nil) {
				t.Fatalf("%q matches %q: got %v", line, name, got)
			} else if got {
				matched++
			}
		}
	}
	if matched < 1000 {
		t.Errorf("only %d names matched", matched)
	}
}

// TestAgainstGit asks git about a tree of ignore files, including nested ones and ones that take back what an outer one said.
func TestAgainstGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	for _, name := range []string{"GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"} { // a hook of git may run the tests
		t.Setenv(name, "") // which brings it back in the end
		os.Unsetenv(name)
	}
	root := t.TempDir()
	write := func(name, text string) {
		full := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(".gitignore", "*.log\n!keep.log\n/top.py\nbuild/\ndata/**/cache\n**/gen_*.py\nsub/deep/*.yaml\n\\!bang.py\nwild*/x.py\nonly/*\n!only/this.py\nbad[\n")
	write("sub/.gitignore", "# inner\n!*.log\nlocal.py\n/anchored.py\n*.json\n!good.json\n")
	write("sub/deep/.gitignore", "!local.py\ngood.json\n")
	for _, name := range []string{"a.log", "keep.log", "top.py", "x/top.py", "build/a.py", "x/build/b.py", "x/build", "data/cache/a.py", "data/a/b/cache/c.py",
		"data/cached.py", "gen_a.py", "sub/gen_b.py", "sub/deep/a.yaml", "sub/deep/er/a.yaml", "!bang.py", "wild1/x.py", "wild/y/x.py", "only/this.py", "only/that.py",
		"sub/a.log", "sub/local.py", "sub/deep/local.py", "sub/anchored.py", "sub/deep/anchored.py", "sub/a.json", "sub/good.json", "sub/deep/good.json", "bad[", "ok.py"} {
		if info, err := os.Stat(filepath.Join(root, name)); err == nil && info.IsDir() {
			continue
		}
		write(name, "")
	}
	command := exec.Command(git, "init", "-q", "--template=", ".")
	command.Dir = root
	if out, err := command.CombinedOutput(); err != nil {
		t.Skipf("git init: %v %s", err, out)
	}
	command = exec.Command(git, "-c", "core.excludesFile="+os.DevNull, "ls-files", "-z", "--others", "--exclude-standard")
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range strings.Split(string(bytes.TrimRight(out, "\x00")), "\x00") {
		if path.Base(name) != ".gitignore" {
			want = append(want, name)
		}
	}
	sort.Strings(want)

	walk := walker{every: true}
	walk.folder(filepath.ToSlash(root), filepath.ToSlash(root), nil)
	var got []string
	for _, target := range walk.targets {
		name, _ := below(filepath.ToSlash(root), target.Path)
		if path.Base(name) != ".gitignore" {
			got = append(got, name)
		}
	}
	sort.Strings(got)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("walked:\n%s\n\ngit lists:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
