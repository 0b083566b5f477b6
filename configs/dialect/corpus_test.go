package dialect_test

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
)

// corpusNames are labels of the corpus that divide a dialect more finely.
var corpusNames = map[string]string{
	"kohya-dataset-toml": "kohya", "kohya-gui-json": "kohya", "llm-foundry-mcli": "llm-foundry",
	"megatron-test-yaml": "megatron", "megatron-yaml": "megatron",
}

// TestCorpus reads real files whose dialect is known: INDEX.tsv in the folder that TRAINVET_CORPUS names.
func TestCorpus(t *testing.T) {
	folder := os.Getenv("TRAINVET_CORPUS")
	if folder == "" {
		t.Skip("TRAINVET_CORPUS names no folder with labelled config files")
	}
	index, err := os.Open(filepath.Join(folder, "INDEX.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close()
	table := csv.NewReader(index)
	table.Comma, table.LazyQuotes = '\t', true
	rows, err := table.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, row := range rows[1:] {
		file, want := row[0], row[1]
		if strings.Contains(want, "-template-") {
			want = ""
		} else if to, ok := corpusNames[want]; ok {
			want = to
		}
		got := "none"
		for _, tree := range read(t, filepath.Join(folder, file)) {
			if d := dialect.Of(tree); d != nil {
				got = d.Name
				reading := d.Read(tree)
				for _, fault := range reading.Faults {
					t.Logf("%s: %s: %s %s", file, d.Name, fault.Key, fault.Message)
				}
				break
			}
		}
		if want != "" && got != want {
			t.Errorf("%s is %s, not %s", file, want, got)
		}
		if want != "" {
			named++
		}
	}
	t.Logf("%d files", named)
}

func read(t *testing.T, path string) []*configs.Tree {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, trees := parse(t, path, raw)
	return trees
}
