package lsp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainvet/trainvet/lint/lsp"
	"github.com/trainvet/trainvet/rules"
)

// client is an editor: it speaks JSON, so that nothing of the server's own types is used to judge it.
type client struct {
	t    testing.TB
	in   io.WriteCloser
	code chan int
	log  *lockedBuffer
	next int

	mu      sync.Mutex
	changed *sync.Cond
	answers map[string]json.RawMessage // whole messages by id
	notes   []note
	ended   bool
	leaving bool            // the session may end at any time, in the middle of a message too
	refuse  map[string]bool // requests of the server that are answered with an error
}

// note is a notification or a request of the server.
type note struct {
	Method string
	ID     json.RawMessage
	Params json.RawMessage
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// patience bounds every wait: long enough for a loaded machine, and for nothing else.
const patience = 3 * time.Minute

func start(t testing.TB) *client {
	t.Helper()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	c := &client{t: t, in: toServer, code: make(chan int, 1), log: &lockedBuffer{}, answers: map[string]json.RawMessage{}, refuse: map[string]bool{}}
	c.changed = sync.NewCond(&c.mu)
	go func() {
		c.code <- lsp.Serve(context.Background(), fromClient, toClient, c.log, lsp.Options{Rules: rules.All(), Version: "test"})
		toClient.Close()
		fromClient.Close()
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		c.read(bufio.NewReader(fromServer))
	}()
	t.Cleanup(func() { // no test may be told of anything after its end
		c.leave()
		toServer.Close()
		select {
		case <-read:
		case <-time.After(patience):
			t.Error("the server does not end")
		}
	})
	return c
}

// read takes in what the server says. It must be whole messages.
func (c *client) read(out *bufio.Reader) {
	for {
		body, err := frame(out)
		c.mu.Lock()
		if err != nil {
			if err != io.EOF && !(c.leaving && err == io.ErrUnexpectedEOF) {
				c.t.Errorf("the server wrote what is no message: %v", err)
			}
			c.ended = true
			c.changed.Broadcast()
			c.mu.Unlock()
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
		}
		if err := json.Unmarshal(body, &m); err != nil {
			c.t.Errorf("the server wrote %q: %v", body, err)
		}
		if m.Method == "" {
			if _, twice := c.answers[string(m.ID)]; twice && string(m.ID) != "null" {
				c.t.Errorf("two answers to %s", m.ID)
			}
			c.answers[string(m.ID)] = body
		} else {
			c.notes = append(c.notes, note{m.Method, m.ID, m.Params})
		}
		refuse := c.refuse[m.Method]
		c.changed.Broadcast()
		c.mu.Unlock()
		if m.Method != "" && m.ID != nil {
			if refuse {
				go c.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
			} else {
				go c.send(`{"jsonrpc":"2.0","id":%s,"result":null}`, m.ID)
			}
		}
	}
}

func frame(out *bufio.Reader) ([]byte, error) {
	length := -1
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			return nil, err
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		value, ok := strings.CutPrefix(line, "Content-Length: ")
		if !ok {
			return nil, fmt.Errorf("header %q", line)
		}
		if length, err = strconv.Atoi(value); err != nil {
			return nil, err
		}
	}
	if length < 0 {
		return nil, fmt.Errorf("no length")
	}
	body := make([]byte, length)
	_, err := io.ReadFull(out, body)
	return body, err
}

func (c *client) raw(text string) { _, _ = io.WriteString(c.in, text) }

