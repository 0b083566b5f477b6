package workspace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainvet/trainvet/lint/source"
)

// knownOf is what a shelf keeps of some texts.
func knownOf(texts map[string]string) *known {
	k := &known{naming: map[string][]string{}}
	for name := range texts {
		k.files = append(k.files, name)
	}
	slices.Sort(k.files)
	in := newIndexer(1)
	var python []string
	for i, name := range k.files {
		k.stamps = append(k.stamps, Stamp{int64(len(texts[name])), int64(i), -1, 1 << 40})
		for _, base := range settingsNames([]byte(texts[name])) {
			k.naming[base] = append(k.naming[base], name)
		}
		if strings.HasSuffix(name, ".py") {
			in.read(int32(len(python)), []byte(texts[name]))
			python = append(python, name)
		}
	}
	k.index = joined(python, []*indexer{in})
	return k
}

var packed = map[string]string{
	"a.py":       "import torch as t\nfrom b import c as d\nclass A(B):\n    def forward(self, x):\n        y = self.net(x)\n        return d(y)\nif __name__ == '__main__':\n    getattr(A(), 'run')()\n",
	"b.py":       "def c(x):\n    x.backward()\nrun = c\nopen('ds.json')\n",
	"run.sh":     "python a.py --config ds.json\n",
	"größe ü.py": "größe = c\n",
}

// TestPack wants every question to be answered by what was unpacked as by what was packed.
func TestPack(t *testing.T) {
	k := knownOf(packed)
	got := unpack(pack(k))
	if got == nil {
		t.Fatal("what was packed is not read")
	}
	if !slices.Equal(got.files, k.files) || !slices.Equal(got.stamps, k.stamps) || !reflect.DeepEqual(got.naming, k.naming) || !slices.Equal(got.index.files, k.index.files) {
		t.Errorf("files, stamps or names of settings: %+v, want %+v", got, k)
	}
	if len(k.naming) == 0 || k.index.names.count() == 0 {
		t.Fatal("nothing was packed")
	}
	for n := range k.index.names.count() {
		name := string(k.index.names.name(int32(n)))
		for _, key := range []string{name, importKeyword + name} {
			if a, b := k.index.with(key), got.index.with(key); !slices.Equal(a, b) {
				t.Errorf("%q: files %d, want %d", key, b, a)
			}
		}
		if a, b := k.index.flags(name), got.index.flags(name); a != b {
			t.Errorf("%q: flags %b, want %b", name, b, a)
		}
		number, is := got.index.names.find(name)
		a, b := slices.Clone(k.index.parts[0].users.of(int32(n))), got.index.parts[0].users.of(number)
		slices.Sort(a)
		if !is || !slices.Equal(slices.Compact(a), b) {
			t.Errorf("%q: users %d, want %d", name, b, a)
		}
	}
	if a, b := k.index.with(guardedMain), got.index.with(guardedMain); len(a) != 1 || !slices.Equal(a, b) {
		t.Errorf("files with a main: %d, want %d", b, a)
	}
	empty := unpack(pack(knownOf(nil)))
	if empty == nil || len(empty.files) != 0 || empty.index.with("x") != nil {
		t.Errorf("nothing at all: %+v", empty)
	}
}

// FuzzUnpack reads what somebody else wrote, also where its checksum is right: it is refused, or answers questions.
func FuzzUnpack(f *testing.F) {
	good := pack(knownOf(packed))
	f.Add(good)
	f.Add(pack(knownOf(nil)))
	f.Add(good[:len(good)/2])
	f.Add([]byte(shelfMark))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, sealed := range [][]byte{data, binary.LittleEndian.AppendUint32(slices.Clone(data), crc32.Checksum(data, castagnoli))} {
			k := unpack(sealed)
			if k == nil {
				continue
			}
			for n := range k.index.names.count() {
				k.index.with(string(k.index.names.name(int32(n))))
			}
			measure(checkpointWords, k.index)
			if again := unpack(pack(k)); again == nil || !slices.Equal(again.files, k.files) {
				t.Errorf("what was read is not written as it was: %+v", k)
			}
		}
	})
}

// TestUnpackDamaged refuses what is not whole.
func TestUnpackDamaged(t *testing.T) {
	good := pack(knownOf(packed))
	for _, bad := range [][]byte{nil, good[:len(good)-1], append(slices.Clone(good), 0), bytes.Replace(good, []byte("forward"), []byte("forwart"), 1)} {
		if unpack(bad) != nil {
			t.Errorf("%d bytes were taken, of %d", len(bad), len(good))
		}
	}
}

