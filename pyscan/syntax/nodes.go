package syntax

import "github.com/trainvet/trainvet/lint/source"

// Node is any node of the tree. Types and fields are those of CPython 3.14's grammar (Python.asdl), in its order, except
// where a comment says otherwise; Error is ours.
type Node interface {
	Span() source.Span
	node()
	base() *Base
}

// Expr is an expression.
type Expr interface {
	Node
	expr()
}

// Stmt is a statement.
type Stmt interface {
	Node
	stmt()
}

// Pattern is a pattern of a match statement.
type Pattern interface {
	Node
	pattern()
}

// Base carries the position of a node: bytes in File.Text, as CPython counts start and end.
type Base struct{ At source.Span }

// Span is where the node stands.
func (b *Base) Span() source.Span { return b.At }
func (b *Base) node()             {}
func (b *Base) base() *Base       { return b }

// Key is a small comparable value that stands for a node and no other.
func Key(n Node) *Base { return n.base() }

// Context says what happens to a name, attribute, subscript, star, list or tuple.
type Context uint8

// The expression contexts.
const (
	Load Context = iota
	Store
	Del
)

// Operator is a binary operator (also of an augmented assignment).
type Operator uint8

// The binary operators, in the order of Python.asdl.
const (
	Add Operator = iota
	Sub
	Mult
	MatMult
	Div
	Mod
	Pow
	LShift
	RShift
	BitOr
	BitXor
	BitAnd
	FloorDiv
)

// UnaryOperator is a prefix operator.
type UnaryOperator uint8

// The unary operators.
const (
	Invert UnaryOperator = iota
	Not
	UAdd
	USub
)

// BoolOperator is `and` or `or`.
type BoolOperator uint8

// The boolean operators.
const (
	And BoolOperator = iota
	Or
)

// CompareOperator is a comparison operator.
type CompareOperator uint8

// The comparison operators.
const (
	Eq CompareOperator = iota
	NotEq
	Lt
	LtE
	Gt
	GtE
	Is
	IsNot
	In
	NotIn
)

// ConstantKind says what a Constant holds.
type ConstantKind uint8

// The kinds of constants.
const (
	NoneConstant ConstantKind = iota
	TrueConstant
	FalseConstant
	EllipsisConstant
	IntConstant
	FloatConstant
	ComplexConstant
	StrConstant
	BytesConstant
)

// File is a parsed module.
type File struct {
	Source   *source.File
	Body     []Stmt
	comments []source.Span
	Errors   []SyntaxError
}

// SyntaxError is one fault of the text; the tree around it is kept.
type SyntaxError struct {
	At      source.Span
	Message string
}

// ---- statements ----

// TypeParam is one parameter of a PEP 695 list: `T`, `T: bound = default`, `*Ts` or `**P`.
type TypeParam struct {
	Base
	Kind    TypeParamKind
	Name    string
	Bound   Expr // only TypeVar
	Default Expr
}

// TypeParamKind tells TypeVar, ParamSpec and TypeVarTuple apart.
type TypeParamKind uint8

// The kinds of type parameters.
const (
	TypeVar TypeParamKind = iota
	ParamSpec
	TypeVarTuple
)

// FunctionDef is a def; Async marks `async def` (AsyncFunctionDef in CPython).
type FunctionDef struct {
	Base
	Async      bool
	Name       string
	NameAt     source.Span // of the identifier; not in CPython
	Args       *Arguments
	Body       []Stmt
	Decorators []Expr
	Returns    Expr
	TypeParams []*TypeParam

	decoratorsAt uint32 // the first `@`, or where the statement starts
	Scope        int32  // set by package pyscan: the number of the scope that it opens, from 1
}

// ClassDef is a class statement.
type ClassDef struct {
	Base
	Name       string
	NameAt     source.Span
	Bases      []Expr
	Keywords   []*Keyword
	Body       []Stmt
	Decorators []Expr
	TypeParams []*TypeParam

	decoratorsAt uint32
	Scope        int32 // as that of a FunctionDef
}

