package configs

import (
	"sort"

	"github.com/trainvet/trainvet/lint/source"
)

// Extent is the span of the next entry of a mapping at or after offset, its key and value, or of the next element of a
// sequence. After the last it is empty, at offset.
func (t *Tree) Extent(offset uint32) source.Span {
	starts := t.extents()
	i := sort.Search(len(starts), func(i int) bool { return starts[i].Start >= offset })
	if i == len(starts) {
		return source.Span{Start: offset, End: offset}
	}
	return starts[i]
}

// extents are the spans of all entries by their start, outer before inner.
func (t *Tree) extents() []source.Span {
	var spans []source.Span
	var visit func(*Node)
	visit = func(n *Node) {
		if n == nil {
			return
		}
		for i := range n.Items {
			item := &n.Items[i]
			if !item.Merge && item.Value.Via.IsZero() {
				span := item.Value.At.Span
				if !item.KeyAt.IsZero() {
					span = span.Cover(item.KeyAt.Span)
				}
				spans = append(spans, span)
				visit(item.Value)
			}
		}
	}
	visit(t.Root)
	sort.SliceStable(spans, func(i, j int) bool {
		if spans[i].Start != spans[j].Start {
			return spans[i].Start < spans[j].Start
		}
		return spans[i].End > spans[j].End
	})
	return spans
}
