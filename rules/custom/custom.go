// Package custom turns the rules that settings declare into ordinary ones.
package custom

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/lint/nearest"
)

// Rule makes an ordinary rule of a declaration. The error says what is missing or contradicts itself.
func Rule(d lint.Declared) (*lint.Rule, error) {
	if err := validate(&d); err != nil {
		return nil, err
	}
	c := &condition{Declared: d}
	if d.Matches != "" {
		var err error
		if c.pattern, err = regexp.Compile(d.Matches); err != nil {
			return nil, fmt.Errorf("matches: %w", err)
		}
	}
	rule := &lint.Rule{Name: d.Name, Family: lint.CustomFamily, Since: "0.1", Severity: d.Severity,
		Doc: fmt.Sprintf("# %s\n\n## What it does\n%s.\n\n## Why\n%s\n", d.Name, strings.TrimSuffix(d.Message, "."), d.Help)}
	switch {
	case d.Key != "":
		rule.Tree, rule.Part = c.tree, c.part
	case d.Value != "":
		rule.Run = c.run
	default:
		rule.Module = c.module
		rule.Mentions = []string{d.Call[strings.LastIndexByte(d.Call, '.')+1:]}
	}
	return rule, nil
}

func validate(d *lint.Declared) error {
	subjects := 0
	for _, subject := range []string{d.Key, d.Value, d.Call} {
		if subject != "" {
			subjects++
		}
	}
	demands := d.Min != nil || d.Max != nil || len(d.OneOf) > 0 || len(d.NotOneOf) > 0 || d.Matches != ""
	switch {
	case d.Name == "" || strings.Trim(d.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		return fmt.Errorf("name: wanted lower-case words with - between them, not %q", d.Name)
	case strings.TrimSpace(d.Message) == "":
		return errors.New("message: says what is wrong, and must not be empty")
	case subjects != 1:
		return errors.New("one of key, value and call says what the rule looks at")
	case d.Call == "" && d.Keyword != "":
		return errors.New("keyword: belongs to a call")
	case d.Required && d.Forbidden:
		return errors.New("required and forbidden exclude each other")
	case d.Forbidden && demands:
		return errors.New("forbidden: what must not be there has no value to look at")
	case d.Call != "" && d.Keyword == "" && !d.Forbidden:
		return errors.New("a call without a keyword can only be forbidden")
	case !d.Required && !d.Forbidden && !demands:
		return errors.New("nothing is demanded: say required, forbidden, min, max, one-of, not-one-of or matches")
	case d.Min != nil && d.Max != nil && *d.Min > *d.Max:
		return fmt.Errorf("min %v is larger than max %v", *d.Min, *d.Max)
	}
	if names := plan.Names(); d.Value != "" && !slices.Contains(names, d.Value) {
		if near := nearest.Of(d.Value, names); near != "" {
			return fmt.Errorf("value: no value of the plan is called %q; did you mean %q?", d.Value, near)
		}
		return fmt.Errorf("value: no value of the plan is called %q; `trainvet plan` shows them", d.Value)
	}
	return nil
}

// condition is what a declaration demands of one value.
type condition struct {
	lint.Declared
	pattern *regexp.Regexp
}

// wrong says what is wrong with a value; "" where nothing is, or where the value is of a kind that the demand says nothing about.
func (c *condition) wrong(v constant.Value) string {
	shown := v.String()
	if text, ok := v.Str(); ok {
		shown = strconv.Quote(text)
	}
	if number, ok := numberOf(v); ok && !math.IsNaN(number) {
		switch {
		case c.Min != nil && number < *c.Min:
			return fmt.Sprintf("is %s; at least %v is wanted", shown, *c.Min)
		case c.Max != nil && number > *c.Max:
			return fmt.Sprintf("is %s; at most %v is allowed", shown, *c.Max)
		}
	}
	is := func(wanted any) bool { return same(v, wanted) }
	switch {
	case len(c.OneOf) > 0 && !slices.ContainsFunc(c.OneOf, is):
		return fmt.Sprintf("is %s; wanted %s", shown, list(c.OneOf))
	case slices.ContainsFunc(c.NotOneOf, is):
		return fmt.Sprintf("is %s", shown)
	}
	if text, ok := v.Str(); c.pattern != nil {
		if !ok {
			text = v.String()
		}
		if !c.pattern.MatchString(text) {
			return fmt.Sprintf("is %s, which does not match %s", shown, c.pattern)
		}
	}
	return ""
}

// numberOf is a number, also where it is written as a text, as YAML 1.1 reads 1e-4.
func numberOf(v constant.Value) (float64, bool) {
	if text, ok := v.Str(); ok {
		if v, ok = constant.ParseNumber(strings.TrimSpace(text)); !ok {
			return 0, false
		}
	}
	if v.Kind() == constant.Bool {
		return 0, false
	}
	return v.Number()
}

func same(v constant.Value, wanted any) bool {
	switch wanted := wanted.(type) {
	case bool:
		is, ok := v.Bool()
		return ok && is == wanted
	case int64:
		number, ok := numberOf(v)
		return ok && number == float64(wanted)
	case float64:
		number, ok := numberOf(v)
		return ok && number == wanted
	case string:
		text, ok := v.Str()
		return ok && text == wanted
	}
	return false
}

func list(values []any) string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = fmt.Sprint(value)
		if text, ok := value.(string); ok {
			texts[i] = strconv.Quote(text)
		}
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return strings.Join(texts[:len(texts)-1], ", ") + " or " + texts[len(texts)-1]
}

// report adds the details to the message of the declaration.
func (c *condition) report(pass *lint.Pass, d lint.Diagnostic, what, wrong string) {
	d.Message = fmt.Sprintf("%s (%s %s)", strings.TrimSuffix(c.Message, "."), what, wrong)
	if what == "" {
		d.Message = strings.TrimSuffix(c.Message, ".")
	}
	found := pass.Report(d)
	if c.Help != "" {
		found.Help("%s", c.Help)
	}
}
