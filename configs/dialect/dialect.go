// Package dialect reads the settings of training frameworks into the neutral plan.
//
// A dialect is one way of writing settings down: the keys of DeepSpeed's JSON, of HF's TrainingArguments, of Megatron's
// command line. It is written once, as a table of key paths, and reads every tree that package configs makes: JSON, YAML
// and TOML files, `--flag value` pairs, and Python dicts and keyword arguments.
package dialect

import (
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint/source"
)

// Dialect is one way of writing the settings of a training run.
type Dialect struct {
	Name    string // in reports and JSON
	Title   string // for people
	Version string // whose defaults these are, and of which release: "DeepSpeed 0.19.6"

	// Batch is how the framework relates its batch sizes to each other.
	Batch Relation

	// Loader reads the scalars of a YAML file; the other formats mean the same to everybody.
	Loader configs.Loader

	// dashes: `-` and `_` are the same in keys, and leading dashes mean nothing. Flags are always read so.
	dashes bool
	// lenient: text that spells a number or a truth value is converted where the plan wants one (pydantic, argparse).
	lenient bool
	grouped bool // keys may stand under headings that mean nothing

	recognise func(doc) bool
	before    func(*reader) // what the table cannot say, and settles before it
	table     []entry
	after     func(*reader) // what the table cannot say
	sections  []string      // paths of mappings that are written in DeepSpeed's dialect
	files     []string      // paths of text values that name a file with more settings
	models    []string      // paths of text values that name a model, or a folder of one
}

// Relation says how a framework gets from its batch sizes to the number of accumulation steps.
type Relation uint8

// The relations. Only Checked has three sizes that can contradict each other; the others compute the accumulation.
const (
	Computed  Relation = iota // global = micro-batch * accumulation * data-parallel ranks; nothing states it
	Checked                   // all three may be written, and the framework refuses a wrong product
	Unchecked                 // all three may be written, and nobody compares them
	Divides                   // accumulation = global / (micro-batch * ranks), an error where that is not whole
	Floors                    // the same, rounded down without a word
	Ceils                     // the same, rounded up
)

// Reading is what a tree says in terms of the plan.
type Reading struct {
	Plan   plan.Plan
	Faults []Fault
}

// Fault is a value that stands at a key of the dialect and that the plan cannot take: of the wrong type, or out of range.
// The value is unknown then, not default.
type Fault struct {
	At      source.Place // of the value
	Key     string       // dotted path
	Message string       // begins with "is": `is "eight", wanted a whole number`
}

// All are the dialects in the order of recognition.
func All() []*Dialect { return all[:] }

// Of is the dialect that the content of a tree is written in; nil where it is of none. The name of the file plays no part.
func Of(tree *configs.Tree) *Dialect {
	if tree == nil || tree.Root == nil || tree.Root.Kind != configs.Mapping {
		return nil
	}
	keys := keysOf(tree.Root)
	for _, d := range all {
		if d.recognise != nil && d.recognise(d.doc(tree, keys)) {
			return d
		}
	}
	return nil
}

// Named is the dialect of that name, or nil.
func Named(name string) *Dialect {
	for _, d := range all {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// Read is what the tree says when it is read in this dialect. Nothing is derived from other values but what the framework
// itself derives while it loads the file.
func (d *Dialect) Read(tree *configs.Tree) (reading Reading) {
	reading.Faults = d.Fill(&reading.Plan, tree)
	return reading
}

// Fill is Read into a plan in which nothing is known: plans are large.
func (d *Dialect) Fill(p *plan.Plan, tree *configs.Tree) []Fault {
	r := newReader(d, tree, p)
	if d.before != nil {
		d.before(r)
	}
	for i := range d.table {
		r.apply(&d.table[i])
	}
	if d.after != nil {
		d.after(r)
	}
	r.unmodelled()
	return r.faults
}

// Plan is the plan of Read.
func (d *Dialect) Plan(tree *configs.Tree) plan.Plan { return d.Read(tree).Plan }

// Section is a part of a tree that is written in another dialect.
type Section struct {
	Path    string // dotted path of the section in its file
	KeyAt   source.Place
	Tree    *configs.Tree
	Dialect *Dialect
}

// Sections are the settings of other frameworks that stand inside of this tree, such as a DeepSpeed config written under
// the key `deepspeed` of TrainingArguments.
func (d *Dialect) Sections(tree *configs.Tree) []Section {
	r := d.lookup(tree)
	var found []Section
	for _, path := range d.sections {
		if f := r.find(path); f.state == written && f.node.Kind == configs.Mapping {
			inner := *tree
			inner.Root, inner.Errors, inner.StrictErrors = f.node, nil, nil
			found = append(found, Section{Path: path, KeyAt: f.at, Tree: &inner, Dialect: DeepSpeed})
		}
	}
	return found
}

// Reference is a file with more settings of the same run that a tree names.
type Reference struct {
	Path string       // dotted path of the key
	At   source.Place // of the key
	File string       // as written

	// Model: the value names a model, which may be a folder with this file, but is mostly the name of a published one.
	Model bool
}

// References are the settings files that this tree names.
func (d *Dialect) References(tree *configs.Tree) []Reference {
	r := d.lookup(tree)
	var found []Reference
	for _, path := range d.files {
		f := r.find(path)
		if f.state != written || f.node.Kind != configs.Scalar {
			continue
		}
		if name, ok := r.constant(f).Str(); ok && name != "" {
			found = append(found, Reference{Path: path, At: f.at, File: name})
		}
	}
	for _, path := range d.models {
		if name, ok := r.constant(r.find(path)).Str(); ok && name != "" {
			found = append(found, Reference{Path: path, At: r.find(path).at, File: strings.TrimRight(name, "/") + "/config.json", Model: true})
		}
	}
	return found
}

// loaderOf is who reads the scalars of a tree.
func (d *Dialect) loaderOf(tree *configs.Tree) configs.Loader {
	switch tree.Format {
	case configs.JSON:
		if tree.Syntax != 0 {
			return configs.LoaderHJSON
		}
		return configs.LoaderJSON
	case configs.TOML:
		return configs.LoaderTOML
	case configs.Flags, configs.Env:
		return configs.LoaderFlags
	case configs.Python:
		return configs.LoaderPython
	case configs.YAML:
		switch {
		case d != DeepSpeed:
		case tree.Braced:
			return configs.LoaderJSON // DeepSpeed, accelerate and Trainer load the file as JSON, whatever its name is
		case tree.Interpolated:
			return configs.LoaderOmegaConf // a program of the user's reads it, and hands over a dict
		}
	}
	return d.Loader
}
