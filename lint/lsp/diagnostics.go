package lsp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync/atomic"
	"time"

	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/lsp/internal/feature"
	"github.com/trainvet/trainvet/lint/lsp/internal/session"
	"github.com/trainvet/trainvet/lint/source"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"
)

// published is what the client was told last about a document.
type published struct {
	version int32
	open    bool
	shown   uri.URI
	sum     [32]byte
}

// check wakes the checker.
func (s *server) check() {
	s.work.start() // until the checker has been through
	select {
	case s.wake <- struct{}{}:
	default:
		s.work.finish()
	}
}

// overtaken is how long a check may go on after a newer state has come.
const overtaken = 100 * time.Millisecond

// checker publishes findings, and is the only one that does. It always takes the newest state; a run that was overtaken is dropped.
func (s *server) checker(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
			s.publish(ctx)
			s.work.finish()
		}
	}
}

// publish checks what is open, the document that was changed last first, and tells the client what is new about it.
func (s *server) publish(ctx context.Context) {
	defer func() {
		if reason := recover(); reason != nil {
			s.fault("a check", reason)
		}
	}()
	st := s.session.State()
	if s.caps.pull {
		return
	}
	told := map[uri.URI]bool{}
	for _, doc := range st.Documents() {
		if told[doc.URI] {
			continue
		}
		if len(told) > 0 && s.newer(st) {
			return // the checker is awake for it
		}
		found, err := s.findings(ctx, st, doc.Path)
		if err != nil {
			if s.newer(st) || ctx.Err() != nil {
				return
			}
			s.logf("%s: %v", doc.Path, err)
		}
		for _, shown := range st.ShownBy(doc.Path) {
			told[shown.URI] = true
			s.tell(ctx, shown.URI, shown.Shown, shown.Version, true, found[shown.Shown])
		}
	}
	if !s.newer(st) {
		s.publishRest(ctx, st, told)
	}
}

// newer reports whether a newer state has come.
func (s *server) newer(st *session.State) bool { return s.session.State().Number != st.Number }

// findings are what is wrong with a file, by the documents that show it. The run ends early when it is overtaken.
func (s *server) findings(ctx context.Context, st *session.State, absolute string) (map[uri.URI][]protocol.Diagnostic, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watch func()
	var timer *time.Timer
	watch = func() {
		if s.newer(st) {
			cancel()
		} else {
			timer.Reset(overtaken)
		}
	}
	timer = time.AfterFunc(time.Hour, watch)
	timer.Reset(overtaken)
	defer timer.Stop()
	return s.diagnose(ctx, st, absolute)
}

// diagnose is findings to the end.
func (s *server) diagnose(ctx context.Context, st *session.State, absolute string) (map[uri.URI][]protocol.Diagnostic, error) {
	if p, _ := st.ProjectOf(absolute); p != nil {
		defer s.firstScan(ctx, p).end()
	}
	p, file, findings, err := st.Findings(ctx, absolute)
	if err != nil {
		return nil, err
	}
	return s.shown(st, p, absolute, file, findings), nil
}

// shown are findings in a file and faults of settings in it, by the documents that show it.
func (s *server) shown(st *session.State, p *session.Project, absolute string, file *source.File, findings []check.Finding) map[uri.URI][]protocol.Diagnostic {
	found := map[uri.URI][]protocol.Diagnostic{}
	if file != nil {
		found = feature.Diagnostics(st.Reader(p), file, findings)
	}
	if faults := st.Faults()[absolute]; len(faults) > 0 {
		u, text := session.URIOf(absolute), st.TextAt(absolute)
		if doc := st.Document(u); doc != nil {
			u = doc.Shown
		}
		for _, fault := range faults {
			d := feature.Fault(text, st.Encoding, fault)
			if !slices.ContainsFunc(found[u], func(other protocol.Diagnostic) bool { return other.Range == d.Range && other.Message == d.Message }) {
				found[u] = append(found[u], d) // a syntax error is told as such already
			}
		}
	}
	return found
}

