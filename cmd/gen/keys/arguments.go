package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainvet/trainvet/pyscan/syntax"
)

// arguments takes in the arguments that a file gives to a parser.
func (m *maker) arguments(r reading, f *syntax.File) {
	for _, stmt := range f.Body {
		for n := range syntax.Preorder(stmt) {
			call, is := n.(*syntax.Call)
			if !is {
				continue
			}
			switch callee := dotted(call.Func); {
			case strings.HasSuffix(callee, ".add_argument"):
				m.argument(r, call)
			case callee == "ArgumentGroupFactory" && len(call.Args) > 0:
				m.factory(dotted(call.Args[0]), call, stmt)
			}
		}
	}
}

func (m *maker) argument(r reading, call *syntax.Call) {
	var names []string
	for _, arg := range call.Args {
		if text, is := text(arg); is && strings.HasPrefix(text, "--") {
			names = append(names, fold(text))
		}
	}
	if len(names) == 0 {
		return
	}
	k := &key{Type: "str"}
	several := false
	if r.kind == dests {
		names = names[:1]
	}
	for _, kw := range call.Keywords {
		value, constant := literal(kw.Value)
		switch kw.Arg {
		case "dest":
			if s, is := value.(string); is && r.kind == dests {
				names = []string{s}
			}
		case "type":
			k.Type = map[string]string{"int": "int", "float": "float", "str": "str", "bool": "bool"}[dotted(kw.Value)]
		case "action":
			if s, _ := value.(string); strings.HasPrefix(s, "store_") {
				k.Type = "bool"
			}
		case "nargs":
			several = true
		case "default":
			if constant && value != nil {
				k.Default = value
			}
		case "choices":
			k.Choices, _ = value.([]any)
		}
	}
	switch {
	case k.Type != "" && several:
		k.Type = optional(k.Type + "|list")
	case k.Type != "":
		k.Type = optional(k.Type)
	}
	for _, name := range names {
		m.keys[joined(r.under, name)] = k
	}
}

func optional(kind string) string {
	if kind == "bool" || strings.Contains(kind, "null") {
		return kind
	}
	return kind + "|null"
}

// factory takes in the fields of a dataclass that Megatron makes arguments of. Those that are true are switched off by --no-NAME.
func (m *maker) factory(class string, call *syntax.Call, within syntax.Stmt) {
	if m.classes[class] == nil {
		m.find(class)
	}
	omit := map[string]bool{}
	for _, kw := range call.Keywords {
		if kw.Arg != "exclude" {
			continue
		}
		list := kw.Value
		if name, is := list.(*syntax.Name); is {
			for n := range syntax.Preorder(within) {
				if assign, is := n.(*syntax.Assign); is && len(assign.Targets) == 1 && dotted(assign.Targets[0]) == name.ID {
					list = assign.Value
				}
			}
		}
		if names, is := literal(list); is {
			if names, is := names.([]any); is {
				for _, name := range names {
					omit[fmt.Sprint(name)] = true
				}
			}
		}
	}
	for name, field := range m.all(class, map[string]bool{}) {
		if omit[name] {
			continue
		}
		k := m.typed(field.annotation)
		value := field.value
		if call, is := value.(*syntax.Call); is && dotted(call.Func) == "field" {
			value = nil
			for _, kw := range call.Keywords {
				if kw.Arg == "default" {
					value = kw.Value
				}
				if kw.Arg == "metadata" {
					m.meta(kw.Value)
				}
			}
		}
		if v, is := literal(value); is && v != nil {
			k.Default = v
		}
		if on, is := k.Default.(bool); is && on && strings.TrimSuffix(k.Type, "|null") == "bool" {
			m.keys["no_"+name], m.keys["disable_"+name] = &key{Type: "bool"}, &key{Type: "bool"}
			continue
		}
		if strings.HasPrefix(k.Type, "any") || strings.HasPrefix(k.Type, "mapping") {
			k.Type = ""
		}
		m.keys[name] = k
	}
}

// meta takes in the other names that a field's metadata gives it on the command line.
func (m *maker) meta(e syntax.Expr) {
	for n := range syntax.Preorder(e) {
		if text, is := text(n); is && strings.HasPrefix(text, "--") {
			m.keys[fold(text)] = &key{}
		}
	}
}

// find looks a class up in all files of the framework.
func (m *maker) find(class string) {
	filepath.WalkDir(m.root, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(name, ".py") && !strings.Contains(name, "tests") {
			if text, err := os.ReadFile(name); err == nil && bytes.Contains(text, []byte("\nclass "+class)) {
				m.learn(m.parse(name))
			}
		}
		return nil
	})
}
