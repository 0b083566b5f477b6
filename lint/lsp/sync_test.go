package lsp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const embedding = `import torch
from torch.utils.checkpoint import checkpoint


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = torch.nn.Embedding(1000, 64)

    def forward(self, x):
        return checkpoint(self.tok, x, use_reentrant=False)
`

func TestPush(t *testing.T) {
	folder := project(t, map[string]string{"model.py": embedding})
	c := start(t)
	c.initialize(folder, object{})
	u := fileURI(filepath.Join(folder, "model.py"))
	c.open(u, "python", embedding)
	found := c.published(u, 1)
	if len(found) != 1 || found[0].Code != "checkpoint-embedding" {
		t.Fatalf("found %v", found)
	}
	d := found[0]
	if d.Severity != 3 || d.Source != "trainvet" || !strings.HasSuffix(d.CodeDescription.Href, "/checkpointing/checkpoint-embedding.md") || d.Message == "" || d.Data["rule"] != d.Code {
		t.Errorf("fields: %+v", d)
	}
	if len(d.RelatedInformation) == 0 || d.RelatedInformation[0].Location.URI != u || d.RelatedInformation[0].Location.Range.Start.Line != 7 {
		t.Errorf("evidence: %+v", d.RelatedInformation)
	}
	// Incremental edits, several in one notification, each to the result of the one before.
	c.change(u, 2, edit(0, 0, 0, 0, "# 😀 é\n"), edit(0, 0, 0, 4, ""), edit(0, 0, 0, 2, "# "))
	if found := c.published(u, 2); len(found) != 1 || found[0].Range.Start.Line != 11 {
		t.Errorf("after an inserted line: %v", found)
	}
	c.change(u, 3, edit(11, 15, 11, 25, "len"))
	if found := c.published(u, 3); len(found) != 0 {
		t.Errorf("the mistake is gone: %v", found)
	}
	c.change(u, 4, whole(embedding))
	if found := c.published(u, 4); len(found) != 1 {
		t.Errorf("it is back: %v", found)
	}
	c.change(u, 5, edit(4000, 17, 9000, 3, "x = (\n")) // beyond the end is the end
	if found := c.published(u, 5); !slices.Contains(codes(found), "checkpoint-embedding") {
		t.Errorf("a syntax error keeps the others: %v", found)
	}
	c.notify("textDocument/didClose", object{"textDocument": object{"uri": u}})
	if found := c.published(u, 0); len(found) != 0 {
		t.Errorf("closed: %v", found)
	}
	c.stop()
}

// The positions are those of the encoding, and never inside of a character.
func TestEncodings(t *testing.T) {
	text := strings.Replace(embedding, "        return checkpoint(", "        é, g = '😀', checkpoint(", 1)
	for encoding, column := range map[string]int{"utf-8": 24, "utf-16": 21, "utf-32": 20} {
		folder := project(t, nil)
		c := start(t)
		c.initialize(folder, object{"general": object{"positionEncodings": []string{encoding}}})
		u := fileURI(filepath.Join(folder, "model.py"))
		c.open(u, "python", text)
		found := c.published(u, 1)
		if len(found) != 1 || found[0].Range.Start.Line != 10 || found[0].Range.Start.Character != column {
			t.Errorf("%s: %v, wanted column %d", encoding, found, column)
		}
		c.stop()
	}
}

func TestLineEnds(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		folder := project(t, nil)
		c := start(t)
		c.initialize(folder, object{})
		u := fileURI(filepath.Join(folder, "model.py"))
		c.open(u, "python", strings.ReplaceAll(embedding, "\n", end))
		if found := c.published(u, 1); len(found) != 1 || found[0].Range.Start.Line != 10 || found[0].Range.Start.Character != 15 {
			t.Errorf("%q: %v", end, found)
		}
		c.stop()
	}
}

const engineLoop = `import deepspeed


def train(model, loader):
    engine, optimizer, _, _ = deepspeed.initialize(model=model, config="ds_config.json")
    for step, batch in enumerate(loader):
        loss = engine(batch) / 8
        engine.backward(loss)
        engine.step()
`

