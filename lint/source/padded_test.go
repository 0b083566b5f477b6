package source

import (
	"strings"
	"testing"
)

// TestPadded: whatever room is behind the bytes of a file, the text has zero bytes behind it, and what others append lies elsewhere.
func TestPadded(t *testing.T) {
	behind := strings.Repeat("\x00", Padding)
	for name, room := range map[string]string{"none": "", "some": behind[1:], "enough": behind, "more": behind + "x", "used": "x" + behind} {
		for _, text := range []string{"", "x = 1\n", "\xEF\xBB\xBFx = 1\n"} {
			bytes := []byte(text + room)
			file, err := Decode("a.py", Python, bytes[:len(text):len(bytes)])
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.TrimPrefix(text, "\xEF\xBB\xBF"); file.Padded() != want+behind || string(file.Text) != want || string(file.Raw) != text {
				t.Errorf("room: %s: %q is padded as %q, text %q", name, text, file.Padded(), file.Text)
			}
			if enough := strings.HasPrefix(room, behind); enough != (file.padded != "") {
				t.Errorf("room: %s: %q is copied: %v", name, text, !enough)
			}
			_, _ = append(file.Text, "abcd"...), append(file.Raw, "abcd"...)
			if !strings.HasSuffix(file.Padded(), behind) {
				t.Errorf("room: %s: what was appended to %q stands in its padding", name, text)
			}
		}
	}
}
