package rules_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/trainvet/trainvet/lint/check"
	"github.com/trainvet/trainvet/lint/linttest"
	"github.com/trainvet/trainvet/lint/output"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
	"github.com/trainvet/trainvet/rules"
	"github.com/trainvet/trainvet/rules/custom"
)

// Names of one file of each kind.
var fuzzNames = []string{"train.py", "ds_config.json", "args.yaml", "job.toml", "run.sh", "n.ipynb", "requirements.txt", "Dockerfile", "compose.yaml", "pyproject.toml", "conf/config.yaml", ".deepspeed_env", "odd"}

// Bounds of what a check may allocate, bytes: it stands for the steps that it takes, which no clock of a loaded machine can tell.
const (
	baseCost = 256 << 20
	byteCost = 64 << 10 // for each byte of the text
)

// costs fails where work allocates more than in proportion to a text of so many bytes.
func costs(t *testing.T, size int, work func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > baseCost+byteCost*uint64(size) {
		t.Errorf("%d MB were allocated for %d bytes", got>>20, size)
	}
}

// resolver checks with all rules and the settings of a snapshot.
func resolver(snapshot *workspace.Snapshot) *check.Resolver {
	return &check.Resolver{Snapshot: snapshot, Dir: "/", Rules: rules.All(), Declare: custom.Rule, Flags: check.Flags{ExtendSelect: []string{"all"}}}
}

// fuzzCache keeps the words of the rules; the results of a check serve no other one, whose settings are others.
var fuzzCache = check.NewCache()

