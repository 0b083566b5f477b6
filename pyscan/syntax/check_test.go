package syntax

import (
	"fmt"
	"testing"

	"github.com/trainvet/trainvet/lint/source"
)

// check holds what is true of every tree, of a sound file or a broken one.
func check(t testing.TB, f *File) {
	t.Helper()
	end := uint32(len(f.Source.Text))
	bad := 0
	report := func(format string, args ...any) {
		if bad++; bad <= 5 {
			t.Errorf(format, args...)
		}
	}
	within := func(at source.Span, what string) {
		if at.Start > at.End || at.End > end {
			report("%s has the span %v in a text of %d bytes", what, at, end)
		}
	}
	for _, e := range f.Errors {
		within(e.At, "error "+e.Message)
		if e.Message == "" {
			report("an error at %v has no message", e.At)
		}
	}
	last := uint32(0)
	for _, c := range f.Comments() {
		within(c, "comment")
		if c.Start < last {
			report("comments overlap at %v", c)
		} else if c.End <= end && (c.Len() == 0 || f.Source.Text[c.Start] != '#') {
			report("comment at %v is %q", c, f.Source.Slice(c))
		}
		last = c.End
	}
	var walk func(n Node, parent source.Span)
	walk = func(n Node, parent source.Span) {
		at := n.Span()
		within(at, fmt.Sprintf("%T", n))
		if !parent.Contains(at) {
			report("%T at %v is outside its parent at %v", n, at, parent)
		}
		if s, ok := n.(Stmt); ok && len(f.Errors) == 0 && at.Len() == 0 {
			report("%T at %v has no length", s, at)
		}
		if _, ok := n.(*Error); ok && len(f.Errors) == 0 {
			report("an Error at %v in a file without errors", at)
		}
		if hasDecorators(n) {
			at = wholeSpan(n.(Stmt))
		}
		Children(n, func(child Node) {
			if child == nil {
				report("%T at %v has a child that is nil", n, at)
				return
			}
			walk(child, at)
		})
	}
	whole := source.Span{Start: 0, End: end}
	for _, s := range f.Body {
		walk(s, whole)
	}
}

func hasDecorators(n Node) bool {
	switch n.(type) {
	case *FunctionDef, *ClassDef:
		return true
	}
	return false
}
