package syntax

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"sort"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// AppendDump appends a tree as one line of JSON in the form that `trainvet ast` prints:
//
//	{"path":PATH,"tree":NODE}                                  and, for a file with faults,
//	{"path":PATH,"tree":NODE,"errors":[{"line":L,"column":C,"message":TEXT},...]}
//
// NODE is {"_":TYPE,"at":[line,column,end line,end column],FIELD:VALUE,...} with the types, fields and their order of CPython
// 3.14's grammar; "at" is absent where CPython has no position; lines count from 1, columns are UTF-8 bytes from 0. An Error is
// {"_":"Error","at":[...],"parts":[...]}. A constant is {"k":KIND,"v":TEXT}: int in decimal digits, float as its bits in 16 hex
// digits, complex as those of its imaginary part, bytes in hex. Strings are ASCII, other UTF-16 units are \uXXXX. There are no
// spaces, and a newline ends the line.
func AppendDump(out []byte, path string, f *File) []byte {
	d := &dumper{out: out, lines: f.Source.Lines()}
	d.out = append(d.out, `{"path":`...)
	d.string(strings.ReplaceAll(path, `\`, "/"))
	d.out = append(d.out, `,"tree":{"_":"Module"`...)
	d.stmts("body", f.Body)
	d.out = append(d.out, `,"type_ignores":[]}`...)
	if len(f.Errors) > 0 {
		d.out = append(d.out, `,"errors":[`...)
		for i, e := range f.Errors {
			if i > 0 {
				d.out = append(d.out, ',')
			}
			line, column := d.position(e.At.Start)
			d.out = append(d.out, `{"line":`...)
			d.out = strconv.AppendInt(d.out, int64(line), 10)
			d.out = append(d.out, `,"column":`...)
			d.out = strconv.AppendInt(d.out, int64(column), 10)
			d.out = append(d.out, `,"message":`...)
			d.string(e.Message)
			d.out = append(d.out, '}')
		}
		d.out = append(d.out, ']')
	}
	return append(d.out, '}', '\n')
}

type dumper struct {
	out   []byte
	lines []uint32
	line  int // index of the line found last
}

func (d *dumper) position(offset uint32) (line, column int) {
	if at := d.line; d.lines[at] > offset || at+1 < len(d.lines) && d.lines[at+1] <= offset {
		if at+2 < len(d.lines) && d.lines[at+1] <= offset && offset < d.lines[at+2] {
			d.line++
		} else {
			d.line = sort.Search(len(d.lines), func(i int) bool { return d.lines[i] > offset }) - 1
		}
	}
	return d.line + 1, int(offset - d.lines[d.line])
}

// string writes a JSON string. Lone surrogates are held as the three bytes that UTF-8 would give them.
func (d *dumper) string(s string) {
	const digits = "0123456789abcdef"
	unit := func(u uint16) {
		d.out = append(d.out, '\\', 'u', digits[u>>12], digits[u>>8&15], digits[u>>4&15], digits[u&15])
	}
	d.out = append(d.out, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			d.out = append(d.out, '\\', c)
		case c >= ' ' && c <= '~':
			d.out = append(d.out, c)
		case c == '\n':
			d.out = append(d.out, '\\', 'n')
		case c == '\r':
			d.out = append(d.out, '\\', 'r')
		case c == '\t':
			d.out = append(d.out, '\\', 't')
		case c == '\b':
			d.out = append(d.out, '\\', 'b')
		case c == '\f':
			d.out = append(d.out, '\\', 'f')
		case c < utf8.RuneSelf:
			unit(uint16(c))
		case c == 0xED && i+2 < len(s) && s[i+1] >= 0xA0:
			unit(0xD000 | uint16(s[i+1]&0x3F)<<6 | uint16(s[i+2]&0x3F))
			i += 2
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			if r > 0xFFFF {
				high, low := utf16.EncodeRune(r)
				unit(uint16(high))
				unit(uint16(low))
			} else {
				unit(uint16(r))
			}
			i += size - 1
		}
		i++
	}
	d.out = append(d.out, '"')
}

func (d *dumper) open(kind string, n Node) {
	d.bare(kind)
	d.out = append(d.out, `,"at":[`...)
	at := n.Span()
	line, column := d.position(at.Start)
	d.out = strconv.AppendInt(d.out, int64(line), 10)
	d.out = append(d.out, ',')
	d.out = strconv.AppendInt(d.out, int64(column), 10)
	d.out = append(d.out, ',')
	line, column = d.position(at.End)
	d.out = strconv.AppendInt(d.out, int64(line), 10)
	d.out = append(d.out, ',')
	d.out = strconv.AppendInt(d.out, int64(column), 10)
	d.out = append(d.out, ']')
}

// bare opens a node that has no position in CPython.
func (d *dumper) bare(kind string) {
	d.out = append(d.out, `{"_":"`...)
	d.out = append(d.out, kind...)
	d.out = append(d.out, '"')
}

func (d *dumper) close() { d.out = append(d.out, '}') }

func (d *dumper) field(name string) {
	d.out = append(d.out, ',', '"')
	d.out = append(d.out, name...)
	d.out = append(d.out, '"', ':')
}

func (d *dumper) null() { d.out = append(d.out, "null"...) }

// word writes a field whose value is a name of ours: an operator, a context.
func (d *dumper) word(name, value string) {
	d.field(name)
	d.out = append(d.out, '"')
	d.out = append(d.out, value...)
	d.out = append(d.out, '"')
}

func (d *dumper) name(name, value string) {
	d.field(name)
	d.string(value)
}

// optionalName writes null for "".
func (d *dumper) optionalName(name, value string) {
	d.field(name)
	if value == "" {
		d.null()
	} else {
		d.string(value)
	}
}

func (d *dumper) number(name string, value int) {
	d.field(name)
	d.out = strconv.AppendInt(d.out, int64(value), 10)
}

func (d *dumper) flag(name string, value bool) {
	if value {
		d.number(name, 1)
	} else {
		d.number(name, 0)
	}
}

func (d *dumper) nullField(name string) {
	d.field(name)
	d.null()
}

func dumpList[T any](d *dumper, name string, items []T, one func(T)) {
	d.field(name)
	d.out = append(d.out, '[')
	for i, item := range items {
		if i > 0 {
			d.out = append(d.out, ',')
		}
		one(item)
	}
	d.out = append(d.out, ']')
}

func (d *dumper) stmts(name string, list []Stmt)       { dumpList(d, name, list, d.stmt) }
func (d *dumper) exprs(name string, list []Expr)       { dumpList(d, name, list, d.expr) }
func (d *dumper) patterns(name string, list []Pattern) { dumpList(d, name, list, d.pattern) }
func (d *dumper) strings(name string, list []string)   { dumpList(d, name, list, d.string) }

func (d *dumper) exprField(name string, e Expr) {
	d.field(name)
	d.expr(e)
}

func (d *dumper) bits(value float64) string {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], math.Float64bits(value))
	return hex.EncodeToString(raw[:])
}

func (d *dumper) constant(name, kind, value string) {
	d.field(name)
	d.out = append(d.out, `{"k":"`...)
	d.out = append(d.out, kind...)
	d.out = append(d.out, `","v":`...)
	d.string(value)
	d.out = append(d.out, '}')
}

func (d *dumper) constantValue(n *Constant) {
	switch n.Kind {
	case NoneConstant, TrueConstant, FalseConstant:
		d.singleton(n.Kind)
	case EllipsisConstant:
		d.constant("value", "ellipsis", "...")
	case IntConstant:
		d.constant("value", "int", n.Text)
	case FloatConstant:
		d.constant("value", "float", d.bits(n.Float))
	case ComplexConstant:
		d.constant("value", "complex", d.bits(n.Float))
	case StrConstant:
		d.constant("value", "str", n.Text)
	case BytesConstant:
		d.constant("value", "bytes", hex.EncodeToString([]byte(n.Text)))
	}
}

func (d *dumper) singleton(kind ConstantKind) {
	switch kind {
	case TrueConstant:
		d.constant("value", "bool", "True")
	case FalseConstant:
		d.constant("value", "bool", "False")
	default:
		d.constant("value", "none", "None")
	}
}

func (d *dumper) error(n *Error) {
	d.open("Error", n)
	dumpList(d, "parts", n.Parts, func(part Node) {
		switch part := part.(type) {
		case *Error:
			d.error(part)
		case Stmt:
			d.stmt(part)
		case Expr:
			d.expr(part)
		}
	})
	d.close()
}

func async(yes bool, name string) string {
	if yes {
		return "Async" + name
	}
	return name
}

func (d *dumper) stmt(s Stmt) {
	switch n := s.(type) {
	case *FunctionDef:
		d.open(async(n.Async, "FunctionDef"), n)
		d.name("name", n.Name)
		d.field("args")
		d.arguments(n.Args)
		d.stmts("body", n.Body)
		d.exprs("decorator_list", n.Decorators)
		d.exprField("returns", n.Returns)
		d.nullField("type_comment")
		dumpList(d, "type_params", n.TypeParams, d.typeParam)
	case *ClassDef:
		d.open("ClassDef", n)
		d.name("name", n.Name)
		d.exprs("bases", n.Bases)
		dumpList(d, "keywords", n.Keywords, d.keyword)
		d.stmts("body", n.Body)
		d.exprs("decorator_list", n.Decorators)
		dumpList(d, "type_params", n.TypeParams, d.typeParam)
	case *Return:
		d.open("Return", n)
		d.exprField("value", n.Value)
	case *Delete:
		d.open("Delete", n)
		d.exprs("targets", n.Targets)
	case *Assign:
		d.open("Assign", n)
		d.exprs("targets", n.Targets)
		d.exprField("value", n.Value)
		d.nullField("type_comment")
	case *TypeAlias:
		d.open("TypeAlias", n)
		d.exprField("name", n.Name)
		dumpList(d, "type_params", n.TypeParams, d.typeParam)
		d.exprField("value", n.Value)
	case *AugAssign:
		d.open("AugAssign", n)
		d.exprField("target", n.Target)
		d.word("op", n.Op.String())
		d.exprField("value", n.Value)
	case *AnnAssign:
		d.open("AnnAssign", n)
		d.exprField("target", n.Target)
		d.exprField("annotation", n.Annotation)
		d.exprField("value", n.Value)
		d.flag("simple", n.Simple)
	case *For:
		d.open(async(n.Async, "For"), n)
		d.exprField("target", n.Target)
		d.exprField("iter", n.Iter)
		d.stmts("body", n.Body)
		d.stmts("orelse", n.OrElse)
		d.nullField("type_comment")
	case *While:
		d.open("While", n)
		d.exprField("test", n.Test)
		d.stmts("body", n.Body)
		d.stmts("orelse", n.OrElse)
	case *If:
		d.open("If", n)
		d.exprField("test", n.Test)
		d.stmts("body", n.Body)
		d.stmts("orelse", n.OrElse)
	case *With:
		d.open(async(n.Async, "With"), n)
		dumpList(d, "items", n.Items, func(item *WithItem) {
			d.bare("withitem")
			d.exprField("context_expr", item.Context)
			d.exprField("optional_vars", item.Vars)
			d.close()
		})
		d.stmts("body", n.Body)
		d.nullField("type_comment")
	case *Match:
		d.open("Match", n)
		d.exprField("subject", n.Subject)
		dumpList(d, "cases", n.Cases, func(c *MatchCase) {
			d.bare("match_case")
			d.field("pattern")
			d.pattern(c.Pattern)
			d.exprField("guard", c.Guard)
			d.stmts("body", c.Body)
			d.close()
		})
	case *Raise:
		d.open("Raise", n)
		d.exprField("exc", n.Exc)
		d.exprField("cause", n.Cause)
	case *Try:
		if n.Star {
			d.open("TryStar", n)
		} else {
			d.open("Try", n)
		}
		d.stmts("body", n.Body)
		dumpList(d, "handlers", n.Handlers, func(h *ExceptHandler) {
			d.open("ExceptHandler", h)
			d.exprField("type", h.Type)
			d.optionalName("name", h.Name)
			d.stmts("body", h.Body)
			d.close()
		})
		d.stmts("orelse", n.OrElse)
		d.stmts("finalbody", n.Final)
	case *Assert:
		d.open("Assert", n)
		d.exprField("test", n.Test)
		d.exprField("msg", n.Msg)
	case *Import:
		d.open("Import", n)
		dumpList(d, "names", n.Names, d.alias)
	case *ImportFrom:
		d.open("ImportFrom", n)
		d.optionalName("module", n.Module)
		dumpList(d, "names", n.Names, d.alias)
		d.number("level", n.Level)
	case *Global:
		d.open("Global", n)
		d.strings("names", n.Names)
	case *Nonlocal:
		d.open("Nonlocal", n)
		d.strings("names", n.Names)
	case *ExprStmt:
		d.open("Expr", n)
		d.exprField("value", n.Value)
	case *Pass:
		d.open("Pass", n)
	case *Break:
		d.open("Break", n)
	case *Continue:
		d.open("Continue", n)
	case *Error:
		d.error(n)
		return
	}
	d.close()
}

func (d *dumper) alias(n *Alias) {
	d.open("alias", n)
	d.name("name", n.Name)
	d.optionalName("asname", n.AsName)
	d.close()
}

func (d *dumper) keyword(n *Keyword) {
	d.open("keyword", n)
	d.optionalName("arg", n.Arg)
	d.exprField("value", n.Value)
	d.close()
}

func (d *dumper) typeParam(n *TypeParam) {
	d.open(n.Kind.String(), n)
	d.name("name", n.Name)
	if n.Kind == TypeVar {
		d.exprField("bound", n.Bound)
	}
	d.exprField("default_value", n.Default)
	d.close()
}

func (d *dumper) arguments(n *Arguments) {
	d.bare("arguments")
	dumpList(d, "posonlyargs", n.PosOnly, d.arg)
	dumpList(d, "args", n.Args, d.arg)
	d.field("vararg")
	d.arg(n.VarArg)
	dumpList(d, "kwonlyargs", n.KwOnly, d.arg)
	d.exprs("kw_defaults", n.KwDefaults)
	d.field("kwarg")
	d.arg(n.KwArg)
	d.exprs("defaults", n.Defaults)
	d.close()
}

func (d *dumper) arg(n *Arg) {
	if n == nil {
		d.null()
		return
	}
	d.open("arg", n)
	d.name("arg", n.Name)
	d.exprField("annotation", n.Annotation)
	d.nullField("type_comment")
	d.close()
}

func (d *dumper) formatSpec(n *JoinedStr) {
	d.field("format_spec")
	switch {
	case n == nil:
		d.null()
	case n.folded && len(n.Values) > 0:
		d.open("Constant", n)
		d.constantValue(n.Values[0].(*Constant))
		d.nullField("kind")
		d.close()
	default:
		d.expr(n)
	}
}

// expr writes an expression, or null for none.
func (d *dumper) expr(e Expr) {
	switch n := e.(type) {
	case nil:
		d.null()
		return
	case *Error:
		d.error(n)
		return
	case *BoolOp:
		d.open("BoolOp", n)
		d.word("op", n.Op.String())
		d.exprs("values", n.Values)
	case *NamedExpr:
		d.open("NamedExpr", n)
		d.exprField("target", n.Target)
		d.exprField("value", n.Value)
	case *BinOp:
		d.open("BinOp", n)
		d.exprField("left", n.Left)
		d.word("op", n.Op.String())
		d.exprField("right", n.Right)
	case *UnaryOp:
		d.open("UnaryOp", n)
		d.word("op", n.Op.String())
		d.exprField("operand", n.Operand)
	case *Lambda:
		d.open("Lambda", n)
		d.field("args")
		d.arguments(n.Args)
		d.exprField("body", n.Body)
	case *IfExp:
		d.open("IfExp", n)
		d.exprField("test", n.Test)
		d.exprField("body", n.Body)
		d.exprField("orelse", n.OrElse)
	case *Dict:
		d.open("Dict", n)
		d.exprs("keys", n.Keys)
		d.exprs("values", n.Values)
	case *Set:
		d.open("Set", n)
		d.exprs("elts", n.Elts)
	case *Comp:
		d.open(n.Kind.String(), n)
		if n.Kind == DictComp {
			d.exprField("key", n.Elt)
			d.exprField("value", n.Value)
		} else {
			d.exprField("elt", n.Elt)
		}
		dumpList(d, "generators", n.Generators, func(c *Comprehension) {
			d.bare("comprehension")
			d.exprField("target", c.Target)
			d.exprField("iter", c.Iter)
			d.exprs("ifs", c.Ifs)
			d.flag("is_async", c.Async)
			d.close()
		})
	case *Await:
		d.open("Await", n)
		d.exprField("value", n.Value)
	case *Yield:
		d.open("Yield", n)
		d.exprField("value", n.Value)
	case *YieldFrom:
		d.open("YieldFrom", n)
		d.exprField("value", n.Value)
	case *Compare:
		d.open("Compare", n)
		d.exprField("left", n.Left)
		dumpList(d, "ops", n.Ops, func(op CompareOperator) { d.string(op.String()) })
		d.exprs("comparators", n.Comparators)
	case *Call:
		d.open("Call", n)
		d.exprField("func", n.Func)
		d.exprs("args", n.Args)
		dumpList(d, "keywords", n.Keywords, d.keyword)
	case *FormattedValue:
		d.open("FormattedValue", n)
		d.exprField("value", n.Value)
		d.number("conversion", n.Conversion)
		d.formatSpec(n.FormatSpec)
	case *JoinedStr:
		d.open("JoinedStr", n)
		d.exprs("values", n.Values)
	case *Interpolation:
		d.open("Interpolation", n)
		d.exprField("value", n.Value)
		d.constant("str", "str", n.Str)
		d.number("conversion", n.Conversion)
		d.formatSpec(n.FormatSpec)
	case *TemplateStr:
		d.open("TemplateStr", n)
		d.exprs("values", n.Values)
	case *Constant:
		d.open("Constant", n)
		d.constantValue(n)
		if n.U {
			d.name("kind", "u")
		} else {
			d.nullField("kind")
		}
	case *Attribute:
		d.open("Attribute", n)
		d.exprField("value", n.Value)
		d.name("attr", n.Attr)
		d.word("ctx", n.Ctx.String())
	case *Subscript:
		d.open("Subscript", n)
		d.exprField("value", n.Value)
		d.exprField("slice", n.Slice)
		d.word("ctx", n.Ctx.String())
	case *Starred:
		d.open("Starred", n)
		d.exprField("value", n.Value)
		d.word("ctx", n.Ctx.String())
	case *Name:
		d.open("Name", n)
		d.name("id", n.ID)
		d.word("ctx", n.Ctx.String())
	case *List:
		d.open("List", n)
		d.exprs("elts", n.Elts)
		d.word("ctx", n.Ctx.String())
	case *Tuple:
		d.open("Tuple", n)
		d.exprs("elts", n.Elts)
		d.word("ctx", n.Ctx.String())
	case *Slice:
		d.open("Slice", n)
		d.exprField("lower", n.Lower)
		d.exprField("upper", n.Upper)
		d.exprField("step", n.Step)
	}
	d.close()
}

func (d *dumper) pattern(p Pattern) {
	switch n := p.(type) {
	case nil:
		d.null()
		return
	case *MatchValue:
		d.open("MatchValue", n)
		d.exprField("value", n.Value)
	case *MatchSingleton:
		d.open("MatchSingleton", n)
		d.singleton(n.Kind)
	case *MatchSequence:
		d.open("MatchSequence", n)
		d.patterns("patterns", n.Patterns)
	case *MatchMapping:
		d.open("MatchMapping", n)
		d.exprs("keys", n.Keys)
		d.patterns("patterns", n.Patterns)
		d.optionalName("rest", n.Rest)
	case *MatchClass:
		d.open("MatchClass", n)
		d.exprField("cls", n.Cls)
		d.patterns("patterns", n.Patterns)
		d.strings("kwd_attrs", n.KwdAttrs)
		d.patterns("kwd_patterns", n.KwdPatterns)
	case *MatchStar:
		d.open("MatchStar", n)
		d.optionalName("name", n.Name)
	case *MatchAs:
		d.open("MatchAs", n)
		d.field("pattern")
		d.pattern(n.Pattern)
		d.optionalName("name", n.Name)
	case *MatchOr:
		d.open("MatchOr", n)
		d.patterns("patterns", n.Patterns)
	}
	d.close()
}