// TestShelfReadsNothing wants from a project that did not change since no text to be read, and from one of which the shelf is damaged, or of
// another trainvet, that all are.
func TestShelfReadsNothing(t *testing.T) {
	folder, cache := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, ".git"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, text := range packed {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(folder)
	read := func(maker string, later time.Duration) (count int) {
		shelf := NewShelf(cache, maker)
		shelf.Now = func() time.Time { return time.Now().Add(later) }
		counted := &counting{Confined: NewConfined(filepath.ToSlash(folder))}
		s := NewSnapshot(counted).Frugal().Few().Known(shelf, "a.py")
		if got := s.View(t.Context()).NamedIn("ds.json"); !slices.Equal(got, []string{"b.py", "run.sh"}) {
			t.Errorf("ds.json is named in %q", got)
		}
		if got := s.mentioning(".", "c"); len(got) != 0 {
			t.Errorf("c is called in %q", got)
		}
		if got := s.mentioning(".", "d"); !slices.Equal(got, []string{"a.py"}) {
			t.Errorf("d is called in %q", got)
		}
		if err := shelf.Save(); err != nil {
			t.Error(err)
		}
		return counted.texts
	}
	all := len(packed)
	for i, want := range []int{all, all} { // young files may change once more
		if got := read("young", 0); got != want {
			t.Errorf("%d: %d texts were read, want %d", i, got, want)
		}
	}
	for i, want := range []int{all, 0, 0} {
		if got := read("test", time.Hour); got != want {
			t.Errorf("%d: %d texts were read, want %d", i, got, want)
		}
	}
	if got := read("other", time.Hour); got != all {
		t.Errorf("%d texts were read for another trainvet, want %d", got, all)
	}
	names, err := filepath.Glob(filepath.Join(cache, "*"+onShelf))
	if err != nil || len(names) != 3 {
		t.Fatalf("on the shelf: %q, %v", names, err)
	}
	for _, name := range names {
		if err := os.WriteFile(name, []byte(shelfMark+"and so on"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if got := read("test", time.Hour); got != all {
		t.Errorf("%d texts were read where the shelf is damaged, want %d", got, all)
	}
}

// TestShelfTwice asks a shelf a second time, as a check does that fixed something, and wants what changed to have changed still.
func TestShelfTwice(t *testing.T) {
	folder, cache := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range packed {
		write(name, text)
	}
	t.Chdir(folder)
	known := func() (twice [2]*Snapshot) {
		shelf := NewShelf(cache, "test")
		shelf.Now = func() time.Time { return time.Now().Add(time.Hour) }
		s := NewSnapshot(NewConfined(filepath.ToSlash(folder))).Frugal().Few()
		twice[0] = s.Known(shelf, "a.py")
		twice[0].mentioning(".", "c")
		twice[1] = s.With(&source.File{Path: "new.py", Kind: source.Python, Text: []byte("c(1)\n")}).Known(shelf, "a.py")
		if err := shelf.Save(); err != nil {
			t.Error(err)
		}
		return twice
	}
	known()
	write("b.py", packed["b.py"]+"c(2)\n")
	for i, s := range known() {
		want := []string{"b.py", "new.py"}[:i+1]
		if got := s.mentioning(".", "c"); !slices.Equal(got, want) {
			t.Errorf("c is called in %q, want %q", got, want)
		}
	}
}

// TestShelfTidies removes what is old, and nothing that is not its own.
func TestShelfTidies(t *testing.T) {
	cache := t.TempDir()
	old := time.Now().Add(-2 * maxIdle)
	for _, name := range []string{"old" + onShelf, "old.part", "new" + onShelf, "old.txt"} {
		if err := os.WriteFile(filepath.Join(cache, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "old") {
			if err := os.Chtimes(filepath.Join(cache, name), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	shelf := NewShelf(cache, "")
	if err := shelf.save(filepath.Join(cache, "x"+onShelf), knownOf(packed)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(cache)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(entries); len(entries) != 3 || !strings.Contains(got, "new"+onShelf) || !strings.Contains(got, "old.txt") || !strings.Contains(got, "x"+onShelf) {
		t.Errorf("left: %v", entries)
	}
}

// counting counts the texts that are read.
type counting struct {
	*Confined
	texts int
}

func (c *counting) ReadFile(name string) ([]byte, error) {
	c.texts++
	return c.Confined.ReadFile(name)
}

func (c *counting) AppendListed(to []byte, name string) ([]byte, error) {
	c.texts++
	return c.Confined.AppendListed(to, name)
}
