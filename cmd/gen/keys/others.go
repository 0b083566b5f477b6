package main

import (
	"bytes"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// schema takes in the keys of the dict literals that a validator is made of.
func (m *maker) schema(r reading, f *syntax.File) {
	for _, stmt := range f.Body {
		for n := range syntax.Preorder(stmt) {
			assign, is := n.(*syntax.Assign)
			if !is || len(assign.Targets) != 1 || !strings.HasSuffix(dotted(assign.Targets[0]), "_SCHEMA") {
				continue
			}
			name := dotted(assign.Targets[0])
			dict, is := assign.Value.(*syntax.Dict)
			if !is || name == "ARGPARSE_SPECIFIC_SCHEMA" || strings.Contains(name, "DISTINCT") && r.under != "datasets.subsets" || strings.Contains(name, "DATASET") && r.under == "datasets.subsets" {
				continue
			}
			for i, e := range dict.Keys {
				if call, is := e.(*syntax.Call); is && len(call.Args) > 0 {
					e = call.Args[0]
				}
				last, is := text(e)
				if !is {
					continue
				}
				kind := map[string]string{"int": "int", "float": "float", "str": "str", "bool": "bool", "dict": "mapping"}[dotted(dict.Values[i])]
				m.keys[joined(r.under, last)] = &key{Type: kind}
			}
		}
	}
	if r.under == "datasets" {
		m.keys["datasets.subsets"], m.keys["datasets"], m.keys["general"] = &key{Type: "list"}, &key{Type: "list"}, &key{Type: "mapping"}
	}
}

// yaml takes in the keys of a file.
func (m *maker) yaml(r reading, name string) {
	text, err := os.ReadFile(name)
	if err != nil {
		log.Fatal(err)
	}
	trees := configs.ParseYAML(&source.File{Path: name, Kind: source.YAML, Text: text})
	for _, tree := range trees {
		if tree.Root != nil {
			m.node(r, r.under, tree.Root)
		}
	}
}

func (m *maker) node(r reading, under string, n *configs.Node) {
	for i := range n.Items {
		item := &n.Items[i]
		if item.Value == nil || item.Key == "" || strings.ContainsAny(item.Key, ". ") || strings.HasPrefix(item.Key, "_") {
			continue
		}
		at := joined(under, item.Key)
		if m.keys[at] == nil {
			m.keys[at] = &key{}
		}
		if item.Value.Kind == configs.Mapping && r.kind == settings {
			if len(item.Value.Items) > 0 {
				m.open(at)
			}
			m.node(r, at, item.Value)
		}
	}
}

// attributes takes in what a recipe reads of its `cfg`.
func (m *maker) attributes(f *syntax.File) {
	for _, stmt := range f.Body {
		for n := range syntax.Preorder(stmt) {
			switch n := n.(type) {
			case *syntax.Attribute:
				if name := dotted(n.Value); (name == "cfg" || name == "self.cfg" || name == "self._cfg") && n.Attr != "get" && n.Attr != "pop" {
					m.add(n.Attr)
				}
			case *syntax.Call:
				if name := dotted(n.Func); (name == "cfg.get" || name == "cfg.pop" || name == "self.cfg.get") && len(n.Args) > 0 {
					if word, is := text(n.Args[0]); is {
						m.add(word)
					}
				}
			}
		}
	}
}

func (m *maker) add(name string) {
	if m.keys[name] == nil {
		m.keys[name] = &key{}
	}
}

// builders takes in the parameters of all functions and classes that the packages below a folder export.
func (m *maker) builders(folder string) {
	filepath.WalkDir(filepath.Join(m.root, folder), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "__init__.py" {
			return nil
		}
		relative, _ := filepath.Rel(m.root, filepath.Dir(name))
		pkg := strings.ReplaceAll(filepath.ToSlash(relative), "/", ".")
		for _, stmt := range m.parse(name).Body {
			imported, is := stmt.(*syntax.ImportFrom)
			if !is {
				continue
			}
			from := imported.Module
			if imported.Level > 0 {
				above := strings.Split(pkg, ".")
				from = strings.TrimSuffix(strings.Join(above[:len(above)-imported.Level+1], ".")+"."+from, ".")
			}
			for _, alias := range imported.Names {
				as := alias.AsName
				if as == "" {
					as = alias.Name
				}
				if f := m.definition(from, alias.Name); f != nil && f.Args.KwArg == nil {
					m.constructors[pkg+"."+as] = m.params(f)
				}
			}
		}
		return nil
	})
}

// definition is the function of a module that goes by a name, or the constructor of the class.
func (m *maker) definition(module, name string) *syntax.FunctionDef {
	file := filepath.Join(m.root, filepath.FromSlash(strings.ReplaceAll(module, ".", "/"))+".py")
	if _, err := os.Stat(file); err != nil {
		return nil
	}
	for _, stmt := range m.parse(file).Body {
		switch def := stmt.(type) {
		case *syntax.FunctionDef:
			if def.Name == name {
				return def
			}
		case *syntax.ClassDef:
			if def.Name == name {
				return constructor(def)
			}
		}
	}
	return nil
}

func constructor(class *syntax.ClassDef) *syntax.FunctionDef {
	for _, stmt := range class.Body {
		if def, is := stmt.(*syntax.FunctionDef); is && def.Name == "__init__" {
			return def
		}
	}
	return nil
}

func (m *maker) params(f *syntax.FunctionDef) map[string]*key {
	found := map[string]*key{}
	for _, arg := range slices.Concat(f.Args.PosOnly, f.Args.Args, f.Args.KwOnly) {
		if arg.Name != "self" && arg.Name != "cls" {
			found[arg.Name] = &key{}
		}
	}
	return found
}

func prefixed(under string, keys map[string]*key) map[string]*key {
	found := map[string]*key{}
	for name, k := range keys {
		found[joined(under, name)] = k
	}
	return found
}

// words are the names of all arguments that the Python files of a folder add.
func (m *maker) words(root string, into map[string]bool) {
	filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".py") {
			return nil
		}
		body, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(body, []byte("add_argument")) {
			return nil
		}
		for _, stmt := range m.parse(name).Body {
			for n := range syntax.Preorder(stmt) {
				if call, is := n.(*syntax.Call); is && strings.HasSuffix(dotted(call.Func), "add_argument") {
					for _, arg := range call.Args {
						if word, is := text(arg); is && strings.HasPrefix(word, "--") {
							into[fold(word)] = true
						}
					}
				}
			}
		}
		return nil
	})
}
