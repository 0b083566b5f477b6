package lsp_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the output sections in testdata/lsp")

// TestSessions plays the sessions in testdata/lsp. The comment of an archive is prose and commands, its files are the project:
//
//	> initialize CAPABILITIES       start, with the capabilities of the client as JSON
//	> open FILE [LANGUAGE]          show a file
//	> edit FILE L:C-L:C TEXT        change a range of it; TEXT is a Go string
//	> close FILE
//	> write FILE TEXT               change a file on disk, and tell
//	> diagnostics FILE              the findings of the version that was sent last
//	> request METHOD PARAMS         "@FILE" is the URI of a file
//	> grep REGEXP METHOD PARAMS     a request, of whose answer only what matches is kept: for texts and figures that change elsewhere;
//	                                REGEXP is a Go string
//	> notify METHOD PARAMS
//
// What the server answers is in the section `output`, which -update rewrites.
func TestSessions(t *testing.T) {
	sessions, err := filepath.Glob(filepath.Join("..", "..", "testdata", "lsp", "*.txtar"))
	if err != nil || len(sessions) == 0 {
		t.Fatalf("no sessions: %v", err)
	}
	for _, name := range sessions {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) { playFile(t, name) })
	}
}

func playFile(t *testing.T, name string) {
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	files, output := map[string]string{}, -1
	for i, file := range archive.Files {
		if file.Name == "output" {
			output = i
		} else {
			files[file.Name] = string(file.Data)
		}
	}
	s := &script{t: t, folder: project(t, files), text: files, version: map[string]int{}}
	s.uri = func(file string) string { return fileURI(filepath.Join(s.folder, file)) }
	for number, line := range strings.Split(string(archive.Comment), "\n") {
		if command, ok := strings.CutPrefix(line, "> "); ok {
			if err := s.play(command); err != nil {
				t.Fatalf("line %d: %v", number+1, err)
			}
		}
	}
	s.c.stop()
	got := strings.ReplaceAll(s.out.String(), fileURI(s.folder), "@")
	switch {
	case *update:
		if output < 0 {
			archive.Files, output = append(archive.Files, txtar.File{Name: "output"}), len(archive.Files)
		}
		archive.Files[output].Data = []byte(got)
		if err := os.WriteFile(name, txtar.Format(archive), 0o666); err != nil {
			t.Fatal(err)
		}
	case output < 0:
		t.Errorf("no section output; the server says\n%s", got)
	case got != string(archive.Files[output].Data):
		t.Errorf("the server says\n%s\nwanted\n%s", got, archive.Files[output].Data)
	}
}

type script struct {
	t       *testing.T
	c       *client
	folder  string
	uri     func(string) string
	text    map[string]string
	version map[string]int
	out     strings.Builder
}

var (
	fileMark  = regexp.MustCompile(`"@([^"]*)"`)
	rangeMark = regexp.MustCompile(`^(\d+):(\d+)-(\d+):(\d+)$`)
)

func (s *script) play(command string) error {
	verb, rest, _ := strings.Cut(command, " ")
	var pattern *regexp.Regexp
	if verb == "grep" {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return err
		}
		text, _ := strconv.Unquote(quoted)
		if pattern, err = regexp.Compile(text); err != nil {
			return err
		}
		verb, rest = "request", strings.TrimSpace(rest[len(quoted):])
	}
	name, rest2, _ := strings.Cut(rest, " ")
	if s.c == nil && verb != "initialize" {
		return fmt.Errorf("initialize comes first")
	}
	switch verb {
	case "initialize":
		var capabilities object
		if err := json.Unmarshal([]byte(rest), &capabilities); err != nil {
			return err
		}
		s.c = start(s.t)
		s.c.initialize(s.folder, capabilities)
	case "open":
		s.version[name] = 1
		s.c.open(s.uri(name), rest2, s.text[name])
	case "edit":
		at, quoted, _ := strings.Cut(rest2, " ")
		text, err := strconv.Unquote(quoted)
		numbers := rangeMark.FindStringSubmatch(at)
		if err != nil || numbers == nil {
			return fmt.Errorf("edit FILE L:C-L:C TEXT: %v", err)
		}
		n := make([]int, 4)
		for i := range n {
			n[i], _ = strconv.Atoi(numbers[i+1])
		}
		s.version[name]++
		s.c.change(s.uri(name), s.version[name], edit(n[0], n[1], n[2], n[3], text))
	case "close":
		s.c.notify("textDocument/didClose", object{"textDocument": object{"uri": s.uri(name)}})
	case "write":
		text, err := strconv.Unquote(rest2)
		if err != nil {
			return err
		}
		kind := 2
		if _, err := os.Stat(filepath.Join(s.folder, name)); err != nil {
			kind = 1
		}
		write(s.t, filepath.Join(s.folder, name), text)
		s.c.notify("workspace/didChangeWatchedFiles", object{"changes": []object{{"uri": s.uri(name), "type": kind}}})
	case "diagnostics":
		fmt.Fprintf(&s.out, "> %s\n", command)
		for _, d := range s.c.published(s.uri(name), s.version[name]) {
			fmt.Fprintf(&s.out, "%v (%d) %s\n", d, d.Severity, d.Message)
		}
	case "request", "notify":
		params := json.RawMessage(fileMark.ReplaceAllStringFunc(rest2, func(mark string) string { return strconv.Quote(s.uri(mark[2 : len(mark)-1])) }))
		if !json.Valid(params) {
			return fmt.Errorf("no JSON: %s", params)
		}
		if verb == "notify" {
			s.c.notify(name, params)
			return nil
		}
		a := s.c.answer(s.c.begin(name, params))
		fmt.Fprintf(&s.out, "> %s\n", command)
		if a.Error != nil {
			fmt.Fprintf(&s.out, "error %d: %s\n", a.Error.Code, a.Error.Message)
			return nil
		}
		if pattern != nil {
			var text bytes.Buffer
			if err := json.Compact(&text, a.Result); err != nil {
				return err
			}
			for _, match := range pattern.FindAllString(text.String(), -1) {
				s.out.WriteString(match + "\n")
			}
			return nil
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, a.Result, "", " "); err != nil {
			return err
		}
		s.out.WriteString(indented.String() + "\n")
	default:
		return fmt.Errorf("unknown command %q", verb)
	}
	return nil
}
