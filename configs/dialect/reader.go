package dialect

import (
	"math"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/lint/source"
)

// entry is one line of a dialect's table: which value of the plan comes from which key.
type entry struct {
	field string   // dotted name of the value in the plan
	keys  []string // dotted paths; the first that is written counts

	// read turns the constant into what plan.Set takes; nil takes it as it is. False: the value is not known, which is
	// no fault.
	read func(constant.Value) (any, bool)

	// absent is what the framework does when none of the keys is written; nil where that is not known.
	absent any
}

// paths is a list of key paths.
func paths(paths ...string) []string { return paths }

// reader fills a plan from one tree. Who sets a value first wins: what comes later never replaces it.
type reader struct {
	lookup
	dialect *Dialect
	plan    *plan.Plan
	faults  []Fault
	partial bool            // other files of the run complete this one: what is absent here is unknown
	gone    map[string]bool // fields for which something is written that cannot be told: no default applies
}

// lookup finds keys of a tree and reads their values, in the way of one dialect.
type lookup struct {
	doc
	loader configs.Loader
}

func (d *Dialect) lookup(tree *configs.Tree) lookup {
	return lookup{d.doc(tree, keysOf(tree.Root)), d.loaderOf(tree)}
}

func newReader(d *Dialect, tree *configs.Tree, into *plan.Plan) *reader {
	r := &reader{lookup: d.lookup(tree), dialect: d, plan: into}
	if defaults := tree.Root.Item("defaults"); r.follows && defaults != nil && defaults.Value != nil && defaults.Value.Kind == configs.Sequence {
		r.partial = true // Hydra composes the config from the files listed there
	}
	return r
}

// first is the first of the paths that is written, or unknown where one of them may be written elsewhere.
func (r *reader) first(paths ...string) found {
	best := found{}
	for _, path := range paths {
		switch f := r.find(path); f.state {
		case written:
			return f
		case unknown:
			best = f
		}
	}
	return best
}

func (r *reader) apply(e *entry) {
	if r.settled(e.field) {
		return
	}
	f := r.first(e.keys...)
	if f.state == written && r.dialect.lenient && f.node.Kind == configs.Scalar && f.node.Raw == "" && !f.node.Bare {
		f.state = absent // an empty field of a form
	}
	switch f.state {
	case written:
		v := r.constant(f)
		if isAuto(v) || isBlank(v) {
			r.forget(e.field)
			return
		}
		raw, ok := any(nil), false
		switch {
		case f.node.Kind != configs.Scalar:
			raw, ok = r.list(f)
			if !ok {
				r.fault(f, "is a "+shape(f.node)+", wanted one value")
			}
		case e.read != nil:
			raw, ok = e.read(v)
		default:
			raw, ok = plain(v)
		}
		if !ok {
			if thing := namedWhenUnread[e.field]; thing != "" {
				r.cannotModel(thing, f)
			}
			r.forget(e.field)
			return
		}
		r.set(e.field, raw, f)
	case unknown:
		r.forget(e.field)
	case absent:
		if e.absent != nil {
			r.assume(e.field, e.absent)
		}
	}
}

// namedWhenUnread are values for which an estimate takes the common case where they are not known. What is written for one and cannot be
// read is no such case, and is named.
var namedWhenUnread = map[string]string{"optimizer.type": "optimizer {}", "attention.kernel": "attention {}"}

// set is a value that stands at f.
func (r *reader) set(field string, raw any, f found) {
	if r.settled(field) {
		return
	}
	err := plan.Set(r.plan, field, raw, plan.IsWritten, "", f.at)
	if err == nil {
		return
	}
	if text, ok := raw.(string); ok && r.converts() {
		n, ok := toNumber(text)
		if ok && plan.Set(r.plan, field, n, plan.IsWritten, "", f.at) == nil {
			return
		}
		if ok && n < 0 && n == math.Trunc(n) && r.loader == configs.LoaderFlags {
			r.forget(field) // argparse takes it; programs let it say that something else decides, a checkpoint for one
			return
		}
		if b, ok := toBool(text); ok && plan.Set(r.plan, field, b, plan.IsWritten, "", f.at) == nil {
			return
		}
	}
	r.forget(field)
	if _, several := raw.([]string); several && r.loader == configs.LoaderFlags {
		return // programs on top take several values for a flag of this name
	}
	r.fault(f, err.Error())
}

