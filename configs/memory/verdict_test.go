package memory

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/plan"
)

// run13B is LLaMA-13B on eight ranks with changes to it; a nil value leaves a key out.
func run13B(changes map[string]any) map[string]any {
	all := map[string]any{"model": "llama-13b", "seq_length": 4096, "micro_batch_size": 4, "gradient_accumulation_steps": 4, "activation_checkpointing": "full",
		"precision": "fsdp_mixed", "sharding": "fsdp1", "data_parallel": 8, "attention": "flash", "loss_kernel": "fp32_copy", "stack": "hf", "device": "Ascend 910B3"}
	for key, value := range changes {
		if value == nil {
			delete(all, key)
		} else {
			all[key] = value
		}
	}
	return all
}

func TestVerdict(t *testing.T) {
	for _, test := range []struct {
		name    string
		changes map[string]any
		want    Verdict
		missing string
	}{
		{"fits", nil, Fits, ""},
		{"tight", map[string]any{"device": "47GB"}, Tight, ""},
		{"more than the device within the error", map[string]any{"device": "43GB"}, Tight, ""},
		{"certain", map[string]any{"micro_batch_size": 16, "activation_checkpointing": "none"}, Overflows, ""},
		{"states alone", map[string]any{"device": "24GB"}, Overflows, ""},
		{"no device", map[string]any{"device": nil}, Unknown, "device"},
		{"no sequence length", map[string]any{"seq_length": nil}, Unknown, "seq-len"},
		{"no model", map[string]any{"model": nil}, Unknown, "model"},
		{"no precision", map[string]any{"precision": nil}, Unknown, "precision"},
		{"nothing", map[string]any{"seq_length": nil, "micro_batch_size": nil, "device": nil, "model": nil}, Unknown, "model seq-len micro-batch device"},
		{"open loss does not matter", map[string]any{"loss_kernel": nil, "device": "B200"}, Fits, ""},
		{"open loss decides", map[string]any{"loss_kernel": nil, "device": "45GB"}, Unknown, "loss-kernel"},
		{"open loss cannot help", map[string]any{"loss_kernel": nil, "device": "24GB"}, Overflows, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := Check(native(t, run13B(test.changes)))
			if err != nil || r.Verdict != test.want || strings.Join(r.Missing, " ") != test.missing {
				t.Errorf("%s, missing %v, %v; wanted %s, missing %s; usage %+v", r.Verdict, r.Missing, err, test.want, test.missing, r.Usage)
			}
		})
	}
	for _, changes := range []map[string]any{{"model": "lama-13b"}, {"device": "910X"}} {
		if _, err := Check(native(t, run13B(changes))); err == nil {
			t.Errorf("%v is taken", changes)
		}
	}
}

// TestOpenPlan: a plan that says neither who shards nor whose code runs, with a micro-batch of 16 and no checkpointing, overflows
// a device of 64 GB whatever the rest may be; with a micro-batch of 1 and checkpointing open it may fit.
func TestOpenPlan(t *testing.T) {
	set := func(values map[string]any) *plan.Plan {
		p := &plan.Plan{Device: plan.Flag("910B")}
		for name, raw := range values {
			if err := plan.Set(p, name, raw, plan.IsWritten, ""); err != nil {
				t.Fatal(err)
			}
		}
		plan.Derive(p)
		return p
	}
	shape := func(more map[string]any) map[string]any {
		all := map[string]any{"model.hidden": 5120, "model.layers": 40, "model.heads": 40, "model.ffn": 13824, "model.vocab": 32000, "batch.seq_length": 4096,
			"parallel.data": 8, "parallel.tensor": 1, "parallel.pipeline": 1, "parallel.context": 1, "dtype.compute": "bf16"}
		for k, v := range more {
			all[k] = v
		}
		return all
	}
	for _, test := range []struct {
		name   string
		values map[string]any
		want   Verdict
	}{
		{"micro-batch 16", shape(map[string]any{"batch.micro": 16, "checkpointing.kind": "none"}), Overflows},
		{"micro-batch 1", shape(map[string]any{"batch.micro": 1}), Unknown},
		{"micro-batch unknown", shape(nil), Unknown},
		{"unknown layout of unknown ranks", map[string]any{"model.name": "llama-13b", "batch.micro": 16, "batch.seq_length": 4096, "checkpointing.kind": "none"}, Unknown},
		{"405B on 8 ranks", map[string]any{"model.name": "llama-3.1-405b", "parallel.world": 8, "lora.rank": 0, "precision": "deepspeed_mixed", "optimizer.type": "adamw"},
			Overflows},
	} {
		r, err := Check(set(test.values))
		if err != nil || r.Verdict != test.want || r.Usage != nil || len(r.Missing) == 0 {
			t.Errorf("%s: %s, at least %.1f GiB, missing %v, %v", test.name, r.Verdict, gib(r.AtLeast), r.Missing, err)
		}
	}
}

