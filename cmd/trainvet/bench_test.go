package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/tools/txtar"
)

// BenchmarkConfigs checks 1,000 config files, as `trainvet check FOLDER` does. They are the samples of the dialects, over and
// over, each copy in a folder of its own, so that no two belong to one run. TRAINVET_CORPUS may name a folder with other files.
// The figure to look at is s/1000files; -cpu 2 says on how many processors.
func BenchmarkConfigs(b *testing.B) {
	const wanted = 1000
	files := samples(b)
	folder := b.TempDir()
	for i := range wanted {
		file := files[i%len(files)]
		name := filepath.Join(folder, fmt.Sprint("copy", i/len(files)), file.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(name, file.Data, 0o666); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if code := Main([]string{"check", "--isolated", "--fail-on", "never", "--format", "concise", folder}, nil, io.Discard, io.Discard); code != 0 {
			b.Fatal("exit code", code)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/1000files")
}

// samples are config files of all dialects.
func samples(b *testing.B) []txtar.File {
	var files []txtar.File
	if folder := os.Getenv("TRAINVET_CORPUS"); folder != "" {
		entries, err := os.ReadDir(folder)
		if err != nil {
			b.Fatal(err)
		}
		for _, entry := range entries {
			if data, err := os.ReadFile(filepath.Join(folder, entry.Name())); err == nil && filepath.Ext(entry.Name()) != ".tsv" {
				files = append(files, txtar.File{Name: entry.Name(), Data: data})
			}
		}
	} else {
		archives, _ := filepath.Glob(filepath.Join("..", "..", "configs", "dialect", "testdata", "*.txtar"))
		for _, name := range archives {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				b.Fatal(err)
			}
			for _, file := range archive.Files {
				if slices.Contains([]string{".json", ".yaml", ".yml", ".toml"}, filepath.Ext(file.Name)) {
					files = append(files, file)
				}
			}
		}
	}
	if len(files) == 0 {
		b.Fatal("no samples")
	}
	return files
}
