package lsp

import (
	"context"
	"slices"
	"time"

	"github.com/trainvet/trainvet/lint/lsp/internal/session"
	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
)

// fixAll is the kind of the action that applies all safe fixes.
const fixAll protocol.CodeActionKind = "source.fixAll.trainvet"

// capabilities are what the client can take, as far as it matters here.
type capabilities struct {
	pull            bool // it asks for diagnostics, so that nothing is pushed
	refresh         bool // it can be told to ask again
	refreshHints    bool
	refreshLenses   bool
	watch           bool // watched files can be registered
	progress        bool
	markdown        bool
	create          bool // edits may make files
	documentChanges bool // edits may carry the version of their document
	hierarchy       bool // symbols within symbols
	everything      bool // asked for in the options: push the findings of files that are not open too
	showMemory      bool // it has a command that shows the memory of a run
}

// told reads an optional truth value.
func told(value *bool) bool { return value != nil && *value }

func readCapabilities(params *protocol.InitializeParams) (c capabilities) {
	client := params.Capabilities
	if w := client.Workspace; w != nil {
		c.refresh = w.Diagnostics != nil && told(w.Diagnostics.RefreshSupport)
		c.refreshHints = w.InlayHint != nil && told(w.InlayHint.RefreshSupport)
		c.refreshLenses = w.CodeLens != nil && told(w.CodeLens.RefreshSupport)
		c.watch = w.DidChangeWatchedFiles != nil && told(w.DidChangeWatchedFiles.DynamicRegistration)
		c.documentChanges = w.WorkspaceEdit != nil && told(w.WorkspaceEdit.DocumentChanges)
		c.create = c.documentChanges && slices.Contains(w.WorkspaceEdit.ResourceOperations, protocol.ResourceOperationKindCreate)
	}
	if t := client.TextDocument; t != nil {
		c.pull = t.Diagnostic != nil
		c.markdown = t.Hover != nil && slices.Contains(t.Hover.ContentFormat, protocol.MarkupKindMarkdown)
		c.hierarchy = t.DocumentSymbol != nil && told(t.DocumentSymbol.HierarchicalDocumentSymbolSupport)
	}
	if w := client.Window; w != nil {
		c.progress = told(w.WorkDoneProgress)
	}
	var options struct {
		Everything bool     `json:"workspaceDiagnostics"`
		Commands   []string `json:"commands"`
	}
	if len(params.InitializationOptions) > 0 {
		_ = protocol.Unmarshal(params.InitializationOptions, &options) // what is not understood is not asked for
	}
	c.everything = options.Everything
	c.showMemory = slices.Contains(options.Commands, commandMemory)
	return c
}

// Initialize takes in the client, and answers what there is.
func (s *server) Initialize(_ context.Context, params *protocol.InitializeParams) (*protocol.InitializeResult, error) {
	s.caps = readCapabilities(params)
	encoding := negotiate(params.Capabilities.General)
	s.session.Start(encoding, folders(params))
	s.mu.Lock()
	s.life = running
	s.mu.Unlock()
	yes := true
	incremental := protocol.TextDocumentSyncKindIncremental
	return &protocol.InitializeResult{
		ServerInfo: protocol.ServerInfo{Name: "trainvet", Version: protocol.NewOptional(s.options.Version)},
		Capabilities: protocol.ServerCapabilities{
			PositionEncoding: encoding.Kind(),
			TextDocumentSync: &protocol.TextDocumentSyncOptions{OpenClose: &yes, Change: &incremental, Save: protocol.Boolean(true)},
			NotebookDocumentSync: &protocol.NotebookDocumentSyncOptions{NotebookSelector: []protocol.NotebookSelector{
				&protocol.NotebookDocumentFilterWithCells{Notebook: protocol.String("jupyter-notebook"), Cells: []protocol.NotebookCellLanguage{{Language: "python"}}},
			}},
			DiagnosticProvider:     &protocol.DiagnosticOptions{InterFileDependencies: true, WorkspaceDiagnostics: true},
			CodeActionProvider:     &protocol.CodeActionOptions{CodeActionKinds: []protocol.CodeActionKind{protocol.CodeActionKindQuickFix, fixAll}},
			HoverProvider:          protocol.Boolean(true),
			CompletionProvider:     &protocol.CompletionOptions{TriggerCharacters: []string{`"`, ":", " ", "-", "."}},
			InlayHintProvider:      protocol.Boolean(true),
			DocumentLinkProvider:   &protocol.DocumentLinkOptions{},
			DocumentSymbolProvider: protocol.Boolean(true),
			CodeLensProvider:       &protocol.CodeLensOptions{},
			ExecuteCommandProvider: protocol.ExecuteCommandOptions{Commands: []string{commandFit, commandValues}},
			Workspace: &protocol.WorkspaceOptions{WorkspaceFolders: &protocol.WorkspaceFoldersServerCapabilities{
				Supported: &yes, ChangeNotifications: protocol.Boolean(true)}},
		},
	}, nil
}

