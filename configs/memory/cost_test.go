package memory

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/plan"
)

func priced(t *testing.T, keys map[string]any) Cost {
	t.Helper()
	c, ok := Price(native(t, keys))
	if !ok {
		t.Fatal("no price")
	}
	return c
}

// TestThroughputKept holds the ratios of a table of strategies for LLaMA-13B, computed once apart from this package: accumulation
// 0.97, alternate layers recomputed 0.86, all of them 0.75, and both with accumulation 0.83 and 0.73.
func TestThroughputKept(t *testing.T) {
	base := priced(t, run13B(map[string]any{"micro_batch_size": 16, "gradient_accumulation_steps": 1, "activation_checkpointing": "none"}))
	for _, row := range []struct {
		micro, steps int
		kind         string
		want         float64
	}{{2, 8, "none", 0.97}, {16, 1, "half", 0.86}, {16, 1, "full", 0.75}, {1, 16, "half", 0.83}, {4, 4, "full", 0.73}} {
		c := priced(t, run13B(map[string]any{"micro_batch_size": row.micro, "gradient_accumulation_steps": row.steps, "activation_checkpointing": row.kind}))
		if c.TokensPerStep != base.TokensPerStep || c.FLOPsPerToken != base.FLOPsPerToken {
			t.Errorf("%+v: %v tokens, %v FLOPs", row, c.TokensPerStep, c.FLOPsPerToken)
		}
		near(t, fmt.Sprintf("%+v", row), base.Seconds/c.Seconds, row.want, 0.012)
	}
	near(t, "FLOPs of a token", base.FLOPsPerToken, 6*13.016e9+6*40*5120*4096, 0.001)
}

// TestTraffic repeats section 7 of arXiv 1910.02054: two parameters' worth a step for data parallelism and ZeRO-1 and -2, and three
// where weights are sharded.
func TestTraffic(t *testing.T) {
	const n = 6.738e9 * 2 * 63 / 64
	for sharding, want := range map[string]float64{"ddp": 2, "zero1": 2, "zero2": 2, "zero3": 3} {
		c := priced(t, map[string]any{"model": "llama-7b", "seq_length": 2048, "micro_batch_size": 1, "data_parallel": 64, "precision": "deepspeed_mixed",
			"sharding": sharding, "loss_kernel": "fp32_copy", "stack": "hf", "device": "A100-80GB"})
		near(t, sharding, c.Bytes()/n, want, 0.01)
	}
	offloaded := priced(t, map[string]any{"model": "llama-7b", "seq_length": 2048, "micro_batch_size": 1, "data_parallel": 64, "precision": "deepspeed_mixed",
		"sharding": "zero2", "offload_optimizer": "cpu", "loss_kernel": "fp32_copy", "stack": "hf", "device": "A100-80GB"})
	if !slices.ContainsFunc(offloaded.Traffic, func(x Traffic) bool { return strings.HasPrefix(x.Name, "host") && x.Bytes > 0 && x.Seconds > 0 }) {
		t.Errorf("no host traffic: %+v", offloaded.Traffic)
	}
}

// TestTokensPerSecond compares with published rates, tokens per second and device. They are estimates from one share of the peak, so
// that a quarter off is what can be asked for.
func TestTokensPerSecond(t *testing.T) {
	for _, row := range []struct {
		name string
		keys map[string]any
		want float64
	}{
		{"torchtitan, Llama-3.1-8B, 8 H100, compiled", map[string]any{"model": "llama-3-8b", "seq_length": 8192, "micro_batch_size": 2, "precision": "fsdp_mixed", "sharding": "fsdp2",
			"stack": "torchtitan", "activation_checkpointing": "selective_op", "loss_kernel": "fp32_held", "data_parallel": 8, "compile": true, "device": "H100-96GB"}, 6667},
		{"torchtitan, Llama-3.1-8B, 8 H100, eager, every layer recomputed, 4,096 tokens", map[string]any{"model": "llama-3-8b", "seq_length": 4096, "micro_batch_size": 1,
			"precision": "fsdp_mixed", "sharding": "fsdp2", "stack": "torchtitan", "activation_checkpointing": "full", "loss_kernel": "fp32_held", "data_parallel": 8, "device": "H100-96GB"}, 4502},
		{"torchao, Llama-3-8B, 8 MI300X", map[string]any{"model": "llama-3-8b", "seq_length": 8192, "micro_batch_size": 1, "precision": "fsdp_mixed", "sharding": "fsdp2",
			"stack": "torchtitan", "activation_checkpointing": "selective_op", "loss_kernel": "fp32_held", "data_parallel": 8, "compile": true, "device": "MI300X"}, 5376},
	} {
		c := priced(t, row.keys)
		near(t, row.name, c.PerSecond/float64(row.keys["data_parallel"].(int)), row.want, 0.25)
	}
}

