package linttest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"golang.org/x/tools/txtar"
)

// disguise is another kind of file that is taken as Python.
type disguise struct {
	name string
	wrap func(f file) file
	down int // by how many lines the code moves
}

// disguises are all that may be written in place of a .py file.
var disguises = []disguise{
	{"notebook", func(f file) file { return file{stem(f.name) + ".ipynb", oneCell(f.text)} }, 0},
	{"pyw", func(f file) file { return file{stem(f.name) + ".pyw", f.text} }, 0},
	{"script", func(f file) file { return file{stem(f.name), "#!/usr/bin/env python3\n" + f.text} }, 1},
}

func stem(name string) string { return strings.TrimSuffix(name, ".py") }

// oneCell is a notebook with the text as its only cell.
func oneCell(text string) string {
	raw, err := json.Marshal(map[string]any{"nbformat": 4, "nbformat_minor": 5, "metadata": map[string]any{},
		"cells": []any{map[string]any{"cell_type": "code", "metadata": map[string]any{}, "outputs": []any{}, "source": text}}})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// RunAsOtherKinds takes the cases that are one Python file as each other kind of file that is taken as Python, and demands the
// findings of the .py file: their rules, lines and severities. It gives how many cases there were.
func RunAsOtherKinds(t *testing.T, rules []*lint.Rule, folder string) (cases int) {
	for _, rule := range rules {
		raw, err := os.ReadFile(filepath.Join(folder, rule.Family, rule.Name+".txtar"))
		if err != nil {
			t.Fatalf("a rule needs cases: %v", err)
		}
		examples, _ := split(txtar.Parse(raw))
		for _, example := range examples {
			at := example.onlyPython()
			if at < 0 {
				continue
			}
			cases++
			t.Run(rule.Name+"/"+example.title, func(t *testing.T) {
				plain := example.files[at]
				wanted := newRunner(rule, rules, example.files, example.files.markers(t)).found(t)
				for _, other := range disguises {
					files := append(project{}, example.files...)
					files[at] = other.wrap(plain)
					found := newRunner(rule, rules, files, example.files.markers(t)).found(t)
					for i := range found {
						if found[i].path == files[at].name {
							found[i].path = plain.name
							found[i].line -= other.down
						}
					}
					t.Run(other.name, func(t *testing.T) { compare(t, wanted, found, rules) })
				}
			})
		}
	}
	return cases
}

// found are the findings of a plain check.
func (r *runner) found(t *testing.T) []want {
	return r.tested(r.fresh(t, way{targets: r.project.targets()}))
}

// onlyPython is the number of the file of a case that is one Python file, settings aside; -1 for others.
func (e *example) onlyPython() int {
	at := -1
	for i, f := range e.files {
		switch {
		case check.IsSettingsFile(f.name):
		case at >= 0 || !strings.HasSuffix(f.name, ".py"):
			return -1
		default:
			at = i
		}
	}
	return at
}
