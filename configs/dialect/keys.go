package dialect

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint/nearest"
)

//go:embed keys/*.json
var keyFiles embed.FS

// Unknown says what a framework does with a key that it does not know.
type Unknown string

// What becomes of unknown keys.
const (
	Mixed    Unknown = "unchecked" // several classes read the section, each with keys of its own
	Accepted Unknown = "open"      // somebody may read it: scripts and other releases have keys of their own, or it is passed on
	Ignored  Unknown = "ignored"   // dropped without a word
	Rejected Unknown = "rejected"  // the loader raises
)

// Key is what is known of one key. Unless said otherwise, strings are "" and lists nil where nothing is known.
type Key struct {
	Path    string `json:"-"` // dotted; "*" stands for any one key
	Type    string // int, float, bool, str, list, mapping, null or any; several are joined by "|"
	Default any    // as encoding/json gives it; nil: none, or not known
	Choices []any  // strings, float64 or bool: the only values
	Fold    bool   // choices are compared without regard to case
	Others  bool   // more values than the choices are taken: names of classes
	Min     *float64
	Max     *float64
	Above   *float64 // the value must be greater
	// Required: the framework raises where the section stands without this key.
	Required bool
	Alias    []string // other last parts of the path that name the same
	Stages   []int    // of ZeRO, in which the key has an effect; nil: all
	Auto     []string // who fills in "auto": "transformers", "accelerate"

	Added       string // the release that brought it, where older ones refuse it
	Deprecated  bool
	Removed     string // the release that no longer takes it; "true" where the key raises
	Replacement string // dotted path; may name two, joined by " or "
	Renamed     string // the release that brought the replacement, where that takes the same values
	Dropped     bool   // deprecated, and no longer handed on to its replacement
	Of          string // the framework on top that adds the key
}

// Is reports whether the type of the key may be the named one. A key of any or of no known type may be everything.
func (k *Key) Is(kind string) bool {
	return k.Open() || slices.Contains(strings.Split(k.Type, "|"), kind)
}

// Open reports whether nothing is known of the type.
func (k *Key) Open() bool { return k.Type == "" || k.Type == "any" }

// Name is the last part of the path.
func (k *Key) Name() string { return k.Path[strings.LastIndexByte(k.Path, '.')+1:] }

// KeySection is what is known of a mapping of a dialect.
type KeySection struct {
	Unknown Unknown
	Coerced bool // values are converted as pydantic does it: "4" and 4.0 are the number 4, "yes" is true
}

// KeyTable are the known keys of a dialect.
type KeyTable struct {
	Version string // the release that was read for it, as "DeepSpeed 0.19.6"

	keys         map[string]*Key
	sections     map[string]KeySection
	also         map[string]bool
	constructors map[string]map[string]map[string]*Key
	below        map[string]*nearest.List // names of keys by section, sorted; those that were removed are left out
	aliases      map[string]string        // the name of a key by its section and alias, as one path
}

// Keys is the table of a dialect; nil where the keys are not known.
func Keys(d *Dialect) *KeyTable {
	if load := keyTables[d.Name]; load != nil {
		return load()
	}
	return nil
}

var keyTables = tablesOf("deepspeed", "hf-training-args", "llamafactory", "axolotl", "accelerate", "gpt-neox", "torchtitan-toml", "litgpt",
	"llm-foundry", "nanotron", "mindspeed-fsdp2-yaml", "lingua", "megatron", "kohya", "olmo", "verl", "nemo", "torchtune", "peft-adapter", "lightning-cli",
	"torchrun", "deepspeed-launcher", "accelerate-launch")

func tablesOf(names ...string) map[string]func() *KeyTable {
	tables := map[string]func() *KeyTable{}
	for _, name := range names {
		tables[name] = sync.OnceValue(func() *KeyTable {
			table, err := readKeys(name)
			if err != nil {
				panic(err) // of a file in the program itself; a test reads all of them
			}
			return table
		})
	}
	return tables
}

