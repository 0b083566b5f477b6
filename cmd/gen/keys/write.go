package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"path"
	"slices"
	"strings"
)

// write lays the table out with one key a line, so that a change of one is a change of one line.
func (m *maker) write(version, commit string, also []string) []byte {
	for at := range m.keys {
		if section := path.Dir(strings.ReplaceAll(at, ".", "/")); section != "." {
			m.open(strings.ReplaceAll(section, "/", "."))
		}
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "{\n \"version\": %s,\n \"commit\": %s,\n", asJSON(version), asJSON(commit))
	if len(also) > 0 {
		fmt.Fprintf(&out, " \"also\": %s,\n", strings.ReplaceAll(asJSON(also), `","`, `", "`))
	}
	out.WriteString(" \"sections\": {\n")
	lines(&out, "  ", slices.Sorted(maps.Keys(m.sections)), func(name string) string { return `{"unknown": ` + asJSON(m.sections[name]) + `}` })
	out.WriteString(" },\n \"keys\": {\n")
	lines(&out, "  ", slices.Sorted(maps.Keys(m.keys)), func(name string) string { return entry(m.keys[name]) })
	out.WriteString(" }")
	if len(m.constructors) > 0 {
		out.WriteString(",\n \"constructors\": {\n  \"_component_\": {\n")
		lines(&out, "   ", slices.Sorted(maps.Keys(m.constructors)), func(name string) string {
			var params []string
			for _, param := range slices.Sorted(maps.Keys(m.constructors[name])) {
				params = append(params, asJSON(param)+": {}")
			}
			return "{" + strings.Join(params, ", ") + "}"
		})
		out.WriteString("  }\n }")
	}
	out.WriteString("\n}\n")
	return out.Bytes()
}

func lines(out *bytes.Buffer, indent string, names []string, value func(string) string) {
	for i, name := range names {
		comma := ","
		if i == len(names)-1 {
			comma = ""
		}
		fmt.Fprintf(out, "%s%s: %s%s\n", indent, asJSON(name), value(name), comma)
	}
}

func entry(k *key) string {
	text := asJSON(k)
	for _, pair := range []string{`","`, `":`} {
		text = strings.ReplaceAll(text, pair, map[string]string{`","`: `", "`, `":`: `": `}[pair])
	}
	return text
}

func asJSON(v any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		log.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}
