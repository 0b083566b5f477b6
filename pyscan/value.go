package pyscan

import (
	"strings"

	"github.com/trainvet/trainvet/lint/constant"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/pyscan/syntax"
)

// Truth is a three-valued answer. The zero value is Maybe, so that what nobody decided is never taken for a No or a Yes.
type Truth int8

// The answers.
const (
	No    Truth = -1
	Maybe Truth = 0
	Yes   Truth = 1
)

// Not turns Yes into No and back.
func (t Truth) Not() Truth { return -t }

// And is the weaker of two answers.
func (t Truth) And(other Truth) Truth { return min(t, other) }

// Or is the stronger of two answers.
func (t Truth) Or(other Truth) Truth { return max(t, other) }

// Truly converts a decided answer.
func Truly(yes bool) Truth {
	if yes {
		return Yes
	}
	return No
}

func (t Truth) String() string { return [...]string{"no", "maybe", "yes"}[t+1] }

// MaxAlternatives bounds a Union; a wider one is Unknown.
const MaxAlternatives = 8

// Site is an expression in its module: where a value was made.
type Site struct {
	Module *Module
	Node   syntax.Node
}

// Origin is the origin of a value made here.
func (s Site) Origin() Origin { return Origin{s} }

// Place is where the expression stands; zero for a value that no file holds.
func (s Site) Place() source.Place {
	if s.Module == nil || s.Node == nil {
		return source.Place{}
	}
	return source.Place{Path: s.Module.File.Path, Span: s.Node.Span()}
}

// Value is what an expression may evaluate to, as far as it can be told without running anything. The set is sealed.
type Value interface {
	// Site is the expression that made the value.
	Site() Site
	value()
}

// Origin is where a value was made; every value carries one.
type Origin struct{ At Site }

// From is the origin of a value made by an expression of a module.
func From(m *Module, node syntax.Node) Origin { return Origin{Site{m, node}} }

// Site is the expression that made the value.
func (o Origin) Site() Site { return o.At }
func (Origin) value()       {}

type (
	// Unknown is a value of which nothing is known.
	Unknown struct{ Origin }

	// Const is a constant: None, a bool, a number or text.
	Const struct {
		Origin
		V constant.Value
	}

	// External is a thing of a library, by its canonical dotted name: a module, class, function or whatever the library
	// has there ("torch.nn.Embedding"). Builtins are "builtins.len".
	External struct {
		Origin
		Name string
	}

	// ModuleValue is a module of the project.
	ModuleValue struct {
		Origin
		Path string
	}

	// Func is a function, method or lambda of the project; Self is the bound receiver, or nil.
	Func struct {
		Origin
		Scope *Scope
		Self  Value
		Frame *Frame // of the enclosing function, for closures
	}

	// Class is a class of the project.
	Class struct {
		Origin
		Scope *Scope
		Frame *Frame
	}

	// Instance is what calling a class gives; Of is a Class or an External. Call is nil where only an annotation says so.
	Instance struct {
		Origin
		Of    Value
		Call  *syntax.Call
		Frame *Frame // in which Call's arguments are evaluated
	}

	// Result is what calling anything else gives: an opaque library function or method ("AutoModel.from_pretrained").
	Result struct {
		Origin
		Of    Value
		Call  *syntax.Call
		Frame *Frame
	}

	// Member is an attribute of a value whose insides are not known (`hf_model.model.embed_tokens`).
	Member struct {
		Origin
		Base Value
		Name string
	}

	// Element is an element of a value: a subscript (Key set), an unpacked position or an iteration (Key nil).
	Element struct {
		Origin
		Base Value
		Key  Value
	}

	// Wrapped is a value handed through a framework that gives back the same thing with more around it, by the name of what
	// did it: accelerate's prepare, Fabric's setup, deepspeed.initialize, fully_shard, get_peft_model.
	Wrapped struct {
		Origin
		By    string
		Owner Value // the Accelerator or Fabric, or nil
		Inner Value
		Call  *syntax.Call
		Frame *Frame
	}

	// Super is super() in a method of Class.
	Super struct {
		Origin
		Class *Class
		Self  Value
	}

	// Partial is functools.partial: a callable with arguments already given.
	Partial struct {
		Origin
		Of    Value
		Call  *syntax.Call // the arguments; the first positional one is Of itself
		Frame *Frame
	}

	// Sequence is a list, tuple or set display. Open: it holds more than Elements (a comprehension, a star).
	Sequence struct {
		Origin
		Elements []Value
		Open     bool
	}

	// Mapping is a dict. Open: more keys than written may be in it.
	Mapping struct {
		Origin
		Keys   []Value
		Values []Value
		Open   bool
	}

	// ParamValue is a parameter of a function for which no caller gave a value.
	ParamValue struct {
		Origin
		Scope *Scope
		Index int // in Scope.Params
	}

	// Setting is a value that the user may set where the program is started (a command-line flag, a field of a parsed
	// dataclass) with the default that holds otherwise; Default is nil when there is none.
	Setting struct {
		Origin
		Name    string
		Default Value
	}

	// Op is arithmetic on values that are not all constant.
	Op struct {
		Origin
		Name     string // the operator as written: "/", "%", "not", "and", "<" ...
		Operands []Value
	}

	// Union is one of several values. It has 2 to MaxAlternatives distinct members, none of them a Union.
	Union struct {
		Origin
		Alternatives []Value
	}
)

// Frame binds the parameters of a function to the values of one call, so that a callee is read as this caller uses it.
// A nil frame means: called by anyone.
type Frame struct {
	Scope  *Scope
	Args   []Argument // by parameter index; may be shorter than the parameters
	Self   Value
	Outer  *Frame // frame of the enclosing function (closures)
	Caller Site   // the call
	From   *Scope // the scope that the call stands in
	In     *Frame // the frame in which the call is read
	Depth  int
}

// Argument is what a call gives for a parameter: a value, or an expression of the caller that is read when it is asked for.
// Most parameters never are. The zero Argument is none.
type Argument struct {
	Value Value
	Expr  syntax.Expr
}

// Arg is the argument for a parameter.
func (f *Frame) Arg(index int) Argument {
	if index < len(f.Args) {
		return f.Args[index]
	}
	return Argument{}
}

// Bind sets the argument for a parameter.
func (f *Frame) Bind(index int, arg Argument) {
	if f.Args == nil {
		f.Args = make([]Argument, len(f.Scope.Params))
	}
	f.Args[index] = arg
}

// Words is a set of names that somebody looks for, and how many calls or other names away; 0 is a few.
type Words struct {
	Names map[string]bool
	Far   int

	// Alias is set where a name matters only if it may stand for one of the words itself: by another name in an import, by an assignment, as what
	// a function gave. Otherwise so does the name of a function that calls one of them, whatever comes of it, and what is bound to a result. It
	// is for those who ask no more of a callee than which thing of a library it is.
	Alias bool
}

// LastPart is the last name of a dotted one.
func LastPart(dotted string) string { return dotted[strings.LastIndexByte(dotted, '.')+1:] }

// LastName is the last name of a dotted callee, "" for what is none.
func LastName(n syntax.Node) string {
	switch n := n.(type) {
	case *syntax.Name:
		return n.ID
	case *syntax.Attribute:
		return n.Attr
	}
	return ""
}

// Made is the class that an instance is of, also where functools.partial stands between.
func Made(instance *Instance) Value {
	of := instance.Of
	for range 4 {
		partial, ok := of.(*Partial)
		if !ok {
			break
		}
		of = partial.Of
	}
	return of
}
