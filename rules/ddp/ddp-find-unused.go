package ddp

import (
	_ "embed"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed ddp-find-unused.md
var ddpFindUnusedDoc string

// DdpFindUnused finds DDP told to look for unused parameters in each step.
var DdpFindUnused = &lint.Rule{
	Name:     "ddp-find-unused",
	Family:   "ddp",
	Since:    "0.1",
	Doc:      ddpFindUnusedDoc,
	Severity: lint.Info,
	Strict:   true,
	Mentions: []string{"find_unused_parameters"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		for _, site := range module.Calls {
			call := site.Call
			for _, k := range call.Keywords {
				scope := pyscan.ScopeAt(module, call)
				if c, ok := k.Value.(*syntax.Constant); ok && k.Arg == "strategy" && strings.HasPrefix(c.Text, "ddp") && strings.HasSuffix(c.Text, "find_unused_parameters_true") {
					pass.Reportf(module.File.At(k.Span()), "%s", unusedMessage).Help(unusedHelp)
					continue
				}
				if k.Arg != "find_unused_parameters" && k.Arg != "ddp_find_unused_parameters" || pass.Truthy(pass.Expand(pass.Eval(scope, nil, k.Value))) != pyscan.Yes {
					continue
				}
				name := pass.Library(scope, nil, call.Func)
				if name == "functools.partial" && len(call.Args) > 0 {
					name = pass.Library(scope, nil, call.Args[0])
				}
				if _, takes := caps[name]; takes {
					pass.Reportf(module.File.At(k.Span()), "%s", unusedMessage).Help(unusedHelp)
				}
			}
		}
	},
	Part: func(pass *lint.Pass, part *workspace.Part) {
		for _, item := range part.Tree.Root.Items {
			if item.Key != "ddp_find_unused_parameters" && item.Key != "--ddp_find_unused_parameters" || item.Value == nil {
				continue
			}
			loader := part.Dialect.Loader
			if part.Tree.Format == configs.Flags {
				loader = configs.LoaderFlags
			}
			if on, known := item.Value.Bool(loader); known && on {
				pass.Reportf(item.KeyAt, "%s", unusedMessage).Help(unusedHelp)
			}
		}
	},
}

const (
	unusedMessage = "DDP walks the whole graph of each step in search of unused parameters, and hides parameters that never get a gradient"
	unusedHelp    = "leave it off unless the graph changes from step to step; DDP then names the parameters that are unused"
)
