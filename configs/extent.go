package configs

import "github.com/trainvet/trainvet/lint/source"

// Extent is the span of the next entry of a mapping at or after offset, its key and value, or of the next element of a
// sequence; of several that start there the outermost. After the last it is empty, at offset.
func (t *Tree) Extent(offset uint32) source.Span {
	best, found := source.Span{Start: offset, End: offset}, false
	var visit func(*Node)
	visit = func(n *Node) {
		for i := range n.Items {
			item := &n.Items[i]
			if item.Merge {
				continue
			}
			span := item.span()
			switch {
			case span.Start >= offset:
				if !found || span.Start < best.Start || span.Start == best.Start && span.End > best.End {
					best, found = span, true
				}
			case span.End > offset && item.Value.Via.IsZero():
				visit(item.Value)
			}
		}
	}
	if t.Root != nil {
		visit(t.Root)
	}
	return best
}

// span is the place of an entry in its collection: of its key and value, or of its key and the alias or variable that
// stands for the value.
func (i *Item) span() source.Span {
	span := i.Value.At.Span
	if !i.Value.Via.IsZero() {
		span = i.Value.Via.Span
	}
	if !i.KeyAt.IsZero() {
		span = span.Cover(i.KeyAt.Span)
	}
	return span
}
