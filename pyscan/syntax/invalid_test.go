package syntax

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files again")

// TestInvalid compares the faults and the trees of broken texts with testdata/invalid.txt.
func TestInvalid(t *testing.T) {
	const name = "testdata/invalid.txt"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "\n== ")
	out := parts[0]
	if len(parts) < 100 {
		t.Fatalf("%d cases", len(parts)-1)
	}
	for _, part := range parts[1:] {
		title, rest, ok := strings.Cut(part, " ==\n")
		snippet, want, ok2 := strings.Cut(rest, "---\n")
		if !ok || !ok2 {
			if snippet, ok2 = strings.CutSuffix(rest, "---"); !ok || !ok2 {
				t.Fatalf("no title or no --- in %q", part)
			}
		}
		file := parseText(snippet)
		got := report(file)
		out += "\n== " + title + " ==\n" + snippet + "---\n" + got
		if *update {
			continue
		}
		t.Run(title, func(t *testing.T) {
			if strings.TrimSpace(got) != strings.TrimSpace(want) {
				t.Errorf("%s\n got:\n%s\nwant:\n%s", snippet, got, want)
			}
			if len(file.Errors) == 0 {
				t.Error("no error")
			}
			check(t, file)
		})
	}
	if *update {
		if err := os.WriteFile(name, []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// report is a line for each fault and one for each statement of the module.
func report(f *File) string {
	var b strings.Builder
	for _, e := range f.Errors {
		at := f.Source.Position(e.At.Start)
		start := f.Source.Lines()[at.Line-1]
		fmt.Fprintf(&b, "%d:%d %s\n", at.Line, e.At.Start-start, e.Message)
	}
	var line struct {
		Tree struct{ Body []any }
	}
	decoder := json.NewDecoder(strings.NewReader(string(AppendDump(nil, "x", f))))
	decoder.UseNumber()
	if err := decoder.Decode(&line); err != nil {
		return err.Error()
	}
	for _, s := range line.Tree.Body {
		b.WriteString(outline(s) + "\n")
	}
	return b.String()
}

// outline writes a tree in JSON form briefly: names and constants as such, no positions, nothing that is empty.
func outline(value any) string {
	switch value := value.(type) {
	case []any:
		var items []string
		for _, item := range value {
			items = append(items, outline(item))
		}
		return "[" + strings.Join(items, " ") + "]"
	case map[string]any:
		kind := value["_"].(string)
		switch kind {
		case "Name":
			return value["id"].(string)
		case "Constant", "MatchSingleton":
			constant := value["value"].(map[string]any)
			if constant["k"] == "str" || constant["k"] == "bytes" {
				return strconv.Quote(constant["v"].(string))
			}
			return constant["v"].(string)
		case "Expr":
			return outline(value["value"])
		}
		out := kind + "("
		for _, field := range fieldOrder {
			item, ok := value[field]
			if list, isList := item.([]any); !ok || item == nil || isList && len(list) == 0 {
				continue
			}
			if field == "args" && kind != "Call" && len(outline(item)) == len("arguments()") {
				continue
			}
			if !strings.HasSuffix(out, "(") {
				out += " "
			}
			out += field + "=" + outline(item)
		}
		return out + ")"
	}
	return fmt.Sprint(value)
}

// fieldOrder are the fields that an outline shows.
var fieldOrder = strings.Fields(`parts name id arg targets target op func left value subject test iter context_expr optional_vars
	slice lower upper step elt key keys values elts generators ifs ops comparators operand right cls pattern patterns kwd_attrs
	kwd_patterns rest guard bases args posonlyargs vararg kwonlyargs kw_defaults kwarg defaults annotation returns keywords
	type_params bound default_value decorator_list items cases body orelse handlers finalbody exc cause msg module names asname
	level type conversion format_spec`)
