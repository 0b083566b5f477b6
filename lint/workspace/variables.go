package workspace

import (
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// Variable is an environment variable that a file sets for its own or other processes.
type Variable struct {
	Name    string
	NameAt  source.Place
	Value   string // "" with Known false: not known
	Known   bool
	ValueAt source.Place
	Node    syntax.Node   // in Python: the statement or call that sets it
	Scope   *pyscan.Scope // of Node
}

// Variables lists the environment variables that a file sets, in order: of a launch script assignments, those before a command
// and `-x NAME=value` of mpirun; of a Python file what it puts into os.environ or a dict of variables; of a config the entries
// of mappings whose keys look like variables (NAME: value), of lists of NAME=value, and of lists of name and value; of a file of
// jobs those of its containers.
func (v *View) Variables(name string) []Variable {
	switch v.kindOf(name) {
	case source.Python, source.Notebook:
		if m := v.Module(name); m != nil {
			return v.pythonVariables(m)
		}
		return nil
	}
	var list []Variable
	if script := v.Script(name); script != nil {
		list = setVariables(list, script.Env)
		for _, command := range script.Commands {
			for c := command; c != nil; c = c.Outer {
				list = setVariables(list, c.Env)
				if c.LauncherFlags != nil {
					list = treeVariables(list, c.LauncherFlags.Root)
				}
			}
		}
		if script.Job { // what the container sets is written beside its command
			for _, tree := range v.Trees(name) {
				list = containerVariables(list, tree.Root)
			}
		}
		return distinct(list)
	}
	for _, tree := range v.Trees(name) {
		list = treeVariables(list, tree.Root)
	}
	return distinct(list)
}

// containerVariables collects what the containers of a job file set, at any depth: the list `env` of Kubernetes, and `environment` of
// docker-compose. Commands are left out: they are read as scripts.
func containerVariables(list []Variable, n *configs.Node) []Variable {
	if n == nil {
		return list
	}
	for _, item := range n.Items {
		switch item.Key {
		case "env", "environment":
			list = treeVariables(list, item.Value)
		case "command", "args", "entrypoint":
		default:
			list = containerVariables(list, item.Value)
		}
	}
	return list
}

// isLiteral reports whether a text of a config is the value itself. Kubernetes replaces $(NAME), docker-compose $NAME and ${NAME},
// and templates {{ name }}.
func isLiteral(n *configs.Node, text string) bool {
	return !n.Open && !strings.Contains(text, "$") && !strings.Contains(text, "{{")
}

// distinct leaves out what stands at a place that was listed before: a loop in a script runs its commands several times.
func distinct(list []Variable) []Variable {
	seen := map[source.Place]bool{}
	kept := list[:0]
	for _, variable := range list {
		if !seen[variable.NameAt] {
			seen[variable.NameAt] = true
			kept = append(kept, variable)
		}
	}
	return kept
}

// isVariable reports whether a text is spelled like an environment variable: capitals, digits and underscores.
func isVariable(name string) bool {
	return strings.Contains(name, "_") && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// setVariables collects what a script sets itself. A command in the text of a variable sets nothing before it is run.
func setVariables(list []Variable, env *configs.Tree) []Variable {
	if env == nil || env.Root == nil {
		return list
	}
	for _, item := range env.Root.Items {
		if isVariable(item.Key) && item.Value != nil && item.Value.Kind == configs.Scalar {
			list = append(list, Variable{Name: item.Key, NameAt: item.KeyAt, Value: item.Value.Raw, Known: !item.Value.Open, ValueAt: item.Value.At})
		}
	}
	return list
}

// treeVariables collects the variables of a tree.
func treeVariables(list []Variable, n *configs.Node) []Variable {
	if n == nil {
		return list
	}
	if name := n.Item("name"); n.Kind == configs.Mapping && name != nil && name.Value != nil && isVariable(name.Value.Raw) {
		if value := n.Item("value"); value != nil && value.Value != nil && value.Value.Kind == configs.Scalar {
			return append(list, Variable{Name: name.Value.Raw, NameAt: name.Value.At, Value: value.Value.Raw, Known: isLiteral(value.Value, value.Value.Raw), ValueAt: value.Value.At})
		}
	}
	for _, item := range n.Items {
		value := item.Value
		switch {
		case value == nil:
		case isVariable(item.Key) && value.Kind == configs.Scalar:
			list = append(list, Variable{Name: item.Key, NameAt: item.KeyAt, Value: value.Raw, Known: isLiteral(value, value.Raw), ValueAt: value.At})
		case value.Kind == configs.Scalar:
			list = assignmentText(list, value)
		default:
			list = treeVariables(list, value)
		}
	}
	return list
}

// assignmentText reads an element such as "HCCL_BUFFSIZE=200".
func assignmentText(list []Variable, n *configs.Node) []Variable {
	name, value, ok := strings.Cut(n.Raw, "=")
	if !ok || !isVariable(name) {
		return list
	}
	at := n.At
	if quote := uint32(at.Span.Len() - len(n.Raw)); quote == 0 || quote == 2 { // as written, with or without quotes
		start := at.Span.Start + quote/2
		nameAt, valueAt := at, at
		nameAt.Span = source.Span{Start: start, End: start + uint32(len(name))}
		valueAt.Span = source.Span{Start: nameAt.Span.End + 1, End: start + uint32(len(n.Raw))}
		return append(list, Variable{Name: name, NameAt: nameAt, Value: value, Known: isLiteral(n, value), ValueAt: valueAt})
	}
	return append(list, Variable{Name: name, NameAt: at, Value: value, Known: isLiteral(n, value), ValueAt: at})
}

// pythonVariables are the variables that a Python file sets.
func (v *View) pythonVariables(m *pyscan.Module) []Variable {
	var list []Variable
	add := func(node syntax.Node, key, value syntax.Expr, nameAt source.Span) {
		name := ""
		scope := pyscan.ScopeAt(m, node)
		switch key := key.(type) {
		case nil:
		case *syntax.Constant:
			name = key.Text
		default:
			if c, ok := v.Constant(v.Eval(scope, nil, key)); ok {
				name, _ = c.Str()
			}
		}
		if !isVariable(name) || value == nil {
			return
		}
		variable := Variable{Name: name, NameAt: m.File.At(nameAt), ValueAt: m.File.At(value.Span()), Node: node, Scope: scope}
		if c, ok := v.Constant(v.Eval(scope, nil, value)); ok {
			if variable.Value, variable.Known = c.Str(); !variable.Known {
				variable.Value, variable.Known = c.String(), true
			}
		}
		list = append(list, variable)
	}
	dict := func(node syntax.Node, d *syntax.Dict) {
		for i, key := range d.Keys {
			if c, ok := key.(*syntax.Constant); ok && c.Kind == syntax.StrConstant {
				add(node, key, d.Values[i], key.Span())
			}
		}
	}
	updates := map[*syntax.Dict]bool{} // os.environ.update({...}): set there
	for node := range m.Tree.All() {
		switch n := node.(type) {
		case *syntax.Assign:
			for _, target := range n.Targets {
				if sub, ok := target.(*syntax.Subscript); ok && v.isEnviron(m, sub.Value) {
					add(n, sub.Slice, n.Value, sub.Slice.Span())
				}
			}
		case *syntax.Dict:
			if !updates[n] {
				dict(n, n)
			}
		case *syntax.Call:
			attr, ok := n.Func.(*syntax.Attribute)
			switch {
			case ok && attr.Attr == "setdefault" && len(n.Args) == 2 && v.isEnviron(m, attr.Value), ok && attr.Attr == "putenv" && len(n.Args) == 2:
				add(n, n.Args[0], n.Args[1], n.Args[0].Span())
			case ok && attr.Attr == "update" && v.isEnviron(m, attr.Value), isNamed(n.Func, "dict"):
				if len(n.Args) == 1 {
					if d, ok := n.Args[0].(*syntax.Dict); ok {
						updates[d] = true
						dict(n, d)
					}
				}
				for _, k := range n.Keywords {
					if isVariable(k.Arg) {
						at := k.Span()
						at.End = at.Start + uint32(len(k.Arg))
						add(n, &syntax.Constant{Kind: syntax.StrConstant, Text: k.Arg}, k.Value, at)
					}
				}
			}
		}
	}
	return list
}

// isEnviron reports whether an expression is os.environ, or a copy of it.
func (v *View) isEnviron(m *pyscan.Module, e syntax.Expr) bool {
	if path := pyscan.Path(e); path == "os.environ" || path == "environ" {
		return true
	}
	value := v.Eval(pyscan.ScopeAt(m, e), nil, e)
	if result, ok := value.(*pyscan.Result); ok {
		if member, ok := result.Of.(*pyscan.Member); ok && member.Name == "copy" {
			value = member.Base
		} else if strings.HasSuffix(v.ExternalName(result.Of), "os.environ.copy") {
			return true
		}
	}
	return v.ExternalName(value) == "os.environ"
}
