package lsp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/rules"
)

// editor keeps the text of documents by an algorithm of its own: lines and UTF-16 units.
type editor struct {
	text    map[string]string
	version map[string]int
}

var fragments = []string{"\n", " ", "    ", "#", "'", "\"", "(", ")", ":", ",", "é", "😀", "x", "8", "1", "checkpoint", "ignore = [\"checkpointing\"]\n", "\r\n", "\t",
	"# trainvet: ignore[checkpoint-embedding]\n", "engine.step()\n", "\"gradient_accumulation_steps\": 2,\n", "import torch\n"}

// randomEdit changes a document at the client, and tells the server how.
func (e *editor) randomEdit(random *rand.Rand, name string, original string) object {
	text := e.text[name]
	if random.IntN(12) == 0 {
		e.text[name] = original
		return whole(original)
	}
	units := utf16Of(text)
	from := random.IntN(len(units) + 1)
	to := min(from+[]int{0, 0, 1, 3, 40}[random.IntN(5)], len(units))
	from, to = boundary(units, from), boundary(units, to)
	insert := fragments[random.IntN(len(fragments))]
	e.text[name] = textOf(units[:from]) + insert + textOf(units[to:])
	startLine, startColumn := positionOf(units, from)
	endLine, endColumn := positionOf(units, to)
	return edit(startLine, startColumn, endLine, endColumn, insert)
}

func utf16Of(text string) (units []rune) { // one entry a unit; the second half of a pair is -1
	for _, r := range text {
		units = append(units, r)
		if r > 0xFFFF {
			units = append(units, -1)
		}
	}
	return units
}

func textOf(units []rune) string {
	var text strings.Builder
	for _, r := range units {
		if r >= 0 {
			text.WriteRune(r)
		}
	}
	return text.String()
}

// boundary moves back to where a character and a line end begin.
func boundary(units []rune, at int) int {
	for at > 0 && at < len(units) && (units[at] < 0 || units[at] == '\n' && units[at-1] == '\r') {
		at--
	}
	return at
}

func positionOf(units []rune, at int) (line, column int) {
	start := 0
	for i := range at {
		if units[i] == '\n' || units[i] == '\r' && (i+1 == len(units) || units[i+1] != '\n') {
			line, start = line+1, i+1
		}
	}
	return line, at - start
}

// TestEqualsFreshCheck edits a project at random, in the editor and on disk, and compares what the server says with a check from nothing.
func TestEqualsFreshCheck(t *testing.T) {
	files := map[string]string{
		".git/HEAD":       "ref: refs/heads/main\n",
		"train.py":        engineLoop + "\n\nfrom lib.model import Model\n\nnet = Model()\n",
		"lib/model.py":    embedding,
		"lib/__init__.py": "",
		"use.py":          "import torch\nfrom torch.utils.checkpoint import checkpoint\nfrom lib.model import Model\n\n\ndef run(m: Model, x):\n    return checkpoint(m.tok, x, use_reentrant=False)\n",
		"ds_config.json":  "{\n  \"train_batch_size\": 33,\n  \"train_micro_batch_size_per_gpu\": 4,\n  \"gradient_accumulation_steps\": 8\n}\n",
		"args.yaml":       "per_device_train_batch_size: 4\ngradient_accumulation_steps: 8\nlearning_rate: 1e-5\ndeepspeed: ds_config.json\nbf16: true\n",
		"run.sh":          "deepspeed --num_gpus 8 train.py --deepspeed ds_config.json\n",
		"trainvet.toml":   "[run]\nworld-size = 8\n",
	}
	rounds := 120
	if testing.Short() {
		rounds = 20
	}
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			folder := project(t, files)
			c := start(t)
			c.initialize(folder, object{"textDocument": object{"diagnostic": object{}}})
			e := &editor{map[string]string{}, map[string]int{}}
			compared := 0
			names := slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(name string) bool { return strings.HasPrefix(name, ".git") })
			u := func(name string) string { return fileURI(filepath.Join(folder, name)) }
			for round := range rounds {
				name := names[random.IntN(len(names))]
				_, open := e.text[name]
				switch what := random.IntN(10); {
				case !open && what < 7:
					text, err := os.ReadFile(filepath.Join(folder, name))
					if err != nil {
						continue
					}
					e.text[name], e.version[name] = string(text), 1
					c.open(u(name), "", string(text))
				case open && what == 0:
					delete(e.text, name)
					c.notify("textDocument/didClose", object{"textDocument": object{"uri": u(name)}})
				case open:
					var edits []object
					for range 1 + random.IntN(3) {
						edits = append(edits, e.randomEdit(random, name, files[name]))
					}
					e.version[name]++
					c.change(u(name), e.version[name], edits...)
				case what == 7: // another program removes it, or brings it back
					kind := 3
					if os.Remove(filepath.Join(folder, name)) != nil {
						kind = 1
						write(t, filepath.Join(folder, name), files[name])
					}
					c.notify("workspace/didChangeWatchedFiles", object{"changes": []object{{"uri": u(name), "type": kind}}})
				default: // or changes it
					if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
						write(t, filepath.Join(folder, name), files[name]+strings.Repeat("\n", random.IntN(3)))
						c.notify("workspace/didChangeWatchedFiles", object{"changes": []object{{"uri": u(name), "type": 2}}})
					}
				}
				if round%4 == 3 {
					compared += compare(t, c, folder, e, u)
				}
				if t.Failed() {
					break
				}
			}
			if compared < rounds/4 && !testing.Short() {
				t.Errorf("only %d files with findings were compared", compared)
			}
			c.stop()
		})
	}
}

