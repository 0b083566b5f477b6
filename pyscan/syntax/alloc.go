package syntax

// slab hands out pointers into chunks of nodes, because one allocation per node would cost more than the parsing. Chunks grow,
// so that a small file does not pay for a large one.
type slab[T any] struct {
	free []T
	size int
}

const (
	firstChunk = 8
	maxChunk   = 512
)

func (s *slab[T]) take() *T {
	if len(s.free) == 0 {
		s.grow()
	}
	item := &s.free[0]
	s.free = s.free[1:]
	return item
}

func (s *slab[T]) grow() {
	s.size = min(max(2*s.size, firstChunk), maxChunk)
	s.free = make([]T, s.size)
}

// lists hands out slices of exact length from shared chunks.
type lists[T any] struct {
	free []T
	size int
}

func (l *lists[T]) copy(items []T) []T {
	n := len(items)
	if n == 0 {
		return nil
	}
	if n > len(l.free) {
		if n > maxChunk {
			return append([]T(nil), items...)
		}
		l.size = min(max(2*l.size, firstChunk, n), maxChunk)
		l.free = make([]T, max(l.size, n))
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
