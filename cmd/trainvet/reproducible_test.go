package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReproducible builds one commit as releases are built, in two folders of different names with files of different times, and with
// TRAINVET_ALL from nothing the second time: both are the same bytes, and name no folder.
func TestReproducible(t *testing.T) {
	slow(t)
	git, gobin := need(t, "git"), need(t, "go")
	forgetGit(t)
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(git, "-C", root, "rev-parse", "--verify", "HEAD").CombinedOutput(); err != nil {
		t.Skipf("NO checkout of git here: no release is built from it: %s", out)
	}
	release, err := os.ReadFile(filepath.Join(root, ".goreleaser.yaml"))
	if err != nil || !strings.Contains(string(release), "flags: [-trimpath]") || !strings.Contains(string(release), `ldflags: ["-s -w"]`) || !strings.Contains(string(release), "env: [CGO_ENABLED=0]") {
		t.Fatalf("releases are not built with the flags of this test (%v)", err)
	}
	build := func(folder string, age time.Duration, cache string) []byte {
		t.Helper()
		if out, err := exec.Command(git, "clone", "-q", "--no-hardlinks", root, folder).CombinedOutput(); err != nil {
			t.Fatalf("%s", out)
		}
		then := time.Now().Add(-age)
		err := filepath.WalkDir(folder, func(name string, entry os.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() || strings.Contains(name, ".git") {
				return err
			}
			return os.Chtimes(name, then, then)
		})
		if err != nil {
			t.Fatal(err)
		}
		binary := filepath.Join(t.TempDir(), "trainvet")
		command := exec.Command(gobin, "build", "-trimpath", "-buildvcs=true", "-ldflags", "-s -w", "-o", binary, "./cmd/trainvet")
		command.Dir = folder
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
		if cache != "" {
			command.Env = append(command.Env, "GOCACHE="+cache)
		}
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s", out)
		}
		built, err := os.ReadFile(binary)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(built, []byte(folder)) || bytes.Contains(built, []byte(root+"/")) {
			t.Errorf("what is built in %s names it", folder)
		}
		return built
	}
	cache := ""
	if os.Getenv("TRAINVET_ALL") != "" {
		cache = t.TempDir()
	}
	first, second := build(filepath.Join(t.TempDir(), "one"), 0, ""), build(filepath.Join(t.TempDir(), "a", "longer name", "two"), 400*24*time.Hour, cache)
	if !bytes.Equal(first, second) {
		at := 0
		for at < min(len(first), len(second)) && first[at] == second[at] {
			at++
		}
		t.Errorf("two builds differ: %d and %d bytes, first at %d: %q and %q", len(first), len(second), at, first[at:min(at+60, len(first))], second[at:min(at+60, len(second))])
	}
}
