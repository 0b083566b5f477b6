package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/trainvet/trainvet/lint/source"
)

// Confined is the FS of the operating system without what symbolic links lead to outside of a project: whoever can put a link into a
// project must not choose which other files of the machine are read, and perhaps shown. A project is the checkout of git that a file
// lies in; without one the current folder; outside of that the folder that was named. What lies in none of them (settings above the
// project) belongs to the user and is read as it is.
type Confined struct {
	dir   string          // current folder, absolute
	named map[string]bool // what was named, absolute

	mu      sync.Mutex
	borders map[string]*border // by folder
	plain   map[string]bool    // folders whose border nobody asked for: the one around each was listed, and holds it as a folder
}

// border is how far the links of a folder may lead.
type border struct {
	top      string // without links; "": they may lead anywhere
	checkout bool   // the top is that of a checkout
	outside  bool   // the folder itself was reached by a link that leads out
}

// NewConfined is the disk as seen from a folder, absolute with forward slashes. Named are the files and folders that the user asks for:
// links out of them are followed where no checkout is around them.
func NewConfined(dir string, named ...string) *Confined {
	c := &Confined{dir: path.Clean(dir), named: map[string]bool{}, borders: map[string]*border{}, plain: map[string]bool{}}
	for _, name := range named {
		c.named[c.absolute(filepath.ToSlash(name))] = true
	}
	return c
}

func (c *Confined) absolute(name string) string {
	if source.IsAbsolute(name) {
		return source.Clean(name)
	}
	return source.Join(c.dir, name)
}

var errOutside = errors.New("is a link out of the project, not read")

// stat describes what a name leads to; the error is errOutside where that lies outside of the project.
func (c *Confined) stat(name string) (string, fs.FileInfo, error) {
	name = c.absolute(name)
	on := filepath.FromSlash(name)
	info, err := os.Lstat(on)
	if err != nil {
		return on, nil, err
	}
	b := c.border(source.Dir(name))
	if info.Mode()&fs.ModeSymlink == 0 {
		if b.outside {
			err = errOutside
		}
		return on, info, err
	}
	if info, err = os.Stat(on); err != nil || b.top == "" || c.named[name] && !b.checkout {
		return on, info, err
	}
	real, err := filepath.EvalSymlinks(on)
	if err == nil && !b.holds(filepath.ToSlash(real)) {
		err = errOutside
	}
	return on, info, err
}

// holds reports whether a name without links lies within the border.
func (b *border) holds(real string) bool {
	return b.top == "" || real == b.top || inside(b.top, real)
}

// border finds out how far the links of a folder may lead.
func (c *Confined) border(folder string) *border {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.find(folder)
}

func (c *Confined) find(folder string) *border {
	if known := c.borders[folder]; known != nil {
		return known
	}
	b := &border{}
	if above := source.Dir(folder); above != folder {
		outer := c.find(above)
		*b = *outer
	}
	c.borders[folder] = b
	switch {
	case (folder == c.dir || c.named[folder] && !b.checkout) && (b.outside || !b.holds(realName(folder))): // who stands there or names it means it
		b.top, b.outside = realName(folder), false
	case b.top == "" && (folder == c.dir || c.named[folder]):
		b.top = realName(folder)
	case b.outside: // whatever lies there
		return b
	case isLink(folder) && !b.holds(realName(folder)):
		b.outside = true
		return b
	}
	if _, err := os.Lstat(filepath.FromSlash(source.Join(folder, ".git"))); err == nil {
		b.top, b.checkout = realName(folder), true
	}
	return b
}

