package workspace

import (
	"math"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/loop"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// Unit is what a number of steps counts.
type Unit uint8

// The units.
const (
	UnknownUnit    Unit = iota
	MicroBatches        // one for each batch that a loader gives
	OptimizerSteps      // one for each window of accumulated micro-batches
	DividedTwice        // optimizer steps divided by the accumulation once more
	NoUnit              // a plain number: a factor
)

func (u Unit) String() string {
	return [...]string{"unknown", "micro-batches", "optimizer steps", "optimizer steps divided by the accumulation once more", "a number"}[u]
}

// Steps is what is known of a step count from how it is made.
type Steps struct {
	Unit      Unit
	Times     int   // how often it is multiplied by the accumulation, less how often it is divided by it
	By        int64 // the plain whole number that it is divided by (x // 4, x * 0.25); 0 where it is divided by none
	Loader    bool  // it comes from the length of a loader
	Length    bool  // it comes from the length of something
	Processes bool  // it is multiplied or divided by the number of processes
}

// Steps follows how a step count is made: the length of a loader counts micro-batches, divided by the accumulation it counts
// optimizer steps. isN may name the accumulation of the loop at hand; what is called like one is known without it.
func (v *View) Steps(value pyscan.Value, isN func(pyscan.Value) bool) Steps {
	return v.steps(value, isN, 10)
}

func (v *View) steps(value pyscan.Value, isN func(pyscan.Value) bool, depth int) Steps {
	if depth <= 0 || value == nil {
		return Steps{}
	}
	if param, ok := value.(*pyscan.ParamValue); ok {
		if given := v.Expand(param); given != value {
			if s := v.steps(given, isN, depth-1); s.Unit != UnknownUnit && s.Unit != NoUnit {
				return s
			}
		}
	}
	switch value := value.(type) {
	case *pyscan.Const:
		return Steps{Unit: NoUnit, By: denominator(value)}
	case *pyscan.Union:
		var all Steps
		for i, one := range value.Alternatives {
			s := v.steps(one, isN, depth-1)
			switch {
			case i == 0 || all.Unit == NoUnit:
				all = s
			case s.Unit == NoUnit:
			case s.Unit != all.Unit:
				return Steps{}
			default:
				if s.Times != all.Times {
					all.Times = 0
				}
				all.Loader, all.By = all.Loader && s.Loader, max(all.By, s.By)
				all.Length = all.Length || s.Length
			}
		}
		return all
	case *pyscan.Op:
		return v.stepsOp(value, isN, depth)
	case *pyscan.Result:
		return v.stepsResult(value, isN, depth)
	}
	return Steps{Unit: namedUnit(NameOf(v, value))}
}

func (v *View) stepsOp(op *pyscan.Op, isN func(pyscan.Value) bool, depth int) Steps {
	if len(op.Operands) == 0 {
		return Steps{}
	}
	left := v.steps(op.Operands[0], isN, depth-1)
	if len(op.Operands) == 1 {
		return left // int(x), -x
	}
	right := v.steps(op.Operands[1], isN, depth-1)
	nLeft, nRight := v.IsAccumulation(op.Operands[0], isN), v.IsAccumulation(op.Operands[1], isN)
	switch op.Name {
	case "//", "/":
		return v.divided(left, op.Operands[1], isN, depth)
	case "*":
		switch {
		case nRight:
			return left.scaled(1)
		case nLeft:
			return right.scaled(1)
		case v.isProcesses(op.Operands[1]):
			left.Processes = true
			return left
		case v.isProcesses(op.Operands[0]):
			right.Processes = true
			return right
		}
		product := left.merged(right)
		product.By = times(left.By, right.By)
		return product
	case "+", "-", "max", "min":
		return left.merged(right)
	}
	return Steps{}
}

// divided is a count after a division by a value; a product divides factor by factor.
func (v *View) divided(count Steps, by pyscan.Value, isN func(pyscan.Value) bool, depth int) Steps {
	if depth <= 0 {
		return Steps{}
	}
	if v.IsAccumulation(by, isN) {
		return count.scaled(-1)
	}
	if v.isProcesses(by) {
		count.Processes = true
		return count
	}
	if product, ok := by.(*pyscan.Op); ok && product.Name == "*" && len(product.Operands) == 2 {
		return v.divided(v.divided(count, product.Operands[0], isN, depth-1), product.Operands[1], isN, depth-1)
	}
	if v.steps(by, isN, depth-1).Unit != NoUnit { // by a count: steps / steps per epoch; or by what may be the accumulation
		return Steps{Length: count.Length}
	}
	if c, ok := v.Constant(by); ok {
		if n, whole := c.Number(); whole && n >= 2 && n == math.Trunc(n) && n < 1<<31 {
			count.By = times(count.By, int64(n))
		}
	}
	return count
}

// times multiplies two divisors, of which 0 is none.
func times(a, b int64) int64 {
	if a == 0 || b == 0 || a > 1<<31/b {
		return max(a, b)
	}
	return a * b
}

// denominator is n where a number is 1/n, else 0.
func denominator(c *pyscan.Const) int64 {
	f, ok := c.V.Number()
	if !ok || f <= 0 || f > 0.5 {
		return 0
	}
	if n := math.Round(1 / f); n < 1<<31 && math.Abs(f*n-1) < 1e-9 {
		return int64(n)
	}
	return 0
}

// scaled is the count after a multiplication (1) or division (-1) by the accumulation.
func (s Steps) scaled(by int) Steps {
	s.Times += by
	switch {
	case by < 0 && s.Unit == OptimizerSteps:
		s.Unit = DividedTwice
	case by < 0:
		s.Unit = OptimizerSteps
	case s.Unit == DividedTwice:
		s.Unit = OptimizerSteps
	case s.Unit == MicroBatches: // a mistake, or a count of something else
		s.Unit = UnknownUnit
	default:
		s.Unit = MicroBatches
	}
	return s
}

// merged is a sum or product of two counts: what one of them knows holds for both.
func (s Steps) merged(other Steps) Steps {
	if s.Unit == NoUnit || s.Unit == UnknownUnit && other.Unit != NoUnit {
		s, other = other, s
	}
	if other.Unit != NoUnit && other.Unit != UnknownUnit && other.Unit != s.Unit {
		return Steps{}
	}
	s.Processes, s.Length = s.Processes || other.Processes, s.Length || other.Length
	s.By = max(s.By, other.By)
	return s
}

func (v *View) stepsResult(result *pyscan.Result, isN func(pyscan.Value) bool, depth int) Steps {
	if result.Call == nil || result.At.Module == nil {
		return Steps{}
	}
	scope := pyscan.ScopeAt(result.At.Module, result.Call)
	switch name := v.ExternalName(result.Of); name {
	case "builtins.len":
		if len(result.Call.Args) == 1 {
			of := result.Call.Args[0]
			if value := v.Eval(scope, result.Frame, of); v.IsLoader(value) || v.unnamed(value) && loaderName(pyscan.PathEnd(of)) {
				return Steps{Unit: MicroBatches, Loader: true, Length: true}
			}
			return Steps{Length: true}
		}
	case "math.ceil", "math.floor", "builtins.round", "builtins.int", "numpy.ceil", "numpy.floor", "builtins.float", "builtins.abs":
		if len(result.Call.Args) > 0 {
			return v.steps(v.Eval(scope, result.Frame, result.Call.Args[0]), isN, depth-1)
		}
	}
	return Steps{}
}

// IsAccumulation reports whether a value is the number of micro-batches per optimizer step.
func (v *View) IsAccumulation(value pyscan.Value, isN func(pyscan.Value) bool) bool {
	if isN != nil && isN(value) {
		return true
	}
	if op, ok := value.(*pyscan.Op); ok { // int(n), max(n, 1)
		switch op.Name {
		case "int", "float", "max", "min":
			return slices.ContainsFunc(op.Operands, func(one pyscan.Value) bool { return v.IsAccumulation(one, isN) })
		}
	}
	for _, one := range Alternatives(value) {
		if loop.WindowName(NameOf(v, one)) || isN != nil && isN(one) {
			return true
		}
	}
	return false
}

// Same reports whether two values say the same thing.
func (v *View) Same(a, b pyscan.Value) bool {
	switch a.(type) {
	case nil, *pyscan.Unknown:
		return false
	}
	return same(a, b)
}

func (v *View) isProcesses(value pyscan.Value) bool {
	if result, ok := value.(*pyscan.Result); ok {
		return strings.HasSuffix(v.ExternalName(result.Of), ".get_world_size")
	}
	switch name := strings.ToLower(NameOf(v, value)); {
	case strings.Contains(name, "num_processes"), strings.Contains(name, "world_size"), name == "n_gpu", name == "num_gpus", name == "n_gpus", name == "num_devices":
		return true
	}
	return false
}

// IsLoader reports whether a value gives micro-batches when it is iterated: a DataLoader, or what is called one and of which
// nothing else is known.
func (v *View) IsLoader(value pyscan.Value) bool {
	for _, one := range Alternatives(v.Expand(value)) {
		switch one := one.(type) {
		case *pyscan.Wrapped:
			if one.Inner != nil && v.IsLoader(one.Inner) {
				return true
			}
		case *pyscan.Instance:
			if name := v.ExternalBase(one.Of); strings.HasSuffix(name, "DataLoader") || strings.HasSuffix(v.ExternalName(one.Of), "DataLoader") {
				return true
			}
			continue
		case *pyscan.Const, *pyscan.Sequence, *pyscan.Mapping:
			continue
		}
		if loaderName(NameOf(v, one)) {
			return true
		}
	}
	return false
}

// unnamed reports whether nothing is known of a value, not even what it is called where it comes from: an element of what an unknown function
// returns. The name that the file gives it is then all there is.
func (v *View) unnamed(value pyscan.Value) bool {
	switch value := v.Expand(value).(type) {
	case *pyscan.Element:
		if _, known := value.Base.(*pyscan.Result); !known {
			return false
		}
		return NameOf(v, value) == ""
	case *pyscan.Unknown:
		return true
	}
	return false
}

// loaderName reports whether a name is one that loaders have.
func loaderName(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "loader") || name == "dl" || strings.HasSuffix(name, "_dl")
}

