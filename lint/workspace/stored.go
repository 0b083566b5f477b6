package workspace

import (
	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// maxStores bounds how many changes of one dict are followed.
const maxStores = 64

// stored is a dict as it is at a use, after the statements between its definition and the use changed it: d["key"] = value
// and d.update(key=value) in the block of the definition. What is changed under a condition or in a loop is no longer known.
func (v *View) stored(scope *pyscan.Scope, frame *pyscan.Frame, def *pyscan.Def, use *syntax.Name, m *pyscan.Mapping) *pyscan.Mapping {
	if def.Node == nil {
		return m
	}
	now := &pyscan.Mapping{Origin: m.Origin, Keys: m.Keys[:len(m.Keys):len(m.Keys)], Values: append([]pyscan.Value(nil), m.Values...), Open: m.Open}
	changes := 0
	for _, stmt := range After(scope.Body(), def.Node) {
		if stmt.Span().Start > use.Span().Start {
			break
		}
		inside := stmt.Span().Contains(use.Span())
		if !inside {
			switch s := stmt.(type) {
			case *syntax.Assign:
				if sub, ok := s.Targets[0].(*syntax.Subscript); ok && len(s.Targets) == 1 && isNamed(sub.Value, use.ID) {
					changes++
					v.put(now, v.Eval(scope, frame, sub.Slice), v.Eval(scope, frame, s.Value))
				}
				continue
			case *syntax.ExprStmt:
				if call, ok := s.Value.(*syntax.Call); ok {
					if attr, ok := call.Func.(*syntax.Attribute); ok && attr.Attr == "update" && isNamed(attr.Value, use.ID) {
						changes++
						v.update(scope, frame, now, call)
					}
				}
				continue
			}
		}
		syntax.Inspect(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.FunctionDef, *syntax.ClassDef:
				return false
			case *syntax.Assign:
				for _, target := range n.Targets {
					if sub, ok := target.(*syntax.Subscript); ok && isNamed(sub.Value, use.ID) {
						changes++
						v.put(now, v.Eval(scope, frame, sub.Slice), &pyscan.Unknown{Origin: pyscan.From(scope.Module, sub)})
					}
				}
			case *syntax.Call:
				if attr, ok := n.Func.(*syntax.Attribute); ok && attr.Attr == "update" && isNamed(attr.Value, use.ID) {
					changes++
					now.Keys, now.Values, now.Open = nil, nil, true
				}
			}
			return true
		})
		if changes > maxStores {
			return &pyscan.Mapping{Origin: m.Origin, Open: true}
		}
	}
	if changes == 0 {
		return m
	}
	return now
}

// put stores a value under a key; under a key that is not known it may replace any.
func (v *View) put(m *pyscan.Mapping, key, value pyscan.Value) {
	c, ok := v.Constant(key)
	if !ok {
		m.Keys, m.Values, m.Open = nil, nil, true
		return
	}
	for i, known := range m.Keys {
		if k, ok := v.Constant(known); ok && k.Equal(c) {
			m.Values[i] = value
			return
		}
	}
	m.Keys, m.Values = append(m.Keys, key), append(m.Values, value)
}

// update is d.update({...}, key=value).
func (v *View) update(scope *pyscan.Scope, frame *pyscan.Frame, m *pyscan.Mapping, call *syntax.Call) {
	merge := func(e syntax.Expr) {
		more, ok := v.Expand(v.Eval(scope, frame, e)).(*pyscan.Mapping)
		if !ok || more.Open {
			m.Keys, m.Values, m.Open = nil, nil, true
			return
		}
		for i := range more.Keys {
			v.put(m, more.Keys[i], more.Values[i])
		}
	}
	for _, arg := range call.Args {
		merge(arg)
	}
	for _, k := range call.Keywords {
		if k.Arg == "" {
			merge(k.Value)
			continue
		}
		v.put(m, &pyscan.Const{Origin: pyscan.From(scope.Module, k), V: constant.MakeString(k.Arg)}, v.Eval(scope, frame, k.Value))
	}
}

// After gives the statements that follow a node in its own block.
func After(body []syntax.Stmt, def syntax.Node) []syntax.Stmt {
	i := holding(body, def)
	if i < 0 {
		return nil
	}
	for _, inner := range Blocks(body[i]) {
		if rest := After(inner, def); rest != nil {
			return rest
		}
	}
	return body[i+1:]
}