// publishRest tells about files that are not open: settings with faults, all of them where the client wants that, and those that it
// was told about before.
func (s *server) publishRest(ctx context.Context, st *session.State, told map[uri.URI]bool) {
	for absolute, faults := range st.Faults() {
		u := session.URIOf(absolute)
		if told[u] || st.Document(u) != nil {
			continue
		}
		var list []protocol.Diagnostic
		text := st.TextAt(absolute)
		for _, fault := range faults {
			list = append(list, feature.Fault(text, st.Encoding, fault))
		}
		told[u] = true
		s.tell(ctx, u, u, 0, false, list)
	}
	if s.caps.everything {
		for _, p := range st.Projects() {
			for _, target := range p.Targets() {
				u := session.URIOf(p.Absolute(target.Path))
				if told[u] || p.Loose || s.newer(st) {
					continue
				}
				found, err := s.findings(ctx, st, p.Absolute(target.Path))
				if err != nil {
					return
				}
				told[u] = true
				s.tell(ctx, u, u, 0, false, found[u])
			}
		}
	}
	for u, last := range s.published {
		if !told[u] {
			s.tell(ctx, u, last.shown, 0, false, nil)
		}
	}
}

// tell publishes the findings of a document where they are not what the client knows.
func (s *server) tell(ctx context.Context, u, shown uri.URI, version int32, open bool, list []protocol.Diagnostic) {
	next := published{version, open, shown, sum(list)}
	last, before := s.published[u]
	if before && last == next || !before && !open && len(list) == 0 {
		return
	}
	if open || len(list) > 0 {
		s.published[u] = next
	} else {
		delete(s.published, u)
	}
	if list == nil {
		list = []protocol.Diagnostic{}
	}
	params := &protocol.PublishDiagnosticsParams{URI: shown, Diagnostics: list}
	if open {
		params.Version = protocol.NewOptional(version)
	}
	if err := s.client.PublishDiagnostics(ctx, params); err != nil && ctx.Err() == nil && s.now() == running {
		s.logf("publishDiagnostics: %v", err)
	}
}

func sum(list []protocol.Diagnostic) [32]byte {
	hash := sha256.New()
	for i := range list {
		text, err := protocol.Marshal(&list[i])
		if err == nil {
			hash.Write(text)
		}
	}
	return [32]byte(hash.Sum(nil))
}

// resultID names a list of findings by what it says.
func resultID(list []protocol.Diagnostic) string {
	s := sum(list)
	return hex.EncodeToString(s[:12])
}