// TestWorldMatters: sharded states need the number of ranks, replicated ones do not.
func TestWorldMatters(t *testing.T) {
	p := native(t, run13B(nil))
	p.Parallel.Data = plan.Value[int64]{}
	if _, missing, _ := Estimate(p); !slices.Equal(missing, Missing{MissingWorld}) {
		t.Errorf("missing %v", missing)
	}
	p.Sharding = plan.Written(plan.DDP)
	if _, missing, _ := Estimate(p); missing != nil {
		t.Errorf("missing %v", missing)
	}
}

// TestPartsAddUp: parts of a phase sum to it, the peak is the largest phase, and bounds enclose it.
func TestPartsAddUp(t *testing.T) {
	for _, c := range loadMeasured(t) {
		u := estimated(t, c)
		largest := int64(0)
		for _, phase := range u.Phases {
			b := phase.Parts
			sum := b.Weights + b.Gathered + b.Gradients + b.Optimizer + b.Activations + b.Logits + b.Buffers + b.Temporaries
			if sum-phase.Bytes > 8 || phase.Bytes-sum > 8 {
				t.Errorf("%s %s: parts sum to %d of %d", c.ID, phase.Name, sum, phase.Bytes)
			}
			if phase.Bytes > largest {
				largest = phase.Bytes
				if phase.Name == u.Phase && u.Parts != b {
					t.Errorf("%s: parts are not those of %s", c.ID, u.Phase)
				}
			}
		}
		if largest != u.Peak.Bytes {
			t.Errorf("%s: peak %d, largest phase %d", c.ID, u.Peak.Bytes, largest)
		}
		for _, r := range []Range{u.Peak, u.Total, u.Needed} {
			if r.Low <= 0 || r.Low > r.Bytes || r.Bytes > r.High {
				t.Errorf("%s: range %+v", c.ID, r)
			}
		}
		if u.Static > u.Peak.Low || u.Peak.Bytes > u.Reserved || u.Reserved > u.Total.Bytes {
			t.Errorf("%s: static %d, peak %+v, reserved %d, total %+v", c.ID, u.Static, u.Peak, u.Reserved, u.Total)
		}
	}
}

// TestMonotone: more of what takes memory never takes less.
func TestMonotone(t *testing.T) {
	peak := func(changes map[string]any) int64 {
		u, missing, err := Estimate(native(t, run13B(changes)))
		if err != nil || missing != nil {
			t.Fatal(missing, err)
		}
		return u.Peak.Bytes
	}
	for _, row := range []struct {
		key   string
		rises []any
	}{
		{"micro_batch_size", []any{1, 2, 4, 8, 16}},
		{"seq_length", []any{512, 1024, 4096, 16384}},
		{"activation_checkpointing", []any{"full", "half", "none"}},
		{"data_parallel", []any{64, 16, 8, 4, 2}},
		{"loss_kernel", []any{"fused_linear", "chunked", "chunked_head", "bf16", "inplace", "fp32_copy", "fp32_copy_shifted"}},
		{"attention", []any{"flash", "eager"}},
		{"context_parallel", []any{8, 4, 2, 1}},
		{"optimizer", []any{"sgd", "lion", "adamw"}},
	} {
		previous := int64(0)
		for _, value := range row.rises {
			now := peak(map[string]any{row.key: value, "micro_batch_size": 2, "activation_checkpointing": "half", row.key + "": value})
			if now < previous {
				t.Errorf("%s %v: %d, below %d", row.key, value, now, previous)
			}
			previous = now
		}
	}
}

