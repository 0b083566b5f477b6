package dialect

import (
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint/nearest"
	"github.com/trainvet/trainvet/lint/source"
)

// doc looks up keys of a tree in the way of one dialect.
type doc struct {
	root    *configs.Node
	keys    keySet        // of the root
	whole   *configs.Node // the root of the file
	format  configs.Format
	folded  bool   // `--micro-batch-size` and `micro_batch_size` are one key
	grouped bool   // keys of the root may also stand one level deeper, under headings that mean nothing
	follows bool   // ${a.b} is the value at that path (OmegaConf)
	class   string // whose arguments they are, in Python
	prefix  string // of paths, where root is not the root of the file; ends in a dot
}

func (d *Dialect) doc(tree *configs.Tree, keys keySet) doc {
	return doc{root: tree.Root, keys: keys, format: tree.Format, folded: d.dashes || tree.Format == configs.Flags, grouped: d.grouped,
		follows: d.Loader == configs.LoaderOmegaConf && tree.Format == configs.YAML, whole: tree.Root, class: tree.Class}
}

// ofHydra reports whether Hydra composes the file, or makes objects of its sections.
func (d doc) ofHydra() bool {
	if d.format != configs.YAML {
		return false
	}
	if list := d.root.Item("defaults"); list != nil && list.Value != nil && list.Value.Kind == configs.Sequence || d.mapping("hydra") {
		return true
	}
	return slices.ContainsFunc(d.root.Items, func(item configs.Item) bool {
		return item.Value != nil && item.Value.Kind == configs.Mapping && item.Value.Item("_target_") != nil
	})
}

// state says what is known of a key.
type state uint8

const (
	absent  state = iota // not written, or written as null: what the framework does then holds
	unknown              // may be set elsewhere, is filled in later, or is damaged
	written
)

// found is what stands at a key path.
type found struct {
	state state
	path  string // as written in the file, from its root; as looked up where nothing is written
	node  *configs.Node
	at    source.Place // of the key; of the value where there is no key
}

func fold(key string) string {
	return strings.ReplaceAll(strings.TrimLeft(key, "-"), "-", "_")
}

// keySet tells of most keys that a mapping does not have them: a bit for the length and last letter of each. Dialects ask a file for
// hundreds of keys, of which it has a few.
type keySet uint64

func keysOf(n *configs.Node) (set keySet) {
	if n != nil {
		for i := range n.Items {
			set |= keyBit(n.Items[i].Key)
		}
	}
	return set
}

// keyBit is the same for a key and what it folds to.
func keyBit(key string) keySet {
	key = strings.TrimLeft(key, "-")
	last := byte('_') // that of a dash
	if len(key) > 0 && key[len(key)-1] != '-' {
		last = key[len(key)-1]
	}
	return 1 << ((len(key) + 5*int(last)) & 63)
}

// item is the entry of a mapping with this key.
func (d doc) item(n *configs.Node, key string) *configs.Item {
	if n == d.root && d.keys&keyBit(key) == 0 {
		return nil
	}
	if item := n.Item(key); item != nil || !d.folded || strings.Contains(key, "-") {
		return item
	}
	var last *configs.Item
	for i := range n.Items {
		if folds(n.Items[i].Key, key) {
			last = &n.Items[i]
		}
	}
	return last
}

// folds reports whether fold(key) is the given spelling, which is a folded one.
func folds(key, spelled string) bool {
	dashes := len(key) - len(spelled) // all that stand before it
	if dashes < 0 || strings.Trim(key[:dashes], "-") != "" {
		return false
	}
	key = key[dashes:]
	for i := range len(key) {
		if c := key[i]; c != spelled[i] && (c != '-' || spelled[i] != '_' || i == 0) {
			return false
		}
	}
	return true
}

// find looks a dotted path up. On a command line and among keyword arguments the whole path may be one key, as in
// `--train.micro_batch_size`.
func (d doc) find(path string) found {
	f := found{node: d.root}
	if path == "" {
		f.state, f.at = written, d.root.At
		return f
	}
	if d.grouped && d.root.Item(path) == nil {
		for i := range d.root.Items {
			if group := &d.root.Items[i]; group.Value.Item(path) != nil {
				path = group.Key + "." + path
				break
			}
		}
	}
	spelled := d.prefix
	for rest := path; rest != ""; {
		n := f.node
		switch {
		case isNull(n):
			return found{path: path}
		case n.Kind != configs.Mapping:
			return found{path: path, state: unknown}
		}
		key, after, _ := strings.Cut(rest, ".")
		if d.format == configs.Flags && after != "" {
			if item := d.item(n, rest); item != nil {
				key, after = rest, ""
			}
		}
		item := d.item(n, key)
		switch {
		case item != nil:
			f.node, f.at, rest = item.Value, item.KeyAt, after
			spelled += item.Key + "."
		case n.Open:
			return found{path: path, state: unknown}
		default:
			return found{path: path}
		}
	}
	f.path = strings.TrimSuffix(spelled, ".")
	if d.follows {
		f.node = d.follow(f.node)
	}
	switch n := f.node; {
	case isNull(n):
		f.state = absent
	case n.Kind == configs.Invalid || n.Kind == configs.Scalar && n.Open:
		f.state = unknown
	default:
		f.state = written
	}
	if f.node != nil && f.at.IsZero() {
		f.at = f.node.At
	}
	return f
}

