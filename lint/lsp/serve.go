// Package lsp is the language server: the straight line of package check with the text of an editor in place of that of a file.
//
// It has three layers. This package speaks the protocol: one small method a request, all of which take the session as it was when
// the request arrived. Package session holds the texts and the projects around them. Package feature answers: it turns files,
// positions and findings into what editors show, and keeps nothing.
package lsp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/lsp/internal/session"
	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"
)

// Options are what the server is made of.
type Options struct {
	Rules   []*lint.Rule
	Declare func(lint.Declared) (*lint.Rule, error) // makes the rules of [[custom]]; nil: there are none
	Version string                                  // of trainvet, for editors
	Release string                                  // of its rules; see check.Resolver
}

// Serve speaks the protocol until the client says exit or the input ends, and gives back the exit code: 0 after a shutdown, else 1.
// Nothing but messages is written to out; what a person should know goes to log.
func Serve(ctx context.Context, in io.Reader, out, log io.Writer, options Options) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &server{options: options, session: session.New(options.Rules, options.Declare, options.Release), log: log, wake: make(chan struct{}, 1), done: make(chan struct{}), published: map[uri.URI]published{},
		single: make(chan struct{}, max(2, runtime.GOMAXPROCS(0))), whole: make(chan struct{}, 1)}
	writer := &lockedWriter{to: out}
	sifted := newSift(in, writer, func(err error) {
		if err != nil {
			s.logf("%v", err)
		}
		s.end()
	})
	s.conn = jsonrpc2.NewConn(jsonrpc2.NewStream(stdio{sifted, writer}), jsonrpc2.WithCodec(codec{}))
	s.client = protocol.ClientDispatcher(s.conn)
	s.conn.Go(ctx, s.handler())
	go s.checker(ctx)
	select {
	case <-s.done:
	case <-s.conn.Done():
		if err := s.conn.Err(); err != nil {
			s.logf("%v", err)
		}
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life == shutDown {
		return 0
	}
	return 1
}

// life is where the server stands between its start and its end.
type life uint8

const (
	waiting life = iota // for initialize
	running
	shutDown
)

// server is one connection.
type server struct {
	protocol.UnimplementedServer
	options Options
	session *session.Session
	conn    jsonrpc2.Conn
	client  protocol.Client
	wake    chan struct{} // there is a newer state to check
	done    chan struct{} // closed at the end
	once    sync.Once
	caps    capabilities  // set by initialize, before anything else is handled
	single  chan struct{} // turns of checks of one document
	whole   chan struct{} // turns of checks of everything

	mu   sync.Mutex
	life life

	logMu sync.Mutex
	log   io.Writer

	work      tally                 // requests and checks that are not done
	published map[uri.URI]published // by the checker alone
	scanned   sync.Map              // roots of projects whose first check is done
}

func (s *server) end() { s.once.Do(func() { close(s.done) }) }

// logf tells a person something.
func (s *server) logf(format string, args ...any) {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	fmt.Fprintf(s.log, "trainvet: "+format+"\n", args...)
}

// handler answers messages. Notifications run in the goroutine of the reader, one after another, and so do the requests that begin and
// end a session; other requests step aside as soon as they hold the state of the session.
func (s *server) handler() jsonrpc2.Handler {
	handle := protocol.ServerHandler(s, jsonrpc2.MethodNotFoundHandler)
	cancelled := protocol.CancelHandler(func(ctx context.Context, r *jsonrpc2.Request) (any, error) {
		if !r.IsCall() {
			return handle(ctx, r)
		}
		ctx = context.WithValue(ctx, stateKey{}, s.session.State())
		s.work.start()
		defer s.work.finish()
		jsonrpc2.Async(ctx) // from here on the reader goes on
		return s.recovered(ctx, r, handle)
	})
	return func(ctx context.Context, r *jsonrpc2.Request) (any, error) {
		if err := s.admit(r); err != nil || !r.IsCall() && s.now() != running {
			return nil, err
		}
		switch r.Method() {
		case protocol.MethodInitialize, protocol.MethodShutdown:
			if !r.IsCall() { // they are requests; nobody can be answered
				return nil, nil
			}
			// The connection takes their context back when they return, so nothing that outlives them may be made of it.
			result, err := s.recovered(ctx, r, handle)
			return result, wireError(ctx, err)
		case protocol.MethodTextDocumentDidOpen, protocol.MethodNotebookDocumentDidOpen, protocol.MethodNotebookDocumentDidChange:
			ctx = context.WithValue(ctx, rawKey{}, []byte(r.Params()))
		}
		result, err := s.recovered(ctx, r, cancelled)
		if err = wireError(ctx, err); err != nil && !r.IsCall() { // nobody can be answered, and the connection must go on
			if !errors.Is(err, jsonrpc2.ErrMethodNotFound) {
				s.logf("%s: %v", r.Method(), err)
			}
			return nil, nil
		}
		return result, err
	}
}

