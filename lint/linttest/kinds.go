package linttest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan/syntax"
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
	none := map[string]any{}
	cell := map[string]any{"cell_type": "code", "metadata": none, "outputs": []any{}, "source": text}
	raw, err := json.Marshal(map[string]any{"nbformat": 4, "nbformat_minor": 5, "metadata": none, "cells": []any{cell}})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// RunAsOtherKinds takes the cases that are one Python file as each other kind of file that is taken as Python, and
// demands the findings of the .py file: their rules, lines and severities. Two things differ rightly: what is no Python
// may be IPython's in a notebook, and Databricks writes its notebooks as .py files. It gives how many cases there were.
func RunAsOtherKinds(t *testing.T, rules []*lint.Rule, folder string) (cases int) {
	eachOnePython(t, rules, folder, func(t *testing.T, rule *lint.Rule, example *example, at int) {
		plain, marked := example.files[at], example.files.markers(t)
		if strings.HasPrefix(plain.text, "# Databricks notebook source") {
			return // a format of .py files alone
		}
		cases++
		wanted := newRunner(rule, rules, example.files, marked).found(t)
		for _, other := range disguises {
			files := slices.Clone(example.files)
			files[at] = other.wrap(plain)
			found := newRunner(rule, rules, files, marked).found(t)
			for i := range found {
				if found[i].path == files[at].name {
					found[i].path = plain.name
					found[i].line -= other.down
				}
			}
			wanted := wanted
			if other.name == "notebook" {
				wanted = slices.DeleteFunc(slices.Clone(wanted), func(w want) bool {
					return w.rule == "syntax-error" && !slices.Contains(found, w)
				})
			}
			t.Run(other.name, func(t *testing.T) { compare(t, wanted, found, rules) })
		}
	})
	return cases
}

// RunUnderOwnNames takes the cases that are one Python file with what they import from libraries under names of one's
// own, whose meaning the settings give, and demands the same findings. It gives how many cases there were.
func RunUnderOwnNames(t *testing.T, rules []*lint.Rule, folder string) (cases int) {
	eachOnePython(t, rules, folder, func(t *testing.T, rule *lint.Rule, example *example, at int) {
		renamed, known := ownNames(t, example.files[at])
		if len(example.files) > 1 || known == "" {
			return
		}
		cases++
		settings, marked := file{"trainvet.toml", "[known]\n" + known}, example.files.markers(t)
		wanted := newRunner(rule, rules, project{example.files[at], settings}, marked).found(t)
		compare(t, wanted, newRunner(rule, rules, project{renamed, settings}, marked).found(t), rules)
	})
	return cases
}

// ownNames imports what a file takes from libraries by `from ... import` from a module of one's own, under names that
// say nothing.
func ownNames(t *testing.T, f file) (renamed file, known string) {
	text, err := source.New(f.name, []byte(f.text))
	if err != nil {
		t.Fatal(err)
	}
	type edit struct {
		at  source.Span
		new string
	}
	var edits []edit
	local := map[string]string{}
	tree := syntax.Parse(text)
	for node := range tree.All() {
		from, is := node.(*syntax.ImportFrom)
		library, _, _ := strings.Cut(fromModule(from, is), ".")
		if !slices.Contains(renamable, library) || from.Names[0].Name == "*" {
			continue
		}
		if from.Module == "torch_npu.contrib" { // of which the import itself counts
			continue
		}
		start := from.Span().Start + uint32(strings.Index(text.Slice(from.Span()), from.Module))
		edits = append(edits, edit{source.Span{Start: start, End: start + uint32(len(from.Module))}, "acme"})
		for _, alias := range from.Names {
			number := len(local)
			local[cmp.Or(alias.AsName, alias.Name)] = fmt.Sprintf("zw%d", number)
			edits = append(edits, edit{alias.Span(), fmt.Sprintf("zq%d as zw%d", number, number)})
			known += fmt.Sprintf("\"acme.zq%d\" = \"%s.%s\"\n", number, from.Module, alias.Name)
		}
	}
	for node := range tree.All() {
		if name, is := node.(*syntax.Name); is && local[name.ID] != "" {
			edits = append(edits, edit{name.Span(), local[name.ID]})
		}
	}
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(b.at.Start, a.at.Start) })
	changed := f.text
	for _, e := range edits {
		changed = changed[:e.at.Start] + e.new + changed[e.at.End:]
	}
	return file{f.name, changed}, known
}

// renamable are the libraries whose names ownNames replaces.
var renamable = []string{
	"torch", "torch_npu", "transformers", "accelerate", "deepspeed", "lightning", "pytorch_lightning",
	"lightning_fabric", "peft", "trl", "diffusers",
}

func fromModule(from *syntax.ImportFrom, is bool) string {
	if !is || from.Level > 0 {
		return ""
	}
	return from.Module
}

// eachOnePython visits the cases that are one Python file, settings aside.
func eachOnePython(t *testing.T, rules []*lint.Rule, folder string,
	visit func(t *testing.T, rule *lint.Rule, example *example, at int)) {
	for _, rule := range rules {
		raw, err := os.ReadFile(filepath.Join(folder, rule.Family, rule.Name+".txtar"))
		if err != nil {
			t.Fatalf("a rule needs cases: %v", err)
		}
		examples, _ := split(txtar.Parse(raw))
		for _, example := range examples {
			if at := example.onlyPython(); at >= 0 {
				t.Run(rule.Name+"/"+example.title, func(t *testing.T) { visit(t, rule, example, at) })
			}
		}
	}
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
