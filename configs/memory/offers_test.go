package memory

import (
	"slices"
	"testing"

	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/plan"
)

// TestOffers asks which changes are among the settings of a plan.
func TestOffers(t *testing.T) {
	device, err := catalog.Device("A100-80GB")
	if err != nil {
		t.Fatal(err)
	}
	base := func() plan.Plan {
		var p plan.Plan
		p.Model.Name = plan.Written("llama-2-7b")
		p.Batch.SeqLength, p.Batch.Micro, p.Batch.Accumulation = plan.Written[int64](2048), plan.Written[int64](4), plan.Written[int64](4)
		p.Parallel.Data = plan.Written[int64](8)
		p.Sharding, p.Precision, p.Stack, p.Loss = plan.Written(plan.DDP), plan.Derived(plan.Autocast), plan.Written(plan.HF), plan.Written(plan.FP32Copy)
		return p
	}
	for _, row := range []struct {
		name    string
		change  func(*plan.Plan)
		up      bool
		offers  []Change
		refuses []Change
	}{
		{"plain DDP of the Trainer", func(*plan.Plan) {}, false, []Change{{"sharding", "ddp", "fsdp1"}, {"sharding", "ddp", "zero2"}, {"sharding", "ddp", "zero3"}}, []Change{{"sharding", "ddp", "fsdp2"}}},
		{"a quantised base", func(p *plan.Plan) {
			p.Quantization.Kind, p.LoRA.Rank = plan.Written(plan.NF4), plan.Written[int64](8)
		}, false, nil, []Change{{"sharding", "ddp", "fsdp1"}, {"sharding", "ddp", "zero3"}}},
		{"FSDP2", func(p *plan.Plan) { p.Sharding, p.Precision = plan.Written(plan.FSDP2), plan.Written(plan.FSDPMixed) }, false,
			[]Change{{"offload.param", "none", "cpu"}}, nil},
		{"FSDP1 with accumulation", func(p *plan.Plan) { p.Sharding, p.Precision = plan.Written(plan.FSDP1), plan.Written(plan.FSDPMixed) }, false,
			nil, []Change{{"offload.param", "none", "cpu"}}},
		{"FSDP1 without", func(p *plan.Plan) {
			p.Sharding, p.Precision, p.Batch.Accumulation = plan.Written(plan.FSDP1), plan.Written(plan.FSDPMixed), plan.Written[int64](1)
		}, false, []Change{{"offload.param", "none", "cpu"}}, nil},
		{"ZeRO-3 with room", func(p *plan.Plan) {
			p.Sharding, p.Precision = plan.Written(plan.ZeRO3), plan.Written(plan.DeepSpeedMixed)
		}, true,
			[]Change{{"sharding", "zero3", "zero2"}, {"sharding", "zero3", "zero1"}}, nil},
		{"FSDP with room", func(p *plan.Plan) { p.Sharding, p.Precision = plan.Written(plan.FSDP1), plan.Written(plan.FSDPMixed) }, true,
			[]Change{{"fsdp.reshard_after_forward", "true", "false"}}, nil},
		{"Megatron", func(p *plan.Plan) {
			p.Stack, p.Precision, p.Loss = plan.Written(plan.Megatron), plan.Written(plan.MegatronMixed), plan.Written(plan.VocabParallel)
		}, false, []Change{{"checkpointing.every", "1", "2"}, {"sharding", "ddp", "megatron_dist"}}, nil},
	} {
		p := base()
		row.change(&p)
		today, missing, err := newJob(&p)
		if err != nil || today == nil {
			t.Errorf("%s: %v, missing %v", row.name, err, missing)
			continue
		}
		s := search{today: today, plan: &p, device: device, perToken: today.secondsPerToken(), up: row.up}
		all := s.axes()
		if row.up {
			all = []axis{s.lessCheckpointing(), s.lessOffload(), s.lessSharding()}
		}
		var offered []Change
		for _, a := range all {
			for _, next := range a.settings {
				offered = append(offered, next.changes...)
			}
		}
		for _, c := range row.offers {
			if !slices.Contains(offered, c) {
				t.Errorf("%s: %v is not offered, but %v", row.name, c, offered)
			}
		}
		for _, c := range row.refuses {
			if slices.Contains(offered, c) {
				t.Errorf("%s: %v is offered", row.name, c)
			}
		}
	}
	p := base()
	for _, o := range OptionsOf(&p, device, func(c Change) bool { return c.Name != "sharding" }) {
		if slices.ContainsFunc(o.Changes, func(c Change) bool { return c.Name == "sharding" }) {
			t.Errorf("a change that cannot be made: %v", o.Changes)
		}
	}
}
