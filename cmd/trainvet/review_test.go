package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/rules"
)

// forge is a server that behaves as GitHub does for one pull request: it knows the change, keeps comments, and takes only those that
// lie on it.
type forge struct {
	t       *testing.T
	mu      sync.Mutex
	dir     string // a work tree in which the change is made since HEAD
	user    bool   // the token is of a user
	busy    int    // answers 429 so many times
	refuses bool   // finds every comment off the change
	reader  bool   // the token may only read
	blind   bool   // it may not even read

	said     []map[string]any // comments on the pull request itself
	comments []map[string]any
	reviews  []map[string]any
	writes   []string
	next     int
}

func (f *forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := r.Header.Get("Authorization"); got != "Bearer s3cret" {
		http.Error(w, `{"message": "Bad credentials"}`, http.StatusUnauthorized)
		return
	}
	if f.busy > 0 {
		f.busy--
		w.Header().Set("Retry-After", "0")
		http.Error(w, `{"message": "slow down"}`, http.StatusTooManyRequests)
		return
	}
	answer := func(status int, v any) {
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(v); err != nil {
			f.t.Error(err)
		}
	}
	body := map[string]any{}
	if r.Method != http.MethodGet {
		f.writes = append(f.writes, r.Method+" "+r.URL.Path)
		if r.Method != http.MethodDelete {
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				f.t.Error(err)
			}
		}
	}
	if f.blind || f.reader && r.Method != http.MethodGet {
		answer(403, map[string]string{"message": "Resource not accessible by integration"})
		return
	}
	author := map[string]any{"login": "github-actions[bot]", "type": "Bot"}
	if f.user {
		author = map[string]any{"login": "me", "type": "User"}
	}
	const pull, issue = "/repos/acme/train/pulls/7", "/repos/acme/train/issues/7/comments"
	const said = "/repos/acme/train/issues/comments/"
	number := func(prefix string) int {
		n, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, prefix))
		return n
	}
	find := func(all []map[string]any, id int) int {
		return slices.IndexFunc(all, func(of map[string]any) bool { return of["id"] == id })
	}
	switch path := r.URL.Path; {
	case path == "/user" && f.user:
		answer(200, author)
	case r.Method == http.MethodGet && path == pull+"/files":
		f.paged(w, r, f.files())
	case r.Method == http.MethodGet && path == pull+"/comments":
		f.paged(w, r, f.comments)
	case r.Method == http.MethodGet && path == pull+"/reviews":
		f.paged(w, r, f.reviews)
	case r.Method == http.MethodGet && path == issue:
		f.paged(w, r, f.said)
	case r.Method == http.MethodPost && path == issue:
		if text, _ := body["body"].(string); text == "" || len(text) > 65536 {
			answer(422, map[string]string{"message": "Validation Failed"})
			return
		}
		f.next++ // as GitHub does it, with the line ends of a form
		f.said = append(f.said, map[string]any{"id": f.next, "body": strings.ReplaceAll(fmt.Sprint(body["body"]), "\n", "\r\n"), "user": author})
		answer(201, f.said[len(f.said)-1])
	case r.Method == http.MethodPatch && strings.HasPrefix(path, said):
		f.said[find(f.said, number(said))]["body"] = body["body"]
		answer(200, body)
	case r.Method == http.MethodDelete && strings.HasPrefix(path, said):
		at := find(f.said, number(said))
		f.said = slices.Delete(f.said, at, at+1)
		w.WriteHeader(204)
	case r.Method == http.MethodPost && path == pull+"/reviews":
		f.post(body, author, answer)
	case r.Method == http.MethodPut && strings.HasPrefix(path, pull+"/reviews/"):
		f.reviews[find(f.reviews, number(pull+"/reviews/"))]["body"] = body["body"]
		answer(200, body)
	case r.Method == http.MethodPatch && strings.HasPrefix(path, "/repos/acme/train/pulls/comments/"):
		f.comments[find(f.comments, number("/repos/acme/train/pulls/comments/"))]["body"] = body["body"]
		answer(200, body)
	case r.Method == http.MethodDelete && strings.HasPrefix(path, "/repos/acme/train/pulls/comments/"):
		at := find(f.comments, number("/repos/acme/train/pulls/comments/"))
		f.comments = slices.Delete(f.comments, at, at+1)
		w.WriteHeader(204)
	default:
		answer(404, map[string]string{"message": "Not Found"})
	}
}

