package rules

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

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
				var list []string
				for _, f := range report.Findings {
					list = append(list, fmt.Sprintf("%s %d %s %s", f.At.Path, f.At.Span.Start, f.Rule.Name, f.Message))
				}
				return list
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
