package custom

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// tree looks at a document of a config file.
func (c *condition) tree(pass *lint.Pass, tree *configs.Tree) {
	if tree.Root != nil && !tree.Template {
		c.keys(pass, tree)
	}
}

// part looks at settings that stand in Python; config files and launch commands are seen as trees.
func (c *condition) part(pass *lint.Pass, part *workspace.Part) {
	if part.Tree.Format == configs.Python {
		c.keys(pass, part.Tree)
	}
}

func (c *condition) keys(pass *lint.Pass, tree *configs.Tree) {
	at := tree.Root.At
	if len(tree.Root.Items) > 0 && !tree.Root.Items[0].KeyAt.IsZero() {
		at = tree.Root.Items[0].KeyAt
	}
	w := walk{condition: c, pass: pass, loader: loaderOf(tree.Format), words: tree.Format == configs.Flags || tree.Format == configs.Env}
	w.down(tree.Root, strings.Split(c.Key, "."), "", at)
}

// loaderOf is the most willing reader of a format: a rule of limits wants to know the number in `1e-4` and "8" as well.
func loaderOf(format configs.Format) configs.Loader {
	switch format {
	case configs.JSON:
		return configs.LoaderJSON
	case configs.TOML:
		return configs.LoaderTOML
	case configs.Python:
		return configs.LoaderPython
	case configs.YAML:
		return configs.LoaderPydantic
	}
	return configs.LoaderFlags
}

// walk goes from the root of a tree to the keys in question.
type walk struct {
	*condition
	pass   *lint.Pass
	loader configs.Loader
	words  bool // the keys are flags or variables, of which several commands and files together set what a run needs
}

// same reports whether a key as written is the one that is meant. Flags are written with dashes: --learning-rate is learning_rate.
func (w *walk) same(written, meant string) bool {
	if w.words {
		written = strings.ReplaceAll(strings.TrimLeft(written, "-"), "-", "_")
		meant = strings.ReplaceAll(strings.TrimLeft(meant, "-"), "-", "_")
	}
	return written == meant
}

// down follows a path below a node, which is called name and stands at a place.
func (w *walk) down(node *configs.Node, path []string, name string, at source.Place) {
	if node == nil || node.Kind != configs.Mapping && node.Kind != configs.Sequence {
		if w.Required && path[0] != "*" && node != nil && !node.Open && node.Kind != configs.Invalid {
			w.missing(name, path, at)
		}
		return
	}
	found := false
	for i := range node.Items {
		item := &node.Items[i]
		key, place := item.Key, item.KeyAt
		if node.Kind == configs.Sequence {
			key, place = strconv.Itoa(i), item.Value.At
		}
		rest := path[1:]
		switch {
		case path[0] == "*" || w.same(key, path[0]):
		case w.same(key, strings.Join(path, ".")): // written as one word
			rest = nil
		default:
			continue
		}
		found = true
		if inner := join(name, key); len(rest) > 0 {
			w.down(item.Value, rest, inner, place)
		} else {
			w.at(item, inner, place)
		}
	}
	if !found && w.Required && path[0] != "*" && !node.Open {
		w.missing(name, path, at)
	}
}

func join(name, key string) string {
	if name == "" {
		return key
	}
	return name + "." + key
}

func (w *walk) missing(name string, path []string, at source.Place) {
	if !w.words {
		w.report(w.pass, lint.Diagnostic{At: at, Key: name}, join(name, strings.Join(path, ".")), "is not set")
	}
}

// at looks at the value of a key.
func (w *walk) at(item *configs.Item, name string, place source.Place) {
	if w.Forbidden {
		w.report(w.pass, lint.Diagnostic{At: place, Key: name}, name, "is set")
		return
	}
	for _, node := range append([]*configs.Node{item.Value}, elements(item.Value)...) {
		if node.Kind != configs.Scalar || node.Open {
			continue
		}
		if wrong := w.wrong(w.scalar(node)); wrong != "" {
			w.report(w.pass, lint.Diagnostic{At: node.At, Key: name}, name, wrong)
		}
	}
}

// scalar is the value of a node. YAML 1.1 reads on and off as truth values, which no rule of texts means.
func (w *walk) scalar(node *configs.Node) constant.Value { return w.loader.Resolve(node) }

// elements are those of a list: what is demanded of a key holds for each.
func elements(node *configs.Node) (all []*configs.Node) {
	if node.Kind == configs.Sequence {
		for _, item := range node.Items {
			all = append(all, item.Value)
		}
	}
	return all
}

// run looks at a value of the plan.
func (c *condition) run(pass *lint.Pass, run *workspace.Run) {
	fact, _ := plan.Lookup(&run.Plan, c.Value)
	value, known := fact.Any()
	var at source.Place
	if len(run.Parts) > 0 {
		at = run.Parts[0].Tree.Root.At
		if items := run.Parts[0].Tree.Root.Items; len(items) > 0 {
			at = items[0].KeyAt
		}
	}
	d := lint.Diagnostic{At: at}
	switch {
	case !known && c.Required && run.Trains():
		c.report(pass, d, c.Value, "is not known")
	case known && c.Forbidden && fact.How() > plan.IsDefault:
		c.reportFact(pass, d, fact, "is set")
	case known && !c.Forbidden:
		if v, ok := constantOf(value); ok {
			if wrong := c.wrong(v); wrong != "" {
				c.reportFact(pass, d, fact, wrong)
			}
		}
	}
}

// reportFact reports at the first place that says the value, and names the others.
func (c *condition) reportFact(pass *lint.Pass, d lint.Diagnostic, fact plan.Fact, wrong string) {
	for i, at := range fact.From() {
		if i == 0 {
			d.At = at
		} else {
			d.Note(at, "it is said here as well")
		}
	}
	c.report(pass, d, c.Value, wrong)
}

// constantOf takes the values of plans, which are of kinds of their own.
func constantOf(value any) (constant.Value, bool) {
	switch of := reflect.ValueOf(value); of.Kind() {
	case reflect.Bool:
		return constant.MakeBool(of.Bool()), true
	case reflect.Int, reflect.Int64:
		return constant.MakeInt(of.Int()), true
	case reflect.Float64:
		return constant.MakeFloat(of.Float()), true
	case reflect.String:
		return constant.MakeString(of.String()), true
	}
	return constant.Value{}, false
}