func (c *client) send(format string, args ...any) {
	body := fmt.Sprintf(format, args...)
	c.raw(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
}

func encode(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// leave is called before the session is ended.
func (c *client) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving = true
}

func (c *client) notify(method string, params any) {
	c.t.Helper()
	if method == "exit" {
		c.leave()
	}
	c.send(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, encode(c.t, params))
}

// begin makes a request and gives its id.
func (c *client) begin(method string, params any) string {
	c.t.Helper()
	c.next++
	id := strconv.Itoa(c.next)
	c.send(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, encode(c.t, params))
	return id
}

// until waits for something that holds of what the server has said. It is called with the lock held.
func (c *client) until(what string, holds func() bool) {
	c.t.Helper()
	deadline := time.AfterFunc(patience, func() {
		c.mu.Lock()
		c.ended = true
		c.changed.Broadcast()
		c.mu.Unlock()
	})
	defer deadline.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !holds() {
		if c.ended {
			c.t.Fatalf("never came: %s\nlog: %s", what, c.log.text())
		}
		c.changed.Wait()
	}
}

type answer struct {
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}

func (c *client) answer(id string) (a answer) {
	c.t.Helper()
	var body json.RawMessage
	c.until("the answer to "+id, func() bool { body = c.answers[id]; return body != nil })
	if err := json.Unmarshal(body, &a); err != nil {
		c.t.Fatal(err)
	}
	return a
}

// request makes a request, and wants a result.
func (c *client) request(method string, params any) json.RawMessage {
	c.t.Helper()
	a := c.answer(c.begin(method, params))
	if a.Error != nil {
		c.t.Fatalf("%s: error %d: %s", method, a.Error.Code, a.Error.Message)
	}
	return a.Result
}

// fails makes a request, and wants an error of that code.
func (c *client) fails(code int, method string, params any) {
	c.t.Helper()
	if a := c.answer(c.begin(method, params)); a.Error == nil || a.Error.Code != code {
		c.t.Errorf("%s: wanted error %d, got %+v", method, code, a)
	}
}

type object = map[string]any

// initialize starts a session in a folder ("" for none).
func (c *client) initialize(folder string, capabilities object) json.RawMessage {
	c.t.Helper()
	params := object{"processId": nil, "rootUri": nil, "capabilities": capabilities}
	if folder != "" {
		params["workspaceFolders"] = []object{{"uri": fileURI(folder), "name": "w"}}
	}
	result := c.request("initialize", params)
	c.notify("initialized", object{})
	return result
}

func (c *client) open(u, language, text string) {
	c.t.Helper()
	c.notify("textDocument/didOpen", object{"textDocument": object{"uri": u, "languageId": language, "version": 1, "text": text}})
}

func (c *client) change(u string, version int, changes ...object) {
	c.t.Helper()
	c.notify("textDocument/didChange", object{"textDocument": object{"uri": u, "version": version}, "contentChanges": changes})
}

func whole(text string) object { return object{"text": text} }

func edit(line, from, toLine, to int, text string) object {
	return object{"range": object{"start": object{"line": line, "character": from}, "end": object{"line": toLine, "character": to}}, "text": text}
}

// stop ends the session in good order.
func (c *client) stop() {
	c.t.Helper()
	c.request("shutdown", nil)
	c.notify("exit", nil)
	c.exit(0)
}

func (c *client) exit(code int) {
	c.t.Helper()
	select {
	case got := <-c.code:
		if got != code {
			c.t.Errorf("exit code %d, wanted %d\nlog: %s", got, code, c.log.text())
		}
	case <-time.After(patience):
		c.t.Fatal("the server does not end")
	}
}

type diagnostic struct {
	Range struct {
		Start, End struct{ Line, Character int }
	}
	Severity        int
	Code            string
	CodeDescription struct{ Href string }
	Source, Message string

	RelatedInformation []struct {
		Location struct {
			URI   string
			Range struct{ Start, End struct{ Line, Character int } }
		}
		Message string
	}
	Data object
}

func (d diagnostic) String() string {
	return fmt.Sprintf("%d:%d-%d:%d %s", d.Range.Start.Line, d.Range.Start.Character, d.Range.End.Line, d.Range.End.Character, d.Code)
}

type publication struct {
	URI         string
	Version     *int
	Diagnostics []diagnostic
}

// published waits for the findings of a version of a document (0: of a file that is not open), the last ones of it so far.
func (c *client) published(u string, version int) []diagnostic {
	c.t.Helper()
	return c.publishedAfter(u, version, 0)
}

// publishedAfter is published among what came after so many notifications.
func (c *client) publishedAfter(u string, version, after int) []diagnostic {
	c.t.Helper()
	var found *publication
	c.until(fmt.Sprintf("the findings of %s, version %d", u, version), func() bool {
		for _, n := range c.notes[min(after, len(c.notes)):] {
			var p publication
			if n.Method != "textDocument/publishDiagnostics" {
				continue
			}
			if err := json.Unmarshal(n.Params, &p); err != nil {
				c.t.Error(err)
			}
			if p.URI == u && (p.Version == nil && version == 0 || p.Version != nil && *p.Version == version) {
				found = &p
			}
		}
		return found != nil
	})
	return found.Diagnostics
}

// told are the notifications and requests of the server so far.
func (c *client) told() []note {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.notes)
}

// heard is how many notifications and requests of the server there were.
func (c *client) heard() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.notes)
}

func fileURI(name string) string {
	name = filepath.ToSlash(name)
	if !strings.HasPrefix(name, "/") {
		name = "/" + name
	}
	return "file://" + strings.NewReplacer(" ", "%20", "#", "%23", "%", "%25").Replace(name)
}

// project writes files into a new folder.
func project(t testing.TB, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(folder, name), text)
	}
	return folder
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func codes(list []diagnostic) []string {
	names := make([]string, len(list))
	for i, d := range list {
		names[i] = d.Code
	}
	return names
}
