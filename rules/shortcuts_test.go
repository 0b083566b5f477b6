package rules

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/workspace"
)

// TestShortcuts checks whole projects twice, with the shortcuts by words and names and without any, and wants the same findings. The
// cases of the rules are compared so too; here it is real code: the folders that TRAINVET_PROJECTS lists, and the sample project.
func TestShortcuts(t *testing.T) {
	folders := append(filepath.SplitList(os.Getenv("TRAINVET_PROJECTS")), "../testdata/projects")
	for _, folder := range folders {
		folder, err := filepath.Abs(folder)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(folder); err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(folder), func(t *testing.T) {
			found := func(thorough bool) []string {
				snapshot := workspace.NewSnapshot(workspace.Disk{})
				settings := &check.Resolver{Snapshot: snapshot, Dir: filepath.ToSlash(folder), Rules: All(), Flags: check.Flags{Isolated: true}}
				targets, _ := check.Discover([]string{filepath.ToSlash(folder)}, settings)
				report, err := check.Run(context.Background(), snapshot, targets, check.Options{Rules: All(), Settings: settings, NoPrefilter: thorough})
				if err != nil {
					t.Fatal(err)
				}
				if len(report.Faults) > 0 {
					t.Errorf("%s: %s", report.Faults[0].Path, report.Faults[0].Reason)
				}
				return list(report)
			}
			short, long := found(false), found(true)
			for _, f := range long {
				if !slices.Contains(short, f) {
					t.Errorf("missed by the shortcuts: %s", f)
				}
			}
			for _, f := range short {
				if !slices.Contains(long, f) {
					t.Errorf("found by the shortcuts only: %s", f)
				}
			}
			t.Logf("%d findings", len(long))
		})
	}
}

// TestIdleTrees walks trees in which no file holds a word that tells of training, in all of which nothing is looked for, and wants the same findings
// as without that shortcut. They are made of what the cases of the rules and the projects of TRAINVET_PROJECTS have besides: the files without such a
// word, each in its folder. The words are taken out of the cases as well, so that code stays that looks much like training.
func TestIdleTrees(t *testing.T) {
	plain := map[string]string{"torch": "tensors", "deepspeed": "zspeed", "DeepSpeed": "ZSpeed", "transformers": "converters", "lightning": "thunder", "accelerate": "hasten"}
	var cases []string
	for _, pattern := range []string{"*/*.txtar", "../testdata/*/*.txtar"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, found...)
	}
	if len(cases) < 100 {
		t.Fatalf("only %d cases were found", len(cases))
	}
	folder := t.TempDir()
	kept := map[string]bool{}
	keep := func(name string, text []byte) {
		if check.Telling(All(), text) || !strings.HasSuffix(name, ".py") {
			return
		}
		kept[name] = true
		target := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range cases {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range archive.Files {
			text := string(file.Data)
			keep(fmt.Sprintf("case%d/%s", i, file.Name), []byte(text))
			for word, other := range plain {
				text = strings.ReplaceAll(text, word, other)
			}
			keep(fmt.Sprintf("plain%d/%s", i, file.Name), []byte(text))
		}
	}
	for _, project := range filepath.SplitList(os.Getenv("TRAINVET_PROJECTS")) {
		err := filepath.WalkDir(project, func(name string, entry os.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() || !strings.HasSuffix(name, ".py") {
				return err
			}
			text, err := os.ReadFile(name)
			if err == nil {
				below, _ := filepath.Rel(filepath.Dir(project), name)
				keep(filepath.ToSlash(below), text)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(folder)
	found := func(thorough bool) []string {
		snapshot := workspace.NewSnapshot(workspace.Disk{})
		settings := &check.Resolver{Snapshot: snapshot, Dir: filepath.ToSlash(folder), Rules: All(), Flags: check.Flags{Isolated: true, Tests: true}}
		walk := check.WalkAll([]string{"."}, settings)
		report, err := check.Run(context.Background(), snapshot, walk.Targets, check.Options{Rules: All(), Settings: settings, NoPrefilter: thorough, Walk: walk})
		if err != nil {
			t.Fatal(err)
		}
		if report.Summary.Files < len(kept)*9/10 { // some cannot be read, or lie where no walk goes
			t.Errorf("%d of %d files were checked", report.Summary.Files, len(kept))
		}
		return list(report)
	}
	short, long := found(false), found(true)
	if len(short) > 0 {
		t.Errorf("the shortcut is not taken: %s", short[0])
	}
	for _, f := range long {
		t.Errorf("missed by the shortcut: %s", f)
	}
	t.Logf("%d files", len(kept))
}

// list are the findings of a report as lines.
func list(report *check.Report) (lines []string) {
	for _, f := range report.Findings {
		lines = append(lines, fmt.Sprintf("%s %d %s %s", f.At.Path, f.At.Span.Start, f.Rule.Name, f.Message))
	}
	return lines
}
