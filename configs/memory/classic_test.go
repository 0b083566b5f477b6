package memory

import (
	"fmt"
	"math"
	"testing"

	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/plan"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*math.Abs(want) {
		t.Errorf("%s: %.4g, wanted %.4g", what, got, want)
	}
}

// TestZeROPaper repeats table 1 of arXiv 1910.02054: GB per device of the states of a 7.5B model with Adam in mixed precision.
func TestZeROPaper(t *testing.T) {
	b := (&job{precision: plan.DeepSpeedMixed, optimizer: plan.AdamW}).stateBytes()
	for _, row := range []struct{ ranks, stage1, stage2, stage3 float64 }{
		{1, 120, 120, 120}, {4, 52.5, 41.3, 30}, {16, 35.6, 21.6, 7.5}, {64, 31.4, 16.6, 1.88}, {256, 30.4, 15.4, 0.47}, {1024, 30.1, 15.1, 0.12},
	} {
		for sharding, want := range map[plan.Sharding]float64{plan.DDP: 120, plan.ZeRO1: row.stage1, plan.ZeRO2: row.stage2, plan.ZeRO3: row.stage3} {
			got := (&job{offloadOptimizer: plan.NoOffload, offloadParam: plan.NoOffload}).statesOf(7.5e9, row.ranks, sharding, b) / 1e9
			near(t, fmt.Sprintf("%s on %v ranks", sharding, row.ranks), got, want, 0.025)
		}
	}
}

// TestKorthikanti repeats table 2 of arXiv 2205.05198: activations of one GPT layer, sbh(34 + 5as/h) without parallelism,
// sbh(10 + 24/t + 5as/(ht)) with tensor, sbh/t(34 + 5as/h) with sequence parallelism, and sbh*34/t with selective recomputation.
func TestKorthikanti(t *testing.T) {
	for _, m := range []struct{ hidden, heads, layers float64 }{{6144, 64, 48}, {12288, 96, 96}, {20480, 128, 105}, {25600, 160, 128}} {
		keys := func(extra map[string]any) map[string]any {
			all := map[string]any{
				"model": map[string]any{"family": "gpt2", "hidden_size": m.hidden, "num_layers": m.layers, "num_attention_heads": m.heads, "intermediate_size": 4 * m.hidden,
					"vocab_size": 51200, "gated_mlp": false, "norm": "layernorm", "qkv_bias": true, "attention_output_bias": true, "mlp_bias": true},
				"seq_length": 2048, "micro_batch_size": 1, "precision": "pure_16bit", "attention": "eager", "attention_dropout": 0.1, "hidden_dropout": true,
				"loss_kernel": "none", "stack": "hf",
			}
			for k, v := range extra {
				all[k] = v
			}
			return all
		}
		const s, tensor = 2048.0, 8.0
		sbh := s * m.hidden
		scores := 5 * m.heads * s / m.hidden
		for _, row := range []struct {
			name  string
			extra map[string]any
			want  float64
		}{
			{"no parallelism", nil, sbh * (34 + scores)},
			{"tensor", map[string]any{"tensor_parallel": tensor}, sbh * (10 + 24/tensor + scores/tensor)},
			{"tensor and sequence", map[string]any{"tensor_parallel": tensor, "sequence_parallel": true}, sbh / tensor * (34 + scores)},
			{"selective", map[string]any{"tensor_parallel": tensor, "sequence_parallel": true, "activation_checkpointing": "selective_attention"}, sbh / tensor * 34},
			{"full", map[string]any{"activation_checkpointing": "full"}, 2 * sbh},
		} {
			j, missing, err := newJob(native(t, keys(row.extra)))
			if err != nil || missing != nil {
				t.Fatal(missing, err)
			}
			near(t, fmt.Sprintf("hidden %v, %s", m.hidden, row.name), j.activations().saved/m.layers, row.want, 0.002)
		}
	}
}

