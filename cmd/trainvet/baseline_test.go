package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestBaselineNames holds that findings are known again whatever their files are called, also when only some files are checked, and that
// nothing in the record hides or turns around what a diff of it shows.
func TestBaselineNames(t *testing.T) {
	dir := t.TempDir()
	made := 0
	for _, name := range []string{"inv\xffalid.py", "inv\xfealid.py", "both \ufffd\xff.py", "line\n\"end\\.py", "turn\u202e.py", "tag\U000e0041.py", "c1\u0085.py", "文.py", "plain.py"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(unknownLine), 0o666); err != nil {
			t.Logf("NO file called %q can be made here: %v", name, err)
			continue
		}
		made++
	}
	if output, code := runIn(t, dir, "check", "--write-baseline", "b.json", "."); code != exitClean || !strings.Contains(output, fmt.Sprintf("records %d findings", made)) {
		t.Fatalf("exit code %d\n%s", code, output)
	}
	for _, path := range []string{".", "plain.py"} {
		if output, code := runIn(t, dir, "check", "--baseline", "b.json", "--strict-baseline", path); code != exitClean || strings.Contains(output, "gone") {
			t.Errorf("%s: exit code %d\n%s", path, code, output)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "b.json"))
	if err != nil || !utf8.Valid(text) {
		t.Fatalf("the record: %v\n%q", err, text)
	}
	for _, r := range string(text) {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			t.Errorf("the record holds %U", r)
		}
	}
}
