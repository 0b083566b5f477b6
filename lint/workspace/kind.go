package workspace

import (
	"path"

	"github.com/trainvet/trainvet/lint/source"
)

// kindOf is the kind of a file: by its name, or by its first line where the name has no extension.
func (v *View) kindOf(name string) source.Kind {
	kind := source.KindOf(name, nil)
	if kind != source.Other || v.overlay[name] == nil && path.Ext(name) != "" {
		return kind
	}
	v.record(ReadFacts, name)
	if file, err := v.Snapshot.File(name); err == nil {
		return file.Kind
	}
	return source.Other
}

// IsPython reports whether a file is taken as Python as the FS holds it.
func (s *Snapshot) IsPython(name string) bool {
	return s.kindIn(source.Dir(name), Entry{path.Base(name), RegularFile}).IsPython()
}

// kindIn is kindOf for an entry of a folder as the FS holds it.
func (s *Snapshot) kindIn(folder string, entry Entry) source.Kind {
	kind := source.KindOf(entry.Name, nil)
	if kind != source.Other || path.Ext(entry.Name) != "" || entry.Kind != RegularFile && entry.Kind != Link {
		return kind
	}
	name := source.Join(folder, entry.Name)
	if known, is := s.store.firstLines.Load(name); is {
		return known.(source.Kind)
	}
	kind = source.KindOf(entry.Name, s.head(name))
	s.store.firstLines.Store(name, kind)
	return kind
}

// head is the beginning of a file as the FS holds it, as far as it tells the kind of a file; nil where it cannot be
// read.
func (s *Snapshot) head(name string) []byte {
	if files, is := s.fs.(interface{ Head(name string) []byte }); is {
		return files.Head(name)
	}
	file, err := s.store.file(s.fs, name)
	if err != nil {
		return nil
	}
	return file.Raw[:min(len(file.Raw), source.KindWindow)]
}