// TestGPT3 repeats the well-known 2.8 TB of states: 16 bytes a parameter, fp32 with Adam.
func TestGPT3(t *testing.T) {
	j, missing, err := newJob(native(t, map[string]any{"model": "gpt3-175b", "seq_length": 2048, "micro_batch_size": 1, "precision": "fp32", "loss_kernel": "none", "stack": "hf"}))
	if err != nil || missing != nil {
		t.Fatal(missing, err)
	}
	s := j.states()
	near(t, "weights, TB", s.weights/1e12, 0.700, 0.005)
	near(t, "gradients, TB", s.gradients/1e12, 0.700, 0.005)
	near(t, "optimizer, TB", s.optimizer/1e12, 1.400, 0.005)
	near(t, "all, TB", (s.weights+s.gradients+s.optimizer)/1e12, 2.8, 0.005)
}

// TestLLaMA13B holds a table of strategies for LLaMA-13B on 8 devices of 56 GB at 4,096 tokens and a global batch of 128,
// computed once apart from this package: GB allocated and needed. The table counts one more unsharded layer at the loss.
func TestLLaMA13B(t *testing.T) {
	for _, row := range []struct {
		micro, accumulation int
		kind                string
		precision           string
		peak, needed        float64
		fits                bool
	}{
		{16, 1, "none", "fsdp_mixed", 661, 684, false},
		{32, 1, "none", "fsdp_mixed", 1302, 1344, false},
		{2, 8, "none", "fsdp_mixed", 107.7, 113.6, false},
		{1, 16, "none", "fsdp_mixed", 67.7, 72.4, false},
		{16, 1, "half", "fsdp_mixed", 368.6, 382, false},
		{16, 1, "full", "fsdp_mixed", 75.8, 80.8, false},
		{2, 8, "half", "fsdp_mixed", 71.5, 76.4, false},
		{1, 16, "half", "fsdp_mixed", 50.0, 54.3, true},
		{8, 2, "full", "fsdp_mixed", 55.0, 59.4, false},
		{4, 4, "full", "fsdp_mixed", 41.3, 45.3, true},
		{2, 8, "full", "fsdp_mixed", 34.9, 38.7, true},
		{1, 16, "none", "pure_16bit", 54.6, 59.0, false},
		{1, 16, "half", "pure_16bit", 37.0, 40.9, true},
		{8, 2, "full", "pure_16bit", 42.0, 46.0, true},
		{4, 4, "full", "pure_16bit", 28.3, 31.9, true},
	} {
		p := native(t, map[string]any{"model": "llama-13b", "seq_length": 4096, "micro_batch_size": row.micro, "gradient_accumulation_steps": row.accumulation,
			"activation_checkpointing": row.kind, "precision": row.precision, "sharding": "fsdp1", "data_parallel": 8, "attention": "flash",
			"loss_kernel": "fp32_copy", "stack": "hf", "device": "Ascend 910B3"})
		u, missing, err := Estimate(p)
		if err != nil || missing != nil {
			t.Fatal(missing, err)
		}
		name := fmt.Sprintf("%d x %d %s %s", row.micro, row.accumulation, row.kind, row.precision)
		near(t, name+" peak", float64(u.Peak.Bytes)/1e9, row.peak, 0.025)
		near(t, name+" needed", float64(u.Needed.Bytes)/1e9, row.needed, 0.025)
		device, err := catalog.Device("56GB")
		if err != nil {
			t.Fatal(err)
		}
		if fits := u.Needed.Bytes <= device.UsableBytes; fits != row.fits {
			t.Errorf("%s: fits %v", name, fits)
		}
	}
}

