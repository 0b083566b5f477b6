// Package nearest finds the known word that a misspelt one most likely meant.
package nearest

// Of gives the one of words that is closest to word, or "" when none is close: at most two slips (a letter wrong, missing,
// added, or two neighbours exchanged), or a third of the word's length where that is more; never more than half of it.
// Upper and lower case, '-' and '_' are alike. Of equally close words the first counts.
func Of(word string, words []string) string {
	length := len([]rune(word))
	return Within(word, words, min(max(2, length/3), length/2))
}

// Within is Of for at most limit slips.
func Within(word string, words []string, limit int) string {
	given := plain(word)
	best := ""
	for _, candidate := range words {
		other := plain(candidate)
		if abs(len(given)-len(other)) > limit {
			continue
		}
		if d := distance(given, other); d <= limit {
			best, limit = candidate, d-1
		}
	}
	return best
}

func plain(word string) []rune {
	runes := []rune(word)
	for i, r := range runes {
		switch {
		case 'A' <= r && r <= 'Z':
			runes[i] = r + 'a' - 'A'
		case r == '_':
			runes[i] = '-'
		}
	}
	return runes
}

// distance is the optimal string alignment distance.
func distance(a, b []rune) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

func abs(n int) int { return max(n, -n) }
