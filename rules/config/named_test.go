package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/lint/source"
)

// TestNamed holds that each config of the cases that is of a dialect holds one of the words by which the rules about
// keys look at a file.
func TestNamed(t *testing.T) {
	archives, err := filepath.Glob("../*/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range archives {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, member := range archive.Files {
			file, err := source.New(member.Name, slices.Clone(member.Data))
			if err != nil {
				continue
			}
			var trees []*configs.Tree
			switch file.Kind {
			case source.JSON:
				trees = []*configs.Tree{configs.ParseJSON(file)}
			case source.YAML:
				trees = configs.ParseYAML(file)
			case source.TOML:
				trees = []*configs.Tree{configs.ParseTOML(file)}
			}
			for _, tree := range trees {
				d := dialect.Of(tree)
				if d == nil {
					continue
				}
				seen++
				has := func(word string) bool { return strings.Contains(string(file.Text), word) }
				if !slices.ContainsFunc(named, has) {
					t.Errorf("%s: %s is of %s and holds none of the words:\n%s", name, member.Name, d.Name, file.Text)
				}
			}
		}
	}
	if seen < 300 {
		t.Errorf("only %d configs are of a dialect", seen)
	}
}
