package check

import (
	"context"
	"encoding/binary"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// A tree in which nothing trains is told from the bytes of its files: where none holds a telling word, no Python file of it can have a finding,
// whatever else it says. The shortcut is taken for trees alone of which all files are known that a check could ask about.

// everyday are words of rules that say nothing of training by themselves: a finding of these rules needs a library as well, or a loop with
// a backward pass, and thereby a telling word in some file of the tree. Words below minTelling bytes count as such.
var everyday = []string{
	"accelerate", "Accelerate", "all_reduce", "backward", "batch", "checkpoint", "_component_", "empty_cache", "export", "half()", "nnodes", "offload", "on_after", "on_before",
	"on_step", "optimizer", "output_dir", "parameters()", "prepare(", "process", "profile", "sched", "schedule", "timeout", "trainer", "valid", "warmup", ".item(", ".step(",
}

// telling are words besides those of the rules: what libraries are called, as they stand in imports, commands and settings.
var telling = []string{"torch", "deepspeed", "DeepSpeed", "transformers", "lightning", "megatron", "mindspeed", "mindspore", "colossalai", "bitsandbytes", "accelerate launch",
	"accelerate.", "llamafactory", "axolotl", "unsloth", "fairscale", "horovod", "LayerSpec", Word}

// imported are libraries whose names are words of everyday, or parts of such, elsewhere.
var imported = []string{"accelerate", "apex", "composer", "datasets", "diffusers", "fastai", "flash_attn", "flax", "jax", "keras", "ignite", "mmengine", "oneflow", "optimum", "paddle",
	"peft", "ray", "swift", "tensorflow", "timm", "transformer_engine", "trl", "xtuner"}

// backward is how a loss is differentiated; a turtle goes backward by a number.
const backward = ".backward("

const minTelling = 5 // bytes

// tellingWords are those of the rules and of this file.
func tellingWords(rules []*lint.Rule) []string {
	words := append(slices.Clone(telling), backward)
	for _, name := range imported {
		words = append(words, "import "+name, "from "+name+" ", "from "+name+".")
	}
	for _, rule := range rules {
		for _, word := range rule.Mentions {
			if len(word) >= minTelling && !slices.Contains(everyday, word) {
				words = append(words, word)
			}
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// TellingWords gives what reports whether a text holds a word by which a file of its tree may have findings. It is for tests.
func TellingWords(rules []*lint.Rule) func(text []byte) bool {
	return newSieve(tellingWords(rules)).holds
}

// sieve finds out whether a text holds one of some words of at least minTelling bytes. It looks at every third place of the text: wherever a word
// stands, one of three neighbouring trigrams of it begins at such a place. Those are taken of each word that text has seldom.
type sieve struct {
	slots [hashes]uint16 // by the hash of three bytes: where their words are; 0 where no word has them
	words [][]tail
}

// tail is a word, its number, and how far behind its start three bytes stand.
type tail struct {
	word   string
	number int
	offset int

	head, mask uint64 // its first bytes, and which of eight those are
}

func newTail(word string, number, offset int) tail {
	t := tail{word: word, number: number, offset: offset}
	for i := range min(len(word), 8) {
		t.head |= uint64(word[i]) << (8 * i)
		t.mask |= 0xFF << (8 * i)
	}
	return t
}

// at reports whether the word stands around a place where its three bytes may.
func (t *tail) at(text []byte, at int) bool {
	start, length := at-t.offset, len(t.word)
	if start < 0 || len(text)-start < length {
		return false
	}
	if text = text[start:]; len(text) < 8 {
		return string(text[:length]) == t.word
	}
	return binary.LittleEndian.Uint64(text)&t.mask == t.head && (length <= 8 || string(text[8:length]) == t.word[8:])
}

func newSieve(words []string) *sieve {
	s := &sieve{words: make([][]tail, 1)}
	for number, word := range words {
		s.add(word, number, 3)
	}
	return s
}

// add takes a word of at least step+2 bytes in, that it may be found by looking at every step-th place.
func (s *sieve) add(word string, number, step int) {
	first := rarest(word, step)
	for offset := first; offset < first+step; offset++ {
		at := hashThree(uint32(word[offset]) | uint32(word[offset+1])<<8 | uint32(word[offset+2])<<16)
		if s.slots[at] == 0 {
			s.slots[at] = uint16(len(s.words))
			s.words = append(s.words, nil)
		}
		s.words[s.slots[at]] = append(s.words[s.slots[at]], newTail(word, number, offset))
	}
}

// usual are bytes from those that text has most often on.
const usual = " etaoinsrlcdupmfgh_.b(y),='vwkx"

// rarest is where so many neighbouring trigrams of a word begin that text has least often, going by their bytes alone.
func rarest(word string, trigrams int) (first int) {
	least := 0.0
	for at := 0; at+trigrams+2 <= len(word); at++ {
		sum := 0.0
		for offset := at; offset < at+trigrams; offset++ {
			often := 1.0
			for i := offset; i < offset+3; i++ {
				rank := strings.IndexByte(usual, word[i])
				if rank < 0 {
					rank = 2 * len(usual)
				}
				often /= float64(rank + 3)
			}
			sum += often
		}
		if at == 0 || sum < least {
			first, least = at, sum
		}
	}
	return first
}

// hashes is how many hashes three bytes have: so many that few places of a text have one of a word by chance, and so few that a table of them
// stays in the cache.
const hashes = 1 << 14

// hashThree is the hash of the lowest three bytes of four: the product has nothing of the fourth.
func hashThree(four uint32) uint32 { return four * (0x9E3779B1 << 8 & 0xFFFFFFFF) >> 18 }

// holds reports whether the text holds one of the words.
func (s *sieve) holds(text []byte) bool {
	at := 0
	for ; at+8 <= len(text); at += 6 { // two places at a time
		eight := binary.LittleEndian.Uint64(text[at : at+8])
		one, two := s.slots[hashThree(uint32(eight))], s.slots[hashThree(uint32(eight>>24))]
		if one|two != 0 && (s.at(text, at, one) || s.at(text, at+3, two)) {
			return true
		}
	}
	for ; at+3 <= len(text); at += 3 {
		if s.at(text, at, s.slots[hashThree(uint32(text[at])|uint32(text[at+1])<<8|uint32(text[at+2])<<16)]) {
			return true
		}
	}
	return false
}

// at reports whether one of the words of a slot stands around a place.
func (s *sieve) at(text []byte, at int, slot uint16) bool {
	for i := range s.words[slot] {
		t := &s.words[slot][i]
		if !t.at(text, at) {
			continue
		}
		if next := at - t.offset + len(t.word); t.word == backward && next < len(text) && text[next] >= '0' && text[next] <= '9' {
			continue
		}
		return true
	}
	return false
}

// outsideLimit bounds the files and folders besides the targets that are looked into.
const outsideLimit = 20_000

// idle says of each target whether it is known to have no finding; nil where something may train, or where that is not known.
func (c *checker) idle(ctx context.Context, targets []Target, settings []*Settings) []bool {
	walk := c.options.Walk
	if c.options.NoPrefilter || c.options.Cache != nil || walk == nil || !walk.closed(c.snapshot) {
		return nil
	}
	names := make([]string, len(targets))
	for i, target := range targets {
		if target.Named || len(settings[i].Custom) > 0 || len(settings[i].Known) > 0 {
			return nil
		}
		names[i] = target.Path
	}
	words := newSieve(tellingWords(c.options.Rules))
	idle := make([]bool, len(targets))
	if c.anyTelling(ctx, names, words, func(i int, file *source.File) { idle[i] = file.Kind == source.Python }) {
		return nil
	}
	outside, all := walk.outside(c.snapshot)
	if !all || c.anyTelling(ctx, outside, words, func(int, *source.File) {}) || ctx.Err() != nil {
		return nil
	}
	return idle
}

// anyTelling reports whether one of the files holds a telling word; the others are told as they are read. A file that cannot be read has none: who
// asks about it is told nothing else.
func (c *checker) anyTelling(ctx context.Context, names []string, words *sieve, other func(i int, file *source.File)) bool {
	var next atomic.Int64
	var found atomic.Bool
	var workers sync.WaitGroup
	for range min(len(names), c.options.jobs()) {
		workers.Go(func() {
			var buffer []byte
			defer func() {
				if recover() != nil { // it shows again where the file is read by its check
					found.Store(true)
				}
			}()
			for !found.Load() && ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(names) {
					return
				}
				var file *source.File
				var err error
				if file, buffer, err = c.snapshot.Peek(names[i], buffer); err != nil {
					continue
				}
				if words.holds(file.Text) || file.Kind == source.Notebook && words.holds(file.Raw) {
					found.Store(true)
					return
				}
				other(i, file)
			}
		})
	}
	workers.Wait()
	return found.Load()
}

// Walk is what the names on a command line led to.
type Walk struct {
	Targets  []Target
	Problems []Problem
	Skipped  []Skipped // folders that may not be read
	Excluded int       // files that were named, and that the settings leave out

	roots []string // folders that were walked
	left  []string // files, folders and links below them that were left out
}

// closed reports whether no check asks about a file outside of the folders that were walked: none looks above the current folder, or above
// the top of a checkout.
func (w *Walk) closed(snapshot *workspace.Snapshot) bool {
	return len(w.roots) > 0 && !slices.ContainsFunc(w.roots, func(root string) bool {
		return root != "." && snapshot.Kind(path.Join(root, ".git")) == workspace.Absent
	})
}

// outside are the Python files that were left out, and that others may import all the same. False: they are too many.
func (w *Walk) outside(snapshot *workspace.Snapshot) (files []string, all bool) {
	todo, seen := slices.Clone(w.left), 0
	for len(todo) > 0 && seen <= outsideLimit {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		switch seen++; {
		case strings.HasPrefix(path.Base(name), "."):
		case snapshot.Kind(name) == workspace.Folder:
			for _, inner := range snapshot.List(name) {
				if mayBePython(inner) || strings.HasSuffix(inner, "/") { // or links
					todo = append(todo, path.Join(name, inner))
				}
			}
		case snapshot.IsPython(name):
			files = append(files, name)
		}
	}
	return files, seen <= outsideLimit
}

// mayBePython reports whether the name of a file leaves it open that it is taken as Python: it may do without an
// extension.
func mayBePython(name string) bool {
	return strings.HasSuffix(name, ".py") || path.Ext(name) == "" || source.KindOf(name, nil).IsPython()
}
