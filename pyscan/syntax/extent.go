package syntax

import (
	"sort"

	"github.com/trainvet/trainvet/lint/source"
)

// Extent is the span of the next statement that starts at or after offset, with its whole block and its decorators; it is empty,
// at the end of the text, when there is none.
func (f *File) Extent(offset uint32) source.Span {
	if at, ok := extentIn(f.Body, offset); ok {
		return at
	}
	end := uint32(len(f.Source.Text))
	return source.Span{Start: end, End: end}
}

// extentIn looks in a block. Statements stand in the order of the text.
func extentIn(body []Stmt, offset uint32) (source.Span, bool) {
	i := sort.Search(len(body), func(i int) bool { return body[i].Span().End > offset })
	for ; i < len(body); i++ {
		if at := wholeSpan(body[i]); at.Start >= offset {
			return at, true
		}
		for _, block := range blocks(body[i]) {
			if at, ok := extentIn(block, offset); ok {
				return at, true
			}
		}
	}
	return source.Span{}, false
}

// wholeSpan is the span of a statement with its decorators.
func wholeSpan(s Stmt) source.Span {
	at := s.Span()
	switch s := s.(type) {
	case *FunctionDef:
		at.Start = min(at.Start, s.decoratorsAt)
	case *ClassDef:
		at.Start = min(at.Start, s.decoratorsAt)
	}
	return at
}

// blocks are the statement lists of a compound statement, in the order of the text.
func blocks(s Stmt) [][]Stmt {
	switch s := s.(type) {
	case *FunctionDef:
		return [][]Stmt{s.Body}
	case *ClassDef:
		return [][]Stmt{s.Body}
	case *For:
		return [][]Stmt{s.Body, s.OrElse}
	case *While:
		return [][]Stmt{s.Body, s.OrElse}
	case *If:
		return [][]Stmt{s.Body, s.OrElse}
	case *With:
		return [][]Stmt{s.Body}
	case *Match:
		var list [][]Stmt
		for _, c := range s.Cases {
			list = append(list, c.Body)
		}
		return list
	case *Try:
		list := [][]Stmt{s.Body}
		for _, h := range s.Handlers {
			list = append(list, h.Body)
		}
		return append(list, s.OrElse, s.Final)
	case *Error:
		var parts []Stmt
		for _, part := range s.Parts {
			if part, ok := part.(Stmt); ok {
				parts = append(parts, part)
			}
		}
		return [][]Stmt{parts}
	}
	return nil
}
