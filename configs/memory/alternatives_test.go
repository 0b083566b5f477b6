package memory

import (
	"slices"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/configs/plan"
)

// openRun is LLaMA-7B over DP 8, TP 4 and PP 2 in a file that states no sequence length, sharding, precision or vocabulary.
func openRun() *plan.Plan {
	p := &plan.Plan{}
	p.Model.Hidden, p.Model.Layers, p.Model.Heads, p.Model.FFN = plan.Written[int64](4096), plan.Written[int64](32), plan.Written[int64](32), plan.Written[int64](11008)
	p.Batch.Micro, p.Batch.Accumulation = plan.Written[int64](4), plan.Written[int64](8)
	p.Parallel.Data, p.Parallel.Tensor, p.Parallel.Pipeline = plan.Written[int64](8), plan.Written[int64](4), plan.Written[int64](2)
	p.Parallel.Context = plan.Default[int64](1, "")
	p.Checkpointing.Kind = plan.Default(plan.NoCheckpointing, "")
	p.Device = plan.Written("Ascend 910B3")
	plan.Derive(p)
	return p
}

func words(a Alternative) string {
	var all []string
	for _, taken := range a.Varies {
		all = append(all, taken.Text)
	}
	return strings.Join(all, ", ")
}

// TestAlternatives: a table over what a file leaves open; its figures are those of the settled plans, GB from outside
// (TestLLaMA7BMegatron).
func TestAlternatives(t *testing.T) {
	p := openRun()
	if r, err := Check(p); err != nil || r.Verdict != Unknown {
		t.Fatalf("%+v %v", r, err)
	}
	all := FindAlternatives(p)
	if len(all.Rows) != 8 || len(all.Same) != 3 || all.Same[0].Text != "a vocabulary of 32000, as llama-7b has with this shape" {
		t.Fatalf("%d rows, %+v", len(all.Rows), all.Same)
	}
	for text, want := range map[string]float64{
		"2048 tokens, all activations stored, optimizer states sharded over the 8 data-parallel ranks": 27.2,
		"2048 tokens, every layer recomputed, optimizer states sharded over the 8 data-parallel ranks": 12.4,
		"2048 tokens, all activations stored, optimizer states not sharded":                            36.1,
		"4096 tokens, all activations stored, optimizer states sharded over the 8 data-parallel ranks": 45.3,
	} {
		i := slices.IndexFunc(all.Rows, func(a Alternative) bool { return words(a) == text })
		if i < 0 {
			t.Errorf("no row for %s", text)
			continue
		}
		near(t, text, float64(all.Rows[i].Usage.Total.Bytes)/1e9, want, 0.07)
	}
	if p.Batch.SeqLength.Known() || p.Model.Vocab.Known() || p.Sharding.Known() {
		t.Error("the plan itself was changed")
	}
}

// TestAlternativesOfWhatIsOpen: what is stated does not vary, and where more is missing, or nothing, there is no table.
func TestAlternativesOfWhatIsOpen(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*plan.Plan)
		rows   int
	}{
		{"sequence length", func(p *plan.Plan) { p.Batch.SeqLength = plan.Written[int64](512) }, 4},
		{"recomputation", func(p *plan.Plan) { p.Checkpointing.Kind = plan.Written(plan.Full) }, 4},
		{"sharding", func(p *plan.Plan) { p.Sharding = plan.Written(plan.MegatronDist) }, 4},
		{"the longest sequence", func(p *plan.Plan) { p.Model.MaxPositions = plan.Written[int64](2048) }, 4},
		{"a model that takes short ones only", func(p *plan.Plan) { p.Model.MaxPositions = plan.Written[int64](512) }, 4},
		{"another shape", func(p *plan.Plan) { p.Model.FFN = plan.Written[int64](11264) }, 8},
		{"no parallel layout: DDP, ZeRO-1 and ZeRO-3", func(p *plan.Plan) {
			p.Parallel.Tensor, p.Parallel.Pipeline, p.Parallel.PipelineMicroBatches = plan.Written[int64](1), plan.Written[int64](1), plan.Value[int64]{}
		}, 12},
		{"one data-parallel rank", func(p *plan.Plan) { p.Parallel.Data = plan.Written[int64](1) }, 4},
		{"no micro-batch", func(p *plan.Plan) { p.Batch = plan.Batch{} }, 0},
		{"no shape", func(p *plan.Plan) { p.Model.Hidden = plan.Value[int64]{} }, 0},
		{"nothing", func(p *plan.Plan) {
			p.Batch.SeqLength, p.Sharding, p.Model.Vocab = plan.Written[int64](512), plan.Written(plan.MegatronDist), plan.Written[int64](32000)
			p.Precision = plan.Written(plan.MegatronMixed)
		}, 0},
	} {
		p := openRun()
		test.change(p)
		if all := FindAlternatives(p); len(all.Rows) != test.rows {
			t.Errorf("%s: %d rows, wanted %d", test.name, len(all.Rows), test.rows)
		}
	}
}

// TestAllButNth: every n-th layer is stored and the others are recomputed, each of them alone.
func TestAllButNth(t *testing.T) {
	run := func(kind string, every int) *Usage {
		keys := run13B(map[string]any{"activation_checkpointing": kind, "activation_checkpointing_every": every, "micro_batch_size": 1})
		return changedPlan(t, keys, nil)
	}
	saved := func(u *Usage) float64 { return float64(phaseNamed(u, PhaseLoss).Parts.Activations) / 1e9 }
	none, full := saved(run("none", 1)), saved(run("full", 1))
	for every, stored := range map[int]float64{1: 40, 2: 20, 3: 14, 4: 10, 40: 1} {
		near(t, "GB saved", saved(run("all_but_nth", every)), full+(none-full)*stored/40, 0.002)
	}
	near(t, "every second layer, as alternate checkpointing", saved(run("all_but_nth", 2)), 20.0/40*(none+full), 0.002)
	p := native(t, run13B(map[string]any{"activation_checkpointing": "all_but_nth", "activation_checkpointing_every": 4}))
	if cost, known := Price(p); !known || cost.Recomputed != 0.75 {
		t.Errorf("recomputed %v", cost.Recomputed)
	}
}