func isLink(name string) bool {
	info, err := os.Lstat(filepath.FromSlash(name))
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// realName is the name of a folder without links, or its name where there is no such folder.
func realName(folder string) string {
	if real, err := filepath.EvalSymlinks(filepath.FromSlash(folder)); err == nil {
		return filepath.ToSlash(real)
	}
	return folder
}

// Outside is the error of a name that leads out of the project; nil for others.
func (c *Confined) Outside(name string) error {
	if _, _, err := c.stat(name); errors.Is(err, errOutside) {
		return err
	}
	return nil
}

// Outside is what keeps a name from being followed that leads out of the project; nil for other names.
func (s *Snapshot) Outside(name string) error {
	if files, ok := s.fs.(interface{ Outside(string) error }); ok && s.overlay[name] == nil {
		return files.Outside(name)
	}
	return nil
}

// Kind implements FS.
func (c *Confined) Kind(name string) EntryKind {
	_, info, err := c.stat(name)
	switch {
	case errors.Is(err, errOutside):
		return Special
	case err != nil:
		return Absent
	}
	return entryKind(info)
}

// ReadFile implements FS.
func (c *Confined) ReadFile(name string) ([]byte, error) { return c.AppendFile(nil, name) }

// AppendFile puts the bytes of a regular file behind others.
func (c *Confined) AppendFile(to []byte, name string) ([]byte, error) {
	on, info, err := c.stat(name)
	if err == nil {
		err = readable(info)
	}
	if err != nil {
		return to, plain(err)
	}
	return appendRegular(to, on)
}

// Head is the beginning of a regular file, as far as it tells the kind of a file.
func (c *Confined) Head(name string) []byte {
	on, info, err := c.stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return headOf(on)
}

// ReadDir implements FS.
func (c *Confined) ReadDir(name string) ([]fs.DirEntry, error) {
	on, _, err := c.stat(name)
	if err != nil {
		return nil, plain(err)
	}
	entries, err := os.ReadDir(on)
	return entries, plain(err)
}

// readable is what keeps an entry from being read.
func readable(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return errFolder
	case !info.Mode().IsRegular():
		return errSpecial
	case info.Size() > source.MaxSize:
		return errLarge
	}
	return nil
}

// maxListed bounds the entries of a folder that is looked at as a whole.
const maxListed = 1 << 14

// Absolute implements Lister.
func (c *Confined) Absolute(name string) string { return c.absolute(name) }

// Entries implements Lister for the folders that the check is about. Of others few names are asked for, and they may be large or far away.
func (c *Confined) Entries(name string) ([]fs.DirEntry, bool) {
	name = c.absolute(name)
	if !c.near(name) {
		return nil, false
	}
	folder, err := c.openPlain(name)
	if err != nil {
		on, info, err := c.stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, true
		case err != nil, c.border(name).outside:
			return nil, false
		case !info.IsDir():
			return nil, true
		}
		if folder, err = os.Open(on); err != nil {
			return nil, false
		}
	}
	defer folder.Close()
	entries, err := folder.ReadDir(maxListed + 1)
	if err != nil && err != io.EOF || len(entries) > maxListed {
		return nil, false
	}
	c.listed(name, entries)
	return entries, true
}

// openPlain opens a folder that was listed as one, without asking the system about it: it fails where that is a link now.
func (c *Confined) openPlain(name string) (*os.File, error) {
	c.mu.Lock()
	plain := c.plain[name]
	c.mu.Unlock()
	if !plain {
		return nil, fs.ErrInvalid
	}
	return openFolder(filepath.FromSlash(name))
}

// listed takes from the entries of a folder within its border what would have to be asked for its own border, and for those of the folders in it.
func (c *Confined) listed(name string, entries []fs.DirEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	checkout := slices.ContainsFunc(entries, func(entry fs.DirEntry) bool { return strings.EqualFold(entry.Name(), ".git") })
	if c.plain[name] && !checkout && name != c.dir && !c.named[name] {
		c.borders[name] = c.find(source.Dir(name))
	}
	delete(c.plain, name)
	for _, entry := range entries {
		if entry.IsDir() && !strings.HasPrefix(entry.Name(), ".") {
			if inner := source.Join(name, entry.Name()); c.borders[inner] == nil {
				c.plain[inner] = true
			}
		}
	}
}

// near reports whether a folder is the current one or one that was named, or lies in one of them.
func (c *Confined) near(folder string) bool {
	if folder == c.dir || inside(c.dir, folder) {
		return true
	}
	for at := folder; ; at = source.Dir(at) {
		if c.named[at] {
			return true
		}
		if source.Dir(at) == at {
			return false
		}
	}
}

// AppendListed is AppendFile for what Entries said to be a regular file: it need not be asked again what it is.
func (c *Confined) AppendListed(to []byte, name string) ([]byte, error) {
	if text, err := appendPlain(to, filepath.FromSlash(c.absolute(name))); err == nil {
		return text, nil
	}
	return c.AppendFile(to, name)
}

// Size is that of a file, bytes; 0 where it is not there.
func (c *Confined) Size(name string) int64 {
	_, info, err := c.stat(name)
	if err != nil {
		return 0
	}
	return info.Size()
}