// NameOf is what a value is called where it comes from: the parameter, setting, attribute or key; "" for a value without a
// name.
func NameOf(v *View, value pyscan.Value) string {
	switch value := value.(type) {
	case *pyscan.ParamValue:
		return value.Scope.Params[value.Index].Name
	case *pyscan.Setting:
		return value.Name
	case *pyscan.Member:
		return value.Name
	case *pyscan.Element:
		if c, ok := v.Constant(value.Key); ok {
			name, _ := c.Str()
			return name
		}
		return ""
	case *pyscan.External:
		return pyscan.LastPart(value.Name)
	case *pyscan.Wrapped:
		if value.Inner != nil {
			return NameOf(v, value.Inner)
		}
	case *pyscan.Result:
		if called := value.Call; called != nil {
			return pyscan.PathEnd(called.Func)
		}
	case *pyscan.Unknown:
		if e, ok := value.Site().Node.(syntax.Expr); ok {
			return pyscan.PathEnd(e)
		}
	}
	return ""
}

// namedUnit goes by names that mean one unit in training scripts, wherever the number comes from.
func namedUnit(name string) Unit {
	name = strings.ToLower(name)
	switch {
	case name == "max_train_steps", name == "num_update_steps_per_epoch", strings.Contains(name, "update_step"), strings.Contains(name, "optimizer_step"),
		strings.Contains(name, "optim_step"), name == "num_updates", name == "total_updates", name == "max_updates", name == "estimated_stepping_batches":
		return OptimizerSteps
	case strings.Contains(name, "micro_step"), name == "num_training_batches", strings.Contains(name, "num_batches"), strings.Contains(name, "batches_per_epoch"):
		return MicroBatches
	}
	return UnknownUnit
}