func TestStatesLowerBound(t *testing.T) {
	const n = 13015864320
	for _, test := range []struct {
		name    string
		set     map[string]any
		want    float64
		unknown bool
	}{
		{"nothing known", nil, 0, false},
		{"no model", map[string]any{"model.name": "nobody's"}, 0, true},
		{"one rank, mixed precision", map[string]any{"parallel.world": 1, "precision": "deepspeed_mixed", "optimizer.type": "adamw"}, 16 * n, false},
		{"one rank, precision unknown", map[string]any{"parallel.world": 1, "optimizer.type": "adamw"}, 8 * n, false},
		{"one rank, optimizer unknown", map[string]any{"parallel.world": 1}, 4 * n, false},
		{"eight ranks", map[string]any{"parallel.world": 8, "precision": "deepspeed_mixed", "optimizer.type": "adamw"}, 2 * n, false},
		{"DDP", map[string]any{"sharding": "ddp", "parallel.tensor": 1, "parallel.pipeline": 1, "precision": "autocast", "optimizer.type": "adamw"}, 16 * n, false},
		{"DDP of unknown tensor parallelism", map[string]any{"sharding": "ddp", "precision": "autocast"}, 0, false},
		{"ZeRO-2 on unknown ranks", map[string]any{"sharding": "zero2", "parallel.tensor": 1, "parallel.pipeline": 1, "precision": "deepspeed_mixed"}, 2 * n, false},
		{"ZeRO-1 on 64 ranks", map[string]any{"sharding": "zero1", "parallel.world": 64, "parallel.tensor": 1, "parallel.pipeline": 1,
			"precision": "deepspeed_mixed", "optimizer.type": "adamw"}, (4 + 12.0/64) * n, false},
		{"offloaded", map[string]any{"sharding": "zero2", "parallel.tensor": 1, "parallel.pipeline": 1, "precision": "deepspeed_mixed", "offload.optimizer": "cpu"},
			2 * n, false},
		{"adapter", map[string]any{"parallel.world": 1, "precision": "pure_16bit", "lora.rank": 8}, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := plan.Plan{Model: plan.Model{Name: plan.Written("llama-13b")}, LoRA: plan.LoRA{Rank: plan.Default[int64](0, "")}}
			for name, raw := range test.set {
				if err := plan.Set(&p, name, raw, plan.IsWritten, ""); err != nil {
					t.Fatal(err)
				}
			}
			got, known := StatesLowerBound(&p)
			if known == test.unknown {
				t.Fatalf("known %v", known)
			}
			near(t, "bytes", float64(got), test.want, 1e-6)
		})
	}
}

// TestLowerBoundIsLower: the bound never exceeds the states of an estimate, whatever is left open.
func TestLowerBoundIsLower(t *testing.T) {
	for _, c := range loadMeasured(t) {
		p := native(t, c.Plan)
		if bound, ok := LowerBound(p); !ok || bound > estimated(t, c).Needed.Low {
			t.Errorf("%s: at least %d, needs %d at least", c.ID, bound, estimated(t, c).Needed.Low)
		}
		j, missing, err := newJob(p)
		if err != nil || missing != nil {
			t.Fatal(missing, err)
		}
		s := j.states()
		all := int64(s.weights+s.gradients+s.optimizer) + 1
		opened := *p
		opened.Sharding, opened.Parallel.Data = plan.Value[plan.Sharding]{}, plan.Value[int64]{}
		for _, q := range []*plan.Plan{p, &opened} {
			if bound, ok := LowerBound(q); !ok || bound > estimated(t, c).Needed.Low {
				t.Errorf("%s: opened, at least %d, needs %d at least", c.ID, bound, estimated(t, c).Needed.Low)
			}
			if bound, ok := StatesLowerBound(q); !ok || bound > all && !j.inBackward {
				t.Errorf("%s: bound %d, states %d", c.ID, bound, all)
			}
		}
	}
}