// post takes a review, if each comment lies on the change.
func (f *forge) post(body, author map[string]any, answer func(int, any)) {
	if body["event"] != "COMMENT" || body["body"] == "" || len(fmt.Sprint(body["commit_id"])) != 40 {
		answer(422, map[string]string{"message": "Unprocessable Entity"})
		return
	}
	for _, c := range body["comments"].([]any) {
		c := c.(map[string]any)
		first, last := c["line"].(float64), c["line"].(float64)
		if start, multi := c["start_line"].(float64); multi {
			first = start
			if c["start_side"] != "RIGHT" || first >= last {
				answer(422, map[string]string{"message": "start_line must precede the end line"})
				return
			}
		}
		on := f.shown(c["path"].(string))
		if f.refuses || c["side"] != "RIGHT" || !slices.Contains(on, int(first)) || !slices.Contains(on, int(last)) {
			answer(422, map[string]string{"message": "pull_request_review_thread.line must be part of the diff"})
			return
		}
	}
	f.next++
	f.reviews = append(f.reviews, map[string]any{"id": f.next, "body": body["body"], "user": author})
	for _, c := range body["comments"].([]any) {
		c := c.(map[string]any)
		f.next++
		f.comments = append(f.comments, map[string]any{"id": f.next, "body": c["body"], "line": c["line"], "start_line": c["start_line"], "path": c["path"], "user": author})
	}
	answer(200, map[string]any{"id": f.next})
}

func (f *forge) paged(w http.ResponseWriter, r *http.Request, all []map[string]any) {
	size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	from := min(len(all), (page-1)*size)
	some := append([]map[string]any{}, all[from:min(len(all), from+size)]...)
	if err := json.NewEncoder(w).Encode(some); err != nil {
		f.t.Error(err)
	}
}

func (f *forge) git(args ...string) string {
	command := exec.Command("git", append([]string{"-c", "core.quotePath=false"}, args...)...)
	command.Dir = f.dir
	out, err := command.Output()
	if err != nil {
		f.t.Errorf("git %v: %v", args, err)
	}
	return string(out)
}

// files are the changed files with their hunks, without the head, as GitHub gives them.
func (f *forge) files() (all []map[string]any) {
	f.git("add", "-AN")
	for name := range strings.SplitSeq(strings.Trim(f.git("diff", "-z", "--name-only", "HEAD"), "\x00"), "\x00") {
		if name == "" {
			continue
		}
		patch := f.git("diff", "HEAD", "--", name)
		if at := strings.Index(patch, "\n@@ "); at >= 0 {
			all = append(all, map[string]any{"filename": name, "patch": strings.TrimSuffix(patch[at+1:], "\n")})
		} else {
			all = append(all, map[string]any{"filename": name}) // binary
		}
	}
	return all
}

// shown are the lines of a file that a comment may stand on: those of the hunks, context included.
func (f *forge) shown(name string) (lines []int) {
	patch := f.git("diff", "HEAD", "--", name)
	for _, head := range regexp.MustCompile(`(?m)^@@ -\S+ \+(\d+)(?:,(\d+))? @@`).FindAllStringSubmatch(patch, -1) {
		first, _ := strconv.Atoi(head[1])
		count := 1
		if head[2] != "" {
			count, _ = strconv.Atoi(head[2])
		}
		for i := range count {
			lines = append(lines, first+i)
		}
	}
	return lines
}

// reviewed runs `trainvet review` against the forge and gives what it printed.
func (f *forge) reviewed(want int, args ...string) string {
	f.t.Helper()
	server := httptest.NewServer(f)
	defer server.Close()
	f.writes = nil
	var stdout, stderr bytes.Buffer
	env := map[string]string{"GITHUB_TOKEN": "s3cret", "GITHUB_REPOSITORY": "acme/train", "GITHUB_API_URL": server.URL}
	a := &app{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, env: func(name string) string { return env[name] }, rules: rules.All(), replace: check.Replace}
	if code := run(a, append([]string{"review", "--pull", "7"}, args...)); code != want {
		f.t.Fatalf("exit code %d, want %d\n%s%s", code, want, stdout.String(), stderr.String())
	}
	if strings.Contains(stdout.String()+stderr.String(), "s3cret") {
		f.t.Error("the token was printed")
	}
	return stdout.String() + stderr.String()
}

