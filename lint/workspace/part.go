package workspace

import (
	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
)

// Part is one piece of settings of a run, as one dialect reads it: a config file, a section of one that is written in
// another dialect, a launch command.
type Part struct {
	Path    string
	Section string // dotted path of the section in its file; "" for all of the file
	Tree    *configs.Tree
	Dialect *dialect.Dialect
	Plan    plan.Plan
	Faults  []dialect.Fault // values that stand at keys of the dialect and are none

	shared any // see Shared
}

// Shared is what rules make of a part that several of them need: the first one makes it. It holds one thing.
func Shared[T any](p *Part, make func() T) T {
	made, ok := p.shared.(T)
	if !ok {
		made = make()
		p.shared = made
	}
	return made
}

// Key is the dotted path in the file of what is looked up by that path in the part.
func (p *Part) Key(path string) string {
	if p.Section == "" {
		return path
	}
	if path == "" {
		return p.Section
	}
	return p.Section + "." + path
}

// Trains reports whether the part says what a run trains: how models are launched, evaluated and shaped does not.
func (p *Part) Trains() bool {
	return p.Dialect.Trains() && (p.Plan.Batch.Micro.Known() || p.Plan.Batch.Global.Known() || p.Plan.Optimizer.Type.Known() || p.Plan.Optimizer.LR.Known())
}

func newPart(path, section string, tree *configs.Tree, d *dialect.Dialect) *Part {
	part := &Part{Path: path, Section: section, Tree: tree, Dialect: d}
	part.Faults = d.Fill(&part.Plan, tree)
	return part
}

// settings are what a View has worked out about config files and runs.
type settings struct {
	parts     map[string][]*Part
	python    map[string][][]*Part
	documents map[string][]document // all of a file
	commands  map[string][]*command // all of a script
	alone     map[string][]*command // all of a script that runs no other: they are the same wherever it is run
	nested    map[string][]*command // those that come of one command, which runs another script
	images    map[string][]*Part    // what the image for the files of a folder sets
	runs      map[string][]*Run
	pins      map[pinKey]Pin
}

// Parts are the pieces of settings in the named file that are written in a known dialect: each document, and behind it its
// sections in other dialects; of a launch script each command.
func (v *View) Parts(name string) []*Part {
	if parts, known := v.settings.parts[name]; known {
		return parts
	}
	var parts []*Part
	for _, document := range v.documents(name) {
		parts = append(parts, document.parts...)
	}
	for _, command := range v.commands(name) {
		parts = append(parts, command.parts...)
	}
	if v.settings.parts == nil {
		v.settings.parts = map[string][]*Part{}
	}
	v.settings.parts[name] = parts
	return parts
}

// document is one of a config file.
type document struct {
	index int // in the file, those of no known dialect counted
	parts []*Part
}

// documentsOf are the documents of a config file that are of a known dialect, or only that of an index.
func (v *View) documentsOf(name string, only int) []document {
	var documents []document
	switch v.kindOf(name) {
	case source.JSON, source.YAML, source.TOML, source.Other:
	case source.Python, source.Notebook:
		for i, parts := range v.pythonParts(name) {
			if only < 0 || only == i {
				documents = append(documents, document{i, parts})
			}
		}
		return documents
	default:
		return nil
	}
	for i, tree := range v.Trees(name) {
		if only >= 0 && only != i {
			continue
		}
		whole := v.composed(name, tree)
		d := hydraDialect(tree, whole)
		if d == nil && dialect.NamedDeepSpeed(name, tree) {
			d = dialect.DeepSpeed
		}
		if d == nil || d == dialect.HFTrainingArguments && v.ofGroup(name, tree) {
			continue // keys of the user's own program, some of them called as the Trainer's are
		}
		parts := []*Part{newPart(name, "", tree, d)}
		if whole != tree {
			parts[0].Plan = d.Plan(whole)
		}
		for _, section := range d.Sections(tree) {
			parts = append(parts, newPart(name, section.Path, section.Tree, section.Dialect))
		}
		for _, part := range parts {
			v.released(part)
		}
		documents = append(documents, document{i, parts})
	}
	return documents
}

// released puts the default in place that the release of the framework has with which the part is read, where that is known.
func (v *View) released(part *Part) {
	if part.Dialect != dialect.DeepSpeed || part.Plan.Optimizer.Clip.How() != plan.IsDefault {
		return
	}
	switch pin := v.Pin(part.Path, "deepspeed"); pin.Since("0.19.3") {
	case pyscan.Yes:
		part.Plan.Optimizer.Clip = plan.Default(1.0, pin.String())
	case pyscan.No:
		part.Plan.Optimizer.Clip = plan.Default(0.0, pin.String()+", which does not clip")
	}
}

// Setting is one written setting: its key, and its value.
type Setting struct {
	Part *Part
	Item *configs.Item
}

// Name is the key as written.
func (s Setting) Name() string { return s.Item.Key }

// Setting finds what is written at the place of a key, as values of the plan give it.
func (r *Run) Setting(at source.Place) (Setting, bool) {
	for _, part := range r.Parts {
		if part.Path != at.Path {
			continue
		}
		if item := itemAt(part.Tree.Root, at); item != nil {
			return Setting{part, item}, true
		}
	}
	return Setting{}, false
}

func itemAt(n *configs.Node, at source.Place) *configs.Item {
	if n == nil {
		return nil
	}
	for i := range n.Items {
		item := &n.Items[i]
		if item.KeyAt == at {
			return item
		}
		if item.Value != nil && len(item.Value.Items) > 0 {
			if found := itemAt(item.Value, at); found != nil {
				return found
			}
		}
	}
	return nil
}