// Return is `return value`.
type Return struct {
	Base
	Value Expr
}

// Delete is `del targets`.
type Delete struct {
	Base
	Targets []Expr
}

// Assign is `a = b = value`.
type Assign struct {
	Base
	Targets []Expr
	Value   Expr
}

// TypeAlias is `type Name[params] = value`.
type TypeAlias struct {
	Base
	Name       *Name
	TypeParams []*TypeParam
	Value      Expr
}

// AugAssign is `target op= value`.
type AugAssign struct {
	Base
	Target Expr
	Op     Operator
	Value  Expr
}

// AnnAssign is `target: annotation = value`; Simple when the target is a bare name without parentheses.
type AnnAssign struct {
	Base
	Target     Expr
	Annotation Expr
	Value      Expr
	Simple     bool
}

// For is a for loop; Async marks `async for`.
type For struct {
	Base
	Async  bool
	Target Expr
	Iter   Expr
	Body   []Stmt
	OrElse []Stmt
}

// While is a while loop.
type While struct {
	Base
	Test   Expr
	Body   []Stmt
	OrElse []Stmt
}

// If is an if statement; an elif is an If alone in OrElse.
type If struct {
	Base
	Test   Expr
	Body   []Stmt
	OrElse []Stmt
}

// WithItem is one `context as vars`. It has no position in CPython; Span covers both expressions.
type WithItem struct {
	Base
	Context Expr
	Vars    Expr
}

// With is a with statement; Async marks `async with`.
type With struct {
	Base
	Async bool
	Items []*WithItem
	Body  []Stmt
}

// MatchCase is one `case pattern if guard: body`. It has no position in CPython.
type MatchCase struct {
	Base
	Pattern Pattern
	Guard   Expr
	Body    []Stmt
}

// Match is a match statement.
type Match struct {
	Base
	Subject Expr
	Cases   []*MatchCase
}

// Raise is `raise exc from cause`.
type Raise struct {
	Base
	Exc   Expr
	Cause Expr
}

// ExceptHandler is one except clause.
type ExceptHandler struct {
	Base
	Type Expr
	Name string // "" when there is no `as`
	Body []Stmt
}

// Try is a try statement; Star marks `except*` (TryStar in CPython).
type Try struct {
	Base
	Star     bool
	Body     []Stmt
	Handlers []*ExceptHandler
	OrElse   []Stmt
	Final    []Stmt
}

// Assert is an assert statement.
type Assert struct {
	Base
	Test Expr
	Msg  Expr
}

// Alias is one name of an import; AsName is "" when there is no `as`.
type Alias struct {
	Base
	Name   string // dotted, or "*"
	AsName string
	Number int32 // set by package pyscan: of the import among those of the file, from 1
}

// Import is `import a.b as c`.
type Import struct {
	Base
	Names []*Alias
}

// ImportFrom is `from ..module import names`.
type ImportFrom struct {
	Base
	Module string // "" for `from . import x`
	Names  []*Alias
	Level  int
}

// Global is a global statement.
type Global struct {
	Base
	Names []string
}

// Nonlocal is a nonlocal statement.
type Nonlocal struct {
	Base
	Names []string
}

// ExprStmt is an expression as a statement (Expr in CPython).
type ExprStmt struct {
	Base
	Value Expr
}

// Pass is a pass statement.
type Pass struct{ Base }

// Break is a break statement.
type Break struct{ Base }

// Continue is a continue statement.
type Continue struct{ Base }

// Error stands where text could not be parsed; Parts are what could be saved of it (statements or expressions).
type Error struct {
	Base
	Parts []Node
}

// ---- expressions ----

// BoolOp is `a and b and c`.
type BoolOp struct {
	Base
	Op     BoolOperator
	Values []Expr
}

// NamedExpr is `target := value`.
type NamedExpr struct {
	Base
	Target *Name
	Value  Expr
}

// BinOp is `left op right`.
type BinOp struct {
	Base
	Left  Expr
	Op    Operator
	Right Expr
}

// UnaryOp is `op operand`.
type UnaryOp struct {
	Base
	Op      UnaryOperator
	Operand Expr
}