// turn waits until it is one's turn to check something, and gives the state as it is then: of the requests that wait meanwhile, most were
// overtaken by edits, and those about the same state share their results. Done is called in the end.
func (s *server) turn(ctx context.Context, turns chan struct{}) (st *session.State, done func(), err error) {
	select {
	case turns <- struct{}{}:
		return s.session.State(), func() { <-turns }, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// Diagnostic answers a client that asks for the findings of a document.
func (s *server) Diagnostic(ctx context.Context, params *protocol.DocumentDiagnosticParams) (protocol.DocumentDiagnosticReport, error) {
	st, done, err := s.turn(ctx, s.single)
	if err != nil {
		return nil, err
	}
	defer done()
	u := params.TextDocument.URI
	absolute, known := session.PathOf(u)
	doc := st.Document(u)
	if doc != nil {
		absolute, u, known = doc.Path, doc.Shown, true
	}
	list := []protocol.Diagnostic{}
	if known {
		found, err := s.diagnose(ctx, st, absolute)
		if err != nil {
			return nil, err
		}
		for shown, some := range found {
			if shown == u || doc == nil && shown == session.URIOf(absolute) {
				list = append(list, some...)
			}
		}
	}
	id := resultID(list)
	if params.PreviousResultID != nil && *params.PreviousResultID == id {
		return &protocol.RelatedUnchangedDocumentDiagnosticReport{UnchangedDocumentDiagnosticReport: protocol.UnchangedDocumentDiagnosticReport{
			Kind: string(protocol.DocumentDiagnosticReportKindUnchanged), ResultID: id}}, nil
	}
	return &protocol.RelatedFullDocumentDiagnosticReport{FullDocumentDiagnosticReport: protocol.FullDocumentDiagnosticReport{
		Kind: string(protocol.DocumentDiagnosticReportKindFull), ResultID: &id, Items: list}}, nil
}

// DiagnosticWorkspace answers a client that asks for the findings of all files.
func (s *server) DiagnosticWorkspace(ctx context.Context, params *protocol.WorkspaceDiagnosticParams) (*protocol.WorkspaceDiagnosticReport, error) {
	st, done, err := s.turn(ctx, s.whole)
	if err != nil {
		return nil, err
	}
	defer done()
	previous := map[uri.URI]string{}
	for _, p := range params.PreviousResultIds {
		previous[p.URI] = p.Value
	}
	report := &protocol.WorkspaceDiagnosticReport{Items: []protocol.WorkspaceDocumentDiagnosticReport{}}
	add := func(u, shown uri.URI, version *int32, list []protocol.Diagnostic) {
		id := resultID(list)
		last, had := previous[u]
		delete(previous, u)
		switch {
		case had && last == id:
			report.Items = append(report.Items, &protocol.WorkspaceUnchangedDocumentDiagnosticReport{URI: shown, Version: version,
				UnchangedDocumentDiagnosticReport: protocol.UnchangedDocumentDiagnosticReport{Kind: string(protocol.DocumentDiagnosticReportKindUnchanged), ResultID: id}})
		case had || len(list) > 0 || version != nil:
			if list == nil {
				list = []protocol.Diagnostic{}
			}
			report.Items = append(report.Items, &protocol.WorkspaceFullDocumentDiagnosticReport{URI: shown, Version: version,
				FullDocumentDiagnosticReport: protocol.FullDocumentDiagnosticReport{Kind: string(protocol.DocumentDiagnosticReportKindFull), ResultID: &id, Items: list}})
		}
	}
	files := map[string]bool{}
	for _, p := range st.Projects() {
		targets := slices.DeleteFunc(p.Targets(), func(target check.Target) bool {
			inner, _ := st.ProjectOf(p.Absolute(target.Path))
			return inner != p
		})
		scan := s.scan(ctx, p, params.WorkDoneToken)
		var done atomic.Int64
		found, err := p.CheckAll(ctx, targets, func() { scan.report(int(done.Add(1)), len(targets)) })
		scan.end()
		if err != nil {
			return nil, err
		}
		for _, target := range targets {
			absolute := p.Absolute(target.Path)
			files[absolute] = true
			if len(found[target.Path]) > 0 || st.IsShown(absolute) {
				s.addFile(st, absolute, s.shown(st, p, absolute, p.File(target.Path), found[target.Path]), add)
			}
		}
	}
	for absolute := range st.Faults() {
		if !files[absolute] {
			s.addFile(st, absolute, s.shown(st, nil, absolute, nil, nil), add)
		}
	}
	for u := range previous { // gone, or left out now
		add(u, u, nil, nil)
	}
	return report, nil
}

// addFile adds the documents that show one file.
func (s *server) addFile(st *session.State, absolute string, found map[uri.URI][]protocol.Diagnostic, add func(u, shown uri.URI, version *int32, list []protocol.Diagnostic)) {
	shown := st.ShownBy(absolute)
	if len(shown) == 0 {
		add(session.URIOf(absolute), session.URIOf(absolute), nil, found[session.URIOf(absolute)])
	}
	for _, doc := range shown {
		add(doc.URI, doc.Shown, &doc.Version, found[doc.Shown])
	}
}
