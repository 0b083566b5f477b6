package feature

import (
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

// Proposal is something that may be typed at a place.
type Proposal struct {
	Label      string
	Insert     string
	Detail     string
	More       string // Markdown
	Value      bool
	Deprecated bool
}

// Complete gives the keys, or the values of a key, that a dialect has at an offset, and the span that one of them replaces.
func Complete(view *workspace.View, file *source.File, offset uint32) (proposals []Proposal, replaced source.Span) {
	at, ok := cursorIn(file, int(offset))
	if !ok {
		return nil, replaced
	}
	replaced = source.Span{Start: uint32(at.start), End: uint32(at.end)}
	for _, part := range view.Parts(file.Path) {
		if part.Tree == nil || part.Tree.Root == nil || !part.Tree.Root.At.IsZero() && part.Tree.Root.At.Path != file.Path {
			continue
		}
		section, inside := below(strings.Join(at.section, "."), part.Section)
		table := dialect.Keys(part.Dialect)
		if !inside || table == nil {
			continue
		}
		c := completer{part, table, file, at, section}
		if at.value {
			proposals = c.values(joined(section, at.key))
		} else if found := c.keys(); found != nil {
			proposals = found // of several parts the last is the innermost
		}
	}
	return proposals, replaced
}

// below is a dotted path as seen from a section, and whether it lies in it.
func below(path, section string) (string, bool) {
	if section == "" || path == section {
		return strings.TrimPrefix(path, section), true
	}
	return strings.CutPrefix(path, section+".")
}

type completer struct {
	part    *workspace.Part
	table   *dialect.KeyTable
	file    *source.File
	at      cursor
	section string
}

// keys are those of the section that are not written yet.
func (c *completer) keys() (proposals []Proposal) {
	names := c.table.Names(c.section)
	params := params(c.table, c.part, c.section)
	for name := range params {
		names = append(names, name)
	}
	slices.Sort(names)
	written := c.written()
	for _, name := range slices.Compact(names) {
		known := c.table.Lookup(joined(c.section, name))
		if known == nil {
			known = params[name]
		}
		if written[name] || known == nil {
			continue
		}
		k := key{part: c.part, path: joined(c.section, name), section: c.section}
		p := Proposal{Label: name, Insert: c.spelled(name, known), Deprecated: known.Deprecated || known.Replacement != ""}
		if !known.Open() {
			p.Detail = strings.ReplaceAll(known.Type, "|", " | ")
		}
		if known.Default != nil {
			p.Detail = strings.TrimSpace(p.Detail + " = " + writtenValue(known.Default))
		}
		lines := facts(known, c.table.Version)
		if what := meaning(k); what != "" {
			lines = append([]string{what}, lines...)
		}
		p.More = strings.Join(lines, "\n\n")
		proposals = append(proposals, p)
	}
	return proposals
}

func writtenValue(value any) string { return shortened(written(value)) }

// written are the keys that the section has, but for the one that is being typed.
func (c *completer) written() map[string]bool {
	names := map[string]bool{}
	n := c.part.Tree.Root
	if c.section != "" {
		n = n.Get(strings.Split(c.section, ".")...)
	}
	if n == nil {
		return names
	}
	for i := range n.Items {
		item := &n.Items[i]
		if span := item.KeyAt.Span; int(span.Start) > c.at.end || int(span.End) < c.at.start {
			names[c.part.Dialect.Spelled(c.part.Tree, item.Key)] = true
		}
	}
	return names
}

// spelled is a key as it is typed, with what stands behind it where that is not there yet.
func (c *completer) spelled(name string, known *dialect.Key) string {
	rest := ""
	if end := c.at.end; end <= len(c.file.Text) {
		line, _, _ := strings.Cut(string(c.file.Text[end:]), "\n")
		rest = strings.TrimLeft(line, "\"' \t\r")
	}
	switch {
	case c.file.Kind == source.JSON && c.at.quoted:
		return name
	case c.file.Kind == source.JSON && !strings.HasPrefix(rest, ":"):
		return `"` + name + `": `
	case c.file.Kind == source.JSON:
		return `"` + name + `"`
	case c.file.Kind == source.YAML && rest == "" && known.Type == "mapping":
		return name + ":"
	case c.file.Kind == source.YAML && !strings.HasPrefix(rest, ":"):
		return name + ": "
	case c.file.Kind == source.TOML && !strings.HasPrefix(rest, "="):
		return name + " = "
	}
	return name
}

// values are those that a key may have, as far as the table lists them.
func (c *completer) values(path string) (proposals []Proposal) {
	k := key{part: c.part, path: path, section: c.section}
	known := k.known(c.table)
	if known == nil {
		return nil
	}
	choices := known.Choices
	if len(choices) == 0 && known.Is("bool") && !known.Open() {
		choices = []any{true, false}
	}
	for _, choice := range choices {
		text := writtenValue(choice)
		p := Proposal{Label: text, Insert: text, Value: true}
		if word, isText := choice.(string); isText && !c.at.quoted && c.quotes(word) {
			p.Insert = `"` + word + `"`
		}
		if known.Default != nil && written(known.Default) == text {
			p.Detail = "default"
		}
		proposals = append(proposals, p)
	}
	if len(known.Auto) > 0 {
		p := Proposal{Label: "auto", Insert: "auto", Value: true, Detail: "filled in by " + strings.Join(known.Auto, ", ")}
		if !c.at.quoted && c.quotes("auto") {
			p.Insert = `"auto"`
		}
		proposals = append(proposals, p)
	}
	return proposals
}

// quotes reports whether a text must stand in quotes: always but in YAML, and there where it would be something else without.
func (c *completer) quotes(word string) bool {
	if c.file.Kind != source.YAML {
		return true
	}
	n := &configs.Node{Kind: configs.Scalar, Style: configs.Plain, Raw: word}
	text, is := c.part.Dialect.LoaderOf(c.part.Tree).Resolve(n).Str()
	return !is || text != word
}