// Lambda is a lambda.
type Lambda struct {
	Base
	Args  *Arguments
	Body  Expr
	Scope int32 // as that of a FunctionDef
}

// IfExp is `body if test else orelse`.
type IfExp struct {
	Base
	Test   Expr
	Body   Expr
	OrElse Expr
}

// Dict is a dict display; a nil key stands for `**value`.
type Dict struct {
	Base
	Keys   []Expr
	Values []Expr
}

// Set is a set display.
type Set struct {
	Base
	Elts []Expr
}

// Comprehension is one `for target in iter if ...`. It has no position in CPython.
type Comprehension struct {
	Base
	Target Expr
	Iter   Expr
	Ifs    []Expr
	Async  bool
}

// Comp is a comprehension or generator expression: ListComp, SetComp, DictComp or GeneratorExp in CPython, by Kind.
type Comp struct {
	Base
	Kind       CompKind
	Elt        Expr // the key of a DictComp
	Value      Expr // only DictComp
	Generators []*Comprehension
}

// CompKind tells the comprehensions apart.
type CompKind uint8

// The kinds of comprehensions.
const (
	ListComp CompKind = iota
	SetComp
	DictComp
	GeneratorExp
)

// Await is `await value`.
type Await struct {
	Base
	Value Expr
}

// Yield is `yield value`; value may be nil.
type Yield struct {
	Base
	Value Expr
}

// YieldFrom is `yield from value`.
type YieldFrom struct {
	Base
	Value Expr
}

// Compare is `left op comparator op comparator`.
type Compare struct {
	Base
	Left        Expr
	Ops         []CompareOperator
	Comparators []Expr
}

// Keyword is `arg=value` in a call; Arg is "" for `**value`.
type Keyword struct {
	Base
	Arg   string
	Value Expr
}

// Call is a call.
type Call struct {
	Base
	Func     Expr
	Args     []Expr
	Keywords []*Keyword
}

// FormattedValue is a replacement field of an f-string.
type FormattedValue struct {
	Base
	Value      Expr
	Conversion int // -1, or the code point of s, r, a
	FormatSpec *JoinedStr
}

// JoinedStr is an f-string.
type JoinedStr struct {
	Base
	Values []Expr

	folded bool // a format specification that CPython makes a plain Constant (it was cut at \N{...})
}

// Interpolation is a replacement field of a t-string; Str is the text of the expression.
type Interpolation struct {
	Base
	Value      Expr
	Str        string
	Conversion int
	FormatSpec *JoinedStr
}

// TemplateStr is a t-string.
type TemplateStr struct {
	Base
	Values []Expr
}

// Constant is a literal. Text is the decoded text of a str, the bytes of a bytes literal, the digits of an int in
// decimal, and the source text of a float or complex; it is "" for the others.
type Constant struct {
	Base
	Kind  ConstantKind
	U     bool // a str with the prefix u (not U, as in CPython)
	Text  string
	Float float64 // value of a float; imaginary part of a complex
}

// Attribute is `value.attr`.
type Attribute struct {
	Base
	Value Expr
	Attr  string
	Ctx   Context
	Slot  int32 // set by package pyscan where the dotted path is assigned in the same function
}

// Subscript is `value[slice]`.
type Subscript struct {
	Base
	Value Expr
	Slice Expr
	Ctx   Context
}

// Starred is `*value`.
type Starred struct {
	Base
	Value Expr
	Ctx   Context
}

// Name is an identifier.
type Name struct {
	Base
	ID   string
	Ctx  Context
	Slot int32 // set by package pyscan: the definition that this name reads or writes, from 1
}

// List is a list display.
type List struct {
	Base
	Elts []Expr
	Ctx  Context
}

// Tuple is a tuple, with or without parentheses.
type Tuple struct {
	Base
	Elts []Expr
	Ctx  Context
}

// Slice is `lower:upper:step`.
type Slice struct {
	Base
	Lower, Upper, Step Expr
}