// recovered answers a panic, which must not end the connection.
func (s *server) recovered(ctx context.Context, r *jsonrpc2.Request, handle jsonrpc2.Handler) (result any, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			s.fault(r.Method(), reason)
			err = jsonrpc2.Errorf(jsonrpc2.InternalError, "internal error: %v", reason)
		}
	}()
	return handle(ctx, r)
}

// admit keeps the order of initialize, shutdown and exit.
func (s *server) admit(r *jsonrpc2.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	method := r.Method()
	switch {
	case method == protocol.MethodExit:
		s.end()
	case !r.IsCall():
	case s.life == waiting && method != protocol.MethodInitialize:
		return jsonrpc2.Errorf(jsonrpc2.ServerNotInitialized, "initialize comes first")
	case s.life == shutDown:
		return jsonrpc2.Errorf(jsonrpc2.InvalidRequest, "the server was shut down")
	case s.life == running && method == protocol.MethodInitialize:
		return jsonrpc2.Errorf(jsonrpc2.InvalidRequest, "initialize comes once")
	case method == protocol.MethodShutdown:
		s.life = shutDown
	}
	return nil
}

func (s *server) now() life {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life
}

// stateKey is the key under which a context holds the state that a request is about.
type stateKey struct{}

// state is the session as it was when the request arrived.
func (s *server) state(ctx context.Context) *session.State {
	if st, ok := ctx.Value(stateKey{}).(*session.State); ok {
		return st
	}
	return s.session.State()
}

// wireError makes errors what the protocol has for them.
func wireError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled) || ctx.Err() != nil:
		return protocol.ErrRequestCancelled
	case errors.Is(err, jsonrpc2.ErrParse): // the message was JSON, its parameters are not those of the method
		return jsonrpc2.Errorf(jsonrpc2.InvalidParams, "%v", err)
	}
	return err
}

// fault tells of a fault of our own.
func (s *server) fault(where string, reason any) {
	s.logf("internal error in %s: %v; this is a fault of trainvet, please report it", where, reason)
	if os.Getenv("TRAINVET_STACK") != "" {
		s.logf("%s", debug.Stack())
	}
}

// tally counts work that is under way.
type tally struct {
	mu    sync.Mutex
	count int
	none  chan struct{} // closed when the count is 0 again; nil: nobody waits
}

func (t *tally) start() {
	t.mu.Lock()
	t.count++
	t.mu.Unlock()
}

func (t *tally) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count--; t.count == 0 && t.none != nil {
		close(t.none)
		t.none = nil
	}
}

// wait returns when nothing is under way, or after the time.
func (t *tally) wait(longest time.Duration) {
	t.mu.Lock()
	if t.count == 0 {
		t.mu.Unlock()
		return
	}
	if t.none == nil {
		t.none = make(chan struct{})
	}
	none := t.none
	t.mu.Unlock()
	select {
	case <-none:
	case <-time.After(longest):
	}
}

// codec is that of package protocol, whose own is not exported.
type codec struct{}

func (codec) Marshal(v any) ([]byte, error)   { return protocol.Marshal(v) }
func (codec) Unmarshal(b []byte, v any) error { return protocol.Unmarshal(b, v) }

// stdio is the two streams as one.
type stdio struct {
	io.Reader
	io.Writer
}

// Close does nothing: the streams belong to who started us.
func (stdio) Close() error { return nil }

// lockedWriter writes whole messages.
type lockedWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}
