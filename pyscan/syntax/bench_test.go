package syntax

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint/source"
)

// benchFiles are the Python files below TRAINVET_BENCH_DIR, or below testdata.
func benchFiles(b *testing.B) (files []*source.File, size int64) {
	root := os.Getenv("TRAINVET_BENCH_DIR")
	if root == "" {
		root = "testdata"
	}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".py") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil // a dangling link
		}
		if file, err := source.Decode(path, source.Python, raw); err == nil {
			files = append(files, file)
			size += int64(len(raw))
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	if len(files) == 0 {
		b.Skip("no Python files below " + root)
	}
	return files, size
}

// BenchmarkParse parses every file once; set TRAINVET_BENCH_DIR to measure on other code than the test data.
func BenchmarkParse(b *testing.B) {
	files, size := benchFiles(b)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		for _, file := range files {
			Parse(file)
		}
	}
}

// BenchmarkLex measures the tokenizer alone.
func BenchmarkLex(b *testing.B) {
	files, size := benchFiles(b)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		for _, file := range files {
			newLexer(string(file.Text)+sentinel, len(file.Text)).run()
		}
	}
}

func BenchmarkInspect(b *testing.B) {
	files, size := benchFiles(b)
	trees := make([]*File, len(files))
	for i, file := range files {
		trees[i] = Parse(file)
	}
	b.SetBytes(size)
	count := 0
	for b.Loop() {
		for _, tree := range trees {
			for _, s := range tree.Body {
				Inspect(s, func(Node) bool {
					count++
					return true
				})
			}
		}
	}
}
