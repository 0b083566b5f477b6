package check

import "testing"

// TestBatches wants each target once, in rows that are no longer than a view may serve, and short ones at the end.
func TestBatches(t *testing.T) {
	for _, targets := range []int{0, 1, 7, 8, 9, 100, 1690} {
		for _, workers := range []int{1, 2, 16} {
			starts := batches(targets, workers)
			if starts[0] != 0 || starts[len(starts)-1] != targets {
				t.Errorf("%d targets, %d workers: %d", targets, workers, starts)
			}
			for i := 1; i < len(starts); i++ {
				switch size := starts[i] - starts[i-1]; {
				case size < 1, size > mostTogether, size < leastTogether && i < len(starts)-1:
					t.Errorf("%d targets, %d workers: a row of %d", targets, workers, size)
				}
			}
			if last := len(starts) - 1; last > 1 && starts[last]-starts[last-1] > leastTogether {
				t.Errorf("%d targets, %d workers: the last row is %d long", targets, workers, starts[last]-starts[last-1])
			}
		}
	}
}
