package changes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Repo is a work tree of git.
type Repo struct {
	dir    string   // where the caller is, absolute, with forward slashes
	prefix string   // of dir inside of the work tree; "" or with a slash at its end
	root   string   // of the work tree, as git calls it
	off    []string // switches off what git would run by itself
}

// Open finds the work tree that a folder lies in.
func Open(ctx context.Context, dir string) (*Repo, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return nil, errors.New("git is not installed")
	}
	r := &Repo{dir: dir, root: dir}
	out, err := r.git(ctx, "rev-parse", "--show-toplevel", "--show-prefix")
	if err != nil {
		return nil, fmt.Errorf("no git work tree here (%w)", err)
	}
	root, prefix, _ := strings.Cut(string(out), "\n")
	r.root, r.prefix = filepath.ToSlash(root), strings.TrimSuffix(prefix, "\n")
	return r, r.filtersOff(ctx)
}

// filtersOff switches off the filters (clean, smudge) that the settings of a repository name: git would run them on changed files. A
// file that only differs through one then counts as changed.
func (r *Repo) filtersOff(ctx context.Context) error {
	out, err := r.git(ctx, "config", "-z", "--name-only", "--get-regexp", `^filter\.`)
	if err != nil {
		return nil // there are none
	}
	for key := range strings.SplitSeq(string(out), "\x00") {
		driver, _, ok := cutLast(key, ".")
		switch {
		case !ok:
		case strings.Contains(driver, "="):
			return fmt.Errorf("the filter %q of this repository cannot be switched off", driver)
		default:
			r.off = append(r.off, "-c", driver+".clean=", "-c", driver+".smudge=", "-c", driver+".process=", "-c", driver+".required=false")
		}
	}
	return nil
}

func cutLast(text, at string) (before, after string, found bool) {
	if i := strings.LastIndex(text, at); i >= 0 {
		return text[:i], text[i+len(at):], true
	}
	return text, "", false
}

// git runs a command in the root of the work tree. Nothing that the settings of a repository name is run by it, nothing is
// fetched, and nothing is written.
func (r *Repo) git(ctx context.Context, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "git", slices.Concat([]string{"-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "-c", "core.hooksPath=" + os.DevNull, "--no-pager"}, r.off, args)...)
	command.Dir = filepath.FromSlash(r.root)
	command.Env = environment()
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		text := strings.TrimSpace(stderr.String())
		if first, _, _ := strings.Cut(text, "\n"); first != "" {
			return nil, errors.New(strings.TrimPrefix(first, "fatal: "))
		}
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return stdout.Bytes(), nil
}

func environment() []string {
	return append(os.Environ(), "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
}

// Commit is the commit that a revision names.
func (r *Repo) Commit(ctx context.Context, rev string) (string, error) {
	if rev == "" {
		return "", errors.New("an empty revision")
	}
	out, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("no revision %q here%s", rev, r.shallow(ctx))
	}
	return strings.TrimSpace(string(out)), nil
}

// MergeBase is the commit at which HEAD left a revision.
func (r *Repo) MergeBase(ctx context.Context, rev string) (string, error) {
	commit, err := r.Commit(ctx, rev)
	if err != nil {
		return "", err
	}
	out, err := r.git(ctx, "merge-base", commit, "HEAD")
	if err != nil {
		return "", fmt.Errorf("HEAD and %q have no commit in common%s", rev, r.shallow(ctx))
	}
	return strings.TrimSpace(string(out)), nil
}

// shallow is a clause for messages about what a clone does not hold.
func (r *Repo) shallow(ctx context.Context) string {
	out, err := r.git(ctx, "rev-parse", "--is-shallow-repository")
	if err != nil || strings.TrimSpace(string(out)) != "true" {
		return ""
	}
	return "; this clone is shallow, so it may only lack the history: set fetch-depth: 0 for actions/checkout, GIT_DEPTH: 0 in GitLab, or run git fetch --unshallow"
}

// Since gives what was changed in the work tree since a commit. Files that git does not track are new as a whole.
func (r *Repo) Since(ctx context.Context, commit string) (*Set, error) {
	text, err := r.git(ctx, "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-relative", "--find-renames", "--unified=0", "--inter-hunk-context=0",
		"--src-prefix=a/", "--dst-prefix=b/", "--submodule=short", "--ignore-submodules=dirty", commit, "--")
	if err != nil {
		return nil, err
	}
	files, err := ParsePatch(text)
	if err != nil {
		return nil, err
	}
	list, err := r.git(ctx, "ls-files", "-z")
	if err != nil {
		return nil, err
	}
	s := &Set{files: files, repo: r, tracked: map[string]bool{}}
	for name := range strings.SplitSeq(string(list), "\x00") {
		s.tracked[name] = true
	}
	return s, nil
}

// Name is the name inside of the work tree of a file given by its absolute path; false for what lies outside.
func (r *Repo) Name(absolute string) (string, bool) {
	if below, inside := strings.CutPrefix(absolute, strings.TrimSuffix(r.dir, "/")+"/"); inside {
		return r.prefix + below, true
	}
	if below, inside := strings.CutPrefix(absolute, strings.TrimSuffix(r.root, "/")+"/"); inside {
		return below, true
	}
	real, err := filepath.EvalSymlinks(filepath.FromSlash(absolute))
	if err != nil {
		return "", false
	}
	return strings.CutPrefix(filepath.ToSlash(real), strings.TrimSuffix(r.root, "/")+"/")
}

// Set is what is new in a project.
type Set struct {
	files   map[string]Lines
	repo    *Repo           // nil: names in files are relative to dir, or to a folder above it
	dir     string          // for patches
	tracked map[string]bool // nil: for patches
}

// FromPatch is what a patch says is new. Its names are relative to the root of the work tree, or to dir.
func FromPatch(text []byte, repo *Repo, dir string) (*Set, error) {
	files, err := ParsePatch(text)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 && len(bytes.TrimSpace(text)) > 0 {
		return nil, errNoPatch
	}
	return &Set{files: files, repo: repo, dir: dir}, nil
}

// Of gives the new lines of a file by its absolute path.
func (s *Set) Of(absolute string) Lines {
	if s.tracked == nil {
		if below, inside := strings.CutPrefix(absolute, strings.TrimSuffix(s.dir, "/")+"/"); inside {
			if lines, known := s.files[below]; known {
				return lines
			}
		}
		if s.repo != nil {
			if name, inside := s.repo.Name(absolute); inside {
				return s.files[name]
			}
		}
		return Lines{}
	}
	name, inside := s.repo.Name(absolute)
	if !inside {
		return Lines{Whole: true}
	}
	if lines, known := s.files[name]; known {
		return lines
	}
	for at := name; at != "." && at != "/"; at = path.Dir(at) { // above: a submodule, which is tracked as one entry
		if s.tracked[at] {
			return Lines{}
		}
	}
	return Lines{Whole: true}
}

// Touched reports whether anything of a file is new.
func (s *Set) Touched(absolute string) bool {
	lines := s.Of(absolute)
	return lines.Whole || len(lines.Ranges) > 0
}

// Root is the folder of the work tree, absolute, as seen from where the caller is.
func (r *Repo) Root() string {
	if root, inside := strings.CutSuffix(r.dir+"/", "/"+r.prefix); inside && r.prefix != "" {
		return root
	}
	if r.prefix == "" {
		return r.dir
	}
	return r.root
}