// sane fails on a report that no check of these files may give.
func sane(t *testing.T, report *check.Report) {
	t.Helper()
	for _, fault := range report.Faults {
		t.Fatalf("%s: rule %q: %s\n%s", fault.Path, fault.Rule, fault.Reason, fault.Stack)
	}
	inside := func(what string, at source.Place) {
		t.Helper()
		file := report.File(at.Path)
		if file == nil || at.Span.Start > at.Span.End || int(at.Span.End) > len(file.Text) {
			t.Fatalf("%s at %v", what, at)
		}
	}
	for _, finding := range report.Findings {
		inside(finding.Rule.Name, finding.At)
		if finding.Message == "" {
			t.Fatalf("%s says nothing", finding.Rule.Name)
		}
		for _, related := range finding.Related {
			inside("evidence of "+finding.Rule.Name, related.At)
		}
		for _, fix := range finding.Fixes {
			changes := len(fix.Edits) == 0
			for _, edit := range fix.Edits {
				inside("the edit "+fix.Title, edit.At)
				changes = changes || report.File(edit.At.Path).Slice(edit.At.Span) != edit.Text
			}
			if !changes {
				t.Fatalf("%s: the fix %s changes nothing", finding.Rule.Name, fix.Title)
			}
		}
	}
	for _, name := range output.Names() {
		format, _ := output.Lookup(name)
		var out bytes.Buffer
		if err := format.Write(&out, report, output.NewPaint(false)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if name == "json" && !json.Valid(out.Bytes()) {
			t.Fatalf("%s: %s", name, out.Bytes())
		}
		if bytes.ContainsAny(out.Bytes(), "\x00\x1b\x07\x08\u202e") {
			t.Fatalf("%s writes control characters: %q", name, out.Bytes())
		}
	}
}

func shown(report *check.Report) string {
	var out bytes.Buffer
	for _, finding := range report.Findings {
		fmt.Fprintln(&out, finding.Rule.Name, finding.At, finding.Severity, finding.Message)
	}
	return out.String()
}

// FuzzCheck checks one file of any kind beside some sound ones. Whatever it holds, nothing fails inside, findings and edits lie in the
// text, every format can be written, the shortcut finds the same as the long way, all fixes leave nothing that they would fix again, and a
// baseline of what was found hides it.
func FuzzCheck(f *testing.F) {
	add := func(name string, text []byte) {
		for i, known := range fuzzNames {
			if source.KindOf(name, nil) == source.KindOf(known, nil) && len(text) < 4000 {
				f.Add(uint8(i), text)
				f.Add(uint8(i+len(fuzzNames)*10), text)
				return
			}
		}
	}
	cases, err := filepath.Glob("*/*.txtar")
	if err != nil || len(cases) == 0 {
		f.Fatal("no cases: ", err)
	}
	for i, name := range cases {
		if i%4 != 0 { // a fourth of the cases is enough to start from
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for j, file := range txtar.Parse(text).Files {
			if j < 2 {
				add(file.Name, file.Data)
			}
		}
	}
	sound := map[string]string{"lib.py": "import torch\nclass M(torch.nn.Module):\n    def forward(self, x):\n        return x\n", "ds.json": `{"train_batch_size": 32, "zero_optimization": {"stage": 2}}`,
		"go.sh": "deepspeed train.py --deepspeed ds.json\n", "other.yaml": "per_device_train_batch_size: 4\ndeepspeed: ds_config.json\n", ".git/HEAD": ""}
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		name := fuzzNames[int(which)%len(fuzzNames)]
		if len(text) > 16<<10 {
			return
		}
		files := map[string]string{name: string(text)}
		for other, text := range sound {
			files[other] = text
		}
		snapshot := workspace.NewSnapshot(linttest.FS(files))
		targets := []check.Target{{Path: name, Named: true}, {Path: "go.sh"}, {Path: "other.yaml"}}
		snapshot = check.GuessKinds(snapshot, targets)
		ctx := context.Background()
		options := check.Options{Rules: rules.All(), Settings: resolver(snapshot), Jobs: 1, Cache: fuzzCache}
		if _, err := check.Run(ctx, snapshot, nil, options); err != nil {
			return // the settings in a pyproject.toml are wrong
		}
		var report *check.Report
		var err error
		costs(t, len(text), func() { report, err = check.Run(ctx, snapshot, targets, options) })
		if err != nil {
			if _, wrong := err.(check.SettingsError); wrong {
				return
			}
			t.Fatal(err)
		}
		sane(t, report)
		if which >= 128 { // one of the two: each is as much work as all before
			thorough := options
			thorough.NoPrefilter, thorough.Cache = true, nil
			long, err := check.Run(ctx, workspace.NewSnapshot(linttest.FS(files)), targets, thorough)
			if name == "odd" {
				long, err = check.Run(ctx, snapshot, targets, thorough)
			}
			if err != nil || shown(long) != shown(report) {
				t.Fatalf("with the shortcut\n%swithout it (%v)\n%s", shown(report), err, shown(long))
			}
			return
		}
		fixed, err := check.Fix(ctx, snapshot, targets, options, true)
		if err != nil {
			t.Fatal(err)
		}
		sane(t, fixed.Report)
		again, err := check.Fix(ctx, snapshot.With(fixed.Files...), targets, options, true)
		if err != nil || again.Applied > 0 && len(fixed.Refused) == 0 {
			t.Fatalf("%d fixes are left after all fixes (%v)", again.Applied, err)
		}
		var baseline bytes.Buffer
		if err := check.WriteBaseline(&baseline, report, options.Settings, "/baseline.json"); err != nil {
			t.Fatal(err)
		}
		known, err := check.ReadBaseline(baseline.Bytes())
		if err != nil {
			t.Fatalf("%v in %s", err, baseline.Bytes())
		}
		for _, id := range report.Identities(func(name string) string { return name }) {
			if !known[id] && len(known) != len(report.Findings) {
				t.Fatalf("%+v is not in %s", id, baseline.Bytes())
			}
		}
	})
}

