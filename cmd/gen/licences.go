//go:build ignore

// Licences prints under which licence each module comes that is built into trainvet, on any system, or that its tests need.
//
//	go run ./cmd/gen/licences.go [-check] [-write FILE]
//
// It knows licences by their text. With -check it fails where a module has none, one that it does not know, or one that asks for more than to be
// named. With -write it writes the texts of what is built in, which those licences want to go with the binary.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// systems are those of the releases.
var systems = []string{"linux", "darwin", "windows"}

// licence is told by phrases of its text, all of which it holds.
type licence struct {
	name    string
	phrases []string
	allowed bool
}

// The first one that fits counts: MPL speaks of the GNU licences, those of three clauses hold the text of those of two.
var licences = []licence{
	{"MPL-2.0", []string{"mozilla public license"}, false},
	{"AGPL", []string{"gnu affero general public license"}, false},
	{"LGPL", []string{"gnu lesser general public license"}, false},
	{"GPL", []string{"gnu general public license"}, false},
	{"EPL", []string{"eclipse public license"}, false},
	{"SSPL", []string{"server side public license"}, false},
	{"BUSL", []string{"business source license"}, false},
	{"CC-BY-SA", []string{"attribution-sharealike"}, false},
	{"Apache-2.0", []string{"apache license", "version 2.0", "grant of patent license"}, true},
	{"BSD-3-Clause", []string{"redistributions of source code must retain", "redistributions in binary form must reproduce", "neither the name"}, true},
	{"BSD-2-Clause", []string{"redistributions of source code must retain", "redistributions in binary form must reproduce"}, true},
	{"MIT", []string{"permission is hereby granted, free of charge, to any person obtaining a copy", "the above copyright notice and this permission notice shall be included"}, true},
	{"ISC", []string{"permission to use, copy, modify, and", "distribute this software for any purpose with or without fee is hereby granted"}, true},
	{"Unlicense", []string{"this is free and unencumbered software released into the public domain"}, true},
	{"CC0-1.0", []string{"cc0 1.0 universal"}, true},
}

// module is one dependency.
type module struct {
	path, version, folder string
	shipped               bool
	files                 []string
	licences              []licence
}

var (
	fileName = regexp.MustCompile(`(?i)^(?:licen[cs]es?|copying|unlicense|mit-license)(?:[-_.].*)?$`)
	blanks   = regexp.MustCompile(`[\s*#/;"“”]+`)
)

func main() {
	check := flag.Bool("check", false, "fail where a licence is not known or not allowed")
	write := flag.String("write", "", "write the texts of what is built in into `FILE`")
	flag.Parse()
	modules, err := find()
	if err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
	bad := 0
	fmt.Printf("%-48s %-42s %-8s %s\n", "module", "version", "in", "licence")
	for _, m := range modules {
		in, names, allowed := "tests", []string{}, len(m.licences) > 0
		if m.shipped {
			in = "trainvet"
		}
		for _, l := range m.licences {
			names = append(names, l.name)
			allowed = allowed && l.allowed
		}
		remark := ""
		if !allowed {
			remark, bad = "  NOT ALLOWED", bad+1
		}
		fmt.Printf("%-48s %-42s %-8s %s%s\n", m.path, m.version, in, strings.Join(names, " "), remark)
	}
	if *write != "" {
		if err := notices(*write, modules); err != nil {
			fmt.Fprintln(os.Stderr, "licences:", err)
			os.Exit(1)
		}
	}
	if *check && bad > 0 {
		fmt.Fprintf(os.Stderr, "licences: %d modules have none that is known and allowed\n", bad)
		os.Exit(1)
	}
}

// find lists the modules, sorted.
func find() ([]*module, error) {
	all := map[string]*module{}
	list := func(shipped bool, env string, args ...string) error {
		command := exec.Command("go", append([]string{"list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}"}, args...)...)
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		if env != "" {
			command.Env = append(command.Env, "GOOS="+env)
		}
		var stderr bytes.Buffer
		command.Stderr = &stderr
		out, err := command.Output()
		if err != nil {
			return fmt.Errorf("%w: %s", err, stderr.String())
		}
		for line := range strings.Lines(string(out)) {
			fields := strings.Split(strings.TrimSpace(line), "\t")
			if len(fields) != 3 {
				continue
			}
			if all[fields[0]] == nil {
				all[fields[0]] = &module{path: fields[0], version: fields[1], folder: fields[2]}
			}
			all[fields[0]].shipped = all[fields[0]].shipped || shipped
		}
		return nil
	}
	for _, system := range systems {
		if err := list(true, system, "./cmd/trainvet"); err != nil {
			return nil, err
		}
	}
	if err := list(false, "", "-test", "./..."); err != nil {
		return nil, err
	}
	modules := slices.SortedFunc(maps.Values(all), func(a, b *module) int { return strings.Compare(a.path, b.path) })
	if len(modules) == 0 {
		return nil, fmt.Errorf("go list names no modules at all")
	}
	for _, m := range modules {
		if err := m.read(); err != nil {
			return nil, err
		}
	}
	return modules, nil
}

// read finds the licences of a module: all that lie in its folder.
func (m *module) read() error {
	entries, err := os.ReadDir(m.folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !fileName.MatchString(entry.Name()) || !entry.Type().IsRegular() || strings.HasSuffix(entry.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.folder, entry.Name()))
		if err != nil {
			return err
		}
		m.files = append(m.files, entry.Name())
		found := tell(string(text))
		if !slices.ContainsFunc(m.licences, func(l licence) bool { return l.name == found.name }) {
			m.licences = append(m.licences, found)
		}
	}
	return nil
}

func tell(text string) licence {
	text = strings.TrimSpace(blanks.ReplaceAllString(strings.ToLower(text), " "))
	for _, l := range licences {
		if !slices.ContainsFunc(l.phrases, func(phrase string) bool { return !strings.Contains(text, phrase) }) {
			return l
		}
	}
	return licence{name: "unknown"}
}

// notices writes the texts of what is built in.
func notices(name string, modules []*module) error {
	var out bytes.Buffer
	out.WriteString("trainvet is built with the modules below, each under its own licence.\n")
	for _, m := range modules {
		if !m.shipped {
			continue
		}
		for _, file := range m.files {
			text, err := os.ReadFile(filepath.Join(m.folder, file))
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, "\n%s\n%s %s, %s\n\n%s\n", strings.Repeat("-", 80), m.path, m.version, file, bytes.TrimSpace(text))
		}
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	return os.WriteFile(name, out.Bytes(), 0o666)
}
