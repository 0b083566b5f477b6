package syntax

// slab hands out pointers into chunks of nodes, because one allocation per node would cost more than the parsing.
type slab[T any] struct {
	free []T
	chunks
}

// chunks decides how many items the next chunk holds: a third of what there is, so that little is left over at the end of a
// file. The first chunk of the common types is what a file of its length usually needs.
type chunks struct{ next, total int }

const (
	minChunk = 4
	maxChunk = 1024
)

func (c *chunks) grow() int {
	size := min(max(c.next, minChunk), maxChunk)
	c.total += size
	c.next = c.total / 3
	return size
}

func (s *slab[T]) take() *T {
	if len(s.free) == 0 {
		s.free = make([]T, s.grow())
	}
	item := &s.free[0]
	s.free = s.free[1:]
	return item
}

// lists hands out slices of exact length from shared chunks.
type lists[T any] struct {
	free []T
	chunks
}

func (l *lists[T]) copy(items []T) []T {
	n := len(items)
	if n == 0 {
		return nil
	}
	if n > len(l.free) {
		if n > maxChunk/4 {
			return append([]T(nil), items...)
		}
		l.free = make([]T, max(l.grow(), n))
	}
	list := l.free[:n:n]
	l.free = l.free[n:]
	copy(list, items)
	return list
}

// stack collects the items of lists that are being parsed, one list on top of another.
type stack[T any] struct {
	items []T
	lists lists[T]
}

func (s *stack[T]) push(item T) { s.items = append(s.items, item) }

// pop makes a list of all items from mark on.
func (s *stack[T]) pop(mark int) []T {
	list := s.lists.copy(s.items[mark:])
	s.items = s.items[:mark]
	return list
}

// nodes are the slabs of one parse.
type nodes struct {
	functionDef    slab[FunctionDef]
	classDef       slab[ClassDef]
	returnStmt     slab[Return]
	assign         slab[Assign]
	augAssign      slab[AugAssign]
	annAssign      slab[AnnAssign]
	forStmt        slab[For]
	ifStmt         slab[If]
	with           slab[With]
	withItem       slab[WithItem]
	raise          slab[Raise]
	handler        slab[ExceptHandler]
	try            slab[Try]
	assert         slab[Assert]
	alias          slab[Alias]
	importStmt     slab[Import]
	importFrom     slab[ImportFrom]
	exprStmt       slab[ExprStmt]
	pass           slab[Pass]
	boolOp         slab[BoolOp]
	binOp          slab[BinOp]
	unaryOp        slab[UnaryOp]
	lambda         slab[Lambda]
	ifExp          slab[IfExp]
	dict           slab[Dict]
	comp           slab[Comp]
	comprehension  slab[Comprehension]
	compare        slab[Compare]
	keyword        slab[Keyword]
	call           slab[Call]
	formattedValue slab[FormattedValue]
	joinedStr      slab[JoinedStr]
	constant       slab[Constant]
	attribute      slab[Attribute]
	subscript      slab[Subscript]
	starred        slab[Starred]
	name           slab[Name]
	list           slab[List]
	tuple          slab[Tuple]
	slice          slab[Slice]
	arg            slab[Arg]
	arguments      slab[Arguments]
}

// presize sets the first chunks for a file of size bytes; the rates, per 1,024 bytes, are a little under those of training code.
func (p *parser) presize(size int) {
	rate := func(c *chunks, perKB int) { c.next = size * perKB >> 10 }
	rate(&p.new.name.chunks, 23)
	rate(&p.new.attribute.chunks, 8)
	rate(&p.new.constant.chunks, 9)
	rate(&p.new.call.chunks, 6)
	rate(&p.new.assign.chunks, 4)
	rate(&p.new.keyword.chunks, 2)
	rate(&p.new.exprStmt.chunks, 2)
	rate(&p.new.arg.chunks, 2)
	rate(&p.new.subscript.chunks, 1)
	rate(&p.new.compare.chunks, 1)
	rate(&p.exprs.lists.chunks, 14)
	rate(&p.stmts.lists.chunks, 9)
	rate(&p.keywords.lists.chunks, 2)
	rate(&p.args.lists.chunks, 2)
}
