package source

// Numbers is a set of small numbers.
type Numbers []uint64

// NewNumbers is an empty set for the numbers below a bound.
func NewNumbers(bound int) Numbers { return make(Numbers, (bound+63)/64) }

// Add takes a number in.
func (n Numbers) Add(number int) { n[uint(number)/64] |= 1 << (uint(number) % 64) }

// Has reports whether a number is in the set.
func (n Numbers) Has(number int) bool { return n[uint(number)/64]>>(uint(number)%64)&1 != 0 }

// Meets reports whether two sets for the same bound have a number in common.
func (n Numbers) Meets(other Numbers) bool {
	for i, word := range n {
		if word&other[i] != 0 {
			return true
		}
	}
	return false
}

// Or is the set of what is in one of two sets for the same bound.
func (n Numbers) Or(other Numbers) Numbers {
	both := make(Numbers, len(n))
	for i, word := range n {
		both[i] = word | other[i]
	}
	return both
}
