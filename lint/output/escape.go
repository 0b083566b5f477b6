package output

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape writes control characters, and characters that change the direction of text or show nothing, as escapes: what stands
// in a file must not reach a terminal raw, nor begin a line of our output.
func Escape(text string) string {
	if !strings.ContainsFunc(text, unprintable) && utf8.ValidString(text) {
		return text
	}
	var safe strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && text[i] != "\uFFFD"[0]:
			fmt.Fprintf(&safe, `\x%02x`, text[i])
		case !unprintable(r):
			safe.WriteRune(r)
		default:
			safe.WriteString(escaped(r))
		}
	}
	return safe.String()
}

func escaped(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// unprintable holds for C0, DEL and C1, for all format characters (bidirectional overrides, zero-width ones, tags) but the
// joiner that emoji are made with, and for line and paragraph separators.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || r != '\u200d' && unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}
