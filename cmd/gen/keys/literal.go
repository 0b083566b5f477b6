package main

import (
	"strconv"
	"strings"

	"github.com/trainvet/trainvet/pyscan/syntax"
)

func joined(under, name string) string {
	if under == "" {
		return name
	}
	return under + "." + name
}

func fold(name string) string { return strings.ReplaceAll(strings.TrimLeft(name, "-"), "-", "_") }

func dotted(e syntax.Node) string {
	switch e := e.(type) {
	case *syntax.Name:
		return e.ID
	case *syntax.Attribute:
		if base := dotted(e.Value); base != "" {
			return base + "." + e.Attr
		}
		return e.Attr
	case *syntax.Subscript:
		return dotted(e.Value)
	}
	return ""
}

func text(n syntax.Node) (string, bool) {
	c, is := n.(*syntax.Constant)
	if !is || c.Kind != syntax.StrConstant {
		return "", false
	}
	return c.Text, true
}

// literal is the value of a constant or of a list of constants.
func literal(e syntax.Expr) (any, bool) {
	switch e := e.(type) {
	case *syntax.Constant:
		switch e.Kind {
		case syntax.StrConstant:
			return e.Text, true
		case syntax.IntConstant:
			n, err := strconv.ParseInt(e.Text, 10, 64)
			return n, err == nil
		case syntax.FloatConstant:
			return e.Float, true
		case syntax.TrueConstant, syntax.FalseConstant:
			return e.Kind == syntax.TrueConstant, true
		case syntax.NoneConstant:
			return nil, true
		}
	case *syntax.UnaryOp:
		v, is := literal(e.Operand)
		if n, whole := v.(int64); is && whole && e.Op == syntax.USub {
			return -n, true
		}
	case *syntax.List:
		return literals(e.Elts)
	case *syntax.Tuple:
		return literals(e.Elts)
	}
	return nil, false
}

func literals(elements []syntax.Expr) (any, bool) {
	list := []any{}
	for _, e := range elements {
		v, is := literal(e)
		if !is {
			return nil, false
		}
		list = append(list, v)
	}
	return list, true
}