// compare asks the server for all findings, and checks the project anew. It gives the number of files with findings.
func compare(t *testing.T, c *client, folder string, e *editor, u func(string) string) int {
	t.Helper()
	var all struct {
		Items []struct {
			URI   string
			Items []diagnostic
		}
	}
	if err := json.Unmarshal(c.request("workspace/diagnostic", object{"previousResultIds": []object{}}), &all); err != nil {
		t.Fatal(err)
	}
	got, broken := map[string]string{}, false
	for _, item := range all.Items {
		var list []string
		for _, d := range item.Items {
			broken = broken || d.Code == "settings"
			list = append(list, fmt.Sprintf("%v %d %s", d, d.Severity, d.Message))
		}
		if len(list) > 0 {
			got[item.URI] = strings.Join(list, "\n")
		}
	}
	if broken { // the command line checks nothing with such settings
		return 0
	}
	want := freshCheck(t, folder, e, u)
	if want == nil {
		return 0
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("%s\nthe server says:\n%s\na fresh check:\n%s", name, got[name], want[name])
		}
		delete(got, name)
	}
	for name, list := range got {
		t.Errorf("%s\nonly the server says:\n%s", name, list)
	}
	return len(want)
}

// rooted is the disk as seen from a folder.
type rooted struct {
	workspace.Disk
	folder string
}

func (r rooted) at(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(r.folder, name)
}
func (r rooted) ReadFile(name string) ([]byte, error)       { return r.Disk.ReadFile(r.at(name)) }
func (r rooted) ReadDir(name string) ([]os.DirEntry, error) { return r.Disk.ReadDir(r.at(name)) }
func (r rooted) Kind(name string) workspace.EntryKind       { return r.Disk.Kind(r.at(name)) }

// freshCheck is what a check says of the files on disk with the texts of the editor in place of them; nil where the settings are broken.
func freshCheck(t *testing.T, folder string, e *editor, u func(string) string) map[string]string {
	t.Helper()
	snapshot := workspace.NewSnapshot(rooted{folder: folder})
	settingsSnapshot := workspace.NewSnapshot(workspace.Disk{})
	for name, text := range e.text {
		file, err := source.Decode(name, source.KindOf(name, nil), []byte(text))
		if err != nil {
			return nil
		}
		snapshot = snapshot.With(file)
		if check.IsSettingsFile(name) {
			absolute := filepath.Join(folder, name)
			settingsSnapshot = settingsSnapshot.With(&source.File{Path: absolute, Kind: file.Kind, Text: file.Text, Raw: file.Raw})
		}
	}
	settings := &check.Resolver{Snapshot: settingsSnapshot, Dir: folder, Rules: rules.All(), Elsewhere: true}
	targets, _ := check.Discover([]string{"."}, settings)
	for i := range targets {
		_, targets[i].Named = e.text[targets[i].Path]
	}
	for name := range e.text {
		if !slices.ContainsFunc(targets, func(t check.Target) bool { return t.Path == name }) {
			targets = append(targets, check.Target{Path: name, Named: true})
		}
	}
	report, err := check.Run(context.Background(), snapshot, targets, check.Options{Rules: rules.All(), Settings: settings})
	if err != nil {
		return nil
	}
	want := map[string]string{}
	for _, finding := range report.Findings {
		file := report.File(finding.At.Path)
		line, column := file.UTF16(finding.At.Span.Start)
		endLine, endColumn := file.UTF16(max(finding.At.Span.Start, finding.At.Span.End))
		message := finding.Message
		for _, fix := range finding.Fixes {
			if fix.Safety == lint.Display || len(fix.Edits) == 0 {
				message += "\nhelp: " + fix.Title
			}
		}
		severity := map[lint.Severity]int{lint.Error: 1, lint.Warning: 2, lint.Info: 3}[finding.Severity]
		text := fmt.Sprintf("%d:%d-%d:%d %s %d %s", line, column, endLine, endColumn, finding.Rule.Name, severity, message)
		name := u(finding.At.Path)
		if want[name] != "" {
			text = want[name] + "\n" + text
		}
		want[name] = text
	}
	return want
}