func TestOptions(t *testing.T) {
	device, err := catalog.Device("56GB")
	if err != nil {
		t.Fatal(err)
	}
	plain := run13B(map[string]any{"micro_batch_size": 16, "gradient_accumulation_steps": 1, "activation_checkpointing": "none"})
	options := Options(native(t, plain), device)
	if len(options) == 0 {
		t.Fatal("no options")
	}
	var told []string
	for i, o := range options {
		told = append(told, fmt.Sprintf("%v needs %.1f GB keeps %.2f %s", o.Changes, float64(o.NeedsBytes)/1e9, o.Throughput, o.Verdict))
		if !o.Fits || o.NeedsBytes > device.UsableBytes || o.PeakBytes > o.NeedsBytes || o.Throughput <= 0 || o.Throughput > 1.001 {
			t.Errorf("%s", told[i])
		}
		if i > 0 && (o.Numerics == options[i-1].Numerics && o.Throughput > options[i-1].Throughput+0.005 || options[i-1].Numerics && !o.Numerics) {
			t.Errorf("%s stands behind %s", told[i], told[i-1])
		}
		checkOption(t, plain, o, device)
	}
	t.Log(strings.Join(told, "\n"))
	find := func(kind string, micro string) *Option {
		for i, o := range options {
			has := func(name, to string) bool {
				return slices.ContainsFunc(o.Changes, func(c Change) bool { return c.Name == name && c.To == to })
			}
			if has("checkpointing.kind", kind) && has("batch.micro", micro) {
				return &options[i]
			}
		}
		t.Fatalf("no option with %s checkpointing and micro-batch %s in\n%s", kind, micro, strings.Join(told, "\n"))
		return nil
	}
	near(t, "alternate layers, 1 x 16", find("half", "1").Throughput, 0.83, 0.01)
	near(t, "every layer, 4 x 4", find("full", "4").Throughput, 0.73, 0.01)
	if find("full", "4").Verdict != Fits || find("half", "1").Verdict != Tight {
		t.Errorf("verdicts:\n%s", strings.Join(told, "\n"))
	}

	if options := Options(native(t, run13B(nil)), &catalog.DeviceSpec{UsableBytes: 80e9}); options != nil {
		t.Errorf("options for a plan that fits: %v", options)
	}
	if options := Options(native(t, plain), &catalog.DeviceSpec{UsableBytes: 8e9}); len(options) != 1 || options[0].Fits {
		t.Errorf("options for a device too small: %v", options)
	}
	if options := Options(native(t, run13B(map[string]any{"seq_length": nil})), device); options != nil {
		t.Errorf("options without an estimate: %v", options)
	}
	noSync := native(t, run13B(nil))
	noSync.FSDP.NoSync = plan.Written(true)
	if options := Options(noSync, device); len(options) == 0 || len(options[0].Changes) != 1 || options[0].Changes[0].Name != "fsdp.no_sync" {
		t.Errorf("no_sync: %v", options)
	}
	zero2 := run13B(map[string]any{"sharding": "zero2", "precision": "deepspeed_mixed", "model": "llama-7b"})
	small, _ := catalog.Device("40GB")
	for _, o := range Options(native(t, zero2), small) {
		checkOption(t, zero2, o, small)
	}
}

