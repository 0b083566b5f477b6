// Package loop models what a training program does in its loops: which loop runs forward and backward once a micro-batch,
// which events happen in it, in what order, under which guards, inside which contexts. Functions that a loop calls are
// spliced in, so that `self.training_step(batch)` shows what is in it.
//
// The names are the field's: a micro-batch is one forward and backward pass; an optimizer step ends a window of
// accumulated micro-batches; the boundary is the place in the loop where that happens.
package loop

import (
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// Linker answers what names mean across files. package workspace implements it.
type Linker interface {
	Eval(scope *pyscan.Scope, frame *pyscan.Frame, e syntax.Expr) pyscan.Value
	Expand(value pyscan.Value) pyscan.Value
	Called(callee pyscan.Value) *pyscan.Func
	Enter(f *pyscan.Func, call *syntax.Call, scope *pyscan.Scope, frame *pyscan.Frame) *pyscan.Frame
	// Passed is what the call of a frame gives for a parameter; given is false when it leaves the default.
	Passed(frame *pyscan.Frame, index int) (value pyscan.Value, given bool)
	ExternalName(value pyscan.Value) string
	ExternalBase(class pyscan.Value) string
	Derives(class pyscan.Value, names ...string) pyscan.Truth
	// Distance is how many calls away from one of the words something of that name in the project of the module may be, at least:
	// 0 for a word itself. It goes by names alone.
	Distance(m *pyscan.Module, words *pyscan.Words, name string) int
	// HasName reports whether anything in the project of the module has that name: a function, a class, a variable or an
	// attribute. Otherwise only things of a library are called by it.
	HasName(m *pyscan.Module, name string) bool
	// Defined reports whether a function or class in the project of the module has that name.
	Defined(m *pyscan.Module, name string) bool
	// Extended reports whether a class in the project of the module is derived from something of that name.
	Extended(m *pyscan.Module, name string) bool
	// Foreign reports whether an expression surely names a builtin or something of a library, which runs nothing of the project by itself.
	Foreign(scope *pyscan.Scope, e syntax.Expr) bool
	// Known is what is known already about the functions of the project.
	Known() *Known
	// HasCallers reports whether a call of the function is known anywhere in the project.
	HasCallers(function *pyscan.Scope) bool
}

// Kind says what an event is.
type Kind uint8

// The kinds of events.
const (
	Other         Kind = iota
	Forward            // a model is called
	Backward           // gradients are computed and added up
	Step               // an optimizer (or engine) is stepped
	ZeroGrad           // gradients are cleared
	SchedulerStep      // a learning-rate schedule is advanced
	Clip               // gradients are clipped by norm or value
	Unscale            // a GradScaler divides gradients by its scale
	ScalerUpdate       // GradScaler.update
	EmptyCache         // the allocator's cache is given back to the driver
	Collect            // gc.collect
	Sync               // the host waits for the device: .item(), .cpu(), .tolist()
	NoSync             // gradient synchronisation is switched off, here or for a context
	Collective         // a collective operation of torch.distributed
	SetEpoch           // sampler.set_epoch
	Evaluate           // a model is put into evaluation mode, or text is generated
	GradDivide         // gradients themselves are divided (p.grad /= n)
)

var kindNames = [...]string{"call", "forward", "backward", "optimizer step", "zero_grad", "scheduler step", "clip", "unscale", "scaler update", "empty_cache",
	"gc.collect", "host sync", "no_sync", "collective", "set_epoch", "evaluate", "gradient division"}

func (k Kind) String() string { return kindNames[k] }

// Runner says whose backward or step it is: frameworks differ in what they do beside.
type Runner uint8

// The runners.
const (
	Plain      Runner = iota // a tensor's backward, an optimizer's step
	Scaler                   // torch.amp.GradScaler
	Accelerate               // accelerate.Accelerator: divides the loss, skips steps between boundaries
	Fabric                   // lightning.Fabric: divides nothing
	Lightning                // LightningModule.manual_backward: divides nothing
	Engine                   // a DeepSpeed engine: divides, steps, clears
	Trainer                  // the Hugging Face Trainer
	Foreign                  // some other object with that method: nothing is known of it
)

// Event is one thing that happens in a loop.
type Event struct {
	Kind     Kind
	By       Runner
	Node     syntax.Node  // the call, or the store
	Call     *syntax.Call // nil for a store
	Receiver syntax.Expr  // whose method it is; nil for a function
	On       pyscan.Value // what Receiver may be; for a function, the callee
	Loss     syntax.Expr  // Backward: what is differentiated
	Sync     Guard        // NoSync by a flag: when synchronisation is on
	Scope    *pyscan.Scope
	Frame    *pyscan.Frame // in which the expressions of Node are read
	Guard    Guard         // inside the innermost loop
	Contexts []Context     // the with statements around it, outermost first, callers included
	At       source.Place
	Via      []source.Place // the calls that lead to it from the loop's own function, outermost first
	Order    int            // position in program order among the events of the outermost loop
}

// Loop is a loop, or a function that a framework or an unknown caller runs once a micro-batch (Node is then nil).
type Loop struct {
	Node      syntax.Stmt // *syntax.For or *syntax.While
	Scope     *pyscan.Scope
	Frame     *pyscan.Frame
	Outer     *Loop // the outermost loop's is the function body around it, a Loop without Node
	Guard     Guard // inside the outer loop
	Contexts  []Context
	Items     []Item // in program order
	At        source.Place
	Via       []source.Place
	Framework string       // who runs it: "transformers.Trainer" ...; "" for a loop of the program
	Micro     pyscan.Truth // one iteration is one micro-batch
	Step      bool         // a framework runs it once an optimizer step
	Order     int
}

// Item is an event or an inner loop; one of the two is nil.
type Item struct {
	Event *Event
	Loop  *Loop
}

// Context is a with statement around an event.
type Context struct {
	Expr   syntax.Expr    // what makes the context: for `with ctx:`, what ctx was assigned
	Item   syntax.Expr    // as it stands in the with statement; nil for a decorator
	At     source.Place   // of Item
	Values []pyscan.Value // alternatives of the context's value
	Scope  *pyscan.Scope
	Frame  *pyscan.Frame
	Kind   ContextKind
	Guard  Guard // when the context is entered only on a condition (`no_sync() if c else nullcontext()`)
}

// ContextKind says what a context does.
type ContextKind uint8

// The kinds of contexts.
const (
	OtherContext ContextKind = iota
	NoGradContext
	AutocastContext
	NoSyncContext
	AccumulateContext // accelerator.accumulate
)

// Events calls yield for each event directly in the loop, inner loops left out, until it returns false.
func (l *Loop) Events(yield func(*Event) bool) {
	for _, item := range l.Items {
		if item.Event != nil && !yield(item.Event) {
			return
		}
	}
}

// All calls yield for each event in the loop and its inner loops, in program order, with the loop it stands in.
func (l *Loop) All(yield func(*Event, *Loop) bool) { l.all(yield) }

func (l *Loop) all(yield func(*Event, *Loop) bool) bool {
	for _, item := range l.Items {
		if item.Event != nil {
			if !yield(item.Event, l) {
				return false
			}
		} else if !item.Loop.all(yield) {
			return false
		}
	}
	return true
}

// Of lists the events of a kind directly in the loop.
func (l *Loop) Of(kind Kind) []*Event {
	var list []*Event
	for event := range l.Events {
		if event.Kind == kind {
			list = append(list, event)
		}
	}
	return list
}

// Deep lists the events of a kind in the loop and its inner loops.
func (l *Loop) Deep(kind Kind) []*Event {
	var list []*Event
	for event := range l.All {
		if event.Kind == kind {
			list = append(list, event)
		}
	}
	return list
}

// Function is the body of the function that the loop stands in, as a Loop without Node.
func (l *Loop) Function() *Loop {
	for l.Outer != nil {
		l = l.Outer
	}
	return l
}

// In reports whether an event happens inside a context of a kind.
func (e *Event) In(kind ContextKind) bool {
	for _, c := range e.Contexts {
		if c.Kind == kind {
			return true
		}
	}
	return false
}
