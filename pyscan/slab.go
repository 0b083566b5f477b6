package pyscan

// slab hands out values from chunks, since one allocation each would cost more than what they hold. A chunk is a quarter of what there is, so
// that little is left over in the end.
type slab[T any] struct {
	free []T
	made int
}

const (
	minChunk = 4
	maxChunk = 128
)

func (s *slab[T]) take() *T {
	list := s.list(1)
	return &list[0]
}

// list is a list of n values.
func (s *slab[T]) list(n int) []T {
	if n > len(s.free) {
		s.free = make([]T, max(min(max(s.made/4, minChunk), maxChunk), n))
		s.made += len(s.free)
	}
	list := s.free[:n:n]
	s.free = s.free[n:]
	return list
}
