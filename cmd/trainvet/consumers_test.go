package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// need skips a test, loudly, where a program that it is about is not installed.
func need(t *testing.T, program string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("short")
	}
	found, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("NO %s: this test of what it makes of our output is skipped", program)
	}
	return found
}

// slow skips a test that takes a minute of a processor, unless all are asked for.
func slow(t *testing.T) {
	t.Helper()
	if os.Getenv("TRAINVET_ALL") == "" {
		t.Skip("takes long; TRAINVET_ALL=1, which .ci/run sets, runs it")
	}
}

// must runs a program in a folder and gives its output; the exit code must be want.
func must(t *testing.T, dir string, want int, name string, args ...string) string {
	t.Helper()
	command := exec.Command(name, args...)
	command.Dir = dir
	output, err := command.CombinedOutput()
	if command.ProcessState == nil {
		t.Fatalf("%s: %v", name, err)
	}
	if got := command.ProcessState.ExitCode(); got != want {
		t.Fatalf("%s %q: exit code %d, want %d\n%s", name, args, got, want, output)
	}
	return string(output)
}

// repository is a new git repository with files in it, all of them committed.
func repository(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		full := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	must(t, dir, 0, "git", "init", "-q", "-b", "main")
	commit(t, dir)
}

func commit(t *testing.T, dir string) {
	t.Helper()
	must(t, dir, 0, "git", "add", "-A")
	must(t, dir, 0, "git", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "x", "--no-verify")
}

// forgetGit takes away what git, or a hook of it, that runs the test has told it: a folder, an index, settings.
func forgetGit(t *testing.T) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "GIT_") {
			t.Setenv(name, "") // which brings it back in the end
			os.Unsetenv(name)
		}
	}
}

