package configs

import (
	"bytes"
	"strings"

	"github.com/trainvet/trainvet/configs/pep440"
	"github.com/trainvet/trainvet/lint/source"
)

// ProjectRequirements reads what a pyproject.toml asks for: of [project], of groups (PEP 735), and of the tables of poetry, uv, pdm
// and pixi.
func ProjectRequirements(f *source.File, tree *Tree) *Requirements {
	r := &Requirements{}
	if tree == nil || tree.Root == nil {
		return r
	}
	root := tree.Root
	r.texts(f, root.Get("project", "dependencies"), Requirement{})
	r.groups(f, root.Get("project", "optional-dependencies"))
	r.groups(f, root.Get("dependency-groups"))
	r.groups(f, root.Get("tool", "pdm", "dev-dependencies"))
	r.texts(f, root.Get("tool", "uv", "dev-dependencies"), Requirement{Optional: true})
	r.texts(f, root.Get("tool", "uv", "constraint-dependencies"), Requirement{Constraint: true})
	if dynamic := root.Get("tool", "setuptools", "dynamic", "dependencies", "file"); dynamic != nil {
		for _, n := range append([]*Node{dynamic}, values(dynamic)...) {
			if n.Kind == Scalar && n.Raw != "" {
				r.Includes = append(r.Includes, Include{Path: n.Raw, At: n.At})
			}
		}
	}
	poetry := root.Get("tool", "poetry")
	r.table(poetry.get("dependencies"), poetryRange, false)
	r.table(poetry.get("dev-dependencies"), poetryRange, true)
	if groups := poetry.get("group"); groups != nil {
		for _, group := range groups.Items {
			r.table(group.Value.get("dependencies"), poetryRange, true)
		}
	}
	r.table(root.Get("tool", "pixi", "dependencies"), condaRange, false)
	r.table(root.Get("tool", "pixi", "pypi-dependencies"), pipRange, false)
	if sources := root.Get("tool", "uv", "sources"); sources != nil {
		for _, item := range sources.Items {
			if item.Value.get("git") != nil || item.Value.get("url") != nil || item.Value.get("path") != nil || item.Value.get("workspace") != nil {
				r.unknown(PackageName(item.Key))
			}
		}
	}
	return r
}

// get is Get that takes a node that is not there.
func (n *Node) get(key string) *Node {
	if n == nil {
		return nil
	}
	return n.Get(key)
}

func values(n *Node) (list []*Node) {
	if n != nil && n.Kind == Sequence {
		for _, item := range n.Items {
			if item.Value != nil {
				list = append(list, item.Value)
			}
		}
	}
	return list
}

func (r *Requirements) unknown(name string) {
	for i := range r.List {
		if r.List[i].Name == name {
			r.List[i].Known = false
		}
	}
}

// texts reads a list of requirements in pip's form. Like tells what is known of all of them.
func (r *Requirements) texts(f *source.File, list *Node, like Requirement) {
	for _, n := range values(list) {
		r.text(f, n, like)
	}
}

func (r *Requirements) text(f *source.File, n *Node, like Requirement) {
	if n.Kind != Scalar || len(r.List) >= maxRequirements {
		return
	}
	start := n.At.Span.Start
	written := f.Slice(n.At.Span)
	quote := len(written) - len(n.Raw)
	plain := quote >= 0 && quote%2 == 0 && written[quote/2:len(written)-quote/2] == n.Raw
	one, ok := ParseRequirement(f, n.Raw, start+uint32(max(0, quote)/2))
	if !ok {
		return
	}
	if !plain {
		one.At = n.At
	}
	one.Known = one.Known && !n.Open
	one.Optional = one.Optional || like.Optional
	one.Constraint = like.Constraint
	r.List = append(r.List, one)
}

// groups reads lists of requirements by the name of an extra or a group.
func (r *Requirements) groups(f *source.File, groups *Node) {
	if groups == nil || groups.Kind != Mapping {
		return
	}
	for _, group := range groups.Items {
		r.texts(f, group.Value, Requirement{Optional: true})
	}
}

