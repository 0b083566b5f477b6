package feature

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// Hover is what there is to say about a place, in Markdown, and the span that it is about: what a key of a config means, and the rules
// of the findings there. "" where there is nothing.
func Hover(view *workspace.View, file *source.File, offset uint32, findings []check.Finding) (text string, about source.Span) {
	var sections []string
	if k, ok := keyAt(view, file, offset); ok {
		about = k.item.Value.At.Span
		if k.onKey {
			about = k.item.KeyAt.Span
		}
		if text := describeKey(view, k); text != "" {
			sections = append(sections, text)
		}
	}
	for _, finding := range findings {
		if at := finding.At; at.Path == file.Path && around(at.Span, offset) {
			if len(sections) == 0 {
				about = at.Span
			}
			sections = append(sections, ruleText(finding))
		}
	}
	return strings.Join(sections, "\n\n---\n\n"), about
}

// ruleText is the document of the rule of a finding, under what the finding says.
func ruleText(finding check.Finding) string {
	doc := strings.TrimSpace(finding.Rule.Doc)
	doc = strings.TrimPrefix(doc, "# ")
	title, rest, _ := strings.Cut(doc, "\n")
	return fmt.Sprintf("**%s** (%s)\n\n%s\n\n%s\n\n[%s](%s)", title, finding.Severity, finding.Message, strings.TrimSpace(rest), finding.Rule.Name, finding.Rule.URL())
}

// describeKey is what is known of a key: what it does, its type, default and release, and the value in force.
func describeKey(view *workspace.View, k key) string {
	d := k.part.Dialect
	table := dialect.Keys(d)
	known := k.known(table)
	what := meaning(k)
	if known == nil && what == "" {
		return describeUnknown(table, k)
	}
	version := d.Version
	if table != nil && table.Version != "" {
		version = table.Version
	}
	lines := []string{fmt.Sprintf("**%s**: %s", k.part.Key(k.path), d.Title)}
	if what != "" {
		lines = append(lines, what)
	}
	if known != nil {
		lines = append(lines, facts(known, version)...)
	}
	lines = append(lines, inForce(view, k)...)
	return strings.Join(lines, "\n\n")
}

// facts are what the table says of a key.
func facts(known *dialect.Key, version string) (lines []string) {
	about := []string{}
	if !known.Open() {
		about = append(about, "type `"+strings.ReplaceAll(known.Type, "|", "` or `")+"`")
	}
	if known.Default != nil {
		about = append(about, "default `"+written(known.Default)+"`")
	}
	if known.Required {
		about = append(about, "required")
	}
	about = append(about, "as of "+version)
	lines = append(lines, strings.Join(about, ", "))
	if len(known.Choices) > 0 {
		choices := make([]string, len(known.Choices))
		for i, choice := range known.Choices {
			choices[i] = "`" + written(choice) + "`"
		}
		more := ""
		if known.Others {
			more = ", or others"
		}
		lines = append(lines, "values: "+strings.Join(choices, ", ")+more)
	}
	if text := bounds(known); text != "" {
		lines = append(lines, text)
	}
	if len(known.Stages) > 0 {
		lines = append(lines, "has an effect in ZeRO stage "+strings.Trim(strings.ReplaceAll(fmt.Sprint(known.Stages), " ", ", "), "[]"))
	}
	if len(known.Auto) > 0 {
		lines = append(lines, "`auto` is filled in by "+strings.Join(known.Auto, ", "))
	}
	if len(known.Alias) > 0 {
		lines = append(lines, "also written `"+strings.Join(known.Alias, "`, `")+"`")
	}
	if known.Of != "" {
		lines = append(lines, "added by "+known.Of)
	}
	switch {
	case known.Removed == "true":
		lines = append(lines, "**no longer taken**"+instead(known))
	case known.Removed != "":
		lines = append(lines, "**removed in "+known.Removed+"**"+instead(known))
	case known.Deprecated || known.Replacement != "":
		lines = append(lines, "**deprecated**"+instead(known))
	}
	return lines
}

func instead(known *dialect.Key) string {
	if known.Replacement == "" {
		return ""
	}
	return "; write `" + known.Replacement + "`"
}

func bounds(known *dialect.Key) string {
	var limits []string
	if known.Min != nil {
		limits = append(limits, fmt.Sprintf("at least %v", *known.Min))
	}
	if known.Above != nil {
		limits = append(limits, fmt.Sprintf("more than %v", *known.Above))
	}
	if known.Max != nil {
		limits = append(limits, fmt.Sprintf("at most %v", *known.Max))
	}
	return strings.Join(limits, ", ")
}

// written is a value of the table as JSON has it.
func written(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return strings.Trim(string(text), `"`)
}

// describeUnknown is what becomes of a key that the framework does not know, and which one was most likely meant.
func describeUnknown(table *dialect.KeyTable, k key) string {
	if table == nil {
		return ""
	}
	section, known := table.Section(k.section)
	if !known || section.Unknown == dialect.Accepted || section.Unknown == dialect.Mixed {
		return ""
	}
	name := lastPart(k.path)
	text := fmt.Sprintf("**%s**: no key of %s", k.part.Key(k.path), table.Version)
	switch section.Unknown {
	case dialect.Rejected:
		text += "; the loader raises"
	case dialect.Ignored:
		text += "; it is ignored without a word, and the default holds"
	}
	if near := table.Nearest(k.section, name); near != "" {
		text += fmt.Sprintf("\n\ndid you mean `%s`?", near)
		if taken := table.Lookup(joined(k.section, near)); taken != nil {
			text += " " + strings.Join(facts(taken, table.Version)[:1], "")
		}
	} else if elsewhere := table.Paths(name); len(elsewhere) > 0 {
		text += fmt.Sprintf("\n\n`%s` is a key elsewhere: `%s`", name, strings.Join(elsewhere[:min(len(elsewhere), 3)], "`, `"))
	}
	return text
}

// inForce is the value that holds in the runs of the file, for keys that set one of the plan; with the memory by part for those that
// decide it.
func inForce(view *workspace.View, k key) (lines []string) {
	fields := k.part.Dialect.Fields(k.path)
	for _, run := range view.Runs(k.part.Path) {
		for _, field := range fields {
			fact, ok := plan.Lookup(&run.Plan, field)
			if !ok {
				continue
			}
			value, known := fact.Any()
			if !known {
				continue
			}
			lines = append(lines, fmt.Sprintf("in force in %s: `%v` (%s%s)", run.Name, value, fact.How(), remark(fact.Note())))
		}
	}
	if len(lines) == 0 && k.item.Value.Kind == configs.Scalar && !k.item.Value.Open {
		lines = append(lines, fmt.Sprintf("in force: `%v`", k.part.Dialect.LoaderOf(k.part.Tree).Resolve(k.item.Value)))
	}
	for _, field := range fields {
		if !strings.HasPrefix(field, "model.") && !strings.HasPrefix(field, "batch.") {
			continue
		}
		for _, run := range view.Runs(k.part.Path) {
			if table := memoryTable(run); table != "" {
				return append(lines, table)
			}
		}
	}
	return lines
}

func remark(note string) string {
	if note == "" {
		return ""
	}
	return ", " + note
}

// Plain is Markdown without its marks, for clients that show text only.
func Plain(markdown string) string {
	var lines []string
	fenced := false
	for line := range strings.Lines(markdown) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
			continue
		case fenced:
			lines = append(lines, "    "+line)
			continue
		case strings.HasPrefix(line, "|---"):
			continue
		}
		line = strings.TrimLeft(line, "#")
		line = strings.NewReplacer("**", "", "`", "", "| ", "", " |", "").Replace(line)
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