// assume is what the framework does because nothing is written.
func (r *reader) assume(field string, raw any) { r.assumeOf(field, raw, r.dialect.Version) }

// assumeOf is assume with a remark of its own.
func (r *reader) assumeOf(field string, raw any, note string) {
	if r.settled(field) || r.partial {
		return
	}
	r.must(plan.Set(r.plan, field, raw, plan.IsDefault, note))
}

// derive is a value that follows from what stands at the given keys.
func (r *reader) derive(field string, raw any, note string, from ...found) {
	if r.settled(field) {
		return
	}
	var places []source.Place
	for _, f := range from {
		if f.state == written {
			places = append(places, f.at)
		}
	}
	if len(places) == 0 {
		r.assumeOf(field, raw, note)
		return
	}
	r.must(plan.Set(r.plan, field, raw, plan.IsDerived, note, places...))
}

// must is for values from tables, which the tests set all of.
func (r *reader) must(err error) {
	if err != nil {
		r.faults = append(r.faults, Fault{Message: "internal: " + err.Error()})
	}
}

// forget leaves a value unknown for good, if it is not known yet: something is written for it that cannot be told.
func (r *reader) forget(field string) {
	if r.gone == nil {
		r.gone = map[string]bool{}
	}
	r.gone[field] = true
}

// trainsNothing: the file evaluates, generates or exports. It says nothing of batches, optimizer and schedule.
func (r *reader) trainsNothing() {
	for _, name := range plan.Names() {
		if group, _, _ := strings.Cut(name, "."); group == "batch" || group == "optimizer" || group == "schedule" {
			r.forget(name)
		}
	}
}

func (r *reader) settled(field string) bool { return r.gone[field] || r.known(field) }

func (r *reader) known(field string) bool { return plan.Known(r.plan, field) }

func (r *reader) fault(f found, message string) {
	at := r.root.At
	if f.node != nil {
		at = f.node.At
	}
	r.faults = append(r.faults, Fault{At: at, Key: f.path, Message: message})
}

// constant is the value at f as the framework's loader reads it; None for what is no scalar or not known.
func (r *lookup) constant(f found) constant.Value {
	if f.state != written || f.node.Kind != configs.Scalar {
		return constant.Value{}
	}
	return r.loader.Resolve(f.node)
}

// converts reports whether text that spells a number or a truth value becomes one.
func (r *reader) converts() bool {
	return r.dialect.lenient || r.loader == configs.LoaderFlags || r.loader == configs.LoaderPydantic
}

// truth is a switch: its value, and whether that is known. An absent switch is off.
func (r *reader) truth(f found) (on, known bool) {
	switch f.state {
	case absent:
		return false, true
	case unknown:
		return false, false
	}
	v := r.constant(f)
	if b, ok := v.Bool(); ok {
		return b, true
	}
	if text, ok := v.Str(); ok {
		return toBool(text)
	}
	if n, ok := v.Int(); ok {
		return n != 0, true
	}
	return false, false
}

// isOn reports whether the switch at the path is known to be on.
func (r *reader) isOn(path string) bool {
	on, known := r.truth(r.find(path))
	return on && known
}

// text is the lower-case text at f, or "".
func (r *reader) text(f found) string {
	s, _ := r.constant(f).Str()
	return strings.ToLower(s)
}

// number is the number at f.
func (r *reader) number(f found) (float64, bool) {
	v := r.constant(f)
	if text, ok := v.Str(); ok && r.converts() {
		return toNumber(text)
	}
	if v.Kind() == constant.Bool {
		return 0, false
	}
	return v.Number()
}

// integer is the whole number at f.
func (r *reader) integer(f found) (int64, bool) {
	n, ok := r.number(f)
	if !ok || n != float64(int64(n)) {
		return 0, false
	}
	return int64(n), true
}

// list are the texts of a sequence of scalars.
func (r *reader) list(f found) ([]string, bool) {
	if f.state != written || f.node.Kind != configs.Sequence || f.node.Open {
		return nil, false
	}
	var texts []string
	for _, item := range f.node.Items {
		if item.Value == nil || item.Value.Kind != configs.Scalar || item.Value.Open {
			return nil, false
		}
		texts = append(texts, item.Value.Raw)
	}
	return texts, true
}

func shape(n *configs.Node) string {
	if n.Kind == configs.Mapping {
		return "mapping"
	}
	return "list"
}