func readKeys(name string) (*KeyTable, error) {
	text, err := keyFiles.ReadFile("keys/" + name + ".json")
	if err != nil {
		return nil, err
	}
	var file struct {
		Version, Extends string
		Also             []string
		Sections         map[string]KeySection
		Keys             map[string]*Key
		Constructors     map[string]map[string]map[string]*Key
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("keys of %s: %w", name, err)
	}
	t := &KeyTable{Version: file.Version, keys: file.Keys, sections: file.Sections, constructors: file.Constructors, also: map[string]bool{}, below: map[string]*nearest.List{}, aliases: map[string]string{}}
	for _, word := range file.Also {
		t.also[word] = true
	}
	if file.Extends != "" {
		base, err := readKeys(file.Extends)
		if err != nil {
			return nil, err
		}
		for path, key := range base.keys {
			if t.keys[path] == nil && key.Of == "" {
				t.keys[path] = key
			}
		}
		for path, section := range base.sections {
			if _, own := t.sections[path]; !own {
				t.sections[path] = section
			}
		}
	}
	below := map[string][]string{}
	for path, key := range t.keys {
		key.Path = path
		section, last := splitPath(path)
		if last != "*" && key.Removed == "" {
			below[section] = append(below[section], last)
		}
		for _, alias := range key.Alias {
			if path := joinPath(section, alias); t.aliases[path] == "" || last < t.aliases[path] {
				t.aliases[path] = last
			}
		}
	}
	for section, names := range below {
		slices.Sort(names)
		t.below[section] = nearest.NewList(names)
	}
	for section, types := range t.constructors {
		for _, params := range types {
			for last, key := range params {
				key.Path = section + ".params." + last
			}
		}
	}
	return t, nil
}

