// Package configs turns every format in which settings of a training run are written (JSON with its relaxed forms, YAML,
// TOML, launch scripts; Python dicts and keyword arguments by package workspace) into one positioned tree.
//
// Scalars keep their raw text: what `1e-5`, `off`, `017` or `1_000` means depends on who loads the file, and scalar.go
// answers that for each loader.
package configs

import "github.com/trainvet/trainvet/lint/source"

// Format says how a tree was written.
type Format uint8

// The formats.
const (
	JSON Format = iota
	YAML
	TOML
	Flags  // `--flag value` pairs of a command
	Env    // exported variables and #SBATCH lines of a launch script
	Python // dict literals and keyword arguments
)

// Kind is the shape of a node.
type Kind uint8

// The kinds of nodes.
const (
	Invalid Kind = iota // damaged text, or an absent value
	Mapping
	Sequence
	Scalar
)

// Style says how a scalar or collection was written; it decides how a loader reads it.
type Style uint8

// The styles.
const (
	Plain        Style = iota // YAML plain, JSON or TOML literal (number, true, null), shell word
	SingleQuoted              // also TOML literal strings and HJSON single quotes
	DoubleQuoted
	Block    // YAML | and >, HJSON and TOML multi-line strings
	Unquoted // HJSON: a string without quotes, to the end of the line
	Flow     // a collection in [] or {}
)

// Node is one value. Open marks a collection of which more is set than is written (`**kw`, an include, an
// interpolation, damaged text): an absent key is then unknown, not default. On a scalar it says that the value is
// filled in elsewhere (an interpolation, a template, a shell variable); Raw is then the text as written.
type Node struct {
	Kind  Kind
	Style Style
	Open  bool
	Spare bool // the fallback of an expansion (`${NODES:-1}`) whose variable the script does not set: the environment may say another value
	Bare  bool // a flag without a value (`--bf16`): Raw is "" and At is the flag's own place
	At    source.Place
	Raw   string       // scalars: the text with quotes removed and escapes resolved; unresolved text for Plain
	Tag   string       // an explicit YAML tag such as !!str, else ""
	Via   source.Place // where a variable or YAML alias was used to set this value; At is where the value is written
	Items []Item
}

// Item is one entry: a key with its value, or (Key "" and KeyAt zero) an element of a sequence. Order and duplicates
// are kept.
type Item struct {
	Key   string
	KeyAt source.Place
	Value *Node
	Merge bool // came in through a YAML merge key (<<), so that a written key wins over it
}

// Error is a fault of the text; what could be read around it is kept.
type Error struct {
	At      source.Place
	Message string
	Fix     *Fix // nil where there is no single obvious repair
	Bound   bool // the text may be right, but it is larger or deeper than what is read
}

// Fix is the one replacement of text that repairs an Error. An empty span is an insertion, an empty Text a deletion.
type Fix struct {
	Title string
	Span  source.Span
	Text  string
}

// Bounds of what is read of one document. Beyond them an Error says so and the rest counts as unknown.
const (
	MaxDepth  = 256     // levels of nested collections
	MaxNodes  = 1 << 20 // values, those that aliases repeat included
	MaxErrors = 64      // errors kept
)

// Syntax is a set of flags that say which relaxations of strict JSON a file uses; loaders differ in what they take.
type Syntax uint8

// The relaxations.
const (
	HasComments Syntax = 1 << iota
	HasTrailingCommas
	HasHJSON     // unquoted keys or strings, missing commas, single quotes, ''' strings, root without braces
	HasNonFinite // NaN, Infinity or -Infinity: a number for json.load, text for HJSON
)

// Tree is a parsed document. A file with several YAML documents gives several trees.
//
// Errors are faults for every loader of the format. For JSON that includes the most lenient one, HJSON, and what HJSON
// takes but nobody can have meant (`"enabled": True,` is the text `True,` there). StrictErrors are what HJSON takes and a
// strict loader, such as Python's json.load, refuses; that one refuses a file with either.
type Tree struct {
	Format       Format
	Syntax       Syntax
	Root         *Node // nil in a document without content
	Errors       []Error
	StrictErrors []Error
	Template     bool         // the file is a template (`{{ x }}`, `{% if %}`, ${VAR}, BATCH_SIZE in JSON): it is filled in before it is loaded
	TemplateAt   source.Place // the first sign of that
	Lines        bool         // JSON: more objects follow the first, as in JSON Lines, or stand behind a word on each line, as in logs: those hold data
	Braced       bool         // YAML: the document is one mapping in braces, so that it may be JSON under another name
	Interpolated bool         // YAML: it holds ${...}, which OmegaConf fills in
	Class        string       // Python: the dotted name of the library's class whose keyword arguments it holds; of a training tool's flags: swift.sft
	comments     []source.Span
}

// Comments are the spans of all comments, marker included, in file order.
func (t *Tree) Comments() []source.Span { return t.comments }

// Get is the value at a path of keys, or nil. Of duplicates the last counts, and a written key wins over a merged one.
func (n *Node) Get(path ...string) *Node {
	for _, key := range path {
		item := n.Item(key)
		if item == nil {
			return nil
		}
		n = item.Value
	}
	return n
}

// Item is the entry of a mapping with this key, or nil: the last of duplicates, written before merged.
func (n *Node) Item(key string) *Item {
	if n == nil || n.Kind != Mapping {
		return nil
	}
	var found *Item
	for i := range n.Items {
		item := &n.Items[i]
		if item.Key == key && (found == nil || !item.Merge || found.Merge) {
			found = item
		}
	}
	return found
}
