package pyscan

import (
	"strings"

	"github.com/trainvet/trainvet/pyscan/syntax"
)

// Most names of a function are given values by plain statements alone: assignments, loops and with statements, none of which makes one a
// name of what another name stands for. Of these names the statements tell whether the function defines them, and no expression has to
// be looked at, nor what reaches which use.

// target takes in the target of a plain statement, and all below it. The value may stand for a function where it names something.
func (c *collector) target(e syntax.Expr, names bool) {
	switch t := e.(type) {
	case *syntax.Name:
		if names {
			c.name(t.ID)
		} else {
			c.stored(t.ID)
		}
	case *syntax.Attribute:
		c.in.paths = true
		c.in.attrs |= trait(t.Attr)
		c.visit(t.Value)
	case *syntax.Tuple, *syntax.List:
		for _, element := range elementsOf(t) {
			c.target(element, names)
		}
	case *syntax.Starred:
		c.target(t.Value, names)
	case nil:
	default:
		c.visit(e)
	}
}

// mayName reports whether a value, or an element of it that is taken out, may stand for what has a name of its own.
func mayName(value syntax.Expr) bool {
	switch value.(type) {
	case *syntax.Name, *syntax.Attribute, *syntax.IfExp, *syntax.Lambda, *syntax.Tuple, *syntax.List:
		return true
	}
	return false
}

// isPlain reports whether the scope is a function that defines a name, if at all, by its parameters and by plain statements.
func (s *Scope) isPlain(name string) bool {
	return s.Kind == FuncScope && s.vague&trait(name) == 0
}

// Plain reports whether the scope is a function in which a name is a parameter or the target of plain statements, and nothing else: it may be a
// copy of no other name there. It binds nothing.
func (s *Scope) Plain(name string) bool {
	if !s.isPlain(name) || s.names&trait(name) == 0 {
		return false
	}
	for i := range s.Params {
		if s.Params[i].Name == name {
			return true
		}
	}
	return s.stores&trait(name) != 0 && stores(s.Body(), func(target syntax.Expr) bool {
		n, ok := target.(*syntax.Name)
		return ok && n.ID == name
	})
}

// definesNo reports whether it can be told without binding the scope that it has no definition of a name or dotted path.
func (s *Scope) definesNo(name string) bool {
	if strings.IndexByte(name, '.') >= 0 {
		return !s.odd && !s.storesPath(name)
	}
	return s.isPlain(name) && !s.Plain(name)
}

// storesPath reports whether a plain statement of the scope assigns to a dotted path.
func (s *Scope) storesPath(path string) bool {
	return stores(s.Body(), func(target syntax.Expr) bool {
		attr, ok := target.(*syntax.Attribute)
		return ok && isPath(attr, path)
	})
}

// isPath reports whether an expression is a dotted path, without making that of the expression.
func isPath(e syntax.Expr, path string) bool {
	for {
		switch n := e.(type) {
		case *syntax.Name:
			return n.ID == path
		case *syntax.Attribute:
			rest := len(path) - len(n.Attr) - 1
			if rest <= 0 || path[rest] != '.' || path[rest+1:] != n.Attr {
				return false
			}
			e, path = n.Value, path[:rest]
		default:
			return false
		}
	}
}

// stores reports whether a target of a plain statement is one that is looked for.
func stores(body []syntax.Stmt, is func(syntax.Expr) bool) bool {
	for _, stmt := range body {
		found := false
		switch s := stmt.(type) {
		case *syntax.Assign:
			for _, target := range s.Targets {
				found = found || isTarget(target, is)
			}
		case *syntax.AugAssign:
			found = isTarget(s.Target, is)
		case *syntax.AnnAssign:
			found = isTarget(s.Target, is)
		case *syntax.For:
			found = isTarget(s.Target, is) || stores(s.Body, is) || stores(s.OrElse, is)
		case *syntax.While:
			found = stores(s.Body, is) || stores(s.OrElse, is)
		case *syntax.If:
			found = stores(s.Body, is) || stores(s.OrElse, is)
		case *syntax.With:
			for _, item := range s.Items {
				found = found || isTarget(item.Vars, is)
			}
			found = found || stores(s.Body, is)
		case *syntax.Match:
			for _, c := range s.Cases {
				found = found || stores(c.Body, is)
			}
		case *syntax.Try:
			found = stores(s.Body, is) || stores(s.OrElse, is) || stores(s.Final, is)
			for _, handler := range s.Handlers {
				found = found || stores(handler.Body, is)
			}
		case *syntax.Error:
			for _, part := range s.Parts {
				if inner, ok := part.(syntax.Stmt); ok {
					found = found || stores([]syntax.Stmt{inner}, is)
				}
			}
		}
		if found {
			return true
		}
	}
	return false
}

func isTarget(e syntax.Expr, is func(syntax.Expr) bool) bool {
	switch t := e.(type) {
	case *syntax.Tuple, *syntax.List:
		for _, element := range elementsOf(t) {
			if isTarget(element, is) {
				return true
			}
		}
		return false
	case *syntax.Starred:
		return isTarget(t.Value, is)
	case nil:
		return false
	}
	return is(e)
}