func newForge(t *testing.T) *forge {
	t.Helper()
	need(t, "git")
	isolateGit(t)
	dir := t.TempDir()
	repository(t, dir, map[string]string{"a.py": unknownLine + "y = 1\n", "sub/b `@x|.py": "z = 1\n"})
	t.Chdir(dir)
	return &forge{t: t, dir: dir}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.FromSlash(name), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestReview(t *testing.T) {
	f := newForge(t)
	write(t, "a.py", unknownLine+"y = 1\nv = 3  # trainvet: ignore[syntax-error] ```` gone\n")
	write(t, "sub/b `@x|.py", "z = 1\nw = 2  # trainvet: ignore[@someone]\n")
	write(t, "ds.json", `{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4, "bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}`)

	// a dry run changes nothing, and says what it would
	dry := f.reviewed(exitClean, "--dry-run")
	if len(f.writes) > 0 || !strings.Contains(dry, "POST /repos/acme/train/pulls/7/reviews") || !strings.Contains(dry, `"line": 3`) {
		t.Errorf("a dry run: %v\n%s", f.writes, dry)
	}
	f.busy = 2
	f.reviewed(exitClean, "--base", "HEAD")
	if len(f.reviews) != 1 || len(f.comments) != 2 {
		t.Fatalf("%d reviews, %d comments", len(f.reviews), len(f.comments))
	}
	text := fmt.Sprint(f.reviews[0]["body"])
	if !strings.Contains(text, "2 things") || len(f.said) != 1 || !strings.Contains(fmt.Sprint(f.said[0]["body"]), "| micro-batch × accumulation | – | 4 × 4 |") {
		t.Errorf("the review says\n%s\nand the comment %v", text, f.said)
	}
	for _, c := range f.comments {
		body := fmt.Sprint(c["body"])
		switch c["path"] {
		case "a.py":
			if c["line"] != 3.0 || !strings.Contains(body, "(safe):\n```suggestion\nv = 3\n```\n") {
				t.Errorf("line %v:\n%s", c["line"], body)
			}
		case "sub/b `@x|.py":
			if c["line"] != 2.0 || strings.Contains(body, "suggestion") || !strings.Contains(body, "@<!-- -->someone") {
				t.Errorf("line %v:\n%s", c["line"], body)
			}
		default:
			t.Errorf("a comment on %s", c["path"])
		}
	}

	// nothing is said twice
	if said := f.reviewed(exitClean, "--base", "HEAD"); len(f.writes) > 0 {
		t.Errorf("a second run made %v\n%s", f.writes, said)
	}
	// marks in comments of other people mean nothing
	stolen := fmt.Sprint(f.comments[0]["body"])
	f.comments = append(f.comments, map[string]any{"id": 900, "body": "see " + stolen, "line": 1, "path": "a.py", "user": map[string]any{"login": "mallory", "type": "User"}})
	if f.reviewed(exitClean, "--base", "HEAD"); len(f.writes) > 0 {
		t.Errorf("of the comment of another it made %v", f.writes)
	}
	// lines move, one finding is gone, a new one comes
	write(t, "a.py", "# shifted\n"+unknownLine+"y = 1\nv = 3\n")
	write(t, "sub/b `@x|.py", "# shifted\nz = 1\nw = 2  # trainvet: ignore[@someone]\nu = 1  # trainvet: ignore[another]\n")
	f.reviewed(exitClean, "--base", "HEAD")
	if want := []string{"PATCH /repos/acme/train/pulls/comments/2", "POST /repos/acme/train/pulls/7/reviews", "PATCH /repos/acme/train/issues/comments/4"}; !slices.Equal(f.writes, want) {
		t.Errorf("it made %v, want %v", f.writes, want)
	}
	if got := fmt.Sprint(f.comments[0]["body"]); !strings.HasPrefix(got, "This is no longer found.") {
		t.Errorf("the comment of a finding that is gone: %s", got)
	}
	if len(f.comments) != 4 || f.comments[3]["line"] != 4.0 {
		t.Errorf("comments: %v", f.comments)
	}
	if f.reviewed(exitClean, "--base", "HEAD"); len(f.writes) > 0 {
		t.Errorf("after that it made %v", f.writes)
	}
	// a comment that GitHub does not show any more is posted anew
	f.comments[1]["line"] = nil
	f.reviewed(exitClean, "--base", "HEAD")
	if len(f.writes) != 2 || !strings.HasPrefix(f.writes[0], "DELETE ") || len(f.comments) != 4 {
		t.Errorf("of an outdated comment it made %v", f.writes)
	}
	// what is back is said again, in the old place
	write(t, "a.py", "# shifted\n"+unknownLine+"y = 1\nv = 3  # trainvet: ignore[syntax-error] ```` gone\n")
	f.reviewed(exitClean, "--base", "HEAD")
	if len(f.writes) == 0 || !strings.HasPrefix(f.writes[0], "PATCH ") || !strings.Contains(fmt.Sprint(f.comments[0]["body"]), "suggestion") {
		t.Errorf("of what is back it made %v", f.writes)
	}
}

// TestReviewOfUser holds that a token of a user knows its own comments, and that many are cut.
func TestReviewOfUser(t *testing.T) {
	f := newForge(t)
	f.user = true
	var text strings.Builder
	for i := range 120 {
		fmt.Fprintf(&text, "x%d = 1  # trainvet: ignore[rule-%d]\n", i, i)
	}
	write(t, "many.py", text.String())
	f.reviewed(exitClean)
	if len(f.comments) != 50 || !strings.Contains(fmt.Sprint(f.reviews[0]["body"]), "70 more findings") {
		t.Errorf("%d comments; %v", len(f.comments), f.reviews[0]["body"])
	}
	f.reviewed(exitClean)
	if len(f.comments) != 100 { // page by page
		t.Errorf("%d comments after the second run", len(f.comments))
	}
}

// TestReviewLong holds that a suggestion that GitHub would find too long is left out, and the finding is not.
func TestReviewLong(t *testing.T) {
	f := newForge(t)
	write(t, "a.py", unknownLine+"y = '"+strings.Repeat("long ", 20000)+"'  # trainvet: ignore[syntax-error] gone\n")
	f.reviewed(exitClean)
	if len(f.comments) != 1 {
		t.Fatalf("%d comments", len(f.comments))
	}
	if body := fmt.Sprint(f.comments[0]["body"]); len(body) > 1000 || strings.Contains(body, "suggestion") || !strings.Contains(body, "remove it") {
		t.Errorf("it says, in %d bytes,\n%.1000s", len(body), body)
	}
}

// TestReviewRefused holds that findings are not lost where GitHub finds a comment off the change.
func TestReviewRefused(t *testing.T) {
	f := newForge(t)
	f.refuses = true
	write(t, "a.py", unknownLine+"y = 1\n"+unusedLine)
	f.reviewed(exitClean)
	if len(f.comments) != 0 || len(f.reviews) != 1 || !strings.Contains(fmt.Sprint(f.reviews[0]["body"]), "- `a.py:3` **warning**") {
		t.Errorf("reviews: %v", f.reviews)
	}
}

// TestReviewChange holds that one comment says what the change does, that it follows the change, and that nothing is said where nothing moves.
func TestReviewChange(t *testing.T) {
	f := newForge(t)
	const config = `{"train_micro_batch_size_per_gpu": %d, "gradient_accumulation_steps": 4, "bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}`
	write(t, "ds.json", fmt.Sprintf(config, 4))
	commit(t, f.dir)
	only := []string{"--base", "HEAD", "--findings=false"}
	write(t, "a.py", unknownLine+"y = 2\n")
	if said := f.reviewed(exitClean, only...); len(f.writes) > 0 || len(f.said) > 0 || said != "0 posted, 0 changed, 0 taken back\n" {
		t.Errorf("where nothing moves it made %v\n%s", f.writes, said)
	}
	// comments of others, with or without the mark, are left alone
	foreign := map[string]any{"id": 800, "body": "<!-- trainvet:change -->", "user": map[string]any{"login": "mallory", "type": "User"}}
	f.said = append(f.said, foreign)
	write(t, "ds.json", fmt.Sprintf(config, 8))
	write(t, "b.py", unknownLine)
	dry := f.reviewed(exitClean, append(only, "--dry-run")...)
	if len(f.writes) > 0 || !strings.Contains(dry, "POST /repos/acme/train/issues/7/comments") {
		t.Errorf("a dry run: %v\n%s", f.writes, dry)
	}
	f.reviewed(exitClean, only...)
	if len(f.said) != 2 || len(f.reviews) > 0 {
		t.Fatalf("comments %v, reviews %v", f.said, f.reviews)
	}
	first := fmt.Sprint(f.said[1]["body"])
	for _, wanted := range []string{"| micro-batch × accumulation | 4 × 4 | 8 × 4 |", "the learning rate stayed", "**New findings (1)**", "`b.py:1`"} {
		if !strings.Contains(first, wanted) {
			t.Errorf("%q is not in\n%s", wanted, first)
		}
	}
	if f.reviewed(exitClean, only...); len(f.writes) > 0 {
		t.Errorf("a second run made %v", f.writes)
	}
	// two jobs at a time may have posted one each
	f.said = append(f.said, map[string]any{"id": 801, "body": first, "user": f.said[1]["user"]})
	write(t, "ds.json", fmt.Sprintf(config, 16))
	f.reviewed(exitClean, only...)
	if want := []string{"PATCH /repos/acme/train/issues/comments/1", "DELETE /repos/acme/train/issues/comments/801"}; !slices.Equal(f.writes, want) || !strings.Contains(fmt.Sprint(f.said[1]["body"]), "16 × 4") {
		t.Errorf("it made %v, want %v; %v", f.writes, want, f.said)
	}
	write(t, "ds.json", fmt.Sprintf(config, 4))
	write(t, "b.py", "")
	f.reviewed(exitClean, only...)
	if got := fmt.Sprint(f.said[1]["body"]); len(f.said) != 2 || !strings.HasPrefix(got, "This change no longer moves anything") {
		t.Errorf("where nothing moves any more: %s", got)
	}
	if f.reviewed(exitClean, only...); len(f.writes) > 0 {
		t.Errorf("after that it made %v", f.writes)
	}
	if foreign["body"] != "<!-- trainvet:change -->" {
		t.Error("the comment of another was changed")
	}
	// many runs are cut to what a comment may hold
	for i := range 200 {
		write(t, fmt.Sprintf("ds%03d%s.json", i, strings.Repeat("&", 200)), fmt.Sprintf(config, 4))
	}
	f.reviewed(exitClean, only...)
	if got := fmt.Sprint(f.said[1]["body"]); !strings.Contains(got, "ds000") || !strings.HasSuffix(got, "<!-- trainvet:change -->") || len(got) > 65536 {
		t.Errorf("of 200 runs it says, in %d bytes,\n%s", len(got), got)
	}
}

// TestReviewReader holds that what a token of a pull request from a fork may not post is kept.
func TestReviewReader(t *testing.T) {
	f := newForge(t)
	write(t, "a.py", unknownLine+"y = 1\n"+unusedLine)
	write(t, "ds.json", `{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4, "bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}`)
	page := filepath.Join(t.TempDir(), "page.md")
	for _, how := range []*bool{&f.reader, &f.blind} {
		*how = true
		if err := os.WriteFile(page, []byte("before\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		if said := f.reviewed(exitTrouble, "--base", "HEAD"); !strings.Contains(said, "not accessible by integration; the token may not write here") {
			t.Errorf("without a page it says\n%s", said)
		}
		said := f.reviewed(exitClean, "--base", "HEAD", "--fallback", page)
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, wanted := range []string{"before\n", "| micro-batch × accumulation | – | 4 × 4 |"} {
			if !strings.Contains(string(text), wanted) {
				t.Errorf("%q is not in\n%s", wanted, text)
			}
		}
		if *how = false; !strings.Contains(said, "what was not posted is in ") || len(f.said)+len(f.reviews) > 0 || strings.Contains(string(text), "<!-- trainvet") {
			t.Errorf("it says\n%s\nand wrote\n%s", said, text)
		}
		if reads := how == &f.reader; reads != strings.Contains(string(text), "- `a.py:3` **warning**") {
			t.Errorf("of the findings it wrote\n%s", text)
		}
	}
	// what can be posted is not written
	f.reviewed(exitClean, "--base", "HEAD", "--fallback", page+".none")
	if _, err := os.Stat(page + ".none"); err == nil || len(f.said) != 1 || len(f.reviews) != 1 {
		t.Errorf("comments %v, reviews %v", f.said, f.reviews)
	}
}

func TestReviewUsage(t *testing.T) {
	f := newForge(t)
	for _, args := range [][]string{{"--api", "http://example.org"}, {"--api", "nonsense"}, {"--repo", "a/b/../c"}, {"--repo", "acme"}, {"--pull", "0"}, {"--commit", "no-such"}, {"--base", "no-such"}, {"--findings=false"}} {
		if said := f.reviewed(exitTrouble, args...); len(f.writes) > 0 || !strings.Contains(said, "review: ") {
			t.Errorf("%v: %v\n%s", args, f.writes, said)
		}
	}
}