// FuzzSettings reads any text as a settings file that a sound file is checked with. It is wrong, with a place in the text and a message
// without line ends, or a check with it is sane; read twice it says the same.
func FuzzSettings(f *testing.F) {
	for _, text := range []string{
		"select = [\"all\"]\nignore = [\"memory\"]\nexclude = [\"a/**\", \"!b\", \"[x\", \"**/**/*.py\"]\nfail-on = \"error\"\n",
		"[per-file-ignores]\n\"a/*.py:x.y\" = [\"all\"]\n[severity]\nsyntax-error = \"info\"\n",
		"[run]\nworld-size = 8\ndevice = \"A100\"\nmodel = \"llama-7b\"\nseq-len = 4096\n",
		"[[run]]\nname = \"a\"\nfiles = [\"*.py\"]\nworld-size = 99999999999999\n",
		"[[custom]]\nname = \"a\"\nmessage = \"b\"\nkey = \"x.y\"\nmatches = \"^(a+)+$\"\nmin = 1e400\n",
		"[[custom]]\nname = \"a\"\nmessage = \"b\"\ncall = \"torch.save\"\nkeyword = \"f\"\nrequired = true\none-of = [1, \"x\", true]\n",
		"[known]\n\"a.b\" = \"torch.nn.Linear\"\n[rules.fit]\nx = 1\n", "extend = \"base.toml\"\nbaseline = \"b.json\"\n", "extend = \"trainvet.toml\"\n", "extend = \"../../etc/passwd\"\n",
	} {
		f.Add(text)
	}
	read := func(text string) (*check.Report, error) {
		snapshot := workspace.NewSnapshot(linttest.FS(map[string]string{"trainvet.toml": text, "base.toml": "ignore = [\"memory\"]\n", "a.py": "import torch\ntorch.save(x, 'f')\nx = 1  # trainvet: ignore[a]\n", ".git/HEAD": ""}))
		settings := &check.Resolver{Snapshot: snapshot, Dir: "/", Rules: rules.All(), Declare: custom.Rule}
		report, err := check.Run(context.Background(), snapshot, []check.Target{{Path: "a.py"}}, check.Options{Rules: rules.All(), Settings: settings, Jobs: 1, Cache: fuzzCache})
		for _, fault := range settings.Faults() {
			if fault.Message == "" || strings.Contains(fault.Message, "\n") && !strings.Contains(text, "\\n") && !strings.Contains(text, "\"\"\"") && !strings.Contains(text, "'''") {
				return nil, fmt.Errorf("PLACE %+v", fault)
			}
			if fault.Path == "/trainvet.toml" && int(fault.At.End) > len(text) {
				return nil, fmt.Errorf("PLACE %+v of %d bytes", fault, len(text))
			}
		}
		return report, err
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 16<<10 {
			return
		}
		var report *check.Report
		var err error
		costs(t, len(text), func() { report, err = read(text) })
		again, twice := read(text)
		if fmt.Sprint(err) != fmt.Sprint(twice) {
			t.Fatalf("%v, and then %v", err, twice)
		}
		if err != nil {
			if strings.HasPrefix(err.Error(), "PLACE") {
				t.Fatal(err)
			}
			return
		}
		sane(t, report)
		if shown(report) != shown(again) {
			t.Fatalf("%s, and then %s", shown(report), shown(again))
		}
	})
}

// FuzzSuppressions puts any comment at the end of a line and above a statement that have a finding each. Whatever it says, findings
// are hidden or stay as a whole, and what is told about the comment stands in the comment.
func FuzzSuppressions(f *testing.F) {
	for _, text := range []string{"trainvet: ignore[zzz] why", "trainvet: ignore[all]", "trainvet: file-ignore[unknown-suppression]", "trainvet: ignore[", "trainvet:ignore [a, b,,c]", "noqa # trainvet: ignore[a] # type: ignore",
		"trainvet: ignroe[a]", "trainvet: ignore[a]: b # trainvet: ignore[c]", "trainvet : ignore[\"a\"]", "TRAINVET: ignore[a]", "trainvet: ignore[a\u202e]", "trainvet: ignore[checkpoint-embedding, memory]"} {
		f.Add(text)
	}
	line := "x = 1  # trainvet: ignore[no-such-rule]\n"
	f.Fuzz(func(t *testing.T, comment string) {
		if strings.ContainsAny(comment, "\r\n\f\x00") || len(comment) > 4<<10 {
			return
		}
		for name, text := range map[string]string{"a.py": line + "y = 2  # " + comment + "\n# " + comment + "\nz = f(\n  # " + comment + "\n  1)\n", "a.yaml": "lr: 1  # " + comment + "\n# " + comment + "\nx:\n  y: 1\n",
			"a.json": "{\"lr\": 1, // " + comment + "\n/* " + strings.ReplaceAll(comment, "*/", "") + " */ \"x\": 2}\n", "a.sh": "torchrun a.py # " + comment + "\n", "requirements.txt": "torch==2 # " + comment + "\n"} {
			snapshot := workspace.NewSnapshot(linttest.FS(map[string]string{name: text}))
			var report *check.Report
			var err error
			costs(t, len(text), func() {
				report, err = check.Run(context.Background(), snapshot, []check.Target{{Path: name}}, check.Options{Rules: rules.All(), Settings: resolver(snapshot), Jobs: 1, Cache: fuzzCache})
			})
			if err != nil {
				t.Fatal(err)
			}
			sane(t, report)
			for _, finding := range report.Findings {
				if strings.HasSuffix(finding.Rule.Name, "-suppression") && !strings.Contains(report.File(name).Slice(finding.At.Span), "trainvet") {
					t.Fatalf("%s at %q", finding.Rule.Name, report.File(name).Slice(finding.At.Span))
				}
			}
		}
	})
}
