package configs

import "bytes"

// tooNested is the offset at which a script is nested deeper than maxShellNest, or -1. The parser calls itself for each level,
// and takes time that grows with the square of their number, so this looks at bytes alone: it does not know what is quoted,
// which nests in substitutions as well, and counts words only where a command can begin.
func tooNested(text []byte) int {
	brackets, compounds, prefixes := 0, 0, 0
	begins := true
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\t', '\r', '"', '$':
		case '\\':
			i++
			begins = false
		case '#':
			if i > 0 && text[i-1] > ' ' && text[i-1] != ';' { // $#, ${#a}
				begins = false
				break
			}
			if end := bytes.IndexByte(text[i:], '\n'); end >= 0 {
				i += end
			} else {
				i = len(text)
			}
			begins = true
		case '(', '{', '[':
			brackets++
			begins = true
		case ')', '}', ']':
			brackets = max(brackets-1, 0)
			begins = true // the pattern of a case
		case '!', '-', '+', '~', '?', '*':
			prefixes++ // operators nest to the right
			begins = begins && c == '!'
		case '\n', ';', '&', '|', '`':
			begins, prefixes = true, 0
		default:
			end := i + 1
			for end < len(text) && isWordByte(text[end]) {
				end++
			}
			word := string(text[i:min(end, i+8)])
			if begins && (word == "time" || word == "coproc") {
				prefixes++
				i = end - 1
				break
			}
			i, begins = end-1, begins && keywordNest(word, &compounds)
		}
		if brackets+compounds > maxShellNest || prefixes > maxShellPrefix {
			return min(i, len(text)-1)
		}
	}
	return -1
}

func isWordByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// keywordNest counts a reserved word, and reports whether a command can begin behind it.
func keywordNest(word string, compounds *int) bool {
	switch word {
	case "if", "while", "until":
		*compounds++
		return true
	case "for", "case", "select":
		*compounds++
	case "fi", "done", "esac":
		*compounds = max(*compounds-1, 0)
	case "then", "else", "elif", "do", "!", "time", "function":
		return true
	}
	return false
}
