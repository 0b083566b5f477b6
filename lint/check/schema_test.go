package check

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/xeipuuv/gojsonschema"
)

func schemaRules() []*lint.Rule {
	return []*lint.Rule{{Name: "a-rule", Family: "calls", Options: []lint.Option{
		{Name: "word", Default: "a", Choices: []string{"a", "b"}}, {Name: "limit", Default: int64(1)}, {Name: "ratio", Default: 0.5}, {Name: "names", Default: []string{}}, {Name: "on", Default: true}}}}
}

// TestSchemaKeys holds that the schema has the keys that the reader has, and no others.
func TestSchemaKeys(t *testing.T) {
	r := settingsReader{settings: &Settings{}, resolver: &Resolver{}}
	schema := Schema(schemaRules())
	properties := func(of any) object { return of.(object)["properties"].(object) }
	run := properties(schema)["run"].(object)["anyOf"].([]object)
	runs := r.runKeys(&plan.Plan{})
	several := maps.Clone(runs)
	several["name"], several["files"] = nil, nil
	for what, pair := range map[string][2][]string{
		"root":   {sortedKeys(properties(schema)), sortedKeys(r.rootKeys())},
		"run":    {sortedKeys(properties(run[0])), sortedKeys(runs)},
		"runs":   {sortedKeys(properties(run[1]["items"])), sortedKeys(several)},
		"custom": {sortedKeys(properties(properties(schema)["custom"].(object)["items"])), sortedKeys(r.customKeys(&lint.Declared{}, &CustomRule{}))},
	} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s: the schema knows %v, the reader %v", what, pair[0], pair[1])
		}
	}
}

// TestSchema lets a validator judge what the reader takes and what it refuses.
func TestSchema(t *testing.T) {
	text, err := json.Marshal(Schema(schemaRules()))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := gojsonschema.NewSchema(gojsonschema.NewBytesLoader(text))
	if err != nil {
		t.Fatal(err)
	}
	for settings, valid := range map[string]bool{
		"":                                   true,
		"select = [\"a-rule\", \"strict\"]":  true,
		"select = \"a-rule\"":                false,
		"selct = []":                         false,
		"fail-on = \"never\"":                true,
		"fail-on = \"fatal\"":                false,
		"require-reason = 1":                 false,
		"rules-version = \"1.4\"":            true,
		"rules-version = \"next\"":           false,
		"rules-version = \"0.1.2\"":          true,
		"rules-version = \"..\"":             false,
		"ignore = [\"all\"]":                 false,
		"ignore = [\"own-rule\"]":            true,
		"[run]\nseq-len = 0":                 false,
		"[run]\nworld-size = 8":              true,
		"[run]\nworld-size = \"8\"":          false,
		"[run]\nworldsize = 8":               false,
		"[run]\nfiles = []":                  false,
		"[[run]]\nfiles = [\"a\"]":           true,
		"[[run]]\nfile = [\"a\"]":            false,
		"[severity]\na-rule = \"info\"":      true,
		"[severity]\na-rule = \"loud\"":      false,
		"[rules.a-rule]\nword = \"b\"":       true,
		"[rules.a-rule]\nword = \"c\"":       false,
		"[rules.a-rule]\nlimit = 1.5":        false,
		"[rules.a-rule]\nratio = 2":          true,
		"[rules.a-rule]\nother = 2":          false,
		"[rules.b-rule]\nother = 2":          false,
		"[per-file-ignores]\na = [\"all\"]":  true,
		"[per-file-ignores]\na = \"all\"":    false,
		"[known]\n\"a.b\" = \"scales-loss\"": true,
		"[known]\n\"a.b\" = \"torch.f\"":     true,
		"[known]\n\"a.b\" = \"scales-los\"":  false,
		"[[custom]]\nname = \"x\"\nmessage = \"y\"\nkey = \"z\"\nmax = 1":                     true,
		"[[custom]]\nname = \"x\"\nmessage = \"y\"\nvalue = \"batch.micro\"\none-of = [1, 2]": true,
		"[[custom]]\nname = \"x\"\nmessage = \"y\"\nkey = \"z\"\ncall = \"z\"\nmax = 1":       false,
		"[[custom]]\nname = \"x\"\nmessage = \"y\"\nmax = 1":                                  false,
		"[[custom]]\nname = \"x\"\nkey = \"z\"\nmax = \"1\"":                                  false,
	} {
		var value map[string]any
		if _, err := toml.Decode(settings, &value); err != nil {
			t.Fatal(err)
		}
		document, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		result, err := schema.Validate(gojsonschema.NewBytesLoader(document))
		if err != nil {
			t.Fatal(err)
		}
		if result.Valid() != valid {
			t.Errorf("%q: valid is %v: %v", settings, result.Valid(), result.Errors())
		}
	}
}
