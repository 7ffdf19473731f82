// Package nearest guesses which known word a slip of the pen meant, for "did you mean".
package nearest

import "strings"

// Word returns the closest known word within two edits (one, for short words).
func Word(word string, known []string) string {
	best, least := "", 3
	if len(word) < 5 {
		least = 2
	}
	for _, k := range known {
		if d := distance(strings.ToLower(word), k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is the number of insertions, deletions and substitutions; words over 64 bytes are far.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
