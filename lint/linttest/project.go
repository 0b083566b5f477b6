package linttest

import (
	"io/fs"
	"path"
	"sort"
	"strings"
	"testing/fstest"

	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// file is one file of a case; project all of them, in the order of the archive.
type (
	file    struct{ name, text string }
	project []file
)

// targets are the files to check, as a walk would list them.
func (p project) targets() []check.Target {
	var all []check.Target
	for _, f := range p {
		if source.KindOf(f.name, []byte(f.text)) != source.Other {
			all = append(all, check.Target{Path: f.name})
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Path < all[j].Path })
	return all
}

// settings reports whether the project has settings of its own.
func (p project) settings() bool {
	for _, f := range p {
		if check.IsSettingsFile(f.name) {
			return true
		}
	}
	return false
}

func (p project) get(name string) string {
	for _, f := range p {
		if f.name == name {
			return f.text
		}
	}
	return ""
}

// memory is a workspace.FS of the files of a project. The current folder is the root, so that absolute and relative names mean
// the same.
type memory struct{ files fstest.MapFS }

func (p project) fs() workspace.FS {
	files := map[string]string{}
	for _, f := range p {
		files[f.name] = f.text
	}
	return FS(files)
}

// FS is a workspace.FS of files in memory, by name; the current folder is its root.
func FS(files map[string]string) workspace.FS {
	m := memory{fstest.MapFS{}}
	for name, text := range files {
		m.files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func plainName(name string) string {
	if name = strings.TrimPrefix(path.Clean(name), "/"); name == "" {
		return "."
	}
	return name
}

func (m memory) ReadFile(name string) ([]byte, error) {
	raw, err := m.files.ReadFile(plainName(name))
	if err != nil {
		return nil, err.(*fs.PathError).Err
	}
	return raw, nil
}

func (m memory) ReadDir(name string) ([]fs.DirEntry, error) { return m.files.ReadDir(plainName(name)) }

// Absolute implements workspace.Lister, so that cases go the way that checks of a disk go.
func (m memory) Absolute(name string) string { return plainName(name) }

// Entries implements workspace.Lister.
func (m memory) Entries(folder string) ([]fs.DirEntry, bool) {
	entries, _ := m.ReadDir(folder)
	return entries, true
}

func (m memory) Kind(name string) workspace.EntryKind {
	info, err := m.files.Stat(plainName(name))
	switch {
	case err != nil:
		return workspace.Absent
	case info.IsDir():
		return workspace.Folder
	}
	return workspace.RegularFile
}