func splitPath(path string) (section, last string) {
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

// Lookup is the key at a dotted path, by its name or an alias; nil where it is not known.
func (t *KeyTable) Lookup(path string) *Key {
	if key := t.keys[path]; key != nil {
		return key
	}
	section, last := splitPath(path)
	spelled, known := t.section(section)
	if !known {
		return nil
	}
	if key := t.keys[joinPath(spelled, last)]; key != nil {
		return key
	}
	if key := t.keys[joinPath(spelled, "*")]; key != nil {
		return key
	}
	if name := t.aliases[joinPath(spelled, last)]; name != "" {
		return t.keys[joinPath(spelled, name)]
	}
	return nil
}

// Section is what is known of the mapping at a dotted path; "" is the whole file. False: nothing is.
func (t *KeyTable) Section(path string) (KeySection, bool) {
	spelled, known := t.section(path)
	return t.sections[spelled], known
}

// section is the path under which a section stands in the table: with "*" for names of the user, and without aliases.
func (t *KeyTable) section(path string) (string, bool) {
	if _, known := t.sections[path]; known {
		return path, true
	}
	if path == "" {
		return "", false
	}
	outer, last := splitPath(path)
	outer, known := t.section(outer)
	if !known {
		return "", false
	}
	for _, candidate := range []string{last, "*"} {
		if _, known := t.sections[joinPath(outer, candidate)]; known {
			return joinPath(outer, candidate), true
		}
	}
	if name := t.aliases[joinPath(outer, last)]; name != "" {
		if _, known := t.sections[joinPath(outer, name)]; known {
			return joinPath(outer, name), true
		}
	}
	return "", false
}

func joinPath(section, last string) string {
	if section == "" {
		return last
	}
	return section + "." + last
}

// Names are the keys of a section, sorted; those that were removed are left out. Not to be changed.
func (t *KeyTable) Names(section string) []string {
	if list := t.list(section); list != nil {
		return list.Words
	}
	return nil
}

func (t *KeyTable) list(section string) *nearest.List {
	spelled, _ := t.section(section)
	return t.below[spelled]
}

// Elsewhere reports whether programs on top of the framework are known to have a key of this name.
func (t *KeyTable) Elsewhere(name string) bool { return t.also[name] }

// Paths are the dotted paths at which a key of this name stands, sorted.
func (t *KeyTable) Paths(name string) []string {
	var paths []string
	for path, key := range t.keys {
		if _, last := splitPath(path); (last == name || slices.Contains(key.Alias, name)) && !strings.Contains(path, "*") && key.Removed == "" {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// Params are the keys that may stand under `SECTION.params` for a type that is built with them, such as the section optimizer
// and the type AdamW; types are compared without regard to case. Those of the section _component_ stand beside it, in any
// mapping. Nil where the type is not known.
func (t *KeyTable) Params(section, kind string) map[string]*Key {
	if params := t.constructors[section][kind]; params != nil || kind == "" || section == "_component_" {
		return params
	}
	for name, params := range t.constructors[section] {
		if strings.EqualFold(name, kind) {
			return params
		}
	}
	return nil
}

// Nearest is the key of a section that a misspelt one most likely means; "" where none is close. It also knows words that were
// left out or added: activation_checkpoint is activation_checkpointing, lr_scheduler is scheduler.
func (t *KeyTable) Nearest(section, word string) string {
	list := t.list(section)
	if list == nil {
		return ""
	}
	length := len([]rune(word))
	if name := list.Within(word, min(max(2, length/5), max(1, length/3))); name != "" {
		return name
	}
	return kin(word, list.Words)
}

// kin is the one name that begins with the word, or else ends in it, with only little more; or the other way round.
func kin(word string, names []string) string {
	word = strings.ToLower(word)
	for _, fits := range []func(long, short string) bool{strings.HasPrefix, func(long, short string) bool { return strings.HasSuffix(long, "_"+short) }} {
		var found []string
		for _, name := range names {
			short, long := word, strings.ToLower(name)
			if len(short) > len(long) {
				short, long = long, short
			}
			if len(short) >= 6 && 2*len(long) <= 3*len(short) && fits(long, short) {
				found = append(found, name)
			}
		}
		if len(found) == 1 {
			return found[0]
		}
	}
	return ""
}

// Slip is the key of a section of which a word is a slip of the pen: one letter wrong, missing, added or exchanged with its
// neighbour, two in long words. It is stricter than Nearest: it tells a misspelt key where keys of others may stand too.
func (t *KeyTable) Slip(section, word string) string {
	allowed := 1
	if len(word) >= 12 {
		allowed = 2
	}
	list := t.list(section)
	if len(word) < 5 || list == nil {
		return ""
	}
	near := list.Within(word, allowed)
	if strings.TrimRight(near, digits) == strings.TrimRight(word, digits) {
		return "" // data_path2 is the second of two, and no slip of data_path
	}
	return near
}

const digits = "0123456789"

// Abbreviates reports whether a flag is the beginning of a single known one, which argparse takes for it.
func (t *KeyTable) Abbreviates(flag string) bool {
	full := ""
	for _, name := range t.Names("") {
		if strings.HasPrefix(name, flag) {
			if full != "" {
				return false
			}
			full = name
		}
	}
	return full != "" && flag != ""
}

// LoaderOf is who reads the scalars of a tree in this dialect.
func (d *Dialect) LoaderOf(tree *configs.Tree) configs.Loader { return d.loaderOf(tree) }

// Spelled is the key of the dialect that an entry of a tree stands for: flags and some dialects take `-` for `_`.
func (d *Dialect) Spelled(tree *configs.Tree, key string) string {
	if d.dashes || tree.Format == configs.Flags {
		return fold(key)
	}
	return key
}

// Fields are the dotted names of the values of the plan that a key sets, by its dotted path; of what the table of the dialect does not say
// nothing is known.
func (d *Dialect) Fields(path string) []string {
	var fields []string
	for i := range d.table {
		if slices.Contains(d.table[i].keys, path) {
			fields = append(fields, d.table[i].field)
		}
	}
	return fields
}