// isolateGit keeps the settings of whoever runs the test out of it, and lets git leave nothing running behind, which would write to folders
// that are being removed.
func isolateGit(t *testing.T) {
	t.Helper()
	forgetGit(t)
	config := filepath.Join(t.TempDir(), "gitconfig")
	if err := os.WriteFile(config, []byte("[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
}

const (
	unusedLine  = "x = 1  # trainvet: ignore[syntax-error] gone\n"
	unknownLine = "x = 1  # trainvet: ignore[no-such-rule]\n"
)

// TestPreCommit lets the real pre-commit build our hooks from a clone and run them: findings fail, what is below the threshold is
// shown, excluded files are left out though they are named, and the fixing hook changes files.
func TestPreCommit(t *testing.T) {
	slow(t)
	program := need(t, "pre-commit")
	need(t, "git")
	isolateGit(t)
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOMODCACHE", strings.TrimSpace(string(cache))) // pre-commit sets GOPATH to a folder of its own
	flags, err := exec.Command("go", "env", "GOFLAGS").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOFLAGS", strings.TrimSpace(string(flags)+" -trimpath")) // what does not name its folder is compiled once, for TestReproducible too
	t.Setenv("CGO_ENABLED", "0")
	t.Setenv("PRE_COMMIT_HOME", filepath.Join(t.TempDir(), "home"))
	hooks, user := t.TempDir(), t.TempDir()
	copyModule(t, filepath.Join("..", ".."), hooks)
	must(t, hooks, 0, "git", "init", "-q")
	commit(t, hooks)
	must(t, hooks, 0, "git", "tag", "v0.1.0")
	entry := func(ids string) string {
		return "repos:\n- repo: " + filepath.ToSlash(hooks) + "\n  rev: v0.1.0\n  hooks: [" + ids + "]\n"
	}
	repository(t, user, map[string]string{
		".pre-commit-config.yaml": entry("{id: trainvet}"),
		"trainvet.toml":           "exclude = [\"third_party/**\"]\n[severity]\nunused-suppression = \"info\"\n",
		"a b/'q\"文.py":            unknownLine,
		"third_party/x.py":        unknownLine,
		"info.py":                 unusedLine,
	})
	run := func(want int, args ...string) string {
		t.Helper()
		return must(t, user, want, program, append([]string{"run", "--color", "never"}, args...)...)
	}
	output := run(1, "--all-files")
	for _, wanted := range []string{"a b/'q\"文.py:1:8: warning[unknown-suppression]", "info.py:1:8: info[unused-suppression]", "exit code: 1"} {
		if !strings.Contains(output, wanted) {
			t.Errorf("%q is not in\n%s", wanted, output)
		}
	}
	if strings.Contains(output, "third_party") {
		t.Errorf("an excluded file was checked:\n%s", output)
	}
	if output := run(0, "--files", "info.py", "third_party/x.py"); !strings.Contains(output, "info[unused-suppression]") {
		t.Errorf("what is below the threshold is not shown:\n%s", output)
	}
	if err := os.WriteFile(filepath.Join(user, ".pre-commit-config.yaml"), []byte(entry("{id: trainvet-fix}")), 0o666); err != nil {
		t.Fatal(err)
	}
	commit(t, user)
	if output := run(1, "--files", "info.py"); !strings.Contains(output, "files were modified by this hook") {
		t.Errorf("the fixing hook says\n%s", output)
	}
	if text, err := os.ReadFile(filepath.Join(user, "info.py")); err != nil || string(text) != "x = 1\n" {
		t.Errorf("the file is now %q (%v)", text, err)
	}
	commit(t, user)
	run(0, "--files", "info.py")
	// the system hooks run the trainvet on the path, which is this test
	if err := os.WriteFile(filepath.Join(user, ".pre-commit-config.yaml"), []byte(entry("{id: trainvet-system}, {id: trainvet-fix-system}")), 0o666); err != nil {
		t.Fatal(err)
	}
	commit(t, user)
	if output := run(1, "--all-files"); strings.Count(output, "warning[unknown-suppression]") != 2 {
		t.Errorf("the system hooks say\n%s", output)
	}
}

// copyModule copies what a clone of the module would hold and a build needs. In editors nothing is built by Go.
func copyModule(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(name string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		if base := entry.Name(); relative != "." && (base == ".git" || entry.IsDir() && (base == "corpus" || relative == "editors")) {
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(to, relative), 0o777)
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, relative), text, 0o666)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestReviewdog lets the real reviewdog read our rdjson: all findings, those of a diff, and suggestions turned into SARIF by it.
func TestReviewdog(t *testing.T) {
	program := need(t, "reviewdog")
	need(t, "git")
	isolateGit(t)
	dir := t.TempDir()
	repository(t, dir, map[string]string{"old 文.py": unknownLine, "fix.py": unusedLine})
	if err := os.WriteFile(filepath.Join(dir, "old 文.py"), []byte(unknownLine+"y = 2  # trainvet: ignore[other-rule]\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	must(t, dir, 1, "trainvet", "check", "--output", "rdjson=out.json", "--output", "sarif=out.sarif", "--output", "checkstyle=out.xml", ".")
	review := func(want int, format, file string, args ...string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		command := exec.Command(program, append([]string{"-reporter=local", "-f=" + format, "-fail-level=any"}, args...)...)
		command.Dir, command.Stdin = dir, bytes.NewReader(text)
		output, err := command.CombinedOutput()
		if got := command.ProcessState.ExitCode(); got != want {
			t.Fatalf("%s: exit code %d (%v)\n%s", format, got, err, output)
		}
		return string(output)
	}
	for format, file := range map[string]string{"rdjson": "out.json", "sarif": "out.sarif", "checkstyle": "out.xml"} {
		all := review(1, format, file, "-filter-mode=nofilter")
		for _, wanted := range []string{"fix.py", "unused-suppression", "no-such-rule", "other-rule"} {
			if !strings.Contains(all, wanted) {
				t.Errorf("%s: %q is not in\n%s", format, wanted, all)
			}
		}
		added := review(1, format, file, "-filter-mode=added", "-diff=git diff")
		if strings.Contains(added, "fix.py") || strings.Contains(added, "no-such-rule") || !strings.Contains(added, "other-rule") {
			t.Errorf("%s: of the changed lines it says\n%s", format, added)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "out.json"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "-reporter=sarif", "-f=rdjson", "-filter-mode=nofilter", "-diff=git diff")
	command.Dir, command.Stdin = dir, bytes.NewReader(text)
	output, _ := command.Output()
	var log struct {
		Runs []struct {
			Results []struct {
				Fixes []struct {
					Changes []struct {
						Replacements []struct {
							Deleted struct {
								StartLine, StartColumn int
							} `json:"deletedRegion"`
						} `json:"replacements"`
					} `json:"artifactChanges"`
				} `json:"fixes"`
			} `json:"results"`
		} `json:"runs"`
	}
	if err := json.Unmarshal(output, &log); err != nil || len(log.Runs) != 1 {
		t.Fatalf("%v\n%s", err, output)
	}
	fixes := 0
	for _, result := range log.Runs[0].Results {
		for _, fix := range result.Fixes {
			if r := fix.Changes[0].Replacements[0].Deleted; r.StartLine == 1 && r.StartColumn == 6 {
				fixes++ // the blanks before the comment go with it
			}
		}
	}
	if fixes != 1 {
		t.Errorf("reviewdog knows %d suggestions of ours\n%s", fixes, output)
	}
}

// TestSARIFMultitool lets the validator of the SARIF SDK judge our logs: by the official JSON schema of 2.1.0, by the rules of the standard,
// and by what code scanning on GitHub asks for. It is a program in the npm package @microsoft/sarif-multitool-linux.
func TestSARIFMultitool(t *testing.T) {
	program := need(t, "Sarif.Multitool")
	need(t, "git")
	isolateGit(t)
	for name, args := range map[string][]string{
		"clean": {"clean"}, "hostile": {"."}, "above": {"../above.py", "."}, "absolute": {t.TempDir()},
	} {
		dir := filepath.Join(t.TempDir(), "here")
		repository(t, dir, map[string]string{
			"clean/a.py": "x = 1\n", "ds_config.json": `{"train_batch_size": 8, "zero_optimization": {"stage": 9, "a\n::error::\u001b[2J [x](1) <b>": 1}}`,
			"a\n::error::[l](1) 文.py": unknownLine, "100% #?&\".py": unusedLine, "-x.py": unknownLine, "crlf.py": "y = 1\r\n\r\n" + strings.TrimSuffix(unusedLine, "\n") + "\r\n",
			"n.ipynb":     `{"cells": [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": null, "source": ["y = 1\n", "x = 1  # trainvet: ignore[no-such-rule]"]}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}`,
			"../above.py": unknownLine,
		})
		command := exec.Command("trainvet", append([]string{"check", "--isolated", "--allow-empty", "--fail-on", "never", "--output", "out.sarif", "--format", "sarif"}, args...)...)
		command.Dir = dir
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, output)
		}
		validate := func(file string) (string, error) {
			command := exec.Command(program, "validate", file, "--rule-kind", "Sarif;Ghas", "--level", "Error;Warning")
			command.Dir, command.Env = dir, append(os.Environ(), "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1") // it may lack a library for languages
			output, err := command.CombinedOutput()
			return string(output), err
		}
		if output, err := validate("out.sarif"); err != nil || strings.Contains(output, ": error ") || strings.Contains(output, ": warning ") || !strings.Contains(output, "1 files scanned") {
			t.Errorf("%s: %v\n%s", name, err, output)
		}
		if name != "hostile" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, "out.sarif"))
		if err != nil {
			t.Fatal(err)
		}
		broken := strings.Replace(string(text), `"startLine": 1`, `"startLine": 0`, 1)
		if err := os.WriteFile(filepath.Join(dir, "broken.sarif"), []byte(broken), 0o666); err != nil || broken == string(text) {
			t.Fatal(err)
		}
		if output, _ := validate("broken.sarif"); !strings.Contains(output, ": error ") {
			t.Errorf("it takes a line 0:\n%s", output)
		}
	}
}

// TestProblemMatcher reads our concise lines with the pattern that GitHub Actions gets.
func TestProblemMatcher(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", ".github", "trainvet-matcher.json"))
	if err != nil {
		t.Fatal(err)
	}
	var matcher struct {
		ProblemMatcher []struct {
			Owner   string
			Pattern []struct {
				Regexp                                      string
				File, Line, Column, Severity, Code, Message int
			}
		}
	}
	if err := json.Unmarshal(text, &matcher); err != nil {
		t.Fatal(err)
	}
	p := matcher.ProblemMatcher[0].Pattern[0]
	pattern := regexp.MustCompile(p.Regexp)
	dir := t.TempDir()
	for name, line := range map[string]string{"a: b 文.py": unknownLine, "sub/info.py": unusedLine} {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(line), 0o666); err != nil {
			t.Skip("this system knows no such names: ", err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "trainvet.toml"), []byte("[severity]\nunused-suppression = \"info\"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, color := range []string{"never", "always"} {
		var matched []string
		for line := range strings.Lines(must(t, dir, 1, "trainvet", "check", "--color", color, "--format", "concise", ".")) {
			if m := pattern.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
				matched = append(matched, strings.Join([]string{m[p.File], m[p.Line], m[p.Column], m[p.Severity], m[p.Code], m[p.Message]}, "|"))
			}
		}
		if want := []string{`a: b 文.py|1|8|warning|unknown-suppression|no rule is called "no-such-rule"`}; !slices.Equal(matched, want) {
			t.Errorf("colour %s: matched %q, want %q", color, matched, want)
		}
	}
}

// TestCompletion lets a shell read the completion script, and asks for the values of flags.
func TestCompletion(t *testing.T) {
	for shell, check := range map[string][]string{"bash": {"-n"}, "zsh": {"-n"}, "fish": {"--no-execute"}} {
		script := must(t, ".", 0, "trainvet", "completion", shell)
		program, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("NO %s: its completion script is not read by it", shell)
			continue
		}
		file := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(file, []byte(script), 0o666); err != nil {
			t.Fatal(err)
		}
		must(t, ".", 0, program, append(check, file)...)
	}
	if fish, err := exec.LookPath("fish"); err == nil {
		file := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(file, []byte(must(t, ".", 0, "trainvet", "completion", "fish")), 0o666); err != nil {
			t.Fatal(err)
		}
		t.Setenv("HOME", t.TempDir()) // it writes there
		t.Setenv("XDG_CONFIG_HOME", "")
		if got := must(t, ".", 0, fish, "--no-config", "-c", "source $argv[1]; complete -C 'trainvet check --fail-on n'", file); !strings.Contains(got, "never") {
			t.Errorf("fish offers %q", got)
		}
	}
	for words, want := range map[string]string{
		"check --format s":           "sarif",
		"check --select duplicate-k": "duplicate-key",
		"check --device h100":        "h100",
		"check --fail-on n":          "never",
		"rule duplicate-k":           "duplicate-key",
	} {
		output := must(t, ".", 0, "trainvet", append([]string{"__complete"}, strings.Fields(words)...)...)
		if !strings.Contains(strings.ToLower(output), want) {
			t.Errorf("%s: offered %q", words, output)
		}
	}
}

// TestManuals lets groff read the manual pages, which tells of wrong requests.
func TestManuals(t *testing.T) {
	dir := t.TempDir()
	must(t, ".", 0, "trainvet", "man", "--out", dir)
	pages, _ := filepath.Glob(filepath.Join(dir, "*.1"))
	if len(pages) < 10 {
		t.Fatalf("%d pages", len(pages))
	}
	groff := need(t, "groff")
	for _, page := range pages {
		command := exec.Command(groff, "-man", "-ww", "-Tutf8", page)
		var stderr bytes.Buffer
		command.Stderr = &stderr
		if output, err := command.Output(); err != nil || stderr.Len() > 0 || !bytes.Contains(output, []byte("trainvet")) {
			t.Errorf("%s: %v\n%s", filepath.Base(page), err, stderr.Bytes())
		}
	}
}