// TestNoSync: FSDP with no_sync keeps whole gradients while it accumulates: for LLaMA-13B 26.0 GB in the 16 bits of the unsharded
// weights, and in FSDP2 52.1 GB where it reduces in fp32.
func TestNoSync(t *testing.T) {
	p := native(t, map[string]any{"model": "llama-13b", "seq_length": 4096, "micro_batch_size": 1, "gradient_accumulation_steps": 16,
		"activation_checkpointing": "full", "precision": "fsdp_mixed", "sharding": "fsdp1", "data_parallel": 8, "attention": "flash", "loss_kernel": "fp32_copy", "stack": "hf"})
	before, _, _ := Estimate(p)
	p.FSDP.NoSync = plan.Written(true)
	after, _, _ := Estimate(p)
	near(t, "GB more", float64(after.Peak.Bytes-before.Peak.Bytes)/1e9, 26.03-52.06/8, 0.1)
	near(t, "GB of gradients", float64(after.Parts.Gradients)/1e9, 26.03, 0.001)
	p.Sharding, p.DType.Reduce = plan.Written(plan.FSDP2), plan.Written(plan.Float32)
	reduced, _, _ := Estimate(p)
	near(t, "GB of gradients in fp32", float64(reduced.Parts.Gradients)/1e9, 52.06, 0.001)
	p.DType.Reduce = plan.Value[plan.DType]{}
	open, _, _ := Estimate(p)
	if open.Peak.High < reduced.Peak.High || open.Peak.Bytes >= reduced.Peak.Bytes {
		t.Errorf("the type of reduction is open: %v, in fp32 %v", open.Peak, reduced.Peak)
	}
	p.FSDP.NoSync = plan.Default(true, "accelerate from 1.11 on")
	if synced, _, _ := Estimate(p); synced.Peak.Low > before.Peak.Bytes || synced.Peak.Bytes != open.Peak.Bytes {
		t.Errorf("an older release reduces each micro-batch: %v, with it %v", synced.Peak, before.Peak)
	}
	p.Batch.Accumulation = plan.Written[int64](1)
	if single, _, _ := Estimate(p); float64(single.Parts.Gradients) > 10e9 {
		t.Errorf("without accumulation each backward reduces: %+v", single.Parts)
	}
}

// TestLLaMA7BMegatron: DP 8, TP 4, PP 2, micro-batch 4 at 2,048 tokens on an NPU, GB from outside. A published figure for the
// first row is 28.5 GB; the figures here were computed once apart from this package, and the others vary what the published one
// leaves unsaid. Here the logits take 6 bytes instead of 10, and four communicators 1.7 GB.
func TestLLaMA7BMegatron(t *testing.T) {
	keys := func(extra map[string]any) map[string]any {
		all := map[string]any{"model": "llama-7b", "seq_length": 2048, "micro_batch_size": 4, "precision": "megatron_mixed", "sharding": "megatron_dist", "data_parallel": 8,
			"tensor_parallel": 4, "pipeline_parallel": 2, "pipeline_micro_batches": 8, "attention": "flash", "loss_kernel": "vocab_parallel", "stack": "megatron",
			"device": "Ascend 910B3"}
		for k, v := range extra {
			all[k] = v
		}
		return all
	}
	for _, row := range []struct {
		extra map[string]any
		want  float64
	}{
		{nil, 27.2}, {map[string]any{"activation_checkpointing": "full"}, 12.4}, {map[string]any{"sharding": "none"}, 36.1}, {map[string]any{"seq_length": 4096}, 45.3},
	} {
		u, missing, err := Estimate(native(t, keys(row.extra)))
		if err != nil || missing != nil {
			t.Fatal(missing, err)
		}
		near(t, fmt.Sprint(row.extra), float64(u.Total.Bytes)/1e9, row.want, 0.07)
	}
}

// TestHCCLBuffers: two buffers of HCCL_BUFFSIZE for each communicator, 200 MB unless it is set.
func TestHCCLBuffers(t *testing.T) {
	for _, row := range []struct {
		tensor, data, set int64
		want              float64 // MiB
	}{{1, 1, 0, 0}, {1, 8, 0, 800}, {4, 8, 0, 1200}, {4, 8, 2048, 3 * 2 * 2048}} {
		p := native(t, run13B(map[string]any{"tensor_parallel": row.tensor, "data_parallel": row.data}))
		if row.set > 0 {
			p.Communication.HCCLBufferMB = plan.Written(row.set)
		}
		u, missing, err := Estimate(p)
		if err != nil || missing != nil {
			t.Fatal(missing, err)
		}
		near(t, fmt.Sprintf("TP %d, DP %d, set %d", row.tensor, row.data, row.set), float64(u.Communication)/(1<<20), row.want, 1e-9)
	}
}
