package compare

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/trainvet/trainvet/lint/changes"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// before is the FS of a commit. What lies outside of the work tree is read from the disk, and so is what has not changed.
type before struct {
	disk    *workspace.Confined
	repo    *changes.Repo
	dir     string // the current folder, for names that are relative
	files   map[string]changes.Entry
	folders map[string][]fs.DirEntry
	changed map[string]bool // names that may differ from the disk
	blobs   *changes.Blobs
}

func newBefore(ctx context.Context, disk *workspace.Confined, repo *changes.Repo, dir, commit string, changed []changes.Change) (*before, error) {
	b := &before{disk: disk, repo: repo, dir: dir, folders: map[string][]fs.DirEntry{"": nil}, changed: map[string]bool{}}
	var err error
	if b.files, err = repo.Tree(ctx, commit); err != nil {
		return nil, err
	}
	for _, change := range changed {
		b.changed[change.Old], b.changed[change.New] = true, true
	}
	for name := range b.files {
		b.list(name, entry{path.Base(name), false})
	}
	for _, entries := range b.folders {
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	}
	b.blobs, err = repo.Blobs(ctx)
	return b, err
}

// list enters a name into its folder, and that into its own.
func (b *before) list(name string, e entry) {
	folder := folderOf(name)
	_, known := b.folders[folder]
	b.folders[folder] = append(b.folders[folder], e)
	if !known && folder != "" {
		b.list(folder, entry{path.Base(folder), true})
	}
}

func folderOf(name string) string {
	if folder := path.Dir(name); folder != "." {
		return folder
	}
	return ""
}

// name is the name inside of the work tree; false for what lies outside, and for the folder of git itself.
func (b *before) name(name string) (string, bool) {
	if !source.IsAbsolute(name) {
		name = path.Join(b.dir, name)
	}
	inside, ok := b.repo.Name(path.Clean(name))
	if !ok && path.Clean(name) == b.repo.Root() {
		return "", true
	}
	return inside, ok && inside != ".git" && !strings.HasPrefix(inside, ".git/")
}

// file follows symbolic links inside of the tree.
func (b *before) file(name string) (changes.Entry, string, bool) {
	const links = 8
	for range links {
		found, ok := b.files[name]
		if !ok || !found.Link {
			return found, name, ok
		}
		target, err := b.blobs.Read(found.Blob, 4096)
		if err != nil || path.IsAbs(string(target)) {
			return found, name, false
		}
		name = path.Join(folderOf(name), string(target))
	}
	return changes.Entry{}, name, false
}

// Outside is the error of a name that leads out of the project. Links of the commit itself never do.
func (b *before) Outside(name string) error {
	if _, ok := b.name(name); ok {
		return nil
	}
	return b.disk.Outside(name)
}

// Kind implements workspace.FS.
func (b *before) Kind(name string) workspace.EntryKind {
	inside, ok := b.name(name)
	if !ok {
		return b.disk.Kind(name)
	}
	if _, is := b.folders[inside]; is {
		return workspace.Folder
	}
	_, at, is := b.file(inside)
	if _, folder := b.folders[at]; folder {
		return workspace.Folder
	}
	if is {
		return workspace.RegularFile
	}
	return workspace.Absent
}

// ReadFile implements workspace.FS.
func (b *before) ReadFile(name string) ([]byte, error) {
	inside, ok := b.name(name)
	if !ok {
		return b.disk.ReadFile(name)
	}
	found, at, is := b.file(inside)
	if !is {
		return nil, fs.ErrNotExist
	}
	if !b.changed[at] && at == inside {
		return b.disk.ReadFile(name)
	}
	return b.blobs.Read(found.Blob, source.MaxSize)
}

// ReadDir implements workspace.FS.
func (b *before) ReadDir(name string) ([]fs.DirEntry, error) {
	inside, ok := b.name(name)
	if !ok {
		return b.disk.ReadDir(name)
	}
	entries, is := b.folders[inside]
	if !is {
		return nil, fs.ErrNotExist
	}
	return entries, nil
}

// entry is a file or folder of the tree.
type entry struct {
	name   string
	folder bool
}

func (e entry) Name() string               { return e.name }
func (e entry) IsDir() bool                { return e.folder }
func (e entry) Type() fs.FileMode          { return e.Mode().Type() }
func (e entry) Info() (fs.FileInfo, error) { return e, nil }
func (e entry) Size() int64                { return 0 }
func (e entry) ModTime() time.Time         { return time.Time{} }
func (e entry) Sys() any                   { return nil }
func (e entry) Mode() fs.FileMode {
	if e.folder {
		return fs.ModeDir | 0o755
	}
	return 0o644
}
