package checkpointing

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

//go:embed checkpoint-shared-weights.md
var docCheckpointSharedWeights string

// CheckpointSharedWeights finds parameters that are used in a reentrant checkpoint more than once.
var CheckpointSharedWeights = &lint.Rule{
	Name:     "checkpoint-shared-weights",
	Family:   "checkpointing",
	Since:    "0.1",
	Doc:      docCheckpointSharedWeights,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Mentions: []string{"checkpoint"},
	Module: func(pass *lint.Pass, module *pyscan.Module) {
		done := map[string]bool{}
		list := slices.DeleteFunc(slices.Clone(pass.Checkpoints(module)), func(c *workspace.Checkpoint) bool { return c.Kind != workspace.CheckpointCall || c.Function == nil })
		later := map[use][]*workspace.Checkpoint{}
		for _, c := range list {
			this := use{c.Scope, pyscan.Path(c.Function)}
			later[this] = append(later[this], c)
		}
		for _, c := range list {
			path := pyscan.Path(c.Function)
			same := later[use{c.Scope, path}][1:]
			later[use{c.Scope, path}] = same
			if c.Reentrant != pyscan.Yes || pass.WithoutGradients(c.Scope, c.Call) {
				continue
			}
			if !strings.HasPrefix(path, "self.") || trainable(pass, c) != pyscan.Yes {
				continue
			}
			key := path + "\x00" + c.Scope.Qualified()
			if done[key] {
				continue
			}
			if other, why := usedAgain(pass, same, c); why != "" {
				done[key] = true
				reportShared(pass, c, other, why)
			}
		}
	},
}

// use is what is checkpointed, and in which function.
type use struct {
	scope *pyscan.Scope
	path  string
}

// usedAgain looks for a second use of the checkpointed module in one forward. Later are the checkpoints of the same path after this one.
func usedAgain(pass *lint.Pass, later []*workspace.Checkpoint, c *workspace.Checkpoint) (other source.Place, why string) {
	file := c.Scope.Module.File
	for _, stmt := range workspace.Around(c.Scope, c.Call) {
		switch loop := stmt.(type) {
		case *syntax.For:
			return file.At(loop.Iter.Span()), "runs in each round of this loop"
		case *syntax.While:
			return file.At(loop.Test.Span()), "runs in each round of this loop"
		}
	}
	for _, next := range later {
		if !exclusive(c.Scope, c.Call, next.Call) {
			return at(next), "is checkpointed a second time"
		}
	}
	if tied := pass.TiedEmbedding(c.Scope, c.Function); tied != nil {
		return file.At(tied.Span()), "shares its weight with another module"
	}
	for _, one := range workspace.Alternatives(pass.Target(c)) { // a method that applies a module whose weight is shared
		f, ok := one.(*pyscan.Func)
		if !ok || f.Scope.Module != c.Scope.Module {
			continue
		}
		for _, call := range pass.Applies(f) {
			if tied := pass.TiedEmbedding(f.Scope, call.Call.Func); tied != nil {
				return file.At(tied.Span()), "runs a module that shares its weight with another one"
			}
		}
	}
	return other, ""
}

// exclusive reports whether two nodes stand on different sides of a condition, or the first one's side ends in a return.
func exclusive(scope *pyscan.Scope, a, b syntax.Node) bool {
	for _, stmt := range workspace.Around(scope, a) {
		branch, ok := stmt.(*syntax.If)
		if !ok {
			continue
		}
		inBody, alsoBody := workspace.Within(branch.Body, a), workspace.Within(branch.Body, b)
		inElse, alsoElse := workspace.Within(branch.OrElse, a), workspace.Within(branch.OrElse, b)
		if inBody && alsoElse || inElse && alsoBody {
			return true
		}
		if !alsoBody && !alsoElse {
			side := branch.Body
			if inElse {
				side = branch.OrElse
			}
			if len(side) > 0 {
				if _, returns := side[len(side)-1].(*syntax.Return); returns {
					return true
				}
			}
		}
	}
	return false
}

func reportShared(pass *lint.Pass, c *workspace.Checkpoint, other source.Place, why string) {
	w, ok := synchronised(pass, c)
	var d *lint.Diagnostic
	switch {
	case !ok:
		d = pass.Reportf(at(c), "%s %s inside a reentrant checkpoint: under DDP or ZeRO-2/3 its gradient hooks fire twice, which raises or lets ranks drift apart", quoted(pyscan.Path(c.Function)), why).As(lint.Info)
	case w.Kind == workspace.DDP:
		d = pass.Reportf(at(c), "%s %s inside a reentrant checkpoint, so its gradient hooks fire twice: DDP raises \"marked ready only once\", or ranks silently drift apart", quoted(pyscan.Path(c.Function)), why)
	default:
		d = pass.Reportf(at(c), "%s %s inside a reentrant checkpoint, so its gradient hooks fire twice: ZeRO-2/3 fails with \"has already been reduced\"", quoted(pyscan.Path(c.Function)), why)
	}
	if ok {
		noteWrapper(d, w)
	}
	d.Note(other, "it %s", why)
	setReentrant(d, c, lint.Safe)
}
