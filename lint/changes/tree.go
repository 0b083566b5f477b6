package changes

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Entry is what a tree of git holds under one name.
type Entry struct {
	Link bool // a symbolic link; its blob is the target
	Blob string
}

// Tree lists the files of a commit by their names in the work tree. Submodules have none.
func (r *Repo) Tree(ctx context.Context, commit string) (map[string]Entry, error) {
	out, err := r.git(ctx, "ls-tree", "-r", "-z", "--full-tree", commit)
	if err != nil {
		return nil, err
	}
	entries := map[string]Entry{}
	for record := range strings.SplitSeq(string(out), "\x00") {
		head, name, _ := strings.Cut(record, "\t")
		if fields := strings.Fields(head); len(fields) == 3 && fields[1] == "blob" {
			entries[name] = Entry{Link: fields[0] == "120000", Blob: fields[2]}
		}
	}
	return entries, nil
}

// Change is a file that differs between a commit and the work tree. Old or New is "" where the file is not there on that side.
type Change struct{ Old, New string }

// Changed lists what differs from a commit, by names in the work tree, untracked files included.
func (r *Repo) Changed(ctx context.Context, commit string) ([]Change, error) {
	out, err := r.git(ctx, "diff", "--name-status", "-z", "--no-ext-diff", "--no-textconv", "--no-relative", "--find-renames", "--ignore-submodules=all", commit, "--")
	if err != nil {
		return nil, err
	}
	var all []Change
	words := strings.Split(string(out), "\x00")
	for i := 0; i+1 < len(words); {
		status, name := words[i], words[i+1]
		i += 2
		switch {
		case strings.HasPrefix(status, "R") && i < len(words):
			all = append(all, Change{name, words[i]})
			i++
		case strings.HasPrefix(status, "C") && i < len(words):
			all = append(all, Change{"", words[i]})
			i++
		case status == "A":
			all = append(all, Change{"", name})
		case status == "D":
			all = append(all, Change{name, ""})
		default:
			all = append(all, Change{name, name})
		}
	}
	untracked, err := r.git(ctx, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(string(untracked), "\x00") {
		if name != "" {
			all = append(all, Change{"", name})
		}
	}
	return all, nil
}

// Shown is a name in the work tree as seen from where the caller is: relative below that, absolute elsewhere.
func (r *Repo) Shown(name string) string {
	if below, inside := strings.CutPrefix(name, r.prefix); inside {
		return below
	}
	return strings.TrimSuffix(r.root, "/") + "/" + name
}

// Blobs reads blobs through one git process; see Close.
type Blobs struct {
	mu      sync.Mutex
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	stderr  bytes.Buffer
}

// Blobs starts a reader.
func (r *Repo) Blobs(ctx context.Context) (*Blobs, error) {
	b := &Blobs{command: exec.CommandContext(ctx, "git", "--no-pager", "cat-file", "--batch")}
	b.command.Dir, b.command.Env, b.command.Stderr = filepath.FromSlash(r.root), environment(), &b.stderr
	var err error
	if b.in, err = b.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := b.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	b.out = bufio.NewReader(out)
	return b, b.command.Start()
}

var errBlobSize = errors.New("is too large to read")

// Read gives the content of a blob of at most limit bytes.
func (b *Blobs) Read(blob string, limit int64) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := fmt.Fprintln(b.in, blob); err != nil {
		return nil, err
	}
	head, err := b.out.ReadString('\n')
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(head) // HASH blob SIZE, or HASH missing
	if len(fields) != 3 {
		return nil, errors.New("is not in this clone")
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return nil, err
	}
	if size > limit {
		if _, err := io.CopyN(io.Discard, b.out, size+1); err != nil {
			return nil, err
		}
		return nil, errBlobSize
	}
	content := make([]byte, size+1) // with the line end behind it
	if _, err := io.ReadFull(b.out, content); err != nil {
		return nil, err
	}
	return content[:size:size], nil
}

// Close ends the process.
func (b *Blobs) Close() error {
	b.in.Close()
	return b.command.Wait()
}
