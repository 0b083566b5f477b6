package workspace

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/trainvet/trainvet/lint/source"
)

// textBudget bounds the bytes of text that a frugal snapshot holds. Most projects fit, so that their files are read once.
const textBudget = 64 << 20

// texts count the file texts that are held.
type texts struct {
	uses  int  // of files so far
	bytes int  // of the texts that are held and may go
	max   int  // 0: all are held
	few   bool // what is read for an index alone is not held
	seed  maphash.Seed
}

// fileEntry is a file that was read, or one of which only that is remembered.
type fileEntry struct {
	once sync.Once
	file *source.File
	err  error

	size   int    // of the text, bytes; 0 until it is read
	print  uint64 // of the bytes on disk
	before bool   // it was read before, and had that print
	kept   bool   // it may not go
	used   int    // the later, the higher
}

var errChanged = errors.New("changed while it was checked")

// Frugal makes the snapshot, and those made from it, let go of the texts that were used longest ago, and of projects that are done: for a check of many files of
// which each is looked at once. What is asked for again is read again; a file that has another text by then counts as unreadable.
func (s *Snapshot) Frugal() *Snapshot {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if s.store.texts.max == 0 {
		s.store.texts.max, s.store.texts.seed = textBudget, maphash.MakeSeed()
		for _, entry := range s.store.files {
			entry.kept = true // read before, without a print
		}
	}
	return s
}

// Few makes a frugal snapshot, and those made from it, not hold a text that is read for an index of all files alone: few of those are asked for
// again, and to read a file into memory that was used before takes a third of the time.
func (s *Snapshot) Few() *Snapshot {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.texts.few = true
	return s
}

// Keep holds on to the text of a file: places in it are to be shown.
func (s *Snapshot) Keep(name string) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if s.store.texts.max == 0 {
		return // all is held; and the stores of other states, with their own locks, share the entries
	}
	if entry := s.store.files[name]; entry != nil && !entry.kept {
		entry.kept = true
		s.store.texts.bytes -= entry.size
	}
}

// hold counts a text that was just read, of what is now the file. It fails where the file was another one before.
func (st *store) hold(entry *fileEntry, raw []byte, file *source.File) error {
	st.mu.Lock()
	max, seed := st.texts.max, st.texts.seed
	entry.file = file
	st.mu.Unlock()
	if max == 0 {
		return nil
	}
	print := maphash.Bytes(seed, raw)
	st.mu.Lock()
	defer st.mu.Unlock()
	if entry.before && print != entry.print {
		entry.file = nil
		return errChanged
	}
	entry.print, entry.before = print, true
	if entry.size = len(raw); !entry.kept {
		st.texts.bytes += entry.size
	}
	if st.texts.bytes > max {
		st.evictTexts(max - max/4) // some under it, so that it need not be done for each file
	}
	return nil
}

// evictTexts drops the texts that were used longest ago until so many bytes are left. Who reads one of them goes on doing so.
func (st *store) evictTexts(keep int) {
	byAge := slices.SortedFunc(maps.Keys(st.files), func(a, b string) int { return cmp.Compare(st.files[a].used, st.files[b].used) })
	for _, name := range byAge {
		if st.texts.bytes <= keep {
			return
		}
		entry := st.files[name]
		if entry.kept || entry.size == 0 {
			continue
		}
		st.forget(name, entry)
	}
}

// ProjectRoots gives what tells for a file the folder that counts as its project.
func (s *Snapshot) ProjectRoots() func(name string) string {
	return s.View(context.Background()).Forgetful().projectRoot
}

// Release lets go of what a frugal snapshot holds for the project with that root: all its files are done. What another project asks about it
// is found anew.
func (s *Snapshot) Release(root string) {
	st := s.store
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.texts.max == 0 {
		return
	}
	in := func(key string) bool {
		folder, _ := rootDepth(key)
		return folder == root || root != "." && inside(root, folder)
	}
	maps.DeleteFunc(st.indices, func(key string, _ func() *nameIndex) bool { return in(key) })
	maps.DeleteFunc(st.distances, func(key distanceKey, _ func() *distances) bool { return in(key.root) })
	for key := range st.naming {
		if strings.HasPrefix(key, "holding ") || in(areaOf(key).folder) {
			delete(st.naming, key)
		}
	}
	if root != "." {
		st.unlist(s.fs, root)
	}
	for name, entry := range st.files {
		if !entry.kept && entry.size > 0 && root != "." && inside(root, name) {
			st.forget(name, entry)
		}
	}
}

// forget drops the text of a file, and what was made of it: read again it counts as another file. Who reads it goes on doing so.
func (st *store) forget(name string, entry *fileEntry) {
	st.texts.bytes -= entry.size
	st.undo(entry.file)
	st.files[name] = &fileEntry{print: entry.print, before: true, used: entry.used}
}

// glance reads a file as the FS holds it for an index of all files. Where few of them will be asked for again it is not held: its text is good
// until the buffer, which is given back, is used again.
func (st *store) glance(files FS, name string, buffer []byte) (*source.File, []byte, error) {
	st.mu.Lock()
	entry, seed := st.files[name], st.texts.seed
	held := !st.texts.few || st.texts.max == 0 || entry != nil && entry.file != nil
	st.mu.Unlock()
	if held {
		file, err := st.file(files, name)
		return file, buffer, err
	}
	raw, err := st.read(files, name, buffer[:0])
	if err != nil {
		return nil, buffer, err
	}
	st.mu.Lock()
	if st.files[name] == nil {
		st.files[name] = &fileEntry{print: maphash.Bytes(seed, raw), before: true}
	}
	st.mu.Unlock()
	file, err := source.New(name, raw)
	return file, raw, err
}

// glanceAll reads files for an index, and has work done for each that can be read: by each reader in order, and not beyond the call.
func (st *store) glanceAll(files FS, names []string, work func(reader, n int, file *source.File)) {
	buffers := make([][]byte, readers(len(names)))
	share(len(names), func(reader, n int) {
		file, buffer, err := st.glance(files, names[n], buffers[reader])
		buffers[reader] = buffer
		if err == nil {
			work(reader, n, file)
		}
	})
}

// Peek reads a file that is not held, and does not hold it: its text is good until the buffer, which is given back, is used again.
func (s *Snapshot) Peek(name string, buffer []byte) (*source.File, []byte, error) {
	if file := s.overlay[name]; file != nil {
		return file, buffer, nil
	}
	var raw []byte
	var err error
	if appender, ok := s.fs.(interface {
		AppendFile(to []byte, name string) ([]byte, error)
	}); ok {
		raw, err = appender.AppendFile(buffer[:0], name)
		buffer = raw
	} else {
		raw, err = s.fs.ReadFile(name)
	}
	if err != nil {
		return nil, buffer, err
	}
	file, err := source.New(name, raw)
	return file, buffer, err
}
