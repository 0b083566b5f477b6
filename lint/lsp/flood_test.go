package lsp_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"
)

// flood makes messages at random: sound and broken ones, in any order, about documents that are open, closed or were never there.
type flood struct {
	random *rand.Rand
	uris   []string
	texts  []string
	ids    []string // of requests that must be answered, each once
	next   int
}

var floodRequests = []string{"textDocument/hover", "textDocument/completion", "textDocument/codeAction", "textDocument/inlayHint", "textDocument/codeLens", "textDocument/documentLink",
	"textDocument/documentSymbol", "textDocument/diagnostic", "workspace/diagnostic", "workspace/executeCommand", "workspace/symbol", "textDocument/definition", "nonsense", "$/nonsense", "initialize", "codeAction/resolve"}

var floodParams = []string{`null`, `{}`, `[]`, `7`, `"x"`, `{"textDocument":null}`, `{"textDocument":{"uri":7}}`, `{"textDocument":{"uri":"::"},"position":{"line":-1,"character":1e99}}`,
	`{"textDocument":{"uri":"file:///nowhere/x.py"},"position":{"line":4294967295,"character":4294967295}}`, `{"textDocument":{"uri":"untitled:none"},"contentChanges":[{"text":"x"}]}`}

var floodBodies = []string{``, `{`, `[]`, `[{}]`, `null`, `7`, `"x"`, `{}`, `{"jsonrpc":"1.0","id":1,"method":"x"}`, `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":{},"method":"x"}`, `{"jsonrpc":"2.0","id":"no such","result":null}`,
	`{"jsonrpc":"2.0","method":7}`, "\xff\xfe", `{"jsonrpc":"2.0","method":"textDocument/didOpen"}`}

func pick[T any](random *rand.Rand, of []T) T { return of[random.IntN(len(of))] }

// body is one message.
func (f *flood) body() string {
	at := func() string {
		return fmt.Sprintf(`{"line":%d,"character":%d}`, f.random.IntN(40), f.random.IntN(60))
	}
	notify := func(method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
	}
	quote := func(text string) string {
		quoted, _ := json.Marshal(text)
		return string(quoted)
	}
	u := quote(pick(f.random, f.uris))
	f.next++
	switch n := f.random.IntN(100); {
	case n < 8:
		language := pick(f.random, []string{"python", "json", "yaml", "toml", "shellscript", "plaintext", ""})
		return notify("textDocument/didOpen", fmt.Sprintf(`{"textDocument":{"uri":%s,"languageId":%q,"version":%d,"text":%s}}`, u, language, f.next, quote(pick(f.random, f.texts))))
	case n < 13:
		return notify("textDocument/didClose", `{"textDocument":{"uri":`+u+`}}`)
	case n < 45:
		change := fmt.Sprintf(`{"range":{"start":%s,"end":%s},"text":%s}`, at(), at(), quote(pick(f.random, fragments)))
		if f.random.IntN(8) == 0 {
			change = `{"text":` + quote(pick(f.random, f.texts)) + `}`
		}
		return notify("textDocument/didChange", fmt.Sprintf(`{"textDocument":{"uri":%s,"version":%d},"contentChanges":[%s]}`, u, f.next, change))
	case n < 48:
		return notify("workspace/didChangeWatchedFiles", fmt.Sprintf(`{"changes":[{"uri":%s,"type":%d}]}`, u, 1+f.random.IntN(4)))
	case n < 50:
		return notify("$/cancelRequest", fmt.Sprintf(`{"id":%d}`, f.random.IntN(f.next+1)))
	case n < 54:
		return notify(pick(f.random, floodRequests), pick(f.random, floodParams))
	case n < 58:
		return notify(pick(f.random, []string{"textDocument/didOpen", "textDocument/didChange", "textDocument/didClose", "notebookDocument/didOpen", "notebookDocument/didChange", "workspace/didChangeWorkspaceFolders", "initialized"}), pick(f.random, floodParams))
	case n < 62:
		cell := quote("cell:" + strconv.Itoa(f.random.IntN(3)))
		if f.random.IntN(2) == 0 {
			return notify("notebookDocument/didChange", fmt.Sprintf(`{"notebookDocument":{"uri":%s,"version":2},"change":{"cells":{"textContent":[{"document":{"uri":%s,"version":2},"changes":[{"text":%s}]}]}}}`, u, cell, quote(pick(f.random, f.texts))))
		}
		return notify("notebookDocument/didOpen", fmt.Sprintf(`{"notebookDocument":{"uri":%s,"notebookType":"jupyter-notebook","version":1,"cells":[{"kind":2,"document":%s}]},"cellTextDocuments":[{"uri":%s,"languageId":"python","version":1,"text":%s}]}`, u, cell, cell, quote(pick(f.random, f.texts))))
	case n < 63:
		return notify("notebookDocument/didClose", fmt.Sprintf(`{"notebookDocument":{"uri":%s},"cellTextDocuments":[]}`, u))
	case n < 67:
		return pick(f.random, floodBodies)
	}
	id := strconv.Itoa(f.next)
	f.ids = append(f.ids, id)
	params := fmt.Sprintf(`{"textDocument":{"uri":%s},"position":%s,"range":{"start":%s,"end":%s},"context":{"diagnostics":[]},"previousResultIds":[],"command":"trainvet.fixAll","arguments":[%s]}`, u, at(), at(), at(), u)
	if f.random.IntN(6) == 0 {
		params = pick(f.random, floodParams)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, pick(f.random, floodRequests), params)
}

