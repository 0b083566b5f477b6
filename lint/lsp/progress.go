package lsp

import (
	"context"
	"path"
	"sync"
	"time"

	"github.com/trainvet/trainvet/lint/lsp/internal/session"
	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
)

// patience is how long something may take before the client is shown that it goes on.
const patience = 300 * time.Millisecond

// scan is work that the client is told about. Its methods may be called on nil.
type scan struct {
	server *server
	token  protocol.ProgressToken
	asked  bool // the token is the client's, of a request
	title  string
	over   chan struct{}

	mu      sync.Mutex
	begun   bool
	percent uint32
}

// firstScan tells about the first check of a project, in which the index of its files is made; nil for later ones, and for clients
// that show no progress.
func (s *server) firstScan(ctx context.Context, p *session.Project) *scan {
	if !s.caps.progress {
		return nil
	}
	if _, before := s.scanned.LoadOrStore(p.Root, true); before {
		return nil
	}
	work := &scan{server: s, token: protocol.String("scan " + p.Root), title: "trainvet: reading " + path.Base(p.Root), over: make(chan struct{})}
	go work.wait(jsonrpc2.DetachContext(ctx))
	return work
}

// scan tells about the check of all files of a project, under the token of the request, or as its first scan.
func (s *server) scan(ctx context.Context, p *session.Project, token protocol.ProgressToken) *scan {
	if token == nil {
		return s.firstScan(ctx, p)
	}
	s.scanned.Store(p.Root, true)
	work := &scan{server: s, token: token, asked: true, title: "trainvet: checking " + path.Base(p.Root), over: make(chan struct{})}
	work.begin(jsonrpc2.DetachContext(ctx))
	return work
}

// wait begins after a while, where the client agrees.
func (w *scan) wait(ctx context.Context) {
	select {
	case <-w.over:
		return
	case <-ctx.Done():
		return
	case <-time.After(patience):
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := w.server.client.WorkDoneProgressCreate(ctx, &protocol.WorkDoneProgressCreateParams{Token: w.token}); err != nil {
		return
	}
	w.begin(ctx)
	select {
	case <-w.over:
		w.send(ctx, &protocol.WorkDoneProgressEnd{Kind: "end"})
	case <-ctx.Done():
	}
}

func (w *scan) begin(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = true
	none := uint32(0)
	w.send(ctx, &protocol.WorkDoneProgressBegin{Kind: "begin", Title: w.title, Percentage: &none})
}

// report tells how many of the files are done.
func (w *scan) report(done, of int) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if percent := uint32(100 * done / max(of, 1)); w.begun && percent > w.percent {
		w.percent = percent
		w.send(context.Background(), &protocol.WorkDoneProgressReport{Kind: "report", Percentage: &percent})
	}
}

// end tells that it is done.
func (w *scan) end() {
	if w == nil {
		return
	}
	if w.asked {
		w.send(context.Background(), &protocol.WorkDoneProgressEnd{Kind: "end"})
	}
	close(w.over)
}

func (w *scan) send(ctx context.Context, value any) {
	raw, err := protocol.Marshal(value)
	if err == nil {
		err = w.server.client.Progress(ctx, &protocol.ProgressParams{Token: w.token, Value: raw})
	}
	if err != nil && ctx.Err() == nil && w.server.now() == running {
		w.server.logf("progress: %v", err)
	}
}