// What an editor has not saved decides what is found elsewhere, both ways.
func TestUnsavedNeighbours(t *testing.T) {
	config := "{\n  \"train_micro_batch_size_per_gpu\": 4,\n  \"gradient_accumulation_steps\": 1\n}\n"
	folder := project(t, map[string]string{"train.py": engineLoop, "ds_config.json": config})
	c := start(t)
	c.initialize(folder, object{})
	script, settings := fileURI(filepath.Join(folder, "train.py")), fileURI(filepath.Join(folder, "ds_config.json"))
	c.open(script, "python", engineLoop)
	before := codes(c.published(script, 1))
	c.open(settings, "json", config)
	c.published(settings, 1)
	after := c.heard()
	c.change(settings, 2, edit(2, 33, 2, 34, "8"))
	c.published(settings, 2)
	found := codes(c.publishedAfter(script, 1, after))
	if slices.Equal(before, found) || !slices.Contains(found, "double-scaled-loss") {
		t.Errorf("with 8 steps of accumulation: %v, before %v", found, before)
	}
	after = c.heard()
	c.notify("textDocument/didClose", object{"textDocument": object{"uri": settings}})
	if found := codes(c.publishedAfter(script, 1, after)); !slices.Equal(found, before) {
		t.Errorf("the text on disk holds again: %v, before %v", found, before)
	}
	// A change on disk counts as well.
	write(t, filepath.Join(folder, "ds_config.json"), strings.Replace(config, "steps\": 1", "steps\": 8", 1))
	after = c.heard()
	c.notify("workspace/didChangeWatchedFiles", object{"changes": []object{{"uri": settings, "type": 2}}})
	if found := codes(c.publishedAfter(script, 1, after)); !slices.Contains(found, "double-scaled-loss") {
		t.Errorf("after the change on disk: %v", found)
	}
	if err := os.Remove(filepath.Join(folder, "ds_config.json")); err != nil {
		t.Fatal(err)
	}
	after = c.heard()
	c.notify("workspace/didChangeWatchedFiles", object{"changes": []object{{"uri": settings, "type": 3}}})
	if found := codes(c.publishedAfter(script, 1, after)); slices.Contains(found, "double-scaled-loss") {
		t.Errorf("after the config is gone: %v", found)
	}
	c.stop()
}

func TestSettings(t *testing.T) {
	folder := project(t, map[string]string{"model.py": embedding})
	c := start(t)
	c.initialize(folder, object{})
	u, settings := fileURI(filepath.Join(folder, "model.py")), fileURI(filepath.Join(folder, "trainvet.toml"))
	c.open(u, "python", embedding)
	c.published(u, 1)
	after := c.heard()
	c.open(settings, "toml", "ignore = [\"checkpointing\"]\n")
	c.published(settings, 1)
	if found := c.publishedAfter(u, 1, after); len(found) != 0 {
		t.Errorf("ignored: %v", found)
	}
	c.change(settings, 2, whole("ignore = [\"checkpointing\"\n"))
	if found := c.published(settings, 2); len(found) != 1 || found[0].Severity != 1 {
		t.Errorf("broken settings: %v", found)
	}
	c.change(settings, 3, whole("ignroe = [\"checkpointing\"]\n"))
	if found := c.published(settings, 3); len(found) != 1 || !strings.Contains(found[0].Message, "did you mean") {
		t.Errorf("misspelt settings: %v", found)
	}
	c.change(u, 2, edit(0, 0, 0, 0, "\n"))
	if found := c.published(u, 2); len(found) != 0 {
		t.Errorf("the last good settings hold: %v", found)
	}
	after = c.heard()
	c.change(settings, 4, whole("\n"))
	c.published(settings, 4)
	if found := c.publishedAfter(u, 2, after); len(found) != 1 {
		t.Errorf("no more ignored: %v", found)
	}
	// On disk and not open.
	after = c.heard()
	c.notify("textDocument/didClose", object{"textDocument": object{"uri": settings}})
	c.publishedAfter(settings, 0, after) // else it may be taken for the answer to what follows
	after = c.heard()
	write(t, filepath.Join(folder, "trainvet.toml"), "selct = []\n")
	c.notify("workspace/didChangeWatchedFiles", object{"changes": []object{{"uri": settings, "type": 1}}})
	if found := c.publishedAfter(settings, 0, after); len(found) != 1 {
		t.Errorf("settings on disk: %v", found)
	}
	c.stop()
}

