package rules

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
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
	kept, telling := map[string]bool{}, check.TellingWords(All())
	keep := func(name string, text []byte) {
		if telling(text) || !strings.HasSuffix(name, ".py") {
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

// TestOneFile checks files of projects alone, as a commit hook does, and wants the findings that a check of the whole project has in them. The
// projects are those that TRAINVET_PROJECTS lists, of which every tenth file is taken and all that have findings, and the sample project.
func TestOneFile(t *testing.T) {
	folders := append(filepath.SplitList(os.Getenv("TRAINVET_PROJECTS")), "../testdata/projects")
	for _, folder := range folders {
		folder, err := filepath.Abs(folder)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Chdir(folder)
			run := func(files ...string) map[string][]string {
				snapshot := workspace.NewSnapshot(workspace.Disk{})
				settings := &check.Resolver{Snapshot: snapshot, Dir: filepath.ToSlash(folder), Rules: All(), Flags: check.Flags{Isolated: true, Tests: true}}
				walk := check.WalkAll(files, settings)
				report, err := check.Run(context.Background(), snapshot, walk.Targets, check.Options{Rules: All(), Settings: settings, Walk: walk})
				if err != nil {
					t.Fatal(err)
				}
				found := map[string][]string{}
				for _, target := range walk.Targets {
					found[target.Path] = nil
				}
				for i, line := range list(report) {
					if f := report.Findings[i]; f.Rule.Name != "syntax-error" { // it is told of any file that is named
						found[f.At.Path] = append(found[f.At.Path], line)
					}
				}
				return found
			}
			whole := run(".")
			alone, findings := 0, 0
			for i, name := range slices.Sorted(maps.Keys(whole)) {
				if len(whole[name]) == 0 && i%10 != 0 {
					continue
				}
				alone++
				findings += len(whole[name])
				if got := run(name)[name]; !slices.Equal(got, whole[name]) {
					t.Errorf("%s alone:\n%s\nin its project:\n%s", name, strings.Join(got, "\n"), strings.Join(whole[name], "\n"))
				}
			}
			if alone == 0 || findings == 0 && filepath.Base(folder) == "projects" {
				t.Errorf("%d files were checked, with %d findings", alone, findings)
			}
			t.Logf("%d files alone, %d findings", alone, findings)
		})
	}
}

// TestStandardLibraryTrainsNothing holds that no file of Python's standard library has a telling word: a new rule whose words are everyday ones
// would make every tree be parsed. Such words belong into the list of lint/check/training.go.
func TestStandardLibraryTrainsNothing(t *testing.T) {
	output, err := exec.Command("python3", "-c", "import sysconfig; print(sysconfig.get_paths()['stdlib'])").Output()
	if err != nil {
		t.Skip("NOT TESTED: python3 is not installed, so there is no standard library to read: ", err)
	}
	telling := check.TellingWords(All())
	files := 0
	err = filepath.WalkDir(strings.TrimSpace(string(output)), func(name string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "site-packages" || entry.Name() == "dist-packages" || entry.Name() == "__pycache__"):
			return filepath.SkipDir
		case !entry.Type().IsRegular() || !strings.HasSuffix(name, ".py"):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		files++
		if telling(text) {
			t.Errorf("%s holds a telling word", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files", files)
}