// table reads `name = "versions"` and `name = {version = "versions"}`.
func (r *Requirements) table(table *Node, read func(string) (pep440.Range, bool), optional bool) {
	if table == nil || table.Kind != Mapping {
		return
	}
	for _, item := range table.Items {
		if name := PackageName(item.Key); item.Value == nil || len(r.List) >= maxRequirements || name == "python" || name == "" {
			continue
		}
		options := []*Node{item.Value}
		if item.Value.Kind == Sequence {
			options = values(item.Value)
		}
		for _, option := range options {
			one := Requirement{Name: condaNames(PackageName(item.Key)), At: item.KeyAt, Optional: optional}
			if option.At.Path == one.At.Path && option.At.Span.Start >= one.At.Span.Start {
				one.At.Span.End = option.At.Span.End
			}
			version := option
			if option.Kind == Mapping {
				version = option.get("version")
				if flag := option.get("optional"); flag != nil && flag.Raw == "true" {
					one.Optional = true
				}
				if marker := option.get("markers"); marker != nil {
					one.When = evaluateMarker(marker.Raw, &one.Optional)
				} else if option.get("python") != nil || option.get("platform") != nil || len(options) > 1 {
					one.When = Sometimes
				}
				one.At.Span.End = max(one.At.Span.Start, item.KeyAt.Span.End)
				if version != nil && version.At.Span.End > one.At.Span.End {
					one.At.Span.End = version.At.Span.End
				}
			}
			if version != nil && version.Kind == Scalar && !version.Open {
				one.Spec = version.Raw
				one.Range, one.Known = read(strings.TrimSpace(version.Raw))
			}
			r.List = append(r.List, one)
		}
	}
}

// pipRange reads versions as Pipfile and pixi write them.
func pipRange(spec string) (pep440.Range, bool) {
	if spec == "*" || spec == "" {
		return pep440.Range{}, true
	}
	return pep440.ParseRange(spec)
}

// poetryRange reads versions as poetry writes them: ^1.2, ~1.2, 1.2.*, a bare version for just that one, and || between sets.
func poetryRange(spec string) (pep440.Range, bool) {
	var all pep440.Range
	for i, set := range strings.Split(spec, "||") {
		var one pep440.Range
		for clause := range strings.FieldsFuncSeq(joinOperators(set), func(c rune) bool { return c == ',' || c == ' ' }) {
			r, ok := poetryClause(clause)
			if !ok {
				return pep440.Range{}, false
			}
			one = one.And(r)
		}
		if i == 0 {
			all = one
		} else {
			all = all.Or(one)
		}
	}
	return all, true
}

var operatorBlanks = source.Pattern(`([<>=!~^]+)\s+`)

func joinOperators(spec string) string { return operatorBlanks().ReplaceAllString(spec, "$1") }

func poetryClause(clause string) (pep440.Range, bool) {
	switch {
	case clause == "*":
		return pep440.Range{}, true
	case strings.HasPrefix(clause, "^"):
		v, ok := pep440.Parse(clause[1:])
		if !ok {
			return pep440.Range{}, false
		}
		return pep440.Caret(v), true
	case strings.HasPrefix(clause, "~") && !strings.HasPrefix(clause, "~="):
		v, ok := pep440.Parse(clause[1:])
		if !ok {
			return pep440.Range{}, false
		}
		return pep440.Tilde(v), true
	case strings.HasPrefix(clause, "=") && !strings.HasPrefix(clause, "=="):
		clause = "=" + clause
	case clause[0] >= '0' && clause[0] <= '9':
		clause = "==" + clause
	}
	return pep440.ParseRange(clause)
}

func condaRange(spec string) (pep440.Range, bool) {
	one, ok := CondaRequirement("x "+spec, source.Place{})
	return one.Range, ok && one.Known
}

// PipfileRequirements reads a Pipfile.
func PipfileRequirements(tree *Tree) *Requirements {
	r := &Requirements{}
	if tree != nil && tree.Root != nil {
		r.table(tree.Root.Get("packages"), pipRange, false)
		r.table(tree.Root.Get("dev-packages"), pipRange, true)
	}
	return r
}

// CondaRequirements reads an environment of conda: `dependencies`, with a list under `pip` in it. Nil for another file.
func CondaRequirements(f *source.File, trees []*Tree) *Requirements {
	if len(trees) == 0 || trees[0].Root == nil {
		return nil
	}
	list := trees[0].Root.Get("dependencies")
	if list == nil || list.Kind != Sequence {
		return nil
	}
	r := &Requirements{}
	for _, n := range values(list) {
		switch n.Kind {
		case Scalar:
			if one, ok := CondaRequirement(n.Raw, n.At); ok && len(r.List) < maxRequirements {
				one.Known = one.Known && !n.Open
				r.List = append(r.List, one)
			}
		case Mapping:
			for _, pip := range values(n.Get("pip")) {
				if rest, ok := strings.CutPrefix(pip.Raw, "-r "); ok {
					r.Includes = append(r.Includes, Include{Path: strings.TrimSpace(rest), At: pip.At})
					continue
				}
				r.text(f, pip, Requirement{})
			}
		}
	}
	return r
}

