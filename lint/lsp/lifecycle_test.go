package lsp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestLife(t *testing.T) {
	t.Run("order", func(t *testing.T) {
		c := start(t)
		c.fails(-32002, "textDocument/hover", object{})
		c.fails(-32002, "shutdown", nil)
		c.notify("textDocument/didOpen", object{"textDocument": object{"uri": "file:///x.py", "languageId": "python", "version": 1, "text": "x"}})
		c.initialize("", object{})
		c.fails(-32600, "initialize", object{"processId": nil, "rootUri": nil, "capabilities": object{}})
		c.fails(-32601, "textDocument/nonsense", object{})
		c.fails(-32601, "$/nonsense", object{})
		c.notify("nonsense", object{})
		c.notify("$/nonsense", []int{1})
		c.notify("$/cancelRequest", object{"id": nil})
		c.notify("$/cancelRequest", object{"id": 17})
		for id, want := range map[string]int{"textDocument/nonsense": -32601, "non\"sense": -32601, "$/nonsense": -32601} { // without parameters
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%[1]s}`, encode(t, id))
			c.raw(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
			if a := c.answer(encode(t, id)); a.Error == nil || a.Error.Code != want {
				t.Errorf("%s without parameters: wanted error %d, got %+v", id, want, a)
			}
		}
		c.fails(-32601, "textDocument/nonsense", nil)
		c.fails(-32602, "textDocument/hover", []int{1})
		c.notify("initialize", []int{1}) // no request, so that nobody can be answered
		c.notify("shutdown", nil)
		c.request("shutdown", nil)
		c.fails(-32600, "textDocument/hover", object{})
		c.fails(-32600, "shutdown", nil)
		c.notify("exit", nil)
		c.exit(0)
	})
	t.Run("exit without shutdown", func(t *testing.T) {
		c := start(t)
		c.initialize("", object{})
		c.notify("exit", nil)
		c.exit(1)
	})
	t.Run("exit before initialize", func(t *testing.T) {
		c := start(t)
		c.notify("exit", nil)
		c.exit(1)
	})
	t.Run("end of input", func(t *testing.T) {
		c := start(t)
		c.initialize("", object{})
		c.in.Close()
		c.exit(1)
	})
	t.Run("a request under way is answered in spite of shutdown", func(t *testing.T) {
		c := start(t)
		c.initialize(t.TempDir(), object{})
		first, second := c.begin("workspace/diagnostic", object{"previousResultIds": []object{}}), c.begin("shutdown", nil)
		c.answer(second)
		if a := c.answer(first); a.Error != nil {
			t.Errorf("answered %+v", a)
		}
		c.notify("exit", nil)
		c.exit(0)
	})
}

func TestBrokenInput(t *testing.T) {
	for name, body := range map[string]string{"no JSON": "{x", "nothing": "", "half a string": `"abc`, "deep": strings.Repeat("[", 20000)} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			c.initialize("", object{})
			c.raw(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
			if a := c.answer("null"); a.Error == nil || a.Error.Code != -32700 {
				t.Errorf("wanted -32700, got %+v", a)
			}
			c.stop()
		})
	}
	for name, body := range map[string]string{"a number": "5", "a batch": `[{"jsonrpc":"2.0","id":1,"method":"shutdown"}]`, "no method": `{"jsonrpc":"2.0","id":1}`} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			c.initialize("", object{})
			c.raw(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
			if a := c.answer("null"); a.Error == nil || a.Error.Code != -32600 && a.Error.Code != -32700 {
				t.Errorf("wanted -32600, got %+v", a)
			}
			c.stop()
		})
	}
	for name, header := range map[string]string{
		"no length":     "Content-Type: x\r\n\r\n{}",
		"no number":     "Content-Length: many\r\n\r\n{}",
		"negative":      "Content-Length: -1\r\n\r\n{}",
		"absurd":        "Content-Length: 99999999999\r\n\r\n{}",
		"no colon":      "hello\r\n\r\n",
		"endless":       strings.Repeat("x", 100_000),
		"endless lines": strings.Repeat("a: b\r\n", 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			c.initialize("", object{})
			go c.raw(header)
			c.exit(1)
			if c.log.text() == "" || strings.Contains(c.log.text(), "goroutine") {
				t.Errorf("log: %q", c.log.text())
			}
		})
	}
	t.Run("a length that never comes", func(t *testing.T) {
		c := start(t)
		c.initialize("", object{})
		c.raw("Content-Length: 150000000\r\n\r\n{}")
		c.in.Close()
		c.exit(1)
		if !strings.Contains(c.log.text(), "2 of 150000000 bytes") {
			t.Errorf("log: %q", c.log.text())
		}
	})
}

func TestInitialize(t *testing.T) {
	for _, test := range []struct {
		offered []string
		want    string
	}{
		{nil, "utf-16"}, {[]string{"utf-16", "utf-8"}, "utf-8"}, {[]string{"utf-32", "utf-16"}, "utf-16"}, {[]string{"utf-32"}, "utf-32"}, {[]string{"utf-7"}, "utf-16"},
	} {
		c := start(t)
		capabilities := object{}
		if test.offered != nil {
			capabilities["general"] = object{"positionEncodings": test.offered}
		}
		var result struct {
			Capabilities struct {
				PositionEncoding string
				TextDocumentSync struct {
					OpenClose, Save bool
					Change          int
				}
				DiagnosticProvider struct{ InterFileDependencies, WorkspaceDiagnostics bool }
				CodeActionProvider struct{ CodeActionKinds []string }
				HoverProvider      bool
			}
			ServerInfo struct{ Name, Version string }
		}
		if err := json.Unmarshal(c.initialize("", capabilities), &result); err != nil {
			t.Fatal(err)
		}
		got := result.Capabilities
		if got.PositionEncoding != test.want {
			t.Errorf("of %v: %s, wanted %s", test.offered, got.PositionEncoding, test.want)
		}
		if s := got.TextDocumentSync; !s.OpenClose || !s.Save || s.Change != 2 || !got.HoverProvider || !got.DiagnosticProvider.InterFileDependencies ||
			!got.DiagnosticProvider.WorkspaceDiagnostics || strings.Join(got.CodeActionProvider.CodeActionKinds, " ") != "quickfix source.fixAll.trainvet" {
			t.Errorf("capabilities: %+v", got)
		}
		if result.ServerInfo.Name != "trainvet" {
			t.Errorf("%+v", result.ServerInfo)
		}
		c.stop()
	}
}

func TestWatchedFilesAreRegistered(t *testing.T) {
	c := start(t)
	c.initialize("", object{"workspace": object{"didChangeWatchedFiles": object{"dynamicRegistration": true}}})
	c.until("the registration", func() bool {
		for _, n := range c.notes {
			if n.Method == "client/registerCapability" {
				return strings.Contains(string(n.Params), `"**/trainvet.toml"`) && strings.Contains(string(n.Params), `"**/*.{py,json,jsonc,yaml,yml,toml,sh,ipynb}"`)
			}
		}
		return false
	})
	c.stop()
}