func TestPull(t *testing.T) {
	folder := project(t, map[string]string{"model.py": embedding, "other.py": embedding, "clean.py": "import torch\n"})
	c := start(t)
	c.initialize(folder, object{"textDocument": object{"diagnostic": object{}}, "workspace": object{"diagnostics": object{"refreshSupport": true}}})
	u := fileURI(filepath.Join(folder, "model.py"))
	c.open(u, "python", embedding)
	type report struct {
		Kind, ResultID string
		Items          []diagnostic
	}
	pull := func(previous string) (r report) {
		t.Helper()
		params := object{"textDocument": object{"uri": u}}
		if previous != "" {
			params["previousResultId"] = previous
		}
		if err := json.Unmarshal(c.request("textDocument/diagnostic", params), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := pull("")
	if first.Kind != "full" || len(first.Items) != 1 || first.ResultID == "" {
		t.Fatalf("pulled %+v", first)
	}
	if again := pull(first.ResultID); again.Kind != "unchanged" || again.ResultID != first.ResultID {
		t.Errorf("pulled again %+v", again)
	}
	c.change(u, 2, edit(10, 15, 10, 25, "len"))
	if fixed := pull(first.ResultID); fixed.Kind != "full" || len(fixed.Items) != 0 {
		t.Errorf("pulled after the change %+v", fixed)
	}
	var all struct {
		Items []struct {
			URI, Kind, ResultID string
			Version             *int
			Items               []diagnostic
		}
	}
	if err := json.Unmarshal(c.request("workspace/diagnostic", object{"previousResultIds": []object{{"uri": fileURI(filepath.Join(folder, "gone.py")), "value": "x"}}}), &all); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, item := range all.Items {
		got[item.URI[strings.LastIndex(item.URI, "/")+1:]] = len(item.Items)
		if open := item.URI == u; open != (item.Version != nil) {
			t.Errorf("%s: version %v", item.URI, item.Version)
		}
	}
	if len(got) != 3 || got["model.py"] != 0 || got["other.py"] != 1 || got["gone.py"] != 0 {
		t.Errorf("workspace: %v", got)
	}
	c.notify("workspace/didChangeWatchedFiles", object{"changes": []object{{"uri": fileURI(filepath.Join(folder, "trainvet.toml")), "type": 1}}})
	c.until("the refresh", func() bool {
		return slices.ContainsFunc(c.notes, func(n note) bool { return n.Method == "workspace/diagnostic/refresh" })
	})
	c.stop()
	if slices.ContainsFunc(c.told(), func(n note) bool { return n.Method == "textDocument/publishDiagnostics" }) {
		t.Error("a client that pulls was pushed to")
	}
}

// Versions never go back, and the last one is answered.
func TestBurst(t *testing.T) {
	folder := project(t, nil)
	c := start(t)
	c.initialize(folder, object{})
	u := fileURI(filepath.Join(folder, "model.py"))
	c.open(u, "python", embedding)
	const last = 300
	for version := 2; version <= last; version++ {
		c.change(u, version, edit(0, 0, 0, 0, "#\n"))
	}
	if found := c.published(u, last); len(found) != 1 || found[0].Range.Start.Line != 10+last-1 {
		t.Errorf("after the burst: %v", found)
	}
	highest := 0
	for _, n := range c.told() {
		var p publication
		if n.Method == "textDocument/publishDiagnostics" && json.Unmarshal(n.Params, &p) == nil && p.Version != nil {
			if *p.Version < highest {
				t.Errorf("version %d after %d", *p.Version, highest)
			}
			highest = *p.Version
		}
	}
	c.stop()
}

func TestFolders(t *testing.T) {
	one, two := project(t, map[string]string{"model.py": embedding}), project(t, map[string]string{"model.py": embedding, "trainvet.toml": "ignore = [\"checkpointing\"]\n"})
	c := start(t)
	c.initialize(one, object{})
	u := fileURI(filepath.Join(two, "model.py"))
	c.open(u, "python", embedding)
	if found := c.published(u, 1); len(found) != 0 {
		t.Errorf("a file outside of the workspace has the settings above it: %v", found)
	}
	c.notify("workspace/didChangeWorkspaceFolders", object{"event": object{"added": []object{{"uri": fileURI(two), "name": "two"}}, "removed": []object{{"uri": fileURI(one), "name": "one"}}}})
	c.change(u, 2, edit(0, 0, 0, 0, "\n"))
	c.published(u, 2)
	c.stop()
}

// A document that is on no disk is checked as well, under the URI that the editor knows.
func TestUntitled(t *testing.T) {
	c := start(t)
	c.initialize(project(t, nil), object{})
	c.open("untitled:Untitled-1", "python", embedding)
	if found := c.published("untitled:Untitled-1", 1); len(found) != 1 {
		t.Errorf("untitled: %v", found)
	}
	odd := "file:///tmp/a+b@c/(x)/model.py"
	c.open(odd, "python", embedding)
	if found := c.published(odd, 1); len(found) != 1 || found[0].RelatedInformation[0].Location.URI != odd {
		t.Errorf("spelled by the editor: %+v", found)
	}
	c.stop()
}

func TestNotebook(t *testing.T) {
	folder := project(t, nil)
	c := start(t)
	c.initialize(folder, object{})
	book := fileURI(filepath.Join(folder, "n.ipynb"))
	cell := func(n string) string { return "vscode-notebook-cell:" + strings.TrimPrefix(book, "file://") + "#" + n }
	before, after, _ := strings.Cut(embedding, "\n\n\n")
	c.notify("notebookDocument/didOpen", object{
		"notebookDocument": object{"uri": book, "notebookType": "jupyter-notebook", "version": 1, "cells": []object{
			{"kind": 1, "document": cell("a")}, {"kind": 2, "document": cell("b")}, {"kind": 2, "document": cell("c")}}},
		"cellTextDocuments": []object{
			{"uri": cell("a"), "languageId": "markdown", "version": 1, "text": "# prose"},
			{"uri": cell("b"), "languageId": "python", "version": 1, "text": "%matplotlib inline\n" + before},
			{"uri": cell("c"), "languageId": "python", "version": 1, "text": after}},
	})
	found := c.published(cell("c"), 1)
	if len(found) != 1 || found[0].Range.Start.Line != 6 || found[0].Range.Start.Character != 15 {
		t.Errorf("in the cell: %v", found)
	}
	c.notify("notebookDocument/didChange", object{"notebookDocument": object{"uri": book, "version": 2}, "change": object{"cells": object{
		"textContent": []object{{"document": object{"uri": cell("c"), "version": 2}, "changes": []object{edit(0, 0, 0, 0, "# é\n")}}}}}})
	if found := c.published(cell("c"), 2); len(found) != 1 || found[0].Range.Start.Line != 7 {
		t.Errorf("after an edit: %v", found)
	}
	heard := c.heard()
	c.notify("notebookDocument/didChange", object{"notebookDocument": object{"uri": book, "version": 3}, "change": object{"cells": object{
		"structure": object{"array": object{"start": 1, "deleteCount": 1}, "didClose": []object{{"uri": cell("b")}}}}}})
	if found := c.publishedAfter(cell("c"), 2, heard); len(found) != 0 {
		t.Errorf("without the imports: %v", found)
	}
	c.notify("notebookDocument/didClose", object{"notebookDocument": object{"uri": book}, "cellTextDocuments": []object{}})
	c.stop()
}
