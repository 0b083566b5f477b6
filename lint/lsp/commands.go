package lsp

import (
	"context"

	"github.com/trainvet/trainvet/lint/lsp/internal/feature"
	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"
)

// Commands: the first two run here and give Markdown, the last is one of clients that show it.
const (
	commandFit    = "trainvet.fit"
	commandValues = "trainvet.plan"
	commandMemory = "trainvet.showMemory"
)

// ExecuteCommand says in Markdown what `trainvet fit` or `trainvet plan` says about a document: its URI is the one argument.
func (s *server) ExecuteCommand(ctx context.Context, params *protocol.ExecuteCommandParams) (protocol.LSPAny, error) {
	if params.Command != commandFit && params.Command != commandValues {
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "no command is called %q", params.Command)
	}
	var name string
	if len(params.Arguments) != 1 || protocol.Unmarshal(params.Arguments[0], &name) != nil {
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "%s takes the URI of a document", params.Command)
	}
	u, err := uri.Parse(name)
	if err != nil {
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "%q is no URI", name)
	}
	d, ok := s.document(ctx, u)
	if !ok {
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "%s is not open", name)
	}
	view := d.project.View(ctx)
	text := feature.PlanText(view, d.file.Path)
	if params.Command == commandFit {
		text = feature.Fit(view, d.file.Path)
	}
	raw, err := protocol.Marshal(protocol.String(text))
	return raw, err
}
