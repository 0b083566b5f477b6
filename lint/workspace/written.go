package workspace

import (
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint/source"
)

// Written is where a value of the run's plan stands in its files, and the key there as written. Values that follow from others
// stand where the first of those does. ok is false for defaults, and for what the user told besides.
func (r *Run) Written(fact plan.Fact) (at source.Place, key string, ok bool) {
	if how := fact.How(); how != plan.IsWritten && how != plan.IsDerived {
		return at, "", false
	}
	for _, place := range fact.From() {
		if setting, found := r.Setting(place); found {
			return place, setting.Name(), true
		}
	}
	return at, "", false
}

// Spare reports whether a value of the run's plan follows from a fallback that the environment may replace: `--nnodes ${NODES:-1}` is for
// a try on one machine, and says nothing of the run that the other settings are written for.
func (r *Run) Spare(fact plan.Fact) bool {
	return slices.ContainsFunc(fact.From(), func(place source.Place) bool {
		setting, found := r.Setting(place)
		return found && setting.Item.Value != nil && setting.Item.Value.Spare
	})
}

// Keys visits every entry of the parts of a run, those of inner mappings included, in the order in which they are written.
func (r *Run) Keys() iter.Seq2[*Part, *configs.Item] {
	return func(yield func(*Part, *configs.Item) bool) {
		for _, part := range r.Parts {
			for item := range part.Keys() {
				if !yield(part, item) {
					return
				}
			}
		}
	}
}

// Keys visits every entry of the part, those of inner mappings included.
func (p *Part) Keys() iter.Seq[*configs.Item] {
	return func(yield func(*configs.Item) bool) { visitKeys(p.Tree.Root, yield) }
}

func visitKeys(n *configs.Node, yield func(*configs.Item) bool) bool {
	if n == nil {
		return true
	}
	for i := range n.Items {
		if n.Items[i].Key != "" && !yield(&n.Items[i]) || !visitKeys(n.Items[i].Value, yield) {
			return false
		}
	}
	return true
}

// PlainKey is a key as Megatron's, argparse's and YAML's spellings have in common: lower case, `_` for `-`, no leading dashes.
func PlainKey(key string) string {
	return strings.ReplaceAll(strings.TrimLeft(strings.ToLower(key), "-"), "-", "_")
}

// Has reports whether a part is of the dialect.
func (r *Run) Has(names ...string) bool {
	return slices.ContainsFunc(r.Parts, func(p *Part) bool { return slices.Contains(names, p.Dialect.Name) })
}

// PartAt is the part in which a place of a value stands, or nil.
func (r *Run) PartAt(at source.Place) *Part {
	if setting, ok := r.Setting(at); ok {
		return setting.Part
	}
	return nil
}

// Stated reports whether somebody stated a value: it is written in a file, or was told besides.
func Stated(fact plan.Fact) bool { return fact.How() == plan.IsWritten || fact.How() == plan.IsFlag }

// Overrides reports whether the command line of the program sets a key that a file sets too, or may do so: flags that are not
// seen count.
func (r *Run) Overrides(keys ...string) bool {
	if r.flags == nil || r.flags.Root == nil {
		return false
	}
	if r.flags.Root.Open {
		return true
	}
	for _, item := range r.flags.Root.Items {
		if slices.Contains(keys, PlainKey(item.Key)) {
			return true
		}
	}
	return false
}

// maxPaired bounds the files of a folder among which a config and the one that launches it are looked for.
const maxPaired = 16

// pair is the one training config and the one config of accelerate of a small folder, where name is one of them and nothing
// names either: what stands alone beside each other is for one run.
func (v *View) pair(name string) (trainer, launched string, ok bool) {
	switch source.KindOf(name, nil) {
	case source.YAML, source.JSON:
	default:
		return "", "", false
	}
	entries := v.Names(path.Dir(name))
	if len(entries) > maxPaired {
		return "", "", false
	}
	for _, entry := range entries {
		file := path.Join(path.Dir(name), entry)
		switch kind := source.KindOf(entry, nil); {
		case strings.HasSuffix(entry, "/"), kind != source.YAML && kind != source.JSON:
			continue
		}
		documents := v.documentLinks(file)
		if len(documents) == 0 {
			continue
		}
		into := &trainer
		switch d := documents[0].dialect; {
		case d == dialect.Accelerate:
			into = &launched
		case d == dialect.DeepSpeed, !d.Trains():
			continue
		case d != dialect.HFTrainingArguments && d != dialect.LLaMAFactory && d != dialect.Axolotl:
			return "", "", false
		}
		if *into != "" || len(documents) > 1 || len(v.naming(file)) > 0 {
			return "", "", false
		}
		*into = file
	}
	return trainer, launched, trainer != "" && launched != "" && (name == trainer || name == launched)
}
