package check

import (
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/trainvet/trainvet/lint/workspace"
)

// scout reads the folders of a walk from the other end, while the walk is at its beginning: they meet in the middle. Most of the time of a walk
// is the system's, which works for two as fast as for one. What a folder means is for the walk alone to find out: settings are read in its order.
type scout struct {
	mu    sync.Mutex
	looks map[string]*look // by absolute name
	stop  atomic.Bool
}

// look is what one folder holds.
type look struct {
	read    func()
	entries []workspace.Entry
	err     error
	own     patterns // of its .gitignore
	ignores bool     // it has one

	walked atomic.Bool
}

// both walks a folder with a scout.
func (w *walker) both(shown, absolute string, above []patterns) {
	var scouting sync.WaitGroup
	if runtime.GOMAXPROCS(0) > 1 {
		scouting.Go(func() {
			defer func() { _ = recover() }() // the walk meets the same fault where it comes to the folder
			w.scout(shown, absolute, above)
		})
	}
	defer scouting.Wait()
	defer w.seeker.stop.Store(true)
	w.seeker.stop.Store(false)
	w.folder(shown, absolute, above)
}

// scout reads a folder and those in it, the last one first, and reports whether there may be more that the walk has not come to.
func (w *walker) scout(shown, absolute string, above []patterns) bool {
	look := w.look(shown, absolute)
	if look.err != nil {
		return true
	}
	ignored := look.ignored(above)
	for _, entry := range slices.Backward(look.entries) {
		if w.seeker.stop.Load() || look.walked.Load() {
			return false
		}
		if entry.Kind != workspace.Folder || strings.HasPrefix(entry.Name, ".") {
			continue
		}
		if full := inFolder(absolute, entry.Name); !isIgnored(ignored, full, true) && !w.scout(inFolder(shown, entry.Name), full, ignored) {
			return false
		}
	}
	return true
}

// look reads a folder, where nobody has yet.
func (w *walker) look(shown, absolute string) *look {
	w.seeker.mu.Lock()
	one := w.seeker.looks[absolute]
	if one == nil {
		one = &look{}
		one.read = sync.OnceFunc(func() { w.read(one, shown, absolute) })
		if w.seeker.looks == nil {
			w.seeker.looks = map[string]*look{}
		}
		w.seeker.looks[absolute] = one
	}
	w.seeker.mu.Unlock()
	one.read()
	return one
}

func (w *walker) read(one *look, shown, absolute string) {
	one.entries, one.err = w.entries(shown, absolute)
	if slices.ContainsFunc(one.entries, func(entry workspace.Entry) bool { return entry.Name == ".gitignore" }) {
		one.own, one.ignores = readIgnore(absolute, path.Join(w.settings.onDisk(shown), ".gitignore"))
	}
}

// ignored are the ignore files that hold in the folder, outermost first.
func (l *look) ignored(above []patterns) []patterns {
	if !l.ignores {
		return above
	}
	return append(above[:len(above):len(above)], l.own)
}

// entries reads a folder. What it holds is asked for again by the check, which finds it remembered.
func (w *walker) entries(shown, absolute string) ([]workspace.Entry, error) {
	if w.settings != nil && w.settings.Snapshot != nil {
		if entries, ok := w.settings.Snapshot.Look(absolute); ok {
			return entries, nil
		}
	}
	entries, err := os.ReadDir(filepath.FromSlash(w.settings.onDisk(shown)))
	return workspace.EntriesOf(entries), err
}
