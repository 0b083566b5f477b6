package workspace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/trainvet/trainvet/lint/source"
)

// Shelf keeps between checks, in a folder of the user, what a check of few files finds out about all the files of their project: where names
// occur, and which files name settings. To look whether the files are as they were takes a tenth of reading them. Texts are not kept, nor is what
// was found in them. Nothing in the folder is trusted to be well-formed, and anything that does not fit is made anew.
type Shelf struct {
	folder string
	maker  string // what made it: another trainvet may see other names

	// Now is the time; nil: that of the system.
	Now func() time.Time

	mu      sync.Mutex
	pending []func() error
}

// NewShelf is the shelf in a folder, for a trainvet that is called so.
func NewShelf(folder, maker string) *Shelf { return &Shelf{folder: folder, maker: maker} }

// Stamp tells whether a file is the one that it was: another text has another time, or another size.
type Stamp struct{ Size, Modified, Changed, Node int64 }

// Stamper is an FS that gives the stamp of what it would read as a regular file, and not by a link. Times are in nanoseconds since 1970.
type Stamper interface {
	Stamp(name string) (Stamp, bool)
}

const (
	maxEdited = 32                  // so many files may have changed; with more the project is read again
	young     = 3 * time.Second     // a file that changed so shortly before it was read may change once more with the same time
	maxIdle   = 30 * 24 * time.Hour // what was made so long ago goes when something is put on the shelf
	onShelf   = ".names"
)

// known is what a shelf keeps of a project.
type known struct {
	files  []string // that were read for it, sorted
	stamps []Stamp  // of each; the zero one for a file that is to be read again
	naming map[string][]string
	index  *nameIndex
}

// Known is the snapshot of few files with what the shelf has of their project: files that changed since are as an editor has them. Where it has
// nothing that holds, the project is surveyed (Survey) and Save will put that there.
func (s *Snapshot) Known(shelf *Shelf, name string) *Snapshot {
	stamper, is := s.fs.(Stamper)
	lister, lists := s.fs.(Lister)
	st := s.store
	if !is || !lists || shelf == nil || st.texts.max == 0 || !st.texts.few {
		return s
	}
	in, root, ok := s.View(context.Background()).Forgetful().surveyed(name)
	if !ok {
		return s
	}
	on := shelf.place(lister.Absolute("."), in.key(), root)
	st.mu.Lock()
	edited, again := st.edited[on]
	st.mu.Unlock()
	if again { // as files are checked once more after a fix
		return s.under(edited)
	}
	var kept *known
	var naming, python, files []string
	var stamps []Stamp
	begun := shelf.now()
	var work crew
	work.Go(func() { kept = shelf.load(on) })
	work.Go(func() {
		naming, python = s.toSurvey(in, root)
		files = surveyFiles(naming, python)
		stamps = stampsOf(stamper, files)
	})
	work.Wait()
	if changed, ok := kept.changed(files, stamps); ok && st.promise(in.key(), root, func() (map[string][]string, *nameIndex) { return kept.naming, kept.index }) {
		for _, name := range changed {
			if file, err := st.file(s.fs, name); err == nil {
				edited = append(edited, file)
			}
		}
		st.mu.Lock()
		st.edited[on] = edited
		st.mu.Unlock()
		return s.under(edited)
	}
	for i := range stamps {
		if since := begun.UnixNano() - max(stamps[i].Modified, stamps[i].Changed); since < int64(young) {
			stamps[i] = Stamp{}
		}
	}
	s.begin(in, root, func() ([]string, []string) { return naming, python }, func(naming map[string][]string, index *nameIndex) {
		shelf.mu.Lock()
		defer shelf.mu.Unlock()
		shelf.pending = append(shelf.pending, func() error { return shelf.save(on, &known{files, stamps, naming, index}) })
	})
	return s
}

// under is the snapshot with these files as an editor has them, but for those that it has otherwise.
func (s *Snapshot) under(edited []*source.File) *Snapshot {
	var more []*source.File
	for _, file := range edited {
		if s.overlay[file.Path] == nil {
			more = append(more, file)
		}
	}
	if len(more) == 0 {
		return s
	}
	return s.With(more...)
}

// stampsOf are the stamps of files, zero ones where a file has none.
func stampsOf(stamper Stamper, files []string) []Stamp {
	stamps := make([]Stamp, len(files))
	share(len(files), func(_, i int) {
		if stamp, ok := stamper.Stamp(files[i]); ok {
			stamps[i] = stamp
		}
	})
	return stamps
}

// changed are the files that are new or not as they were. False where one is gone, too many changed, or there is nothing to compare with.
func (k *known) changed(files []string, stamps []Stamp) (changed []string, ok bool) {
	if k == nil {
		return nil, false
	}
	before := 0
	for i, name := range files {
		switch {
		case before < len(k.files) && k.files[before] == name:
			if stamps[i] != k.stamps[before] || stamps[i] == (Stamp{}) {
				changed = append(changed, name)
			}
			before++
		case before < len(k.files) && k.files[before] < name:
			return nil, false
		default:
			changed = append(changed, name)
		}
		if len(changed) > maxEdited {
			return nil, false
		}
	}
	return changed, before == len(k.files)
}

// place is the file of a project on the shelf.
func (sh *Shelf) place(dir, area, root string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{sh.maker, dir, area, root}, "\x00")))
	return filepath.Join(sh.folder, hex.EncodeToString(sum[:16])+onShelf)
}

func (sh *Shelf) now() time.Time {
	if sh.Now == nil {
		return time.Now()
	}
	return sh.Now()
}

// load is what a file of the shelf holds; nil where there is none, or none that can be read.
func (sh *Shelf) load(on string) *known {
	info, err := os.Stat(on)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxShelved {
		return nil
	}
	data, err := os.ReadFile(on)
	if err != nil {
		return nil
	}
	return unpack(data)
}

// Save puts on the shelf what was found out since.
func (sh *Shelf) Save() error {
	if sh == nil {
		return nil
	}
	sh.mu.Lock()
	pending := sh.pending
	sh.pending = nil
	sh.mu.Unlock()
	var all []error
	for _, one := range pending {
		all = append(all, one())
	}
	return errors.Join(all...)
}

// save writes beside the file and puts that in its place, so that none is read that is half written.
func (sh *Shelf) save(on string, what *known) error {
	data := pack(what)
	if len(data) > maxShelved {
		return nil
	}
	if err := os.MkdirAll(sh.folder, 0o700); err != nil {
		return err
	}
	sh.tidy()
	file, err := os.CreateTemp(sh.folder, "*.part")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = cmp.Or(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), on)
	}
	if err != nil {
		_ = os.Remove(file.Name()) // the first error is the one to tell
	}
	return err
}

// tidy removes what was made long ago, and what a check that was killed left behind. What is in use is made again.
func (sh *Shelf) tidy() {
	entries, err := os.ReadDir(sh.folder)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if ext := filepath.Ext(entry.Name()); ext != onShelf && ext != ".part" {
			continue
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > maxIdle {
			_ = os.Remove(filepath.Join(sh.folder, entry.Name())) // another check may have been faster
		}
	}
}

// Stamp implements Stamper.
func (c *Confined) Stamp(name string) (Stamp, bool) {
	info, err := os.Lstat(filepath.FromSlash(c.absolute(name)))
	if err != nil || !info.Mode().IsRegular() {
		return Stamp{}, false
	}
	return stampOf(info), true
}

// plainStamp is what every system tells of a file.
func plainStamp(info fs.FileInfo) Stamp {
	return Stamp{Size: info.Size(), Modified: info.ModTime().UnixNano()}
}
