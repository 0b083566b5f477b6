package check

import (
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
)

// object is a piece of a JSON Schema.
type object = map[string]any

// SchemaID is where the schema of settings files lives.
const SchemaID = "https://raw.githubusercontent.com/trainvet/trainvet/main/trainvet.schema.json"

// Schema is the JSON Schema (draft 7) of a settings file, for editors; of [tool.trainvet] it describes the table. It takes what the
// reader takes, but for names that only a declaration elsewhere can explain.
func Schema(rules []*lint.Rule) map[string]any {
	names, families := []string{}, []string{}
	for _, rule := range rules {
		names = append(names, rule.Name)
		if !slices.Contains(families, rule.Family) {
			families = append(families, rule.Family)
		}
	}
	slices.Sort(names)
	slices.Sort(families)
	own := object{"type": "string", "pattern": "^[a-z0-9-]+$", "not": object{"enum": []string{groupRecommended, groupStrict, groupAll}}} // a rule of [[custom]]
	either := func(words ...string) object { return object{"anyOf": []object{{"enum": words}, own}} }
	ruleNames := append(append(slices.Clone(names), families...), lint.CustomFamily)
	choice := append(slices.Clone(ruleNames), groupRecommended, groupStrict, groupAll)
	list := func(of object) object { return object{"type": "array", "items": of} }
	severity := object{"enum": []string{"error", "warning", "info"}}
	run := schemaRun()
	runs := object{"name": described(object{"type": "string"}, "what people call the run"),
		"files": described(list(object{"type": "string"}), "patterns of the files that runs start from; left out: all")}
	for name, fact := range run {
		runs[name] = fact
	}
	table := func(properties object) object {
		return object{"type": "object", "properties": properties, "additionalProperties": false}
	}
	return object{
		"$schema": "http://json-schema.org/draft-07/schema#", "$id": SchemaID, "title": "Settings of trainvet",
		"type": "object", "additionalProperties": false,
		"properties": object{
			"extend":           described(object{"type": "string"}, "another settings file, whose keys hold where this one says nothing"),
			"select":           described(list(either(choice...)), "rules, families, or the groups recommended, strict and all"),
			"extend-select":    described(list(either(choice...)), "rules, families or groups to check besides"),
			"ignore":           described(list(either(ruleNames...)), "rules or families to leave out; wins over select"),
			"exclude":          described(list(object{"type": "string"}), "patterns of files to leave out, as in a .gitignore; they hold for named files too"),
			"fail-on":          described(object{"enum": []string{"error", "warning", "info", "never"}}, "the mildest severity that fails a run (default: warning)"),
			"baseline":         described(object{"type": "string"}, "the file that records known findings"),
			"require-reason":   described(object{"type": "boolean"}, "a suppression without a reason hides nothing"),
			"tests":            described(object{"type": "boolean"}, "check files in folders of tests and fixtures as well"),
			"rules-version":    described(object{"type": "string", "pattern": releaseForm}, "rules of later releases stay off"),
			"per-file-ignores": described(object{"type": "object", "additionalProperties": list(either(choice...))}, "by pattern, or pattern:key.path for one key of a config"),
			"severity":         described(object{"type": "object", "propertyNames": either(names...), "additionalProperties": severity}, "of single rules"),
			"run":              described(object{"anyOf": []object{table(run), list(table(runs))}}, "facts about the run that no file holds; as [[run]] for several runs"),
			"known":            described(object{"type": "object", "additionalProperties": object{"type": "string", "pattern": `\.|^(` + strings.Join(workspace.Properties(), "|") + `)$`}}, "what in-house names mean: the dotted name of a library's function or class, or a property"),
			"rules":            described(table(schemaOptions(rules)), "options of single rules"),
			"custom":           described(list(schemaCustom(severity, list)), "rules of your own"),
		},
	}
}

func described(of object, text string) object {
	of["description"] = text
	return of
}

func schemaRun() object {
	whole := func(text string, most int) object {
		return described(object{"type": "integer", "minimum": 1, "maximum": most}, text)
	}
	var devices []string
	for _, device := range catalog.Devices() {
		devices = append(devices, device.Name)
	}
	return object{
		"world-size":  whole("number of ranks of the run", maxRanks),
		"seq-len":     whole("tokens of one sequence", maxSeqLength),
		"device":      described(object{"type": "string", "examples": devices}, "accelerator, by name or size (56GB)"),
		"model":       described(object{"type": "string"}, "model, by name"),
		"warmup-unit": described(object{"enum": []string{"optimizer", "micro"}}, "what warmup_steps counts where the files do not say"),
	}
}

func schemaOptions(rules []*lint.Rule) object {
	all := object{}
	for _, rule := range rules {
		if len(rule.Options) == 0 {
			continue
		}
		options := object{}
		for _, option := range rule.Options {
			of := object{}
			switch option.Default.(type) {
			case string:
				of["type"] = "string"
				if len(option.Choices) > 0 {
					of["enum"] = option.Choices
				}
			case bool:
				of["type"] = "boolean"
			case int64:
				of["type"] = "integer"
			case float64:
				of["type"] = "number"
			case []string:
				of["type"], of["items"] = "array", object{"type": "string"}
			}
			of["default"] = option.Default
			options[option.Name] = described(of, option.Doc)
		}
		all[rule.Name] = object{"type": "object", "properties": options, "additionalProperties": false}
	}
	return all
}

func schemaCustom(severity object, list func(object) object) object {
	text := func(doc string) object { return described(object{"type": "string"}, doc) }
	scalars := func(doc string) object {
		of := list(object{"type": []string{"string", "number", "boolean"}})
		of["minItems"] = 1
		return described(of, doc)
	}
	return object{"type": "object", "additionalProperties": false, "required": []string{"name", "message"},
		"oneOf": []object{{"required": []string{"key"}}, {"required": []string{"value"}}, {"required": []string{"call"}}},
		"properties": object{
			"name":       object{"type": "string", "pattern": "^[a-z0-9-]+$"},
			"message":    text("what is wrong"),
			"help":       text("what to do"),
			"severity":   severity,
			"files":      described(list(object{"type": "string"}), "patterns of the files that it looks at; left out: all"),
			"key":        text("dotted path of a key; * stands for any key or element"),
			"value":      described(object{"enum": plan.Names()}, "a value of the training plan, whatever files say it"),
			"call":       text("dotted name of a function or class"),
			"keyword":    text("argument of the call"),
			"position":   described(object{"type": "integer", "minimum": 0}, "where the argument stands without its name, from 0"),
			"required":   described(object{"type": "boolean"}, "it must be there"),
			"forbidden":  described(object{"type": "boolean"}, "it must not be there"),
			"min":        object{"type": "number"},
			"max":        object{"type": "number"},
			"one-of":     scalars("the only values"),
			"not-one-of": scalars("values that are wrong"),
			"matches":    text("regular expression (RE2) that must match somewhere"),
		}}
}