// Arg is one parameter.
type Arg struct {
	Base
	Name       string
	Annotation Expr
}

// Arguments are the parameters of a function. Defaults belong to the last of PosOnly+Args; KwDefaults has one entry for
// each of KwOnly, nil where there is none. It has no position in CPython.
type Arguments struct {
	Base
	PosOnly    []*Arg
	Args       []*Arg
	VarArg     *Arg
	KwOnly     []*Arg
	KwDefaults []Expr
	KwArg      *Arg
	Defaults   []Expr
}

// ---- patterns ----

// MatchValue is a value pattern.
type MatchValue struct {
	Base
	Value Expr
}

// MatchSingleton is None, True or False as a pattern.
type MatchSingleton struct {
	Base
	Kind ConstantKind
}

// MatchSequence is a sequence pattern.
type MatchSequence struct {
	Base
	Patterns []Pattern
}

// MatchMapping is a mapping pattern; Rest is "" without `**rest`.
type MatchMapping struct {
	Base
	Keys     []Expr
	Patterns []Pattern
	Rest     string
}

// MatchClass is a class pattern.
type MatchClass struct {
	Base
	Cls         Expr
	Patterns    []Pattern
	KwdAttrs    []string
	KwdPatterns []Pattern
}

// MatchStar is `*name` in a sequence pattern; Name is "" for `*_`.
type MatchStar struct {
	Base
	Name string
}

// MatchAs is a capture, a wildcard (both empty) or `pattern as name`.
type MatchAs struct {
	Base
	Pattern Pattern
	Name    string
}

// MatchOr is `a | b`.
type MatchOr struct {
	Base
	Patterns []Pattern
}

func (*FunctionDef) stmt() {}
func (*ClassDef) stmt()    {}
func (*Return) stmt()      {}
func (*Delete) stmt()      {}
func (*Assign) stmt()      {}
func (*TypeAlias) stmt()   {}
func (*AugAssign) stmt()   {}
func (*AnnAssign) stmt()   {}
func (*For) stmt()         {}
func (*While) stmt()       {}
func (*If) stmt()          {}
func (*With) stmt()        {}
func (*Match) stmt()       {}
func (*Raise) stmt()       {}
func (*Try) stmt()         {}
func (*Assert) stmt()      {}
func (*Import) stmt()      {}
func (*ImportFrom) stmt()  {}
func (*Global) stmt()      {}
func (*Nonlocal) stmt()    {}
func (*ExprStmt) stmt()    {}
func (*Pass) stmt()        {}
func (*Break) stmt()       {}
func (*Continue) stmt()    {}
func (*Error) stmt()       {}

func (*Error) expr()          {}
func (*BoolOp) expr()         {}
func (*NamedExpr) expr()      {}
func (*BinOp) expr()          {}
func (*UnaryOp) expr()        {}
func (*Lambda) expr()         {}
func (*IfExp) expr()          {}
func (*Dict) expr()           {}
func (*Set) expr()            {}
func (*Comp) expr()           {}
func (*Await) expr()          {}
func (*Yield) expr()          {}
func (*YieldFrom) expr()      {}
func (*Compare) expr()        {}
func (*Call) expr()           {}
func (*FormattedValue) expr() {}
func (*JoinedStr) expr()      {}
func (*Interpolation) expr()  {}
func (*TemplateStr) expr()    {}
func (*Constant) expr()       {}
func (*Attribute) expr()      {}
func (*Subscript) expr()      {}
func (*Starred) expr()        {}
func (*Name) expr()           {}
func (*List) expr()           {}
func (*Tuple) expr()          {}
func (*Slice) expr()          {}

func (*MatchValue) pattern()     {}
func (*MatchSingleton) pattern() {}
func (*MatchSequence) pattern()  {}
func (*MatchMapping) pattern()   {}
func (*MatchClass) pattern()     {}
func (*MatchStar) pattern()      {}
func (*MatchAs) pattern()        {}
func (*MatchOr) pattern()        {}

// Comments are the spans of all comments, `#` included, in file order.
func (f *File) Comments() []source.Span { return f.comments }
