package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

type classField struct {
	annotation syntax.Expr
	value      syntax.Expr
}

// all are the fields of a dataclass and of its bases.
func (m *maker) all(class string, seen map[string]bool) map[string]classField {
	found := map[string]classField{}
	if seen[class] {
		return found
	}
	seen[class] = true
	if m.classes[class] == nil {
		m.find(class)
	}
	def := m.classes[class]
	if def == nil {
		return found
	}
	for _, base := range def.Bases {
		name := dotted(base)
		maps.Copy(found, m.all(name[strings.LastIndexByte(name, '.')+1:], seen))
	}
	for _, stmt := range def.Body {
		if field, is := stmt.(*syntax.AnnAssign); is && field.Simple {
			if name := dotted(field.Target); !strings.HasPrefix(name, "_") && !strings.HasPrefix(dotted(field.Annotation), "ClassVar") {
				found[name] = classField{field.Annotation, field.Value}
			}
		}
	}
	return found
}

// maxNested bounds how deep dataclasses stand in each other.
const maxNested = 8

func (m *maker) fields(under string, class *syntax.ClassDef, depth int) {
	for name, field := range m.all(class.Name, map[string]bool{}) {
		at := joined(under, name)
		k := m.typed(field.annotation)
		if v, is := literal(field.value); is && v != nil {
			k.Default = v
		}
		m.keys[at] = k
		if inner := m.nested(field.annotation); inner != nil && depth < maxNested {
			k.Type = strings.Replace(k.Type, "any", "mapping", 1)
			m.open(at)
			m.fields(at, inner, depth+1)
		}
	}
}

// open gives a section what holds for the one above it.
func (m *maker) open(at string) {
	if m.sections[at] != "" {
		return
	}
	above := at
	for m.sections[above] == "" {
		if i := strings.LastIndexByte(above, '.'); i >= 0 {
			above = above[:i]
		} else {
			above = ""
		}
	}
	m.sections[at] = m.sections[above]
}

// nested is the dataclass that a field holds, or a list of.
func (m *maker) nested(annotation syntax.Expr) *syntax.ClassDef {
	for n := range syntax.Preorder(annotation) {
		if name, is := n.(*syntax.Name); is && m.classes[name.ID] != nil && m.enums[name.ID] == nil {
			return m.classes[name.ID]
		}
	}
	return nil
}

// typed is the type that an annotation tells.
func (m *maker) typed(annotation syntax.Expr) *key {
	k := &key{}
	var kinds []string
	add := func(kind string) {
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	var visit func(e syntax.Expr)
	visit = func(e syntax.Expr) {
		switch e := e.(type) {
		case *syntax.Constant:
			if e.Kind == syntax.NoneConstant {
				add("null")
				return
			}
			if quoted, is := text(e); is {
				f := syntax.Parse(&source.File{Text: []byte(quoted)})
				if len(f.Body) == 1 {
					if stmt, is := f.Body[0].(*syntax.ExprStmt); is {
						visit(stmt.Value)
						return
					}
				}
			}
			add("any")
		case *syntax.BinOp:
			visit(e.Left)
			visit(e.Right)
		case *syntax.Subscript:
			arguments := []syntax.Expr{e.Slice}
			if tuple, is := e.Slice.(*syntax.Tuple); is {
				arguments = tuple.Elts
			}
			name := dotted(e.Value)
			switch name[strings.LastIndexByte(name, '.')+1:] {
			case "Optional":
				visit(arguments[0])
				add("null")
			case "Union", "Annotated":
				for _, a := range arguments {
					visit(a)
				}
			case "Literal":
				for _, a := range arguments {
					v, is := literal(a)
					if !is {
						add("any")
						continue
					}
					k.Choices = append(k.Choices, v)
				}
				add("str")
			case "list", "List", "Sequence", "Iterable", "Tuple", "tuple", "set", "Set":
				add("list")
			case "dict", "Dict", "Mapping":
				add("mapping")
			default:
				add("any")
			}
		default:
			switch name := dotted(e); name[strings.LastIndexByte(name, '.')+1:] {
			case "int", "float", "bool", "str":
				add(name)
			case "list", "List", "tuple", "Tuple", "set":
				add("list")
			case "dict", "Dict":
				add("mapping")
			case "Path", "PathOrStr", "StrEnum":
				add("str")
			case "None":
				add("null")
			default:
				if values := m.enums[name]; len(values) > 0 {
					add("str")
					k.Choices = append(k.Choices, values...)
					return
				}
				add("any")
			}
		}
	}
	visit(annotation)
	if slices.Contains(kinds, "any") {
		k.Type, k.Choices = "any", nil
		return k
	}
	if len(k.Choices) > 0 && slices.ContainsFunc(k.Choices, func(v any) bool { _, is := v.(string); return !is }) || len(kinds) > 2 {
		k.Choices = nil
	}
	k.Type = strings.Join(kinds, "|")
	return k
}
