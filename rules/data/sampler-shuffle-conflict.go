package data

import (
	_ "embed"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed sampler-shuffle-conflict.md
var samplerShuffleConflictDoc string

// SamplerShuffleConflict finds loaders that get a sampler and shuffle=True.
var SamplerShuffleConflict = &lint.Rule{
	Name:     "sampler-shuffle-conflict",
	Family:   "data",
	Since:    "0.1",
	Doc:      samplerShuffleConflictDoc,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: []string{"DataLoader"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		calls(pass, module, loaderClass, func(scope *pyscan.Scope, call *syntax.Call) { checkShuffle(pass, module, scope, call) })
	},
}

func checkShuffle(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope, call *syntax.Call) {
	shuffle := workspace.Argument(call, "shuffle", 2)
	if shuffle == nil {
		shufflesBySpread(pass, module, scope, call)
		return
	}
	shuffles := pass.Truthy(pass.Eval(scope, nil, shuffle))
	for i, keyword := range []string{"sampler", "batch_sampler"} {
		argument := workspace.Argument(call, keyword, 3+i)
		if argument == nil {
			continue
		}
		given := given(pass, pass.Expand(pass.Eval(scope, nil, argument)))
		if given != always && (given != perhaps || shuffles != pyscan.Yes) {
			continue
		}
		var at syntax.Node = shuffle
		for _, k := range call.Keywords {
			if k.Arg == "shuffle" {
				at = k
			}
		}
		if shuffles != pyscan.Yes {
			if shuffles != pyscan.Maybe || !eitherWay(pass, scope, shuffle) || given != always {
				continue
			}
		}
		d := pass.Reportf(module.File.At(at.Span()), "DataLoader raises ValueError: %s and shuffle exclude each other", keyword)
		if given == perhaps || shuffles != pyscan.Yes {
			d.As(lint.Warning)
		}
		if path := pyscan.Path(argument); path != "" {
			d.Suggest("shuffle only without a "+keyword, lint.Safe, lint.Edit{At: module.File.At(shuffle.Span()), Text: "(" + path + " is None)"})
		} else {
			d.Help("leave shuffle out; the sampler decides the order")
		}
		return
	}
}

// shufflesBySpread looks at shuffle=True that comes by ** of a dict.
func shufflesBySpread(pass *lint.Pass, module *pyscan.Module, scope *pyscan.Scope, call *syntax.Call) {
	on, key := pass.Spread(scope, nil, call, "shuffle")
	if on == nil || pass.Truthy(pass.Expand(on)) != pyscan.Yes {
		return
	}
	for i, keyword := range []string{"sampler", "batch_sampler"} {
		value := pass.Arg(scope, nil, call, keyword, 3+i)
		if value == nil || given(pass, pass.Expand(value)) != always {
			continue
		}
		at := module.File.At(call.Span())
		if key.Module == module {
			at = key.Place()
		}
		pass.Reportf(at, "DataLoader raises ValueError: %s and shuffle exclude each other", keyword).Note(module.File.At(call.Span()), "the loader is made here").
			Help("leave shuffle out; the sampler decides the order")
		return
	}
}

// presence says whether an argument is something else than None.
type presence uint8

const (
	unknown presence = iota
	never
	perhaps
	always
)

func given(pass *lint.Pass, value pyscan.Value) presence {
	some, none := false, false
	for _, one := range workspace.Alternatives(value) {
		switch one := one.(type) {
		case *pyscan.Const:
			none = true
		case *pyscan.Instance:
			some = some || one.Call != nil
		case *pyscan.Result:
			if pass.ExternalName(one.Of) == "" {
				return unknown
			}
			some = true
		default:
			return unknown
		}
	}
	switch {
	case some && none:
		return perhaps
	case some:
		return always
	}
	return never
}

// eitherWay reports whether a value is known to be true on one path and false on another, both written out.
func eitherWay(pass *lint.Pass, scope *pyscan.Scope, e syntax.Expr) bool {
	union, ok := pass.Eval(scope, nil, e).(*pyscan.Union)
	if !ok {
		return false
	}
	for _, one := range union.Alternatives {
		if _, ok := one.(*pyscan.Const); !ok {
			return false
		}
	}
	return true
}
