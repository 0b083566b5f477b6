package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/trainvet/trainvet/rules"
	"go.yaml.in/yaml/v4"
)

// documents are the pages for people, by their names from the root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	root := filepath.Join("..", "..")
	found := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			relative, _ := filepath.Rel(root, name)
			found[filepath.ToSlash(relative)] = string(text)
		}
	}
	for _, name := range []string{"README.md", "README.zh.md", "docs/settings.md", "docs/ci.md", "docs/editors.md", "docs/guides.md"} {
		if found[name] == "" {
			t.Errorf("%s is not there", name)
		}
	}
	return found
}

var codeBlock = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")

// TestDocumentedExamples reads what the pages show with whoever reads it in earnest: settings with trainvet, YAML and JSON with parsers,
// command lines with the parser of ours.
func TestDocumentedExamples(t *testing.T) {
	blocks, commands := 0, 0
	for name, text := range documents(t) {
		for _, block := range codeBlock.FindAllStringSubmatch(text, -1) {
			kind, code := block[1], block[2]
			switch kind {
			case "toml settings":
				blocks++
				dir := t.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "trainvet.toml"), []byte(code), 0o666); err != nil {
					t.Fatal(err)
				}
				if output, code := runIn(t, dir, "config", "."); code != exitClean {
					t.Errorf("%s: settings are refused:\n%s", name, output)
				}
			case "yaml":
				blocks++
				var any any
				if err := yaml.Unmarshal([]byte(code), &any); err != nil {
					t.Errorf("%s: %v\n%s", name, err, code)
				}
			case "json":
				blocks++
				if !json.Valid([]byte(code)) {
					t.Errorf("%s: is no JSON\n%s", name, code)
				}
			case "sh", "":
				for line := range strings.Lines(code) {
					if words := strings.Fields(line); len(words) > 1 && words[0] == "trainvet" && !strings.Contains(line, "[") {
						commands++
						if end := slices.Index(words, "|"); end >= 0 {
							words = words[:end]
						}
						a := &app{stdin: strings.NewReader(""), stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, env: func(string) string { return "" }, rules: rules.All()}
						command, rest, err := a.root().Find(words[1:])
						if err == nil {
							err = command.ParseFlags(rest)
						}
						if err != nil && err != pflag.ErrHelp {
							t.Errorf("%s: %s: %v", name, strings.TrimSpace(line), err)
						}
					}
				}
			}
		}
	}
	if blocks < 8 || commands < 10 {
		t.Errorf("only %d examples and %d commands were found", blocks, commands)
	}
}

// runIn runs trainvet in process in a folder.
func runIn(t *testing.T, dir string, args ...string) (string, int) {
	t.Helper()
	t.Chdir(dir)
	var output bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &output, stderr: &output, env: func(string) string { return "" }, rules: rules.All()}
	code := run(a, args)
	return output.String(), code
}

var markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinks holds that links between the pages lead somewhere.
func TestLinks(t *testing.T) {
	links := 0
	for name, text := range documents(t) {
		text = codeBlock.ReplaceAllString(text, "")
		for _, link := range markdownLink.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			links++
			full := filepath.Join("..", "..", filepath.FromSlash(filepath.Dir(name)), filepath.FromSlash(target))
			content, err := os.ReadFile(full)
			if info, e := os.Stat(full); e != nil || err != nil && !info.IsDir() {
				t.Errorf("%s: %s leads nowhere", name, link[1])
			}
			if anchor != "" && !slices.Contains(anchors(string(content)), anchor) {
				t.Errorf("%s: %s has no heading %q", name, target, anchor)
			}
		}
	}
	if links < 20 {
		t.Errorf("only %d links were found", links)
	}
	// the page that rules of the settings lead to
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "settings.md"))
	if err != nil || !slices.Contains(anchors(string(text)), "rules-of-your-own") {
		t.Errorf("docs/settings.md says nothing of rules of one's own (%v)", err)
	}
}

// anchors are those that a forge makes of headings.
func anchors(text string) (all []string) {
	for line := range strings.Lines(text) {
		if heading := strings.TrimLeft(line, "#"); heading != line && strings.HasPrefix(heading, " ") {
			heading = strings.ToLower(strings.TrimSpace(heading))
			all = append(all, strings.ReplaceAll(regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(heading, ""), " ", "-"))
		}
	}
	return all
}

var guideRow = regexp.MustCompile(`(?m)^\|.*\| \[([a-z0-9-]+)\]\([^)]+\) \| (\S+) \|$`)

// TestGuides holds that trainvet reports each claim of the guides in the file of the sample project that the page names.
func TestGuides(t *testing.T) {
	text := documents(t)["docs/guides.md"]
	output, _ := runIn(t, filepath.Join("..", "..", "testdata", "projects", "ascend-llama"), "check", "--format", "json", ".")
	var report struct{ Findings []struct{ Rule, Path string } }
	if start := strings.Index(output, "{"); start < 0 || json.NewDecoder(strings.NewReader(output[start:])).Decode(&report) != nil {
		t.Fatalf("no report:\n%s", output)
	}
	rows := guideRow.FindAllStringSubmatch(text, -1)
	for _, row := range rows {
		found := false
		for _, finding := range report.Findings {
			found = found || finding.Rule == row[1] && finding.Path == row[2]
		}
		if !found {
			t.Errorf("%s is not reported in %s", row[1], row[2])
		}
	}
	if len(rows) < 15 {
		t.Errorf("only %d claims were found", len(rows))
	}
}
