package dialect

import (
	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/plan"
)

// Native is trainvet's own file: the plan written down. Its first key is the version.
var Native = &Dialect{
	Name:   "native",
	Title:  "trainvet plan",
	Loader: configs.LoaderYAML12,

	recognise: func(d doc) bool {
		return len(d.root.Items) > 0 && d.root.Items[0].Key == plan.NativeVersionKey
	},
	after: nativeAfter,
}

func nativeAfter(r *reader) {
	f := r.find(plan.NativeVersionKey)
	if v, ok := r.integer(f); !ok || v != plan.NativeVersion {
		r.fault(f, "is a version that this trainvet does not know, wanted 1")
		return
	}
	nativeMapping(r, "", r.root, plan.NativeKeys())
}

// nativeMapping reads one mapping of the file; what a key that is left out means stands in the table of keys.
func nativeMapping(r *reader, prefix string, n *configs.Node, keys []plan.NativeKey) {
	byName := map[string]plan.NativeKey{}
	for _, key := range keys {
		byName[key.Key] = key
	}
	for _, item := range n.Items {
		f := found{state: written, path: prefix + item.Key, node: item.Value, at: item.KeyAt}
		key, known := byName[item.Key]
		switch {
		case prefix == "" && item.Key == plan.NativeVersionKey:
		case !known:
			r.faults = append(r.faults, Fault{At: item.KeyAt, Key: f.path, Message: "is no key of a plan"})
		case isNull(item.Value):
		case item.Value.Kind == configs.Mapping && key.Sub != nil:
			nativeMapping(r, f.path+".", item.Value, key.Sub)
		default:
			nativeValue(r, key, f)
		}
	}
	if !n.Open {
		for _, key := range keys {
			if r.gone[key.Field] {
				key.Default = nil
			}
			plan.SetDefaults(r.plan, []plan.NativeKey{key})
		}
	}
}

func nativeValue(r *reader, key plan.NativeKey, f found) {
	raw, ok := any(nil), false
	switch f.node.Kind {
	case configs.Sequence:
		raw, ok = r.list(f)
	case configs.Scalar:
		raw, ok = plain(r.constant(f))
	}
	if !ok {
		raw = f.node.Raw
	}
	if err := key.Set(r.plan, raw, f.at); err != nil {
		r.forget(key.Field)
		r.fault(f, err.Error())
	}
}
