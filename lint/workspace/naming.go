package workspace

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/trainvet/trainvet/lint/source"
)

// MaxSettings bounds the files that hold settings, bytes: data, vocabularies and results are larger. Names of other settings are not looked for in
// those, and on a walk they are not checked; one that is named is.
const MaxSettings = 256 << 10

// area is a folder in which files that name a settings file are looked for, and how many levels below it.
type area struct {
	folder string
	depth  int
}

// The levels below a folder that are searched: all of a checkout, and where there is none the folders beside those of a file.
const (
	wholeCheckout = 24
	besides       = 1
)

// areas are the folders in which scripts and configs may stand that name a file: the checkout, or without one the folder
// itself, with all below it, and the folders above it as far as the path that was given names them.
func (v *View) areas(name string) []area {
	top := v.settingsTop(name)
	if v.isRoot(top) {
		return []area{{top, wholeCheckout}}
	}
	areas := []area{{v.projectRoot(name), wholeCheckout}}
	for folder := source.Dir(name); ; folder = source.Dir(folder) {
		if folder != areas[0].folder {
			areas = append(areas, area{folder, besides})
		}
		if folder == top || folder == "." || folder == "/" || strings.HasSuffix(folder, "..") {
			return areas
		}
	}
}

// settingsTop is the highest folder that belongs to the project of a file: the top of the checkout, the current folder, or
// for a file outside of that the folder above its own.
func (v *View) settingsTop(name string) string {
	folder := source.Dir(name)
	top, known := v.kept.tops[folder]
	if !known {
		top = v.settingsTopOf(name, folder)
		v.kept.makeRoom(0)
		v.kept.tops[folder] = top
	}
	return top
}

func (v *View) settingsTopOf(name, folder string) string {
	for at := folder; ; at = source.Dir(at) {
		if v.isRoot(at) {
			return at
		}
		if at == "." || at == "/" || strings.HasSuffix(at, "..") {
			break
		}
	}
	if path.IsAbs(name) || strings.HasPrefix(name, "..") {
		if above := source.Dir(folder); above != "/" && !strings.HasSuffix(folder, "..") {
			return above
		}
		return folder
	}
	return "."
}

// NamedIn lists the settings files, launch scripts and programs of the project that hold the base name of a file.
func (v *View) NamedIn(name string) []string { return v.naming(name) }

// naming is NamedIn.
func (v *View) naming(name string) []string {
	base := path.Base(name)
	var files []string
	for _, area := range v.areas(name) {
		v.record(ReadNaming, area.key()+"\x00"+base)
		for _, file := range v.Snapshot.naming(area.key(), base) {
			if !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	return files
}

func (a area) key() string { return fmt.Sprintf("%d %s", a.depth, a.folder) }

func areaOf(key string) area {
	depth, folder, _ := strings.Cut(key, " ")
	n, _ := strconv.Atoi(depth)
	return area{folder, n}
}

// namers says for an area, by its key, which files hold the base names of which settings files.
func (st *store) namers(s *Snapshot, key string) map[string][]string {
	st.mu.Lock()
	index := st.naming[key]
	if index == nil {
		index = sync.OnceValue(func() map[string][]string { return indexNames(s, areaOf(key)) })
		st.naming[key] = index
	}
	st.mu.Unlock()
	return index()
}

// naming looks a base name up in the index of an area. The index is of the files as the FS holds them; what an editor has open is
// read anew.
func (s *Snapshot) naming(key, base string) []string {
	indexed := s.store.namers(s, key)[base]
	if len(s.overlay) == 0 {
		return indexed
	}
	in := areaOf(key)
	files := []string{}
	for _, file := range indexed {
		if s.overlay[file] == nil {
			files = append(files, file)
		}
	}
	for name, file := range s.overlay {
		if mayName(name, file.Kind) && within(in.folder, name, in.depth) && slices.Contains(s.store.traitsOf(file).names(), base) {
			files = append(files, name)
		}
	}
	sort.Strings(files)
	return files
}

func indexNames(s *Snapshot, in area) map[string][]string {
	files := s.mayNames(in)
	bases := make([][]string, len(files))
	s.store.glanceAll(s.fs, files, func(_, i int, file *source.File) {
		bases[i] = basesIn(file)
	})
	return namesOf(files, bases)
}

// basesIn are the settingsNames of a file; of a larger one than MaxSettings none, which is checked itself sooner or later.
func basesIn(file *source.File) []string {
	if len(file.Raw) > MaxSettings {
		return nil
	}
	return settingsNames(file.Text)
}

// namesOf says which files hold the base names of settings files, by those that each holds.
func namesOf(files []string, bases [][]string) map[string][]string {
	index := map[string][]string{}
	for i, file := range files {
		for _, base := range bases[i] {
			index[base] = append(index[base], file)
		}
	}
	for _, files := range index {
		sort.Strings(files)
	}
	return index
}

// mayNames are the files of an area that may name settings, as the FS holds them.
func (s *Snapshot) mayNames(in area) []string {
	var files []string
	var walk func(folder string, depth int)
	walk = func(folder string, depth int) {
		if depth > below(in.folder, in.depth) {
			return
		}
		for _, entry := range s.store.entries(s.fs, folder) {
			switch {
			case strings.HasPrefix(entry.Name, ".") || len(files) > maxProject || entry.Name == "node_modules":
			case entry.Kind == Folder:
				walk(source.Join(folder, entry.Name), depth+1)
			case entry.Kind == RegularFile && mayName(entry.Name, s.kindIn(folder, entry)):
				full := source.Join(folder, entry.Name)
				if !strings.HasSuffix(full, ".py") && s.size(full) > MaxSettings { // those are read for the index of names anyway
					continue
				}
				files = append(files, full)
			}
		}
	}
	walk(in.folder, 0)
	return files
}

// mayName reports whether a file is of a kind that names settings.
func mayName(name string, kind source.Kind) bool {
	switch kind {
	case source.JSON, source.YAML, source.TOML, source.Shell, source.Dockerfile, source.Notebook:
		return true
	case source.Python:
		base := path.Base(name)
		return !strings.HasPrefix(base, "test_") && !strings.HasSuffix(base, "_test.py")
	}
	return false
}

// settingsNames are the base names of settings files and Python files that occur in a text, each once.
func settingsNames(text []byte) []string {
	var found []string
	s := text
	for i := 0; i < len(s); {
		dot := bytes.IndexByte(s[i:], '.')
		if dot < 0 {
			break
		}
		dot += i
		i = dot + 1
		if i < len(s) && s[i] != 'j' && s[i] != 'y' && s[i] != 't' && s[i] != 'p' { // most dots are others
			continue
		}
		end := dot + 1
		for end < len(s) && isNameByte(s[end]) && s[end] != '.' {
			end++
		}
		switch string(s[dot+1 : end]) {
		case "json", "yaml", "yml", "toml", "py":
		default:
			continue
		}
		start := dot
		for start > 0 && isNameByte(s[start-1]) {
			start--
		}
		if base := string(s[start:end]); start < dot && !slices.Contains(found, base) {
			found = append(found, base)
		}
		i = end
	}
	return found
}

func isNameByte(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}