// maxHops bounds chains of interpolations.
const maxHops = 8

var interpolation = source.Pattern(`^\$\{([A-Za-z_][A-Za-z0-9_.]*)\}$`)

// follow is the value that an interpolation stands for; the node itself where that cannot be told.
func (d doc) follow(n *configs.Node) *configs.Node {
	for range maxHops {
		if n == nil || n.Kind != configs.Scalar || !n.Open {
			break
		}
		match := interpolation().FindStringSubmatch(n.Raw)
		if match == nil {
			break
		}
		keys := strings.Split(match[1], ".")
		to := d.whole.Get(keys...)
		if to == nil {
			to = d.root.Get(keys...) // a job file holds the config as a section of its own
		}
		if to == nil {
			break
		}
		n = to
	}
	return n
}

// into makes the mapping at path the root of all that follows.
func (d *doc) into(path string) {
	if f := d.find(path); f.state == written && f.node.Kind == configs.Mapping {
		d.root, d.keys, d.prefix = f.node, keysOf(f.node), f.path+"."
	}
}

// has reports whether the key is written, null included.
func (d doc) has(path string) bool { return d.node(path) != nil }

// hasAny reports whether any of the keys is written.
func (d doc) hasAny(paths ...string) bool {
	for _, path := range paths {
		if d.has(path) {
			return true
		}
	}
	return false
}

// count is how many of these keys are written.
func (d doc) count(paths ...string) int {
	n := 0
	for _, path := range paths {
		if d.has(path) {
			n++
		}
	}
	return n
}

// sections is how many of these keys hold a mapping. A program that has a switch of such a name, and hands DeepSpeed some of its settings,
// writes a file of its own.
func (d doc) sections(paths ...string) int {
	n := 0
	for _, path := range paths {
		if d.mapping(path) {
			n++
		}
	}
	return n
}

// longName is the least length of a key, in bytes, of which a slip is told from a key of its own.
const longName = 12

// slips is how many keys of the root are all but one of the names, which are long ones, and no keys of the named dialect: a misspelt key
// still says whose file it is.
func (d doc) slips(dialect string, names []string) int {
	n, table := 0, keyTables[dialect]()
	for i := range d.root.Items {
		key := fold(d.root.Items[i].Key)
		if len(key) >= longName && len(key) < 64 && !slices.Contains(names, key) && nearest.Within(key, names, 2) != "" && table.Lookup(key) == nil {
			n++
		}
	}
	return n
}

// nearly reports whether a long key is written in its section, or a slip of it.
func (d doc) nearly(path string) bool {
	section, name := splitPath(path)
	n := d.node(section)
	if n == nil || n.Kind != configs.Mapping {
		return false
	}
	return slices.ContainsFunc(n.Items, func(item configs.Item) bool {
		return len(item.Key) >= longName && len(item.Key) < 64 && nearest.Within(item.Key, []string{name}, 2) != ""
	})
}

// node is the value at a path, or nil where the key is not written.
func (d doc) node(path string) *configs.Node { return d.find(path).node }

// mapping reports whether a mapping stands at the path.
func (d doc) mapping(path string) bool {
	n := d.node(path)
	return n != nil && n.Kind == configs.Mapping
}

// walk visits each mapping of a tree, the outermost first, until visit says that it has seen enough.
func walk(n *configs.Node, visit func(*configs.Node) bool) bool {
	if n == nil {
		return true
	}
	if n.Kind == configs.Mapping && !visit(n) {
		return false
	}
	for i := range n.Items {
		if !walk(n.Items[i].Value, visit) {
			return false
		}
	}
	return true
}

// isNull reports whether nothing is set: null in JSON and YAML, an empty YAML value, None in Python.
func isNull(n *configs.Node) bool {
	if n == nil {
		return true
	}
	if n.Kind != configs.Scalar || n.Style != configs.Plain || n.Open || n.Bare || n.Tag != "" {
		return false
	}
	switch n.Raw {
	case "", "null", "Null", "NULL", "~", "None":
		return true
	}
	return false
}

// isBool reports whether a truth value is written.
func isBool(n *configs.Node) bool {
	return n.Kind == configs.Scalar && n.Style == configs.Plain && (strings.EqualFold(n.Raw, "true") || strings.EqualFold(n.Raw, "false"))
}
