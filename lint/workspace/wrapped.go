package workspace

import (
	"slices"

	"github.com/trainvet/trainvet/pyscan"
)

// maxWrapperFiles bounds the other files that are searched for what wraps a model.
const maxWrapperFiles = 8

// wrapperCalls are the names under which programs wrap models.
var wrapperCalls = []string{"DistributedDataParallel", "DDP", "initialize", "FullyShardedDataParallel", "FSDP", "replicate"}

var wrapperWords = func() *pyscan.Words {
	words := &pyscan.Words{Alias: true, Names: map[string]bool{}}
	for _, name := range wrapperCalls {
		words.Names[name] = true
	}
	return words
}()

// WrappersAround lists what the models that a checkpoint runs in are wrapped into, anywhere in the project.
func (v *View) WrappersAround(c *Checkpoint) []Wrapper {
	files := []string{c.Scope.Module.File.Path}
	for _, name := range wrapperCalls {
		for _, file := range v.Mentioning(c.Scope.Module.File.Path, name) {
			if !slices.Contains(files, file) && len(files) <= maxWrapperFiles {
				files = append(files, file)
			}
		}
	}
	var list []Wrapper
	for _, file := range files {
		m := v.Module(file)
		if m == nil {
			continue
		}
		for _, w := range v.wrappersIn(m) {
			if v.runsIn(c, w, m) {
				list = append(list, w)
			}
		}
	}
	return list
}

// wrappersIn lists the calls of a module that wrap a model.
func (v *View) wrappersIn(m *pyscan.Module) []Wrapper {
	var list []Wrapper
	for _, site := range v.CallsNear(m, wrapperWords) {
		value := v.Eval(site.Scope, nil, site.Call)
		if seq, ok := value.(*pyscan.Sequence); ok && len(seq.Elements) > 0 { // deepspeed.initialize
			value = seq.Elements[0]
		}
		if w, ok := v.wrapper(value); ok {
			list = append(list, w)
		}
	}
	return list
}

// runsIn reports whether a checkpoint runs in the model that a wrapper was given. A model of which nothing is known is the one model class
// of its file.
func (v *View) runsIn(c *Checkpoint, w Wrapper, m *pyscan.Module) bool {
	inner := v.Expand(v.inside(w.Value))
	if v.Opaque(inner) {
		if only := v.OnlyModel(m); only != nil {
			inner = only
		}
	}
	for _, one := range v.ModelCheckpoints(inner) {
		if one.Call == c.Call || one.Decorates != nil && one.Decorates == c.Decorates {
			return true
		}
	}
	return false
}