// checkOption applies the changes of an option to the plan and estimates it anew.
func checkOption(t *testing.T, keys map[string]any, o Option, device *catalog.DeviceSpec) {
	t.Helper()
	p := native(t, keys)
	global := int64(1)
	for _, c := range o.Changes {
		var raw any = c.To
		switch fact, _ := plan.Lookup(p, c.Name); fact.(type) {
		case plan.Value[int64]:
			var n int64
			fmt.Sscan(c.To, &n)
			raw = n
		case plan.Value[bool]:
			raw = c.To == "true"
		}
		if fact, _ := plan.Lookup(p, c.Name); fact.Known() {
			if was, _ := fact.Any(); fmt.Sprint(was) != c.From {
				t.Errorf("%v: it is %v", c, was)
			}
		}
		if err := plan.Set(p, c.Name, raw, plan.IsWritten, ""); err != nil {
			t.Fatalf("%v: %v", c, err)
		}
	}
	micro, _ := p.Batch.Micro.Get()
	steps, _ := p.Batch.Accumulation.Get()
	before := native(t, keys)
	global = before.Batch.Micro.Or(0) * before.Batch.Accumulation.Or(0)
	if micro*steps != global {
		t.Errorf("%v: %d x %d is not the global batch %d", o.Changes, micro, steps, global)
	}
	p.Device = plan.Written(device.Name)
	u, missing, err := Estimate(p)
	if err != nil || missing != nil || u.Peak.Bytes != o.PeakBytes || u.Needed.Bytes != o.NeedsBytes {
		t.Errorf("%v: told %d, estimated %+v %v %v", o.Changes, o.PeakBytes, u, missing, err)
	}
}

// FuzzEstimate: no plan may crash the estimate or give nonsense.
func FuzzEstimate(f *testing.F) {
	f.Add(int64(1), int64(4096), int64(4096), int64(32), int64(32), int64(32000), int64(8), uint8(0), uint8(0))
	f.Add(int64(1<<50), int64(1<<50), int64(1), int64(1), int64(1<<50), int64(7), int64(1<<40), uint8(3), uint8(9))
	f.Fuzz(func(t *testing.T, micro, seq, hidden, layers, heads, vocab, ranks int64, a, b uint8) {
		p := &plan.Plan{
			Model: plan.Model{Hidden: plan.Written(hidden), Layers: plan.Written(layers), Heads: plan.Written(heads), FFN: plan.Written(hidden), Vocab: plan.Written(vocab),
				Experts: plan.Written(int64(a % 4)), KVHeads: plan.Written(int64(b % 3))},
			Batch:    plan.Batch{Micro: plan.Written(micro), SeqLength: plan.Written(seq), Accumulation: plan.Written(ranks)},
			Parallel: plan.Parallel{Data: plan.Written(ranks), Tensor: plan.Written(int64(a)), Pipeline: plan.Written(int64(b))},
			Sharding: plan.Written([]plan.Sharding{"none", "ddp", "zero1", "zero2", "zero3", "fsdp1", "fsdp2", "megatron_dist"}[a%8]),
			Precision: plan.Written([]plan.Precision{"fp32", "autocast", "pure_16bit", "fsdp_mixed", "deepspeed_mixed", "deepspeed_bf16_optimizer",
				"megatron_mixed"}[b%7]),
			Checkpointing: plan.CheckpointingPlan{Kind: plan.Written([]plan.Checkpointing{"none", "full", "half", "every_n", "selective_op", "selective_attention"}[b%6])},
			LoRA:          plan.LoRA{Rank: plan.Written(int64(a & 8))},
			Device:        plan.Written("A100"),
		}
		r, err := Check(p)
		if err != nil {
			return // an absurd shape
		}
		if u := r.Usage; u != nil {
			if u.Peak.Bytes <= 0 || u.Static <= 0 || u.Peak.Low > u.Peak.Bytes || u.Peak.Bytes > u.Peak.High || u.Total.Bytes <= 0 {
				t.Errorf("%+v", u)
			}
			Options(p, u.Device)
		}
		StatesLowerBound(p)
		LowerBound(p)
	})
}

func BenchmarkOptions(b *testing.B) {
	device, err := catalog.Device("32GB")
	if err != nil {
		b.Fatal(err)
	}
	p := native(b, run13B(map[string]any{"micro_batch_size": 48, "gradient_accumulation_steps": 4, "activation_checkpointing": "none", "sharding": "zero1",
		"precision": "deepspeed_mixed"}))
	b.ReportAllocs()
	for b.Loop() {
		if len(Options(p, device)) == 0 {
			b.Fatal("no options")
		}
	}
}
