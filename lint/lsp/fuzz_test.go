package lsp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/trainvet/trainvet/lint/lsp"
	"github.com/trainvet/trainvet/rules"
)

// FuzzMessages plays lines as the bodies of messages, after an initialize, and then the bytes as they are. Whatever they are, the server
// must end, with a code of its own, must write whole messages, and must not fail inside.
func FuzzMessages(f *testing.F) {
	open := func(name, language, text string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"untitled:%s","languageId":%q,"version":1,"text":%q}}}`, name, language, text)
	}
	at := `"position":{"line":3,"character":5},"range":{"start":{"line":0,"character":0},"end":{"line":9,"character":9}},"context":{"diagnostics":[]}`
	var requests []string
	for i, method := range []string{"hover", "completion", "codeAction", "inlayHint", "codeLens", "documentLink", "documentSymbol", "diagnostic", "nonsense"} {
		requests = append(requests, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"textDocument/%s","params":{"textDocument":{"uri":"untitled:a"},%s}}`, i+2, method, at))
	}
	all := strings.Join(requests, "\n")
	f.Add(open("a", "python", embedding) + "\n" + all + "\n{\"jsonrpc\":\"2.0\",\"method\":\"textDocument/didChange\",\"params\":{\"textDocument\":{\"uri\":\"untitled:a\",\"version\":2},\"contentChanges\":[{\"range\":{\"start\":{\"line\":4294967295,\"character\":4294967295},\"end\":{\"line\":0,\"character\":3}},\"text\":\"é\\r\"},{\"text\":\"x\"}]}}\n" + all)
	f.Add(open("a", "json", "{\"train_batch_size\": 33, \"zero_optimization\": {\"stage\": 2, \"off") + "\n" + all)
	f.Add(open("a", "yaml", "per_device_train_batch_size: 4\nlearning_rate: 1e-5\nbf16: true\noptim: ") + "\n" + all)
	f.Add(open("a", "toml", "[training]\nlocal_batch_size = 8\n[parallelism]\n") + "\n" + all)
	f.Add(open("trainvet.toml", "toml", "ignore = [") + "\n" + all)
	f.Add("{\"jsonrpc\":\"2.0\",\"method\":\"textDocument/didClose\",\"params\":{\"textDocument\":{\"uri\":\"untitled:a\"}}}\n[]\n{}\nnull\n{\"id\":1}\n\"\n{\"jsonrpc\":\"2.0\",\"method\":\"exit\"}")
	f.Add("{\"jsonrpc\":\"2.0\",\"method\":\"notebookDocument/didOpen\",\"params\":{\"notebookDocument\":{\"uri\":\"untitled:n\",\"notebookType\":\"jupyter-notebook\",\"version\":1,\"cells\":[{\"kind\":2,\"document\":\"untitled:a\"}]},\"cellTextDocuments\":[{\"uri\":\"untitled:a\",\"languageId\":\"python\",\"version\":1,\"text\":\"import torch\\n%x\"}]}}\n" +
		"{\"jsonrpc\":\"2.0\",\"method\":\"notebookDocument/didChange\",\"params\":{\"notebookDocument\":{\"uri\":\"untitled:n\",\"version\":2},\"change\":{\"cells\":{\"structure\":{\"array\":{\"start\":9,\"deleteCount\":9}}}}}}\n" + all)
	f.Add("{\"jsonrpc\":\"2.0\",\"method\":\"workspace/didChangeWatchedFiles\",\"params\":{\"changes\":[{\"uri\":\"file:///nowhere/x.py\",\"type\":1},{\"uri\":\"::\",\"type\":9}]}}\n{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"method\":\"workspace/diagnostic\",\"params\":{\"previousResultIds\":[]}}\n{\"jsonrpc\":\"2.0\",\"method\":\"$/cancelRequest\",\"params\":{\"id\":\"s\"}}\n{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"shutdown\"}")
	all105 := rules.All()
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "file:") && !strings.Contains(text, "file:///nowhere") {
			t.Skip() // nothing is read from the disk of who runs this
		}
		var in bytes.Buffer
		message := func(body string) { fmt.Fprintf(&in, "Content-Length: %d\r\n\r\n%s", len(body), body) }
		message(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"rootUri":"file:///nowhere","capabilities":{}}}`)
		for line := range strings.SplitSeq(text, "\n") {
			message(line)
		}
		in.WriteString(text)
		var out, log lockedBuffer
		done := make(chan int, 1)
		go func() {
			done <- lsp.Serve(context.Background(), &in, &out, &log, lsp.Options{Rules: all105})
		}()
		select {
		case <-done:
		case <-time.After(patience):
			t.Fatal("the server does not end")
		}
		if strings.Contains(log.text(), "internal error") || strings.Contains(log.text(), "goroutine") {
			t.Fatalf("log: %s", log.text())
		}
		written := bufio.NewReader(strings.NewReader(out.text()))
		for {
			body, err := frame(written)
			if err == io.EOF {
				break
			}
			if err != nil || !json.Valid(body) {
				t.Fatalf("wrote %q: %v", body, err)
			}
		}
	})
}
