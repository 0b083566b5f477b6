package workspace

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
)

// counted is an FS that counts how often each file is read.
type counted struct {
	files map[string]string
	reads map[string]int
}

func (c *counted) ReadFile(name string) ([]byte, error) {
	text, is := c.files[name]
	if !is {
		return nil, fs.ErrNotExist
	}
	c.reads[name]++
	return []byte(text), nil
}
func (c *counted) ReadDir(string) ([]fs.DirEntry, error) { return nil, nil }
func (c *counted) Kind(name string) EntryKind {
	if _, is := c.files[name]; is {
		return RegularFile
	}
	return Absent
}

func manyFiles(count, size int) *counted {
	c := &counted{map[string]string{}, map[string]int{}}
	for i := range count {
		c.files[fmt.Sprintf("p%d/m.json", i)] = fmt.Sprintf("x = %d #", i) + strings.Repeat("x", size)
	}
	return c
}

// TestFrugal reads more than the budget: the oldest texts go, those that are to be kept stay, and what went is read again.
func TestFrugal(t *testing.T) {
	c := manyFiles(8, textBudget/4)
	s := NewSnapshot(c)
	if _, err := s.File("p0/m.json"); err != nil { // before anybody is frugal
		t.Fatal(err)
	}
	s.Frugal()
	for i := 1; i < 8; i++ {
		name := fmt.Sprintf("p%d/m.json", i)
		if _, err := s.File(name); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			s.Keep(name)
			s.Keep(name)
		}
	}
	if s.store.texts.bytes > textBudget {
		t.Errorf("%d bytes are held, at most %d were to be", s.store.texts.bytes, textBudget)
	}
	for name, want := range map[string]int{"p0/m.json": 1, "p1/m.json": 1, "p2/m.json": 2, "p7/m.json": 1} {
		file, err := s.File(name)
		if err != nil || !bytes.HasPrefix(file.Text, []byte("x = "+name[1:2])) {
			t.Errorf("%s is not what it was: %v", name, err)
		}
		if c.reads[name] != want {
			t.Errorf("%s was read %d times, wanted %d", name, c.reads[name], want)
		}
	}
}

// TestRelease lets a project go, and with it the texts of its files alone. One that has changed by the time it is read again is not taken
// for what it was.
func TestRelease(t *testing.T) {
	c := manyFiles(3, 10)
	s := NewSnapshot(c)
	s.View(context.Background()).Text("p0/m.json")
	s.Release("p0") // it holds everything still
	s.Frugal()
	for _, name := range []string{"p1/m.json", "p2/m.json"} {
		if got := s.ProjectRoots()(name); got != name[:2] {
			t.Errorf("the project of %s is %s", name, got)
		}
		if _, err := s.File(name); err != nil {
			t.Fatal(err)
		}
	}
	s.store.indexOf(s, "p1")
	s.store.indexOf(s, "p2")
	made := func(name string) (traits *traits, parsed *parsed) {
		file, _ := s.File(name)
		return s.store.traitsOf(file), s.store.parse(file)
	}
	made("p1/m.json")
	traits2, parsed2 := made("p2/m.json")
	s.Release("p1")
	if len(s.store.traits) != 1 || len(s.store.parsed) != 1 {
		t.Errorf("%d traits and %d trees are held, wanted those of p2 alone", len(s.store.traits), len(s.store.parsed))
	}
	if traits, parsed := made("p2/m.json"); traits != traits2 || parsed != parsed2 {
		t.Error("what was made of p2 was to stay")
	}
	if s.store.indices["p1"] != nil || s.store.indices["p2"] == nil {
		t.Error("the index of p1 was to go, and that of p2 to stay")
	}
	c.files["p1/m.json"] = "import os"
	for name, want := range map[string]int{"p0/m.json": 1, "p1/m.json": 2, "p2/m.json": 1} {
		_, err := s.File(name)
		if (err == errChanged) != (name == "p1/m.json") {
			t.Errorf("%s: %v", name, err)
		}
		if c.reads[name] != want {
			t.Errorf("%s was read %d times, wanted %d", name, c.reads[name], want)
		}
	}
	if s.store.texts.bytes != len(c.files["p2/m.json"]) {
		t.Errorf("%d bytes are counted", s.store.texts.bytes)
	}
}

// TestKeepInManyStates keeps files from two states of an editor at once: their stores share what was read. The race detector sees a
// write to it.
func TestKeepInManyStates(t *testing.T) {
	c := manyFiles(4, 10)
	first := NewSnapshot(c)
	for name := range c.files {
		if _, err := first.File(name); err != nil {
			t.Fatal(err)
		}
	}
	second := first.Forget("p0/m.json")
	var both sync.WaitGroup
	for _, s := range []*Snapshot{first, second} {
		both.Go(func() {
			for name := range c.files {
				s.Keep(name)
				if _, err := s.File(name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
	if c.reads["p1/m.json"] != 1 {
		t.Errorf("p1/m.json is read %d times", c.reads["p1/m.json"])
	}
}
