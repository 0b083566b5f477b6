package workspace

import (
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
)

// Accumulation is how many micro-batches a framework itself takes for one optimizer step: it divides each loss by that
// number, and lets the optimizer step at the end of a window only.
type Accumulation struct {
	By    string       // "Accelerate", "DeepSpeed"; "" where no framework is known to accumulate
	More  pyscan.Truth // the number is more than one
	Count int64        // 0: not known
	Given pyscan.Value // the number as the program gives it; nil where a file or a default does
	At    source.Place // where the number is given; zero where it is left to a default
	Owner pyscan.Value // the Accelerator or the engine
}

// Accumulation says how a framework that runs an event accumulates: of a backward its receiver, of a prepared optimizer or
// schedule the Accelerator that prepared it, else the accelerator.accumulate() around.
func (v *View) Accumulation(e *loop.Event) Accumulation {
	best := Accumulation{More: pyscan.No}
	for _, one := range Alternatives(v.Expand(e.On)) {
		if a, ok := v.accumulationOf(one); ok {
			return a
		}
	}
	switch e.By {
	case loop.Accelerate:
		best = Accumulation{By: "Accelerate", More: pyscan.Maybe}
	case loop.Engine:
		best = Accumulation{By: "DeepSpeed", More: pyscan.Maybe}
	}
	if around, ok := v.accumulate(e); ok && (best.By == "" || around.More != pyscan.Maybe) {
		return around
	}
	return best
}

// accumulate reads the accelerator.accumulate() around an event.
func (v *View) accumulate(e *loop.Event) (Accumulation, bool) {
	for _, c := range e.Contexts {
		if c.Kind != loop.AccumulateContext {
			continue
		}
		for _, value := range c.Values {
			result, ok := value.(*pyscan.Result)
			if !ok {
				continue
			}
			if member, ok := result.Of.(*pyscan.Member); ok {
				for _, one := range Alternatives(v.Expand(member.Base)) {
					if a, ok := v.accumulationOf(one); ok {
						return a, true
					}
				}
			}
		}
		return Accumulation{By: "Accelerate", More: pyscan.Maybe}, true
	}
	return Accumulation{}, false
}

// accumulationOf reads an Accelerator, a DeepSpeed engine, or what one of them wrapped.
func (v *View) accumulationOf(value pyscan.Value) (Accumulation, bool) {
	switch value := value.(type) {
	case *pyscan.Instance:
		if v.IsA(value, "accelerate.Accelerator") == pyscan.Yes {
			return v.ofAccelerator(value), true
		}
	case *pyscan.Wrapped:
		switch {
		case value.By == "deepspeed.initialize":
			return v.ofEngine(value), true
		case value.By == "accelerate.prepare" && value.Owner != nil:
			for _, one := range Alternatives(v.Expand(value.Owner)) {
				if inst, ok := one.(*pyscan.Instance); ok {
					return v.accumulationOf(inst)
				}
			}
			return Accumulation{By: "Accelerate", More: pyscan.Maybe, Owner: value.Owner}, true
		}
	}
	return Accumulation{}, false
}

// ofAccelerator reads Accelerator(gradient_accumulation_steps=n) and its plugin. Without either the number is 1, unless
// `**` hides one or the launcher's environment sets it.
func (v *View) ofAccelerator(acc *pyscan.Instance) Accumulation {
	a := Accumulation{By: "Accelerate", More: pyscan.Maybe, Owner: acc}
	if acc.Call == nil {
		return a
	}
	scope := v.scopeOfCall(acc)
	given := v.Arg(scope, acc.Frame, acc.Call, "gradient_accumulation_steps", 3)
	if given == nil {
		if plugin := v.Arg(scope, acc.Frame, acc.Call, "gradient_accumulation_plugin", -1); plugin != nil {
			inst, ok := v.Expand(plugin).(*pyscan.Instance)
			if !ok || inst.Call == nil {
				return a
			}
			given = v.Arg(v.scopeOfCall(inst), inst.Frame, inst.Call, "num_steps", 0)
		}
	}
	switch {
	case given != nil:
		a.More, a.Count = v.moreThanOne(given)
		a.Given, a.At = given, given.Site().Place()
		if e := Argument(acc.Call, "gradient_accumulation_steps", 3); e != nil && acc.At.Module != nil {
			a.At = acc.At.Module.File.At(e.Span())
		}
	case !v.OpenKeywords(scope, acc.Frame, acc.Call):
		a.More, a.Count = pyscan.No, 1
	}
	return a
}

// ofEngine reads the config of deepspeed.initialize, as Engine finds it.
func (v *View) ofEngine(engine *pyscan.Wrapped) Accumulation {
	a := Accumulation{By: "DeepSpeed", More: pyscan.Maybe, Owner: engine}
	w, ok := v.wrapper(engine)
	if !ok || w.Call == nil {
		return a
	}
	config := v.Engine(w)
	if n, ok := config.Accumulation(); ok {
		a.Count, a.More = n, pyscan.Truly(n > 1)
		if !config.Certain {
			a.More = pyscan.Maybe
		}
		if from := config.Parts[0].Plan.Batch.Accumulation.From(); len(from) > 0 {
			a.At = from[0]
		}
		return a
	}
	given := v.Arg(w.Scope, w.Frame, w.Call, "config", 10)
	if given == nil {
		given = v.Arg(w.Scope, w.Frame, w.Call, "config_params", 12)
	}
	dict, ok := v.Expand(given).(*pyscan.Mapping)
	if !ok {
		return a
	}
	for i, key := range dict.Keys { // a setting of the program
		if c, ok := v.Constant(key); ok {
			if name, _ := c.Str(); name == "gradient_accumulation_steps" {
				a.More, a.Count = v.moreThanOne(dict.Values[i])
				a.Given, a.At = dict.Values[i], dict.Values[i].Site().Place()
			}
		}
	}
	return a
}

// moreThanOne says whether a written number of accumulation steps is more than one. A setting exists to be set, whatever its
// default.
func (v *View) moreThanOne(value pyscan.Value) (pyscan.Truth, int64) {
	more := pyscan.No
	for _, one := range Alternatives(v.Expand(value)) {
		switch one := one.(type) {
		case *pyscan.Const:
			n, ok := one.V.Int()
			if !ok {
				return pyscan.Maybe, 0 // "auto", None
			}
			if value == pyscan.Value(one) {
				return pyscan.Truly(n > 1), n
			}
			more = more.Or(pyscan.Truly(n > 1))
		case *pyscan.Unknown:
			return pyscan.Maybe, 0
		default:
			return pyscan.Yes, 0
		}
	}
	return more, 0
}

// PreparedBy is the framework that wrapped a value (an optimizer, a schedule, a loader): "accelerate.prepare",
// "fabric.setup", "deepspeed.initialize"; "" where none is known to.
func (v *View) PreparedBy(value pyscan.Value) string {
	for _, one := range Alternatives(v.Expand(value)) {
		if wrapped, ok := one.(*pyscan.Wrapped); ok {
			return wrapped.By
		}
	}
	return ""
}