// negotiate picks UTF-8 where the client takes it: that is what is counted in here. UTF-16 is what every client takes, unless it says
// otherwise.
func negotiate(general *protocol.GeneralClientCapabilities) session.Encoding {
	if general == nil {
		return session.UTF16
	}
	for _, encoding := range []session.Encoding{session.UTF8, session.UTF16, session.UTF32} {
		if slices.Contains(general.PositionEncodings, encoding.Kind()) {
			return encoding
		}
	}
	return session.UTF16
}

// folders are the absolute paths of the folders that the client works in.
func folders(params *protocol.InitializeParams) (paths []string) {
	if list, ok := params.WorkspaceFolders.Get(); ok {
		for _, folder := range list {
			if name, ok := session.PathOf(folder.URI); ok {
				paths = append(paths, name)
			}
		}
		return paths
	}
	if params.RootURI != nil {
		if name, ok := session.PathOf(*params.RootURI); ok {
			paths = append(paths, name)
		}
	} else if name, ok := params.RootPath.Get(); ok && name != "" {
		if name, ok := session.PathOf(session.URIOf(name)); ok {
			paths = append(paths, name)
		}
	}
	return paths
}

// watched are the files whose changes on disk matter.
var watched = [...]string{"**/trainvet.toml", "**/.trainvet.toml", "**/pyproject.toml", "**/*.{py,json,jsonc,yaml,yml,toml,sh,ipynb}"}

// Initialized asks the client to watch files.
func (s *server) Initialized(ctx context.Context, _ *protocol.InitializedParams) error {
	if s.caps.watch {
		var options protocol.DidChangeWatchedFilesRegistrationOptions
		for _, glob := range watched {
			options.Watchers = append(options.Watchers, protocol.FileSystemWatcher{GlobPattern: protocol.Pattern(glob)})
		}
		raw, err := protocol.Marshal(&options)
		if err != nil {
			return err
		}
		s.ask(ctx, func(ctx context.Context) error {
			return s.client.RegisterCapability(ctx, &protocol.RegistrationParams{Registrations: []protocol.Registration{
				{ID: "watched", Method: protocol.MethodWorkspaceDidChangeWatchedFiles, RegisterOptions: raw}}})
		})
	}
	s.check()
	return nil
}

// ask makes a request to the client, whose answer nobody waits for.
func (s *server) ask(ctx context.Context, request func(context.Context) error) {
	ctx = jsonrpc2.DetachContext(ctx)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err := request(ctx); err != nil && ctx.Err() == nil && s.now() == running {
			s.logf("the client refused: %v", err)
		}
	}()
}

// grace is how long a shutdown waits for what is under way, so that it is still answered.
const grace = time.Second

// Shutdown waits a little for what was asked before.
func (s *server) Shutdown(context.Context) error {
	s.work.wait(grace)
	return nil
}

// Exit does nothing: admit has ended the server.
func (s *server) Exit(context.Context) error { return nil }

// SetTrace is ignored: there is nothing to trace.
func (s *server) SetTrace(context.Context, *protocol.SetTraceParams) error { return nil }
