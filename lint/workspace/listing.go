package workspace

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Lister is an FS that tells with one look into a folder what stands in it. Most names that are asked for are not there: which file a
// module is, is a question about a dozen of them.
type Lister interface {
	// Absolute is the one name of what may be named in several ways.
	Absolute(name string) string
	// Entries are those of a folder, none where there is no such folder. False: each name has to be asked for by itself.
	Entries(folder string) ([]fs.DirEntry, bool)
}

// Entry is what a folder holds under a name.
type Entry struct {
	Name string
	Kind EntryKind
}

// listing is what a folder held when it was looked into.
type listing struct {
	entries []Entry  // by name
	folded  []string // sorted: the names, in lower case, that another spelling may mean on a disk that does not tell cases apart
}

// EntriesOf gives entries of a folder the order of their names.
func EntriesOf(entries []fs.DirEntry) []Entry {
	list := make([]Entry, len(entries))
	for i, entry := range entries {
		one := Entry{entry.Name(), Special}
		switch mode := entry.Type(); {
		case entry.IsDir():
			one.Kind = Folder
		case mode.IsRegular():
			one.Kind = RegularFile
		case mode&fs.ModeSymlink != 0:
			one.Kind = Link
		}
		list[i] = one
	}
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func newListing(entries []Entry) *listing {
	l := &listing{entries: entries}
	for _, entry := range entries {
		if folded := strings.ToLower(entry.Name); folded != entry.Name {
			l.folded = append(l.folded, folded)
		}
	}
	slices.Sort(l.folded)
	return l
}

func (l *listing) find(name string) (int, bool) {
	return slices.BinarySearchFunc(l.entries, name, func(entry Entry, name string) int { return strings.Compare(entry.Name, name) })
}

// kind says what a name of the folder is. It is not sure of a link, and of a name that the disk may know though it is listed otherwise.
func (l *listing) kind(name string) (kind EntryKind, sure bool) {
	if i, found := l.find(name); found {
		return l.entries[i].Kind, l.entries[i].Kind != Link
	}
	if len(l.entries) == 0 {
		return Absent, true
	}
	folded, plain := fold(name)
	if !plain {
		return Absent, false
	}
	_, listed := l.find(folded)
	_, other := slices.BinarySearch(l.folded, folded)
	return Absent, !listed && !other
}

// begins reports whether the name of an entry may begin so.
func (l *listing) begins(name string) bool {
	folded, plain := fold(name)
	if !plain {
		return len(l.entries) > 0
	}
	for _, one := range [2]string{name, folded} {
		if i, _ := l.find(one); i < len(l.entries) && strings.HasPrefix(l.entries[i].Name, one) {
			return true
		}
		if one == folded {
			break
		}
	}
	i, _ := slices.BinarySearch(l.folded, folded)
	return i < len(l.folded) && strings.HasPrefix(l.folded[i], folded)
}

// fold gives a name in lower case. Plain is false where a disk may take more than another case for the same name.
func fold(name string) (folded string, plain bool) {
	for i := range len(name) {
		if c := name[i]; c >= 0x80 || c == '~' || c == ':' { // accents in two spellings; short names and streams of Windows
			return name, false
		}
	}
	plain = name != "" && !strings.HasSuffix(name, ".") && !strings.HasSuffix(name, " ") // which Windows leaves out
	return strings.ToLower(name), plain
}

// splitName cuts a name into its folder and what it is called there; false for what is no name in a folder.
func splitName(name string) (folder, base string, ok bool) {
	at := strings.LastIndexByte(name, '/')
	switch base = name[at+1:]; {
	case base == "", base == ".", base == "..", at > 0 && name[at-1] == ':': // at the root of a disk of Windows
		return "", "", false
	case at < 0:
		return ".", base, true
	case at == 0:
		return "/", base, true
	}
	return name[:at], base, true
}

// listing is what a folder holds; nil where each name has to be asked for by itself.
func (st *store) listing(files FS, folder string) *listing {
	lister, is := files.(Lister)
	if !is {
		return nil
	}
	st.looks.RLock()
	known, is := st.listings[folder]
	st.looks.RUnlock()
	if is {
		return known
	}
	if at := lister.Absolute(folder); at != folder {
		known = st.listing(files, at)
	} else {
		known = st.look(lister, folder)
	}
	st.looks.Lock()
	defer st.looks.Unlock()
	if first, is := st.listings[folder]; is { // somebody else was faster
		return first
	}
	st.listings[folder] = known
	return known
}

// listed says what a listing tells of a name.
func (st *store) listed(files FS, name string) (kind EntryKind, sure bool) {
	if folder, base, ok := splitName(name); ok {
		if l := st.listing(files, folder); l != nil {
			return l.kind(base)
		}
	}
	return Absent, false
}

// look reads a folder, where the one around it is not known to hold none of the name.
func (st *store) look(lister Lister, folder string) *listing {
	if above, base, ok := splitName(folder); ok {
		st.looks.RLock()
		around := st.listings[above]
		st.looks.RUnlock()
		if around != nil {
			if kind, sure := around.kind(base); sure && kind != Folder {
				return &listing{}
			}
		}
	}
	if entries, ok := lister.Entries(folder); ok {
		return newListing(EntriesOf(entries))
	}
	return nil
}

// unlist lets go of the listings of a folder and of what is below it.
func (st *store) unlist(files FS, root string) {
	lister, is := files.(Lister)
	if !is {
		return
	}
	at := lister.Absolute(root)
	st.looks.Lock()
	defer st.looks.Unlock()
	for folder := range st.listings {
		if folder == root || folder == at || inside(root, folder) || inside(at, folder) {
			delete(st.listings, folder)
		}
	}
}

// entries are those of a folder, by name; none where it cannot be read.
func (st *store) entries(files FS, folder string) []Entry {
	if l := st.listing(files, folder); l != nil {
		return l.entries
	}
	entries, _ := files.ReadDir(folder)
	return EntriesOf(entries)
}

// size is that of a file that is not read yet, bytes; 0 where only reading it tells.
func (s *Snapshot) size(name string) int64 {
	if files, is := s.fs.(interface{ Size(name string) int64 }); is {
		return files.Size(name)
	}
	return 0
}

// Look reads a folder anew, and remembers what it holds. The entries are in the order of their names. False: it cannot be read so.
func (s *Snapshot) Look(folder string) ([]Entry, bool) {
	lister, is := s.fs.(Lister)
	if !is {
		return nil, false
	}
	entries, ok := lister.Entries(folder)
	if !ok {
		return nil, false
	}
	l := newListing(EntriesOf(entries))
	s.store.looks.Lock()
	defer s.store.looks.Unlock()
	s.store.listings[folder], s.store.listings[lister.Absolute(folder)] = l, l
	return l.entries, true
}

// unrecorded is the listing of a folder, where nobody wants to know later what was asked, and no editor's text lies over the disk; nil
// elsewhere.
func (v *View) unrecorded(folder string) *listing {
	if v.reads != nil || len(v.overlay) > 0 {
		return nil
	}
	return v.store.listing(v.fs, folder)
}

// in says what a name of a folder is.
func (v *View) in(folder, name string) EntryKind {
	if l := v.unrecorded(folder); l != nil {
		if kind, sure := l.kind(name); sure {
			return kind
		}
	}
	return v.Is(path.Join(folder, name))
}