// TestTrain: 6N FLOPs a token make 1.05e24 for GPT-3 on 1T tokens, without attention.
func TestTrain(t *testing.T) {
	c := priced(t, map[string]any{"model": "gpt3-175b", "seq_length": 1, "micro_batch_size": 1, "precision": "megatron_mixed", "loss_kernel": "none", "stack": "megatron", "device": "910B"})
	train := c.Train(1e12)
	near(t, "FLOPs", train.FLOPs, 1.05e24, 0.01)
	near(t, "days at the peak rate", train.Days*c.MFU, 1.05e24/(313e12)/86400, 0.3)
	if train := (&Cost{FLOPsPerToken: 6}).Train(10); train.Days != 0 || train.FLOPs != 60 {
		t.Errorf("%+v", train)
	}
}

// runMegatron is LLaMA-13B on eight ranks under Megatron, which does not fit there.
func runMegatron(changes map[string]any) map[string]any {
	all := map[string]any{"model": "llama-13b", "seq_length": 4096, "micro_batch_size": 1, "gradient_accumulation_steps": 4, "precision": "megatron_mixed", "sharding": "megatron_dist",
		"data_parallel": 8, "attention": "flash", "loss_kernel": "vocab_parallel", "stack": "megatron", "device": "A100-80GB"}
	for key, value := range changes {
		all[key] = value
	}
	return all
}

// TestParallelOptions: where replicated weights and gradients do not fit, tensor or pipeline ranks that divide are offered, with the global
// batch kept, and estimating the changed plan gives what the option says.
func TestParallelOptions(t *testing.T) {
	device, err := catalog.Device("A100-80GB")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, keys := range []map[string]any{runMegatron(nil), runMegatron(map[string]any{"tensor_parallel": 2, "data_parallel": 4}),
		runMegatron(map[string]any{"model": "llama-30b", "data_parallel": 16})} {
		options := Options(native(t, keys), device)
		if len(options) == 0 {
			t.Fatal("no options")
		}
		for _, o := range options {
			for _, c := range o.Changes {
				kinds[c.Name] = true
			}
			checkChanged(t, keys, o)
		}
	}
	for _, name := range []string{"parallel.tensor", "parallel.pipeline", "parallel.sequence_parallel", "checkpointing.kind"} {
		if !kinds[name] {
			t.Errorf("%s is never changed: %v", name, kinds)
		}
	}
}

// checkChanged applies an option to the plan of keys, and compares tokens of a step, ranks and memory.
func checkChanged(t *testing.T, keys map[string]any, o Option) {
	t.Helper()
	before, p := native(t, keys), native(t, keys)
	p.Parallel.World, p.Batch.Global, p.Batch.GlobalTokens = plan.Value[int64]{}, plan.Value[int64]{}, plan.Value[int64]{}
	p.Parallel.PipelineMicroBatches = plan.Value[int64]{}
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
		if err := plan.Set(p, c.Name, raw, plan.IsWritten, ""); err != nil {
			t.Fatalf("%v: %v", c, err)
		}
	}
	plan.Derive(p)
	u, missing, err := Estimate(p)
	if err != nil || missing != nil || u.Peak.Bytes != o.PeakBytes || u.Needed.Bytes != o.NeedsBytes {
		t.Errorf("%v: told %d, estimated %+v %v %v", o.Changes, o.PeakBytes, u, missing, err)
	}
	was, _ := Price(before)
	is, _ := Price(p)
	near(t, fmt.Sprint(o.Changes, ": tokens of a step"), is.TokensPerStep, was.TokensPerStep, 1e-9)
	near(t, fmt.Sprint(o.Changes, ": throughput"), was.Seconds/is.Seconds, o.Throughput, 1e-6)
	ranks := func(p *plan.Plan) int64 {
		return p.Parallel.Data.Or(1) * p.Parallel.Tensor.Or(1) * p.Parallel.Pipeline.Or(1) * p.Parallel.Context.Or(1)
	}
	if ranks(p) != ranks(before) {
		t.Errorf("%v: %d ranks instead of %d", o.Changes, ranks(p), ranks(before))
	}
}

// TestFaster: a device that is mostly empty is offered larger micro-batches and less recomputation, and a full one nothing.
func TestFaster(t *testing.T) {
	device, err := catalog.Device("B200")
	if err != nil {
		t.Fatal(err)
	}
	keys := run13B(map[string]any{"micro_batch_size": 1, "gradient_accumulation_steps": 16, "device": "B200"})
	options := Faster(native(t, keys), device)
	if len(options) == 0 {
		t.Fatal("nothing is faster")
	}
	for _, o := range options {
		if o.Throughput <= 1 || o.Verdict != Fits {
			t.Errorf("%v %v %v", o.Changes, o.Throughput, o.Verdict)
		}
		checkChanged(t, keys, o)
	}
	if !slices.ContainsFunc(options, func(o Option) bool {
		return slices.ContainsFunc(o.Changes, func(c Change) bool { return c.Name == "batch.micro" && c.To != "1" })
	}) {
		t.Errorf("no larger micro-batch: %v", options)
	}
	small, _ := catalog.Device("40GB")
	if options := Faster(native(t, keys), small); options != nil {
		t.Errorf("%v", options)
	}
}
