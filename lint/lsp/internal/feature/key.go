package feature

import (
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// key is an entry of a config at some place.
type key struct {
	part    *workspace.Part
	item    *configs.Item
	path    string // dotted, in the part, as the dialect spells it
	section string // what the path begins with
	onKey   bool   // the place is the key itself, not its value
}

// keyAt is the innermost entry of a known dialect whose key, or scalar value, holds an offset.
func keyAt(view *workspace.View, file *source.File, offset uint32) (found key, ok bool) {
	for _, part := range view.Parts(file.Path) {
		if part.Tree == nil || part.Tree.Root == nil {
			continue
		}
		if k, in := entryAt(part, part.Tree.Root, "", file.Path, offset); in {
			found, ok = k, true // a section stands behind the file that it is part of, and knows more
		}
	}
	return found, ok
}

func entryAt(part *workspace.Part, n *configs.Node, section, file string, offset uint32) (key, bool) {
	for i := range n.Items {
		item := &n.Items[i]
		if item.Merge || item.Value == nil {
			continue
		}
		path := section
		if n.Kind == configs.Mapping {
			path = joined(section, part.Dialect.Spelled(part.Tree, item.Key))
		}
		switch {
		case item.KeyAt.Path == file && around(item.KeyAt.Span, offset):
			return key{part, item, path, section, true}, true
		case item.Value.Kind == configs.Scalar && n.Kind == configs.Mapping && !item.Value.Bare && item.Value.At.Path == file && around(item.Value.At.Span, offset):
			return key{part, item, path, section, false}, true
		}
		if k, ok := entryAt(part, item.Value, path, file, offset); ok {
			return k, true
		}
	}
	return key{}, false
}

func around(span source.Span, offset uint32) bool {
	return span.Start <= offset && offset <= span.End && span.Len() > 0
}

func joined(section, name string) string {
	if section == "" {
		return name
	}
	return section + "." + name
}

// known is the entry of the key in the table of its dialect, or among the parameters of what its section builds; nil where neither has it.
func (k *key) known(table *dialect.KeyTable) *dialect.Key {
	if table == nil {
		return nil
	}
	if found := table.Lookup(k.path); found != nil {
		return found
	}
	for name, found := range params(table, k.part, k.section) {
		if strings.EqualFold(name, lastPart(k.path)) {
			return found
		}
	}
	return nil
}

// params are the keys that a section takes for the type that stands beside it, as optimizer.params for optimizer.type.
func params(table *dialect.KeyTable, part *workspace.Part, section string) map[string]*dialect.Key {
	outer, isParams := strings.CutSuffix(section, ".params")
	if !isParams {
		return nil
	}
	kind := part.Tree.Root.Get(append(strings.Split(outer, "."), "type")...)
	if kind == nil || kind.Kind != configs.Scalar {
		return nil
	}
	return table.Params(outer, kind.Raw)
}

func lastPart(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
