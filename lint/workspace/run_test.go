package workspace

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/trainvet/trainvet/configs/plan"
)

var updateRuns = flag.Bool("update", false, "rewrite the wanted runs in testdata")

// TestRuns reads testdata/runs/*.txtar: a small project each, and in `want` the runs of each of its files.
func TestRuns(t *testing.T) {
	names, err := filepath.Glob("testdata/runs/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no cases", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			project, want := memory{}, -1
			for i, f := range archive.Files {
				if f.Name == "want" {
					want = i
				} else {
					project[f.Name] = string(f.Data)
				}
			}
			if want < 0 {
				archive.Files = append(archive.Files, txtar.File{Name: "want"})
				want = len(archive.Files) - 1
			}
			var got bytes.Buffer
			for _, f := range archive.Files {
				if f.Name != "want" {
					describeRuns(&got, project, f.Name)
				}
			}
			if *updateRuns {
				archive.Files[want].Data = got.Bytes()
				if err := os.WriteFile(name, txtar.Format(archive), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !bytes.Equal(got.Bytes(), archive.Files[want].Data) {
				t.Errorf("the runs are\n%s\nwanted\n%s", got.Bytes(), archive.Files[want].Data)
			}
		})
	}
}

// telling are the values that show how a run was put together.
var telling = []string{"batch.micro", "batch.accumulation", "batch.global", "parallel.world", "parallel.data", "parallel.tensor", "sharding", "precision",
	"schedule.warmup_unit", "device", "communication.hccl_buffer_mb", "allocator.expandable_segments"}

func describeRuns(out *bytes.Buffer, project memory, name string) {
	snapshot := NewSnapshot(project).WithFacts(func(string) *plan.Plan {
		facts := &plan.Plan{}
		if device, ok := project["device"]; ok {
			facts.Device = plan.Flag(strings.TrimSpace(device))
		}
		return facts
	})
	view := snapshot.View(context.Background())
	for _, run := range view.Runs(name) {
		fmt.Fprintf(out, "%s: run of %s", name, run.Name)
		for _, part := range run.Parts {
			fmt.Fprintf(out, ", %s", part.Path)
			if part.Section != "" {
				fmt.Fprintf(out, "#%s", part.Section)
			}
			fmt.Fprintf(out, " (%s)", part.Dialect.Name)
		}
		fmt.Fprintln(out)
		for _, value := range telling {
			fact, ok := plan.Lookup(&run.Plan, value)
			if !ok {
				panic(value)
			}
			if v, known := fact.Any(); known {
				fmt.Fprintf(out, "  %s = %v %s\n", value, v, fact.How())
			}
		}
		for _, conflict := range run.Conflicts {
			fmt.Fprintf(out, "  conflict %s:", conflict.Name)
			for _, fact := range conflict.Values {
				v, _ := fact.Any()
				fmt.Fprintf(out, " %v", v)
			}
			fmt.Fprintln(out)
		}
		if missing := run.Unverified(); len(missing) > 0 {
			fmt.Fprintf(out, "  unverified: %s\n", strings.Join(missing, ", "))
		}
	}
}

// TestRunsAreRecorded: a run must be made anew when a script appears that launches it.
func TestRunsAreRecorded(t *testing.T) {
	project := memory{
		"ds.json": `{"train_batch_size": 64, "zero_optimization": {"stage": 2}}`,
		"run.sh":  "torchrun --nproc_per_node 8 train.py --deepspeed ds.json\n",
	}
	view := NewSnapshot(project).View(context.Background())
	if runs := view.Runs("ds.json"); len(runs) != 1 || !runs[0].Plan.Parallel.Data.Is(8) {
		t.Fatalf("runs of ds.json: %v", runs)
	}
	reads := view.Reads()
	if !NewSnapshot(project).Holds(reads) {
		t.Error("the same files do not hold")
	}
	for what, change := range map[string]memory{
		"another number of ranks": {"ds.json": project["ds.json"], "run.sh": "torchrun --nproc_per_node 4 train.py --deepspeed ds.json\n"},
		"a second script":         {"ds.json": project["ds.json"], "run.sh": project["run.sh"], "b.sh": "torchrun --nproc_per_node 2 t.py ds.json\n"},
		"no script":               {"ds.json": project["ds.json"]},
		"another stage":           {"ds.json": strings.Replace(project["ds.json"], "2}", "3}", 1), "run.sh": project["run.sh"]},
	} {
		if NewSnapshot(change).Holds(reads) {
			t.Errorf("%s: the run is taken for unchanged", what)
		}
	}
}

func TestSettingsNames(t *testing.T) {
	got := settingsNames([]byte("a conf/ds.json, \"b-2.yaml\" .json x.yml.bak v1.toml\nds.json $X.json"))
	want := []string{"ds.json", "b-2.yaml", "x.yml", "v1.toml", "X.json"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("names %q, wanted %q", got, want)
	}
}
