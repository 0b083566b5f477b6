package check_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/linttest"
	"github.com/trainvet/trainvet/lint/workspace"
)

// TestSettingsBounds holds that settings are read up to each bound and not beyond it, and that the message says where and what.
func TestSettingsBounds(t *testing.T) {
	patterns := func(count int) string { return strings.Repeat("\"x\", ", count) }
	custom := func(size int) string {
		return "[[custom]]\nname = \"own\"\nmessage = \"m\"\nkey = \"a\"\nmatches = '" + strings.Repeat("a", size) + "'\n"
	}
	sized := func(size int) string {
		const start = "require-reason = true\n#"
		return start + strings.Repeat("x", size-len(start)-1) + "\n"
	}
	for _, c := range []struct {
		name, within, beyond, want string
	}{
		{"maxSettings", sized(1 << 20), sized(1<<20 + 1), "trainvet.toml: larger than 1 MB, not read"},
		{"maxPatterns", "exclude = [" + patterns(1000) + "]\n", "exclude = [" + patterns(1001) + "]\n", "trainvet.toml:1:11: more than 1000 patterns"},
		{"maxRegexp", custom(4 << 10), custom(4<<10 + 1), "trainvet.toml:5:11: a regular expression of more than 4096 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			read := func(settings string) error {
				snapshot := workspace.NewSnapshot(linttest.FS(map[string]string{"a.py": calls, "trainvet.toml": settings}))
				resolver := &check.Resolver{Snapshot: snapshot, Dir: "/", Rules: world(), Declare: func(d lint.Declared) (*lint.Rule, error) { return finder(d.Name, "custom", "alpha", lint.Error), nil }}
				_, err := check.Run(t.Context(), snapshot, []check.Target{{Path: "a.py"}}, check.Options{Rules: world(), Settings: resolver})
				return err
			}
			if err := read(c.within); err != nil {
				t.Errorf("at the bound: %v", err)
			}
			var wrong check.SettingsError
			if err := read(c.beyond); !errors.As(err, &wrong) || !slices.Equal(wrong, []string{c.want}) {
				t.Errorf("beyond the bound: %v, want %s", err, c.want)
			}
		})
	}
}

// TestIgnoreBound holds that a .gitignore is read up to its bound, whole lines of it alone, and that more of it is told: in a folder on the
// way and in one above.
func TestIgnoreBound(t *testing.T) {
	const bound = 256 << 10
	top := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		name = filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put(".git/HEAD", "")
	for _, name := range []string{"sub/a.py", "sub/b.py", "sub/long/c.py"} {
		put(name, "x = 1\n")
	}
	for _, c := range []struct {
		name  string
		text  string
		found []string
		told  bool
	}{
		{"at the bound", padded(bound-len("long/x\n")) + "long/x\n", []string{"b.py", "long/c.py"}, false},
		{"one byte more", padded(bound-len("long/x\n")+1) + "long/x\n", []string{"b.py", "long/c.py"}, true},
		{"cut in a pattern", padded(bound-len("long/")) + "long/x\n", []string{"b.py", "long/c.py"}, true}, // the part before the bound would ignore a folder
		{"beyond the bound", padded(bound) + "b.py\n", []string{"b.py", "long/c.py"}, true},
	} {
		for where, folder := range map[string]string{"there": "sub", "above": ""} {
			t.Run(c.name+", "+where, func(t *testing.T) {
				file := filepath.Join(folder, ".gitignore")
				put(file, c.text)
				defer os.Remove(filepath.Join(top, file))
				dir := filepath.ToSlash(top)
				resolver := &check.Resolver{Snapshot: workspace.NewSnapshot(workspace.Disk{}), Dir: dir, Rules: world()}
				targets, problems := check.Discover([]string{dir + "/sub"}, resolver)
				var found []string
				for _, target := range targets {
					found = append(found, strings.TrimPrefix(target.Path, dir+"/sub/"))
				}
				if !slices.Equal(found, c.found) {
					t.Errorf("found %q, want %q", found, c.found)
				}
				var want []check.Problem
				if c.told {
					want = []check.Problem{{Path: dir + "/" + filepath.ToSlash(file), Reason: "larger than 256 KB; the rest is not read"}}
				}
				if !slices.Equal(problems, want) {
					t.Errorf("told %q, want %q", problems, want)
				}
			})
		}
	}
}

// padded is an ignore file of so many bytes that ignores a.py.
func padded(size int) string {
	const start = "a.py\n#"
	return fmt.Sprintf("%s%s\n", start, strings.Repeat("x", size-len(start)-1))
}

// TestSuppressionBounds holds that a suppression is read up to so many names, that more are told, and that as many suppressions of a line
// count.
func TestSuppressionBounds(t *testing.T) {
	names := func(count int, last string) string {
		return "alpha()  # trainvet: ignore[" + strings.Repeat("call-of-beta,", count-1) + last + "] why\n"
	}
	repeated := func(count int, last string) string {
		return "alpha()" + strings.Repeat("  # trainvet: ignore[call-of-beta]", count-1) + "  # trainvet: ignore[" + last + "]\n"
	}
	for _, c := range []struct {
		name, text   string
		hidden, told bool
	}{
		{"names within", names(200, "call-of-alpha"), true, false},
		{"names beyond", names(201, "call-of-alpha"), false, true},
		{"on a line within", repeated(200, "call-of-alpha"), true, false},
		{"on a line beyond", repeated(201, "call-of-alpha"), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			report, err := try(t, map[string]string{"a.py": c.text}, world(), check.Flags{})
			if err != nil {
				t.Fatal(err)
			}
			got := found(report)
			if hidden := !strings.Contains(got, "call-of-alpha"); hidden != c.hidden {
				t.Errorf("hidden: %v\n%s", hidden, got)
			}
			told := slices.ContainsFunc(report.Findings, func(f check.Finding) bool {
				return f.Message == "more than 200 names in one suppression; the rest is not read"
			})
			if told != c.told {
				t.Errorf("told: %v", told)
			}
		})
	}
}
