// Command keys makes the table of keys of a dialect anew, from the source of the framework that reads them:
//
//	go run ./cmd/gen/keys -dialect megatron -source CHECKOUT [-also CHECKOUT,...] -version "Megatron-LM core 0.20"
//
// CHECKOUT is a folder with the files of the repository at one commit, which -commit names; -also are repositories of programs on top
// of it, whose own arguments are no slips of known ones. Nothing of the framework is run: its files are read with the parser
// of trainvet. What a table says beyond that (keys that were removed, choices that no annotation tells) stands in the recipe below.
package main

import (
	"flag"
	"log"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// key is an entry of a table, as package dialect reads it.
type key struct {
	Type    string `json:"type,omitempty"`
	Default any    `json:"default,omitempty"`
	Choices []any  `json:"choices,omitempty"`
	Fold    bool   `json:"fold,omitempty"`

	Removed     string `json:"removed,omitempty"`
	Replacement string `json:"replacement,omitempty"`
	Renamed     string `json:"renamed,omitempty"`
}

// maker collects one table.
type maker struct {
	root         string
	keys         map[string]*key
	sections     map[string]string
	constructors map[string]map[string]*key
	files        map[string]*syntax.File
	classes      map[string]*syntax.ClassDef
	enums        map[string][]any
}

func newMaker(sections map[string]string) *maker {
	return &maker{keys: map[string]*key{}, sections: maps.Clone(sections), constructors: map[string]map[string]*key{}, files: map[string]*syntax.File{},
		classes: map[string]*syntax.ClassDef{}, enums: map[string][]any{}}
}

func main() {
	log.SetFlags(0)
	name := flag.String("dialect", "", "which table: "+strings.Join(slices.Sorted(maps.Keys(recipes)), ", "))
	from := flag.String("source", "", "folders with the framework's files, with commas between them")
	also := flag.String("also", "", "folders of programs on top, with commas between them")
	version := flag.String("version", "", "release that was read, such as \"OLMo 0.6\"")
	commit := flag.String("commit", "", "commit that was read")
	flag.Parse()
	recipe, known := recipes[*name]
	if !known || *from == "" || *version == "" || *commit == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	m := newMaker(recipe.sections)
	for _, root := range strings.Split(*from, ",") {
		m.root = root
		for _, r := range recipe.from {
			m.read(r)
		}
	}
	for at, end := range recipe.removed {
		m.keys[at] = &key{Removed: end.release, Replacement: end.replacement}
	}
	words := map[string]bool{}
	for _, root := range strings.Split(*also, ",") {
		if root != "" {
			m.words(root, words)
		}
	}
	for k := range m.keys {
		delete(words, k)
	}
	_, self, _, _ := runtime.Caller(0)
	target := filepath.Join(filepath.Dir(self), "..", "..", "..", "configs", "dialect", "keys", *name+".json")
	if err := os.WriteFile(target, m.write(*version, *commit, slices.Sorted(maps.Keys(words))), 0o666); err != nil {
		log.Fatal(err)
	}
	log.Printf("%s: %d keys, %d constructors", target, len(m.keys), len(m.constructors))
}

func (m *maker) read(r reading) {
	for _, pattern := range r.files {
		if r.kind == builders {
			m.builders(pattern)
			continue
		}
		names, err := filepath.Glob(filepath.Join(m.root, filepath.FromSlash(pattern)))
		if err != nil {
			log.Fatal(err)
		}
		for _, name := range names {
			switch {
			case strings.HasSuffix(name, ".yaml"):
				m.yaml(r, name)
			case r.kind == options || r.kind == dests:
				m.arguments(r, m.parse(name))
			case r.kind == schema:
				m.schema(r, m.parse(name))
			case r.kind == roots:
				m.attributes(m.parse(name))
			default:
				m.learn(m.parse(name))
			}
		}
	}
	switch {
	case r.kind == fields && r.class == "*":
		for _, name := range slices.Sorted(maps.Keys(m.classes)) {
			if strings.HasSuffix(name, "Config") {
				m.fields(r.under, m.classes[name], 0)
			}
		}
	case r.kind == fields && m.classes[r.class] != nil:
		m.fields(r.under, m.classes[r.class], 0)
	case r.kind == parameters && m.classes[r.class] != nil:
		if f := constructor(m.classes[r.class]); f != nil {
			maps.Copy(m.keys, prefixed(r.under, m.params(f)))
		}
	}
}

func (m *maker) parse(name string) *syntax.File {
	if f := m.files[name]; f != nil {
		return f
	}
	text, err := os.ReadFile(name)
	if err != nil {
		log.Fatal(err)
	}
	f := syntax.Parse(&source.File{Path: name, Kind: source.Python, Text: text})
	m.files[name] = f
	return f
}

// learn remembers the classes of a file.
func (m *maker) learn(f *syntax.File) {
	for _, stmt := range f.Body {
		if class, is := stmt.(*syntax.ClassDef); is {
			m.classes[class.Name] = class
			for _, base := range class.Bases {
				if strings.HasSuffix(dotted(base), "Enum") {
					m.enums[class.Name] = enumValues(class)
				}
			}
		}
	}
}

func enumValues(class *syntax.ClassDef) []any {
	var values []any
	for _, stmt := range class.Body {
		if assign, is := stmt.(*syntax.Assign); is && len(assign.Targets) == 1 {
			if v, is := literal(assign.Value); is {
				values = append(values, v)
			}
		}
	}
	return values
}
