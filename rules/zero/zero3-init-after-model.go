package zero

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed zero3-init-after-model.md
var zero3InitAfterModelDoc string

// Zero3InitAfterModel finds models that are loaded before Transformers knows of ZeRO stage 3, or after it has forgotten.
var Zero3InitAfterModel = &lint.Rule{
	Name:     "zero3-init-after-model",
	Family:   "zero",
	Since:    "0.1",
	Doc:      zero3InitAfterModelDoc,
	Severity: lint.Warning,
	Mentions: []string{"from_pretrained"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		tells := map[*pyscan.Scope][]told{}
		for _, site := range module.Calls {
			call, scope := site.Call, site.Scope
			if !mayTell(pass, module, call) {
				continue
			}
			name := pass.Library(scope, nil, call.Func)
			if config, known := tellsZero3(pass, scope, call, name); known {
				tells[scope] = append(tells[scope], told{call, name, config})
			}
		}
		if len(tells) == 0 {
			return
		}
		var loads []*syntax.Call
		for _, site := range pass.CallsNear(module, loaders) {
			if name := pass.Library(site.Scope, nil, site.Func); strings.HasPrefix(name, "transformers.") && strings.HasSuffix(name, ".from_pretrained") && loadsModel(name) {
				loads = append(loads, site.Call)
			}
		}
		dropped := map[*syntax.Call]bool{}
		if len(loads) > 0 {
			dropped = untaken(module)
		}
		for _, load := range loads {
			if loadedInTime(module, load, loads, tells[pyscan.ScopeAt(module, load)]) {
				continue // another model is the one to shard
			}
			checkLoad(pass, module, load, tells[pyscan.ScopeAt(module, load)], dropped)
		}
	},
}

// untaken are the calls of a module whose result nobody takes.
func untaken(module *pyscan.Module) map[*syntax.Call]bool {
	found := map[*syntax.Call]bool{}
	for node := range module.Tree.All() {
		if stmt, ok := node.(*syntax.ExprStmt); ok {
			if call, ok := stmt.Value.(*syntax.Call); ok {
				found[call] = true
			}
		}
	}
	return found
}

// loaders are the names of what loads a model, tellers those of what tells Transformers about ZeRO-3.
var (
	loaders = &pyscan.Words{Alias: true, Names: map[string]bool{"from_pretrained": true}}
	tellers = &pyscan.Words{Alias: true, Names: map[string]bool{"HfDeepSpeedConfig": true, "TrainingArguments": true, "Seq2SeqTrainingArguments": true}}
)

// mayTell is the cheap question before a call is read as one that tells Transformers about ZeRO-3: arguments of trainers do so under the
// name deepspeed.
func mayTell(pass *lint.Pass, module *pyscan.Module, call *syntax.Call) bool {
	named := slices.ContainsFunc(call.Keywords, func(k *syntax.Keyword) bool {
		return k.Arg == "deepspeed" || k.Arg == "config_file_or_dict" || k.Arg == ""
	})
	if !named && len(call.Args) == 0 {
		return false
	}
	last := pyscan.LastName(call.Func)
	return named && (strings.HasSuffix(last, "TrainingArguments") || strings.HasSuffix(last, "Config")) || pass.Near(module, tellers, call.Func)
}

// loadedInTime reports whether some other model of the same function is loaded after Transformers was told.
func loadedInTime(module *pyscan.Module, load *syntax.Call, loads []*syntax.Call, tells []told) bool {
	for _, other := range loads {
		for _, t := range tells {
			if other != load && pyscan.ScopeAt(module, other) == pyscan.ScopeAt(module, load) && t.call.Span().Start > load.Span().Start && t.call.Span().End <= other.Span().Start {
				return true
			}
		}
	}
	return false
}

// told is a call that tells Transformers of a ZeRO-3 config.
type told struct {
	call   *syntax.Call
	name   string
	config workspace.EngineConfig
}

// loadsModel reports whether a from_pretrained loads weights, and not a tokenizer or a config.
func loadsModel(name string) bool {
	class := pyscan.LastPart(strings.TrimSuffix(name, ".from_pretrained"))
	return strings.HasPrefix(class, "AutoModel") || strings.Contains(class, "Model") || strings.Contains(class, "For") && !strings.Contains(class, "Config")
}

// tellsZero3 reads HfDeepSpeedConfig(config) and TrainingArguments(deepspeed=config) with a config of stage 3.
func tellsZero3(pass *lint.Pass, scope *pyscan.Scope, call *syntax.Call, name string) (config workspace.EngineConfig, known bool) {
	var value pyscan.Value
	switch last := pyscan.LastPart(name); {
	case last == "HfDeepSpeedConfig" && strings.HasPrefix(name, "transformers."):
		value = pass.Arg(scope, nil, call, "config_file_or_dict", 0)
	case strings.HasSuffix(last, "TrainingArguments") && strings.HasPrefix(name, "transformers."), strings.HasPrefix(name, "trl.") && strings.HasSuffix(last, "Config"):
		value = pass.Arg(scope, nil, call, "deepspeed", -1)
	}
	if value == nil {
		return config, false
	}
	config = pass.DeepSpeedConfig(value, scope.Module.File.Path)
	stage, _, ok := config.Stage()
	return config, ok && stage == 3
}

func checkLoad(pass *lint.Pass, module *pyscan.Module, load *syntax.Call, tells []told, dropped map[*syntax.Call]bool) {
	var before, after *told
	for i := range tells {
		t := &tells[i]
		if exclusive(pyscan.ScopeAt(module, load), load, t.call) {
			continue
		}
		if t.call.Span().End <= load.Span().Start {
			if !dropped[t.call] {
				return // known in time
			}
			before = t
		} else if after == nil {
			after = t
		}
	}
	at := module.File.At(load.Span())
	switch {
	case before != nil && pyscan.LastPart(before.name) == "HfDeepSpeedConfig":
		d := pass.Reportf(at, "the HfDeepSpeedConfig before this is dropped at once, and Transformers holds it by a weak reference: from_pretrained does not know of ZeRO-3 and loads all weights on every rank").As(lint.Error)
		if !before.config.Certain {
			d.As(lint.Warning)
		}
		d.Note(module.File.At(before.call.Span()), "the config is made and dropped here").Help("keep it: dschf = HfDeepSpeedConfig(config)")
	case before == nil && after != nil:
		d := pass.Reportf(at, "the model is loaded before Transformers knows of ZeRO-3: every rank loads all weights, and they are partitioned only later")
		if !after.config.Certain {
			d.As(lint.Info)
		}
		d.Note(module.File.At(after.call.Span()), "it is told here").Help("make %s first", pyscan.LastPart(after.name))
	}
}

// exclusive reports whether two nodes stand in different arms of one if, so that only one of them runs.
func exclusive(scope *pyscan.Scope, a, b syntax.Node) bool {
	for _, stmt := range workspace.Around(scope, a) {
		branch, ok := stmt.(*syntax.If)
		if ok && stmt.Span().Contains(b.Span()) && workspace.Within(branch.Body, a) != workspace.Within(branch.Body, b) {
			return true
		}
	}
	return false
}