// maxLock bounds the bytes of a lock file that is read.
const maxLock = 8 << 20

// LockRequirements reads the packages of uv.lock or poetry.lock by their lines, since such files are long and regular.
func LockRequirements(f *source.File) *Requirements {
	r := &Requirements{}
	if len(f.Text) > maxLock {
		return r
	}
	name, version := "", ""
	var at source.Span
	foreign := false
	flush := func() {
		if v, ok := pep440.Parse(version); ok && name != "" && len(r.List) < maxRequirements {
			r.List = append(r.List, Requirement{Name: PackageName(name), At: f.At(at), Range: pep440.Exactly(v), Known: !foreign, Spec: "==" + version, Locked: true})
		}
		name, version, foreign = "", "", false
	}
	inside := false
	offset := 0
	for line := range bytes.Lines(f.Text) {
		text := strings.TrimSpace(string(line))
		switch value, ok := tomlText(text, "name"); {
		case text == "[[package]]":
			flush()
			inside = true
		case strings.HasPrefix(text, "["):
			inside = false
		case inside && ok:
			name = value
			at = source.Span{Start: uint32(offset), End: uint32(offset + len(bytes.TrimRight(line, "\r\n")))}
		case inside:
			if value, ok := tomlText(text, "version"); ok {
				version = value
				at.End = uint32(offset + len(bytes.TrimRight(line, "\r\n")))
			}
			foreign = foreign || strings.HasPrefix(text, "source") && (strings.Contains(text, "git =") || strings.Contains(text, "editable") || strings.Contains(text, "virtual"))
		}
		offset += len(line)
	}
	flush()
	return r
}

func tomlText(line, key string) (string, bool) {
	rest, ok := strings.CutPrefix(line, key)
	if !ok {
		return "", false
	}
	rest = strings.TrimSpace(rest)
	if !strings.HasPrefix(rest, `= "`) || !strings.HasSuffix(rest, `"`) || len(rest) < 4 {
		return "", false
	}
	return rest[3 : len(rest)-1], true
}

// SetupRequirements reads what a setup.cfg asks for under [options] and [options.extras_require].
func SetupRequirements(f *source.File) *Requirements {
	r := &Requirements{}
	section, key := "", ""
	for n := range f.Lines() {
		span := f.LineSpan(n)
		line := f.Slice(span)
		trimmed := strings.TrimSpace(line)
		at := span.Start + uint32(strings.Index(line, trimmed))
		switch {
		case trimmed == "":
			continue
		case trimmed[0] == '#' || trimmed[0] == ';':
			r.comments = append(r.comments, source.Span{Start: at, End: at + uint32(len(trimmed))})
			continue
		case line[0] == '[':
			section, key = strings.Trim(trimmed, "[]"), ""
			continue
		case line[0] != ' ' && line[0] != '\t':
			name, value, ok := strings.Cut(trimmed, "=")
			if !ok {
				continue
			}
			key = strings.TrimSpace(name)
			value = strings.TrimSpace(value)
			at += uint32(len(trimmed) - len(value))
			trimmed = value
		}
		required := section == "options" && key == "install_requires"
		if hash := commentStart(trimmed); hash >= 0 {
			r.comments = append(r.comments, source.Span{Start: at + uint32(hash), End: at + uint32(len(trimmed))})
			trimmed = strings.TrimRight(trimmed[:hash], " \t")
		}
		if trimmed == "" || !required && section != "options.extras_require" || len(r.List) >= maxRequirements {
			continue
		}
		if file, ok := strings.CutPrefix(trimmed, "file:"); ok {
			for one := range strings.SplitSeq(file, ",") {
				r.Includes = append(r.Includes, Include{Path: strings.TrimSpace(one), At: f.At(source.Span{Start: at, End: at + uint32(len(trimmed))})})
			}
			continue
		}
		if one, ok := ParseRequirement(f, trimmed, at); ok {
			one.Optional = one.Optional || !required
			r.List = append(r.List, one)
			r.extents = append(r.extents, source.Span{Start: at, End: at + uint32(len(trimmed))})
		}
	}
	return r
}
