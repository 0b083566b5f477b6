//go:build ignore

// Fuzz runs every fuzz target of the tree for a while, and prints what each did.
//
//	go run ./cmd/gen/fuzz.go [-time 30m] [-targets REGEXP] [-jobs N] [-parallel N] [-store N] [-list]
//
// With -store, up to N inputs of all sizes that reached something new are put into testdata/fuzz beside the target, from where every run of
// the tests takes them. A finding is put there by go test itself; then the exit code is 1. Stopped by an interrupt, it prints what there is.
package main

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// target is one function Fuzz... of a package.
type target struct{ folder, name string }

// result is what a run of it did.
type result struct {
	target
	executions, interesting, total int
	took                           time.Duration
	cpu                            time.Duration // of go test and all it started
	stored                         int
	finding                        string
}

var (
	declared = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)
	progress = regexp.MustCompile(`execs: (\d+) .*new interesting: (\d+) \(total: (\d+)\)`)
)

// maxStored bounds an input that is stored, in bytes of its file.
const maxStored = 4 << 10

// tail keeps the end of what a test says.
const tail = 2000

func main() {
	each := flag.Duration("time", 30*time.Minute, "how long each target runs")
	only := flag.String("targets", "", "run the targets whose names match this `REGEXP` alone")
	jobs := flag.Int("jobs", 1, "targets at a time")
	parallel := flag.Int("parallel", 1, "processes of each target")
	store := flag.Int("store", 0, "how many new inputs to keep for each target")
	list := flag.Bool("list", false, "print the targets, and run none")
	flag.Parse()
	filter, err := regexp.Compile(*only)
	if err != nil {
		fatal(err)
	}
	targets, err := find(filter)
	if err != nil {
		fatal(err)
	}
	if *list {
		for _, t := range targets {
			fmt.Println(t.folder, t.name)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	fmt.Printf("%-16s %-18s %12s %8s %8s %8s %8s %7s  %s\n", "package", "target", "executions", "new", "total", "seconds", "cpu", "stored", "finding")
	failed := false
	var mu sync.Mutex
	var workers sync.WaitGroup
	queue := make(chan target)
	for range max(1, *jobs) {
		workers.Go(func() {
			for t := range queue {
				r := run(ctx, t, *each, *parallel)
				if *store > 0 {
					if r.stored, err = keep(t, *store); err != nil {
						r.finding = strings.TrimSpace(r.finding + " " + err.Error())
					}
				}
				mu.Lock()
				failed = failed || r.finding != ""
				first, _, _ := strings.Cut(r.finding, "\n")
				fmt.Printf("%-16s %-18s %12d %8d %8d %8.0f %8.0f %7d  %s\n", r.folder, r.name, r.executions, r.interesting, r.total, r.took.Seconds(), r.cpu.Seconds(), r.stored, first)
				if r.finding != "" {
					fmt.Fprintf(os.Stderr, "%s %s:\n%s\n", r.folder, r.name, r.finding)
				}
				mu.Unlock()
			}
		})
	}
	for _, t := range targets {
		if ctx.Err() == nil {
			queue <- t
		}
	}
	close(queue)
	workers.Wait()
	if failed {
		os.Exit(1)
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "fuzz:", err)
	os.Exit(1)
}

// find lists the targets of all packages.
func find(filter *regexp.Regexp) (all []target, err error) {
	out, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*_test.go").Output()
	if err != nil {
		return nil, err
	}
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for _, match := range declared.FindAllSubmatch(text, -1) {
			if filter.Match(match[1]) {
				all = append(all, target{filepath.Dir(name), string(match[1])})
			}
		}
	}
	return all, nil
}

// run runs one target. What only a pause of the whole machine made fail is no finding: the target goes on for the rest of its time.
func run(ctx context.Context, t target, each time.Duration, parallel int) (all result) {
	all.target = t
	for all.took < each && ctx.Err() == nil {
		r := once(ctx, t, each-all.took, parallel)
		all.executions += r.executions
		all.interesting += r.interesting
		all.total = r.total
		all.took += r.took
		all.cpu += r.cpu
		if r.finding == "" {
			break
		}
		if input := writtenTo.FindStringSubmatch(r.finding); input == nil || !strings.Contains(r.finding, hung) || !passes(ctx, t, input[1]) {
			all.finding = r.finding
			break
		}
	}
	return all
}

// hung is what go test says of a process that answered too late: its clock runs on while the process is stopped.
const hung = "hung or terminated unexpectedly"

var writtenTo = regexp.MustCompile(`Failing input written to (\S+)`)

// passes runs a target on one input, which is removed where nothing is wrong with it.
func passes(ctx context.Context, t target, input string) bool {
	name := "^" + t.name + "$/^" + filepath.Base(input) + "$"
	if err := exec.CommandContext(ctx, "go", "test", "./"+t.folder, "-run", name, "-timeout", patience.String()).Run(); err != nil {
		return false
	}
	return os.Remove(filepath.Join(t.folder, input)) == nil
}

// patience bounds the run on one input, after which go test itself gives up on it too.
const patience = 10 * time.Second

func once(ctx context.Context, t target, each time.Duration, parallel int) result {
	command := exec.CommandContext(ctx, "go", "test", "./"+t.folder, "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", each.String(), "-parallel", strconv.Itoa(parallel), "-timeout", "0")
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	start := time.Now()
	err := command.Run()
	r := result{target: t, took: time.Since(start)}
	if state := command.ProcessState; state != nil {
		r.cpu = state.UserTime() + state.SystemTime()
	}
	for _, match := range progress.FindAllSubmatch(out.Bytes(), -1) {
		r.executions, _ = strconv.Atoi(string(match[1]))
		r.interesting, _ = strconv.Atoi(string(match[2]))
		r.total, _ = strconv.Atoi(string(match[3]))
	}
	if err != nil && ctx.Err() == nil {
		text := out.String()
		if at := strings.Index(text, "--- FAIL"); at >= 0 {
			text = text[at:]
		}
		r.finding = text[max(0, len(text)-tail):]
		if first := strings.TrimSpace(text[:min(len(text), tail)]); first != "" {
			r.finding = first
		}
	}
	return r
}

// keep copies inputs that the cache of go test holds for a target, until so many are stored beside it.
func keep(t target, count int) (stored int, err error) {
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return 0, err
	}
	module, err := exec.Command("go", "list", "./"+t.folder).Output()
	if err != nil {
		return 0, err
	}
	from := filepath.Join(strings.TrimSpace(string(cache)), "fuzz", strings.TrimSpace(string(module)), t.name)
	to := filepath.Join(t.folder, "testdata", "fuzz", t.name)
	entries, err := os.ReadDir(from)
	if err != nil {
		return 0, nil // nothing new
	}
	type input struct {
		name string
		size int64
	}
	var inputs []input
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			inputs = append(inputs, input{entry.Name(), info.Size()})
		}
	}
	slices.SortFunc(inputs, func(a, b input) int { return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.name, b.name)) })
	if err := os.MkdirAll(to, 0o777); err != nil {
		return 0, err
	}
	here, err := os.ReadDir(to)
	if err != nil {
		return 0, err
	}
	// Every so-manieth by size: the shortest alone would all be trifles.
	step := max(1, len(inputs)/max(1, count-len(here)))
	for i := 0; i < len(inputs) && len(here)+stored < count; i += step {
		text, err := os.ReadFile(filepath.Join(from, inputs[i].name))
		if err != nil {
			return stored, err
		}
		name := filepath.Join(to, inputs[i].name)
		if _, err := os.Stat(name); err == nil || len(text) > maxStored {
			continue
		}
		if err := os.WriteFile(name, text, 0o666); err != nil {
			return stored, err
		}
		stored++
	}
	return stored, nil
}
