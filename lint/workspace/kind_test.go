package workspace

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestCallersOfEveryKind holds that what is taken as Python is in the index of names, whatever its name.
func TestCallersOfEveryKind(t *testing.T) {
	files := map[string]string{
		"model.py":    "def build(width):\n    return width\n",
		"a.ipynb":     `{"nbformat": 4, "cells": [{"cell_type": "code", "source": ["from model import build\n", "build(1)"]}]}`,
		"b.pyw":       "from model import build\nbuild(2)\n",
		"c":           "#!/usr/bin/env python3\nfrom model import build\nbuild(3)\n",
		"d.PY":        "from model import build\nbuild(4)\n",
		"notes.ipynb": `{"nbformat": 4, "cells": [{"cell_type": "markdown", "source": ["build(5)"]}]}`,
		"run":         "#!/bin/sh\nbuild 6\n",
		"LICENSE":     "build(7)\n",
		"e.pyx":       "build(8)\n",
	}
	folder := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.ToSlash(folder)
	want := []string{"a.ipynb", "b.pyw", "c", "d.PY", "model.py"}
	for _, disk := range []FS{Disk{}, NewConfined(dir, dir)} {
		var got []string
		for _, name := range NewSnapshot(disk).View(context.Background()).Holding(dir, "build(") {
			got = append(got, filepath.Base(name))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%T: the Python files are %q, want %q", disk, got, want)
		}
	}
}
