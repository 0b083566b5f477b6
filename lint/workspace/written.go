package workspace

import (
	"iter"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
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