// TestFlood sends 10,000 messages without waiting for an answer. Each request is answered once, the server ends as it is told to, and when
// all documents are closed it holds no more memory than after the first hundred.
func TestFlood(t *testing.T) {
	messages := 10_000
	if testing.Short() {
		messages = 1000
	}
	folder := project(t, map[string]string{"train.py": embedding, "ds.json": `{"train_batch_size": 33}`, "args.yaml": "bf16: true\nfp16: true\n", "trainvet.toml": "[run]\nworld-size = 8\n", ".git/HEAD": ""})
	f := &flood{random: rand.New(rand.NewPCG(8, 8)), texts: []string{embedding, engineLoop, "", "x = (", "{\"train_batch_size\": 33, \"zero", "per_device_train_batch_size: 4\nbf16: true\n", "ignore = [", "😀\r\n\x00"}}
	for _, name := range []string{"train.py", "ds.json", "args.yaml", "trainvet.toml", "new.py", "n.ipynb"} {
		f.uris = append(f.uris, fileURI(filepath.Join(folder, name)))
	}
	f.uris = append(f.uris, "untitled:a", "untitled:b.json", "::", "")
	c := start(t)
	c.fails(-32002, "textDocument/hover", object{})
	c.initialize(folder, object{})
	f.next = 1000
	began := time.Now()
	var level uint64
	for i := range messages {
		c.send("%s", f.body())
		if i == 100 {
			level = f.settle(c)
		}
	}
	for _, id := range f.ids {
		c.answer(id)
	}
	t.Logf("%d messages, %d requests: answered after %v", messages, len(f.ids), time.Since(began).Round(time.Millisecond))
	after := f.settle(c)
	t.Logf("held after 100 messages %d KB, after all %d KB", level>>10, after>>10)
	if after > level+16<<20 {
		t.Errorf("%d KB are held when all documents are closed, %d KB after the first messages", after>>10, level>>10)
	}
	c.stop()
}

// settle closes all documents, and gives the bytes that are held then.
func (f *flood) settle(c *client) uint64 {
	for _, u := range f.uris {
		c.notify("textDocument/didClose", object{"textDocument": object{"uri": u}})
		c.notify("notebookDocument/didClose", object{"notebookDocument": object{"uri": u}, "cellTextDocuments": []object{}})
	}
	c.answer(c.begin("workspace/diagnostic", object{"previousResultIds": []object{}}))
	c.mu.Lock()
	c.notes, c.notes = nil, c.notes[:0:0]
	c.mu.Unlock()
	debug.FreeOSMemory()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return memory.HeapAlloc
}
