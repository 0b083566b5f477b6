package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// TestWheel builds the wheel of this system and lets pip install it, without a network, into an environment of its own.
func TestWheel(t *testing.T) {
	if os.Getenv("TRAINVET_ALL") == "" {
		t.Skip("takes long; TRAINVET_ALL=1, which .ci/run sets, runs it")
	}
	python, err := exec.LookPath("python3")
	if err != nil || exec.Command(python, "-m", "venv", "--help").Run() != nil {
		t.Skip("NO python3 with venv: the wheel is not installed by pip")
	}
	folder := t.TempDir()
	binary := filepath.Join(folder, "binary")
	if output, err := exec.Command("go", "build", "-o", binary, "../trainvet").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	output, err := exec.Command("go", "run", "wheel.go", "-binary", binary, "-o", folder, "-os", runtime.GOOS, "-arch", runtime.GOARCH, "-version", "v1.2.0-rc.3").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	wheels, _ := filepath.Glob(filepath.Join(folder, "trainvet-1.2.0rc3-py3-none-*.whl"))
	if len(wheels) != 1 {
		t.Fatalf("made %q", output)
	}
	environment := filepath.Join(folder, "env")
	if output, err := exec.Command(python, "-m", "venv", environment).CombinedOutput(); err != nil {
		t.Skipf("NO pip: the wheel is not installed: %v\n%s", err, output)
	}
	scripts := filepath.Join(environment, "bin")
	if runtime.GOOS == "windows" {
		scripts = filepath.Join(environment, "Scripts")
	}
	run := func(name string, args ...string) string {
		t.Helper()
		command := exec.Command(filepath.Join(scripts, name), args...)
		command.Env = append(os.Environ(), "PIP_DISABLE_PIP_VERSION_CHECK=1")
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, output)
		}
		return string(output)
	}
	run("pip", "install", "--no-index", "--no-deps", wheels[0])
	if got := run("trainvet", "version"); !strings.HasPrefix(got, "trainvet ") {
		t.Errorf("the installed program says %q", got)
	}
	if got := run("pip", "show", "--files", "trainvet"); !strings.Contains(got, "Version: 1.2.0rc3\n") || !strings.Contains(got, "/trainvet") {
		t.Errorf("pip shows %s", got)
	}
	run("pip", "check")
	run("pip", "uninstall", "-y", "trainvet")
	if _, err := os.Stat(filepath.Join(scripts, "trainvet")); err == nil {
		t.Error("pip left the program behind")
	}
}

// TestPages writes the pages of the rules: one each, in which every link to another one leads somewhere.
func TestPages(t *testing.T) {
	folder := t.TempDir()
	if output, err := exec.Command("go", "run", "docs.go", "-site", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	index, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile(`\]\(([a-z0-9-]+\.md)\)`).FindAllSubmatch(index, -1)
	if len(links) < 100 {
		t.Errorf("the index leads to %d pages", len(links))
	}
	for _, link := range links {
		page, err := os.ReadFile(filepath.Join(folder, string(link[1])))
		if err != nil || !strings.Contains(string(page), "| family | severity |") || !strings.Contains(string(page), "## Why") {
			t.Errorf("%s: %v", link[1], err)
		}
	}
}
