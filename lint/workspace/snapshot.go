// Package workspace says what the parsed files of a project mean together: it holds the files, their parse results, and
// answers linked questions (what a name means across files, which config belongs to which script).
//
// A Snapshot is an immutable set of files. A View is one reader of it, which records everything it was told, so that what
// was concluded can be kept while none of that has changed.
package workspace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"weak"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// FS reads files and folders. Paths have forward slashes.
type FS interface {
	// ReadFile gives the bytes of a regular file of at most source.MaxSize bytes.
	ReadFile(name string) ([]byte, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	// Kind says whether name is a regular file, a folder, or neither.
	Kind(name string) EntryKind
}

// EntryKind is what a path names.
type EntryKind uint8

// The kinds of entries.
const (
	Absent EntryKind = iota
	RegularFile
	Folder
	Special // FIFO, device, socket: never opened
	Link    // a symbolic link to whatever: in the Entries of a folder alone
)

// Disk is the FS of the operating system. A FIFO, device or socket is never opened.
type Disk struct{}

var (
	errSpecial = errors.New("is a FIFO, device or socket, not a file")
	errFolder  = errors.New("is a folder")
	errFailed  = errors.New("cannot be read: trainvet failed at it")
	errLarge   = &source.Error{Reason: fmt.Sprintf("larger than %d MB, not read", source.MaxSize>>20), Cause: source.TooLarge}
)

// Kind implements FS.
func (Disk) Kind(name string) EntryKind {
	info, err := os.Stat(filepath.FromSlash(name))
	if err != nil {
		return Absent
	}
	return entryKind(info)
}

// entryKind says what an entry is that is there.
func entryKind(info fs.FileInfo) EntryKind {
	switch {
	case info.IsDir():
		return Folder
	case info.Mode().IsRegular():
		return RegularFile
	}
	return Special
}

// ReadFile implements FS.
func (d Disk) ReadFile(name string) ([]byte, error) { return d.AppendFile(nil, name) }

// AppendFile puts the bytes of a regular file behind others.
func (Disk) AppendFile(to []byte, name string) ([]byte, error) {
	info, err := os.Stat(filepath.FromSlash(name))
	if err == nil {
		err = readable(info)
	}
	if err != nil {
		return to, plain(err)
	}
	return appendRegular(to, filepath.FromSlash(name))
}

// Head is the beginning of a regular file, as far as it tells the kind of a file.
func (Disk) Head(name string) []byte {
	info, err := os.Stat(filepath.FromSlash(name))
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return headOf(filepath.FromSlash(name))
}

// headOf reads the beginning of what was a regular file a moment ago.
func headOf(on string) []byte {
	file, err := os.OpenFile(on, os.O_RDONLY|NoWait, 0)
	if err != nil {
		return nil
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	head := make([]byte, source.KindWindow)
	n, err := io.ReadFull(file, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil
	}
	return head[:n]
}

// ReadDir implements FS.
func (Disk) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(filepath.FromSlash(name))
	return entries, plain(err)
}

// plain drops the operation and the path that os puts into its errors: callers name the file themselves.
func plain(err error) error {
	if inner, ok := err.(*fs.PathError); ok {
		return inner.Err
	}
	return err
}

// Snapshot is an immutable set of files: those of an FS, with some replaced by an editor's text.
type Snapshot struct {
	fs      FS
	overlay map[string]*source.File
	store   *store
	facts   func(name string) *plan.Plan        // what no file holds, or nil
	known   func(name string) map[string]string // what in-house names mean, or nil

	thorough bool // no question is put off by what the index of names says

	mu        sync.Mutex
	distances map[distanceKey]*distances // where an editor has files open
	functions *loop.Known
	told      sync.Map // fingerprints of answers by readKey: they are asked for often, and never change
}

// NewSnapshot is a snapshot of what fs holds. Each file is read at most once for the snapshot and those made from it
// by With.
func NewSnapshot(files FS) *Snapshot {
	return &Snapshot{fs: files, store: newStore()}
}

// With is the snapshot with these files in place of what the FS holds; s itself does not change.
func (s *Snapshot) With(files ...*source.File) *Snapshot {
	overlay := make(map[string]*source.File, len(s.overlay)+len(files))
	for name, file := range s.overlay {
		overlay[name] = file
	}
	for _, file := range files {
		if old := overlay[file.Path]; old != nil && old != file {
			s.store.drop(old) // nobody will ask about it again, but who holds an older snapshot
		}
		overlay[file.Path] = file
	}
	return &Snapshot{fs: s.fs, overlay: overlay, store: s.store, facts: s.facts, known: s.known, thorough: s.thorough}
}

// Thorough is the snapshot in which no question is put off because the index of names says that it leads nowhere. The answers are the same;
// tests hold that.
func (s *Snapshot) Thorough() *Snapshot {
	next := s.With()
	next.thorough = true
	return next
}

// WithKnown is the snapshot in which of tells, for a file, what in-house names mean: a dotted name as it is imported, and
// the library's dotted name that it stands for.
func (s *Snapshot) WithKnown(of func(name string) map[string]string) *Snapshot {
	next := s.With()
	next.known = of
	return next
}

// Forget is the snapshot in which the named files are as the FS holds them now: an editor closed or saved them, or they
// changed on disk.
func (s *Snapshot) Forget(names ...string) *Snapshot {
	next := s.With()
	next.store = s.store.without(names)
	for _, name := range names {
		delete(next.overlay, name)
	}
	return next
}

// File is the decoded file of that name. The error says why it cannot be read, without its name.
func (s *Snapshot) File(name string) (*source.File, error) {
	if file := s.overlay[name]; file != nil {
		return file, nil
	}
	return s.store.file(s.fs, name)
}

// Kind says what a path names, an overlaid file included.
func (s *Snapshot) Kind(name string) EntryKind {
	if s.overlay[name] != nil {
		return RegularFile
	}
	return s.store.kind(s.fs, name)
}

// List gives the names in a folder, sorted; folders end in a slash. It is empty for what is no folder.
func (s *Snapshot) List(folder string) []string {
	names := s.store.list(s.fs, folder)
	for name := range s.overlay {
		if dir, base := path.Split(name); path.Clean("./"+dir) == path.Clean("./"+folder) {
			if i := sort.SearchStrings(names, base); i == len(names) || names[i] != base {
				names = append(append(append([]string(nil), names[:i]...), base), names[i:]...)
			}
		}
	}
	return names
}

// View opens a recording reader.
func (s *Snapshot) View(ctx context.Context) *View {
	return &View{Snapshot: s, ctx: ctx, reads: map[readKey]bool{}, eval: newEvaluator(), modules: map[string]*pyscan.Module{}}
}

// store caches what was read and parsed. Parse results are pure functions of a file's bytes and are keyed by the decoded
// file, so that overlays share it safely.
type store struct {
	mu      sync.Mutex
	files   map[string]*fileEntry
	texts   texts
	kinds   map[string]EntryKind
	lists   map[string][]string
	parsed  map[*source.File]*parsed
	dropped map[*source.File]weak.Pointer[pyscan.Module] // trees made so far: one that was let go may be there still
	traits  map[*source.File]*traits
	uses    int // of trees so far
	bytes   int // text of the files whose trees are held
	maximum int

	distances map[distanceKey]func() *distances
	indices   map[string]func() *nameIndex
	naming    map[string]func() map[string][]string
	words     *wordSets
	edited    map[string][]*source.File // that changed since a shelf was filled, by its file

	looks    sync.RWMutex
	listings map[string]*listing

	firstLines sync.Map // kinds of files that their first line tells, by name
}

// TreeBudget bounds the bytes of source text whose trees are held at a time; a tree takes some eight times its text. More makes the
// collector work more than it saves in parsing: between its rounds, trees that were let go are there as well.
const TreeBudget = 4 << 20

func newStore() *store {
	return &store{files: map[string]*fileEntry{}, kinds: map[string]EntryKind{}, lists: map[string][]string{},
		parsed: map[*source.File]*parsed{}, dropped: map[*source.File]weak.Pointer[pyscan.Module]{}, traits: map[*source.File]*traits{}, indices: map[string]func() *nameIndex{}, distances: map[distanceKey]func() *distances{},
		naming: map[string]func() map[string][]string{}, words: &wordSets{}, listings: map[string]*listing{}, edited: map[string][]*source.File{}, maximum: TreeBudget}
}

func (st *store) without(names []string) *store {
	next := newStore()
	gone := map[string]bool{}
	for _, name := range names {
		gone[name] = true
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	for name, entry := range st.files {
		if !gone[name] {
			next.files[name] = entry
		}
	}
	for file, entry := range st.parsed {
		if !gone[file.Path] {
			copied := *entry // each store counts its own uses
			next.parsed[file] = &copied
			next.bytes += len(file.Text)
		}
	}
	for file, known := range st.traits {
		if !gone[file.Path] {
			next.traits[file] = known
		}
	}
	next.uses, next.words = st.uses, st.words
	return next
}

// drop forgets what was made of a file.
func (st *store) drop(file *source.File) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.undo(file)
}

// undo forgets what was made of a file.
func (st *store) undo(file *source.File) {
	delete(st.traits, file)
	delete(st.dropped, file)
	if st.parsed[file] != nil {
		delete(st.parsed, file)
		st.bytes -= len(file.Text)
	}
}

func (st *store) file(files FS, name string) (*source.File, error) {
	st.mu.Lock()
	entry := st.files[name]
	if entry == nil {
		entry = &fileEntry{}
		st.files[name] = entry
	}
	if st.texts.max > 0 { // otherwise it is of no use, and other stores may share the entry
		st.texts.uses++
		entry.used = st.texts.uses
	}
	st.mu.Unlock()
	entry.once.Do(func() {
		entry.err = errFailed // what stays where a panic ends this: nobody gets neither a file nor an error
		raw, err := st.read(files, name, nil)
		if err != nil {
			entry.err = err
			return
		}
		file, err := source.New(name, raw)
		var bad *source.Error
		if errors.As(err, &bad) {
			err = &source.Error{Reason: bad.Reason, Cause: bad.Cause}
		}
		if entry.err = st.hold(entry, raw, file); entry.err == nil {
			entry.err = err
		}
	})
	return entry.file, entry.err
}

// read gives the bytes of a file, behind others where that takes less, and asks the FS no more than it must where a listing says that it is one.
func (st *store) read(files FS, name string, to []byte) ([]byte, error) {
	if quick, is := files.(interface {
		AppendListed(to []byte, name string) ([]byte, error)
	}); is {
		if kind, sure := st.listed(files, name); sure && kind == RegularFile {
			return quick.AppendListed(to, name)
		}
	}
	return files.ReadFile(name)
}

func (st *store) kind(files FS, name string) EntryKind {
	if kind, sure := st.listed(files, name); sure {
		return kind
	}
	st.mu.Lock()
	kind, known := st.kinds[name]
	st.mu.Unlock()
	if known {
		return kind
	}
	kind = files.Kind(name)
	st.mu.Lock()
	st.kinds[name] = kind
	st.mu.Unlock()
	return kind
}

func (st *store) list(files FS, folder string) []string {
	st.mu.Lock()
	names, known := st.lists[folder]
	st.mu.Unlock()
	if known {
		return names
	}
	names = []string{}
	for _, entry := range st.entries(files, folder) {
		if entry.Kind == Folder {
			entry.Name += "/"
		}
		names = append(names, entry.Name)
	}
	sort.Strings(names)
	st.mu.Lock()
	st.lists[folder] = names
	st.mu.Unlock()
	return names
}

// parsed holds the parse results of one file; each is made on first use.
type parsed struct {
	tree   func() *syntax.File // of Python
	module func() *pyscan.Module
	trees  func() []*configs.Tree
	script func() *configs.Script
	used   int // the later, the higher
}

// traits are the little that is remembered of a file also when its trees are dropped.
type traits struct {
	prints func() prints
	index  func() *nameIndex // of its names
	names  func() []string   // of settings files
	takes  func() []imported // from other files
	pins   func() *configs.Requirements

	installs func() []cellInstall // of a notebook
}

func (st *store) traitsOf(file *source.File) *traits {
	st.mu.Lock()
	defer st.mu.Unlock()
	known := st.traits[file]
	if known == nil {
		known = &traits{}
		known.prints = sync.OnceValue(func() prints { return fingerprint(file) })
		known.index = sync.OnceValue(func() *nameIndex { return indexFile(file.Text) })
		known.takes = sync.OnceValue(func() []imported { return importsIn(file.Text) })
		known.pins = sync.OnceValue(func() *configs.Requirements { return st.pinsOf(file) })
		known.installs = sync.OnceValue(func() []cellInstall { return st.cellInstalls(file) })
		known.names = sync.OnceValue(func() []string { return settingsNames(file.Text) })
		st.traits[file] = known
	}
	return known
}

// prints are the fingerprints of a file: of what it says (comments and blank lines left out), and of all its bytes, which
// also change when something moves.
type prints struct{ facts, places [16]byte }

// evict drops the trees that were used longest ago until those of so many bytes of text are left, and gives how many bytes went.
func (st *store) evict(keep int) (gone int) {
	if len(st.parsed) == 0 {
		return 0
	}
	before := st.bytes
	byAge := slices.SortedFunc(maps.Keys(st.parsed), func(a, b *source.File) int { return cmp.Compare(st.parsed[a].used, st.parsed[b].used) })
	for _, oldest := range byAge[:len(byAge)-1] {
		if st.bytes <= keep {
			break
		}
		st.bytes -= len(oldest.Text)
		delete(st.parsed, oldest)
	}
	return before - st.bytes
}

// Trim drops the trees that were used longest ago until those of so many bytes of text are left: after a check of everything, most
// of them are of files that nobody will ask about soon. It gives the bytes of text whose trees went.
func (s *Snapshot) Trim(keep int) int {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	return s.store.evict(keep)
}

func (st *store) parse(file *source.File) *parsed {
	st.mu.Lock()
	defer st.mu.Unlock()
	entry := st.parsed[file]
	if entry == nil {
		entry = &parsed{}
		entry.tree = sync.OnceValue(func() *syntax.File {
			if m := st.again(file); m != nil {
				return m.Tree
			}
			return syntax.Parse(file)
		})
		entry.module = sync.OnceValue(func() *pyscan.Module { return st.module(file, entry.tree) })
		entry.trees = sync.OnceValue(func() []*configs.Tree { return parseTrees(file) })
		entry.script = sync.OnceValue(func() *configs.Script {
			switch file.Kind {
			case source.Dockerfile:
				return configs.ParseDockerfile(file)
			case source.YAML:
				return configs.ParseJobs(file, entry.trees())
			}
			return configs.ParseShell(file)
		})
		st.parsed[file] = entry
		st.bytes += len(file.Text)
	}
	st.uses++
	entry.used = st.uses
	if st.bytes > st.maximum {
		st.evict(st.maximum - st.maximum/8) // some under it, so that it need not be done for each file
	}
	return entry
}

// again is the module of a file of which the tree was let go, where it has not been collected yet: views may hold it still.
func (st *store) again(file *source.File) *pyscan.Module {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.dropped[file].Value()
}

// module makes the module of a Python file, of its tree.
func (st *store) module(file *source.File, tree func() *syntax.File) *pyscan.Module {
	if m := st.again(file); m != nil {
		return m
	}
	m := pyscan.New(tree())
	st.mu.Lock()
	st.dropped[file] = weak.Make(m)
	st.mu.Unlock()
	return m
}

// held is what was made of a file, where that was not dropped.
func (st *store) held(file *source.File) *parsed {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.parsed[file]
}

func parseTrees(file *source.File) []*configs.Tree {
	switch file.Kind {
	case source.YAML:
		return configs.ParseYAML(file)
	case source.TOML:
		return []*configs.Tree{configs.ParseTOML(file)}
	case source.JSON:
		return []*configs.Tree{configs.ParseJSON(file)}
	}
	return nil
}

// fingerprint leaves out of the facts what cannot change them: lines that are blank or hold only a comment, and blanks at
// the end of a line. It does so by bytes alone, before any parsing; inside multi-line strings that makes facts differ less
// than they might, which only a changed string could show.
func fingerprint(file *source.File) prints {
	var p prints
	whole := sha256.Sum256(file.Text)
	copy(p.places[:], whole[:])
	p.facts = p.places
	if file.Kind != source.Python || file.Has(`"""`) && file.Has("'''") {
		return p
	}
	hash := sha256.New()
	inString := false
	for line := range strings.Lines(string(file.Text)) {
		trimmed := strings.TrimSpace(line)
		if !inString && (trimmed == "" || trimmed[0] == '#') {
			continue
		}
		if (strings.Count(line, `"""`)+strings.Count(line, "'''"))%2 == 1 {
			inString = !inString
		}
		if !inString {
			line = strings.TrimRight(line, " \t\r\n") + "\n"
		}
		hash.Write([]byte(line))
	}
	copy(p.facts[:], hash.Sum(nil))
	return p
}
