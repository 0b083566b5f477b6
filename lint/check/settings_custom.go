package check

import (
	"math"
	"strconv"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint"
)

// custom reads [[custom]]: rules of the project's own. What a file that is extended declares stays, unless the name is used again.
func (r *settingsReader) custom(list *configs.Node) {
	if list.Kind != configs.Sequence {
		r.fail(list.At, "custom must be a list of tables, [[custom]]")
		return
	}
	if r.resolver.Declare == nil {
		return
	}
	for _, item := range list.Items {
		d, own := lint.NewDeclared(), CustomRule{all: true}
		before := len(r.resolver.faults)
		r.keys(item.Value, "custom", r.customKeys(&d, &own))
		if len(r.resolver.faults) > before {
			continue
		}
		at := item.Value.At
		if d.Required && own.all && d.Call == "" {
			r.fail(at, "custom rule %q: required needs files, or every file would have to hold the key", d.Name)
			continue
		}
		if lint.Find(r.resolver.Rules, d.Name) != nil || unknownName(r.resolver.Rules, d.Name, true) == "" {
			r.fail(at, "custom rule %q: a rule, family or group of trainvet has this name", d.Name)
			continue
		}
		rule, err := r.resolver.Declare(d)
		if err != nil {
			r.fail(at, "custom rule %q: %s", d.Name, err)
			continue
		}
		own.Rule, own.from = rule, r.where(at)
		delete(r.resolver.unknown, d.Name)
		r.declare(own)
	}
}

func (r *settingsReader) declare(own CustomRule) {
	for i := range r.settings.Custom {
		if r.settings.Custom[i].Rule.Name == own.Rule.Name {
			r.settings.Custom[i] = own
			return
		}
	}
	r.settings.Custom = append(r.settings.Custom, own)
}

func (r *settingsReader) customKeys(d *lint.Declared, own *CustomRule) map[string]func(*configs.Node) {
	text := func(into *string) func(*configs.Node) {
		return func(n *configs.Node) { *into, _ = r.text(n) }
	}
	truth := func(into *bool) func(*configs.Node) {
		return func(n *configs.Node) { *into, _ = r.truth(n) }
	}
	number := func(into **float64) func(*configs.Node) {
		return func(n *configs.Node) {
			if value, ok := r.number(n); ok {
				*into = &value
			}
		}
	}
	scalars := func(into *[]any) func(*configs.Node) {
		return func(n *configs.Node) { *into = r.scalars(n) }
	}
	return map[string]func(*configs.Node){
		"name": text(&d.Name), "message": text(&d.Message), "help": text(&d.Help),
		"severity": func(n *configs.Node) {
			if name, ok := r.text(n); ok {
				if d.Severity, ok = lint.ParseSeverity(name); !ok {
					r.fail(n.At, "a severity must be error, warning or info, not %q", name)
				}
			}
		},
		"files":   func(n *configs.Node) { own.all, own.files = false, r.patterns(n.At, r.texts(n)) },
		"key":     text(&d.Key),
		"value":   text(&d.Value),
		"call":    text(&d.Call),
		"keyword": text(&d.Keyword),
		"position": func(n *configs.Node) {
			if at, ok := r.whole(n); ok && at >= 0 {
				d.Position = at
			} else if ok {
				r.fail(n.At, "position counts from 0")
			}
		},
		"required": truth(&d.Required), "forbidden": truth(&d.Forbidden),
		"min": number(&d.Min), "max": number(&d.Max),
		"one-of": scalars(&d.OneOf), "not-one-of": scalars(&d.NotOneOf),
		"matches": func(n *configs.Node) {
			if d.Matches, _ = r.text(n); len(d.Matches) > maxRegexp {
				r.fail(n.At, "a regular expression of more than %d bytes", maxRegexp)
			}
		},
	}
}

func (r *settingsReader) number(n *configs.Node) (float64, bool) {
	if n.Kind == configs.Scalar && n.Style == configs.Plain {
		if number, err := strconv.ParseFloat(strings.ReplaceAll(n.Raw, "_", ""), 64); err == nil && !math.IsNaN(number) {
			return number, true
		}
	}
	r.fail(n.At, "must be a number")
	return 0, false
}

// scalars reads a list of texts, numbers and truth values.
func (r *settingsReader) scalars(n *configs.Node) (all []any) {
	if n.Kind != configs.Sequence || len(n.Items) == 0 {
		r.fail(n.At, "must be a list of values")
		return nil
	}
	for _, item := range n.Items {
		v := item.Value
		switch {
		case v.Kind != configs.Scalar:
			r.fail(v.At, "must be a text, a number, true or false")
		case v.Style != configs.Plain:
			all = append(all, v.Raw)
		case v.Raw == "true" || v.Raw == "false":
			all = append(all, v.Raw == "true")
		default:
			if whole, err := strconv.ParseInt(strings.ReplaceAll(v.Raw, "_", ""), 0, 64); err == nil {
				all = append(all, whole)
			} else if number, ok := r.number(v); ok {
				all = append(all, number)
			}
		}
	}
	return all
}
