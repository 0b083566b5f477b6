package review

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// GitHub speaks to the REST API of GitHub about one pull request.
type GitHub struct {
	API   string // https://api.github.com, or that of an own server
	Repo  string // OWNER/NAME
	Pull  int
	Token string

	Client *http.Client
	Wait   func(context.Context, time.Duration) error // between two tries of a request
}

// Bounds of a conversation.
const (
	perPage     = 100
	maxPages    = 30       // of one list
	maxAnswer   = 16 << 20 // bytes of one answer
	maxTries    = 4
	longestWait = time.Minute
)

// StatusError is an answer that is no success.
type StatusError struct {
	Status  int
	Message string
	Limited bool // too many requests; later ones may do
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("GitHub answers %d: %s", e.Status, e.Message)
}

// NewGitHub checks what is given before anything is sent. The token goes to the API alone, and not over a line that others can read.
func NewGitHub(api, repo string, pull int, token string) (*GitHub, error) {
	base, err := url.Parse(api)
	if err != nil || base.Host == "" {
		return nil, fmt.Errorf("%q is no address of an API", api)
	}
	if ip := net.ParseIP(base.Hostname()); base.Scheme != "https" && base.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("%s: the token is sent over https only", api)
	}
	if repo == "" {
		return nil, errors.New("the repository is missing: --repo OWNER/NAME, or GITHUB_REPOSITORY")
	}
	owner, name, ok := strings.Cut(repo, "/")
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	if !ok || owner == "" || name == "" || strings.Trim(owner+name, plain) != "" || strings.Trim(repo, "./") != repo {
		return nil, fmt.Errorf("%q is no repository; wanted OWNER/NAME", repo)
	}
	if pull < 1 {
		return nil, errors.New("the number of the pull request is missing")
	}
	return &GitHub{API: strings.TrimSuffix(api, "/"), Repo: repo, Pull: pull, Token: token, Client: &http.Client{Timeout: time.Minute}, Wait: sleep}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// do sends a request and reads the answer into out. A server that is busy is asked again. The header tells of more pages.
func (g *GitHub) do(ctx context.Context, method, path string, in, out any) (http.Header, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, err
		}
	}
	for try := 1; ; try++ {
		header, wait, err := g.once(ctx, method, path, body, out)
		if wait < 0 || try == maxTries {
			return header, err
		}
		if err := g.Wait(ctx, min(wait, longestWait)); err != nil {
			return nil, err
		}
	}
}

// once sends a request once. Wait is how long to wait before the next try; negative: another one would not help.
func (g *GitHub) once(ctx context.Context, method, path string, body []byte, out any) (header http.Header, wait time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, method, g.API+path, bytes.NewReader(body))
	if err != nil {
		return nil, -1, err
	}
	request.Header.Set("Accept", "application/vnd.github+json")
	request.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	request.Header.Set("User-Agent", "trainvet")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if g.Token != "" {
		request.Header.Set("Authorization", "Bearer "+g.Token)
	}
	answer, err := g.Client.Do(request)
	if err != nil {
		if method == http.MethodGet {
			return nil, time.Second, err
		}
		return nil, -1, err // it may have been done; twice would be a comment too many
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, -1, err
	}
	if answer.StatusCode >= 300 {
		var said struct{ Message string }
		_ = json.Unmarshal(text, &said)
		limited := answer.StatusCode == http.StatusTooManyRequests ||
			answer.StatusCode == http.StatusForbidden && (answer.Header.Get("Retry-After") != "" || answer.Header.Get("X-RateLimit-Remaining") == "0")
		err := &StatusError{answer.StatusCode, said.Message, limited}
		busy := answer.StatusCode >= 500 && method == http.MethodGet
		if !limited && !busy {
			return nil, -1, err
		}
		seconds, parse := strconv.Atoi(answer.Header.Get("Retry-After"))
		if parse != nil {
			seconds = 1
		}
		return nil, time.Duration(seconds) * time.Second, err
	}
	if out != nil && len(text) > 0 {
		if err := json.Unmarshal(text, out); err != nil {
			return nil, -1, fmt.Errorf("GitHub's answer to %s %s cannot be read: %w", method, path, err)
		}
	}
	return answer.Header, -1, nil
}

// list reads all pages of a list.
func list[T any](ctx context.Context, g *GitHub, path string) (all []T, err error) {
	for page := 1; page <= maxPages; page++ {
		var some []T
		if _, err := g.do(ctx, http.MethodGet, fmt.Sprintf("%s?per_page=%d&page=%d", path, perPage, page), nil, &some); err != nil {
			return nil, err
		}
		all = append(all, some...)
		if len(some) < perPage {
			break
		}
	}
	return all, nil
}

func (g *GitHub) pull(rest string) string {
	return fmt.Sprintf("/repos/%s/pulls/%d%s", g.Repo, g.Pull, rest)
}

// The parts of GitHub's objects that are read.
type (
	user struct {
		Login string `json:"login"`
		Type  string `json:"type"`
	}
	// changedFile has the hunks of a file; none where it is large or binary.
	changedFile struct {
		Name  string `json:"filename"`
		Patch string `json:"patch"`
	}
	oldComment struct {
		ID   int64  `json:"id"`
		Body string `json:"body"`
		Line *int   `json:"line"` // nil: the line is not part of the change any more
		User user   `json:"user"`
	}
	oldReview struct {
		ID   int64  `json:"id"`
		Body string `json:"body"`
		User user   `json:"user"`
	}
)

// The objects that are sent.
type (
	newReview struct {
		Commit   string       `json:"commit_id"`
		Event    string       `json:"event"`
		Body     string       `json:"body"`
		Comments []newComment `json:"comments"`
	}
	newComment struct {
		Path      string `json:"path"`
		Body      string `json:"body"`
		Line      int    `json:"line"`
		Side      string `json:"side"`
		StartLine int    `json:"start_line,omitempty"`
		StartSide string `json:"start_side,omitempty"`

		print string // of the finding
	}
	newBody struct {
		Body string `json:"body"`
	}
)
