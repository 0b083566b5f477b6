package memory

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs/catalog"
	"github.com/trainvet/trainvet/configs/dialect"
	"github.com/trainvet/trainvet/configs/memory"
	"github.com/trainvet/trainvet/configs/plan"
	"github.com/trainvet/trainvet/lint"
	"github.com/trainvet/trainvet/lint/source"
	"github.com/trainvet/trainvet/lint/workspace"
)

//go:embed hbm-overflow.md
var docHbmOverflow string

// HbmOverflow finds runs that cannot fit the memory of their device, whatever the files leave open.
var HbmOverflow = &lint.Rule{
	Name:     "hbm-overflow",
	Family:   "memory",
	Since:    "0.1",
	Doc:      docHbmOverflow,
	Severity: lint.Error,
	Fix:      lint.SometimesFix,
	Run: func(pass *lint.Pass, run *workspace.Run) {
		name, known := run.Plan.Device.Get()
		if !known || !run.Trains() {
			return
		}
		device, err := catalog.Device(name)
		if err != nil {
			return
		}
		if need := leastNeed(run, device); need != nil {
			need.report(pass, run, device)
		}
	},
}

// need is the least that a run can take on a device, and the plan of that.
type need struct {
	bytes int64
	usage *memory.Usage // nil: the states alone
	plan  *plan.Plan
}

// leastNeed is what the run needs at least, or nil where it may fit or that cannot be told.
func leastNeed(run *workspace.Run, device *catalog.DeviceSpec) *need {
	base := run.Plan
	loosen(&base, run)
	if best := bestOpen(&base); best != nil {
		if best.bytes > device.UsableBytes {
			return best
		}
		return nil
	}
	if !base.Parallel.World.Known() && !base.Parallel.Data.Known() {
		return nil
	}
	if states, ok := memory.StatesLowerBound(&base); ok && states > device.UsableBytes {
		return &need{bytes: states, plan: &base}
	}
	return nil
}

// loosen opens what is a default only, and takes what no file says as it needs least, since an error needs certainty.
func loosen(p *plan.Plan, run *workspace.Run) {
	if !p.Checkpointing.Kind.Known() {
		p.Checkpointing.Kind = plan.Default(plan.Full, triedNote)
	}
	if !p.Attention.Kernel.Known() {
		p.Attention.Kernel = plan.Default(plan.Flash, triedNote)
	}
	if !p.Optimizer.Type.Known() {
		p.Optimizer.Type = plan.Default(plan.SGD, triedNote)
	}
	if !p.Offload.Optimizer.Known() {
		p.Offload.Optimizer = plan.Default(plan.CPU, triedNote)
	}
	if !p.Offload.Param.Known() {
		p.Offload.Param = plan.Default(plan.CPU, triedNote)
	}
	if rank, ok := p.LoRA.Rank.Get(); !ok || rank > 0 && !p.Quantization.Kind.Known() {
		p.LoRA.Rank = plan.Default(max(rank, 1), triedNote)
		p.Quantization.Kind = plan.Default(plan.NF4, triedNote)
	}
	loosenSharding(p, run)
}

// loosenSharding: without fsdp and deepspeed HF's Trainer runs DDP, but a config of accelerate, which no file need name, says
// otherwise. Only a launcher that reads none makes it certain.
func loosenSharding(p *plan.Plan, run *workspace.Run) {
	if !p.Sharding.Is(plan.DDP) || p.Sharding.How() != plan.IsDefault {
		return
	}
	for _, part := range run.Parts {
		if part.Dialect == dialect.Launcher("torchrun") || part.Dialect == dialect.Launcher("deepspeed") {
			return
		}
	}
	p.Sharding = plan.Value[plan.Sharding]{}
	p.Offload.Optimizer, p.Offload.Param = plan.Default(plan.CPU, triedNote), plan.Default(plan.CPU, triedNote)
	if p.Precision.How() == plan.IsDerived {
		p.Precision = plan.Value[plan.Precision]{}
	}
}

// bestOpen tries every sharding and precision that the files leave open, and gives the one that needs least; nil where more
// than that is missing.
func bestOpen(base *plan.Plan) *need {
	usage, missing, err := memory.Estimate(base)
	if err != nil {
		return nil
	}
	shardings, precisions := []plan.Sharding{""}, []plan.Precision{""}
	if usage == nil {
		for _, name := range missing {
			switch name {
			case memory.MissingSharding:
				shardings = []plan.Sharding{plan.NoSharding, plan.ZeRO1, plan.ZeRO2, plan.ZeRO3, plan.FSDP2, plan.MegatronDist}
			case memory.MissingPrecision:
				precisions = openPrecisions(base)
			case memory.MissingDevice:
			default:
				return nil
			}
		}
	}
	// Weights are loaded in fp32 or in the type of the checkpoint, by the release of transformers, unless a file says so.
	if base.Precision.Is(plan.Autocast) && base.Precision.How() == plan.IsDerived && !base.DType.Params.Known() {
		precisions = append(precisions, plan.Pure16)
	}
	var best *need
	for _, sharding := range shardings {
		for _, precision := range precisions {
			p := *base
			if sharding != "" {
				p.Sharding = plan.Default(sharding, triedNote)
			}
			if precision != "" {
				p.Precision = plan.Default(precision, triedNote)
			}
			usage, lacking, err := memory.Estimate(&p)
			if err != nil || len(lacking) > 0 || usage == nil {
				return nil
			}
			if least := max(usage.Needed.Low, usage.Static); best == nil || least < best.bytes {
				best = &need{bytes: least, usage: usage, plan: &p}
			}
		}
	}
	return best
}

// triedNote marks values that were tried, since no file says them.
const triedNote = "tried"

// openPrecisions are the recipes that the compute type allows.
func openPrecisions(p *plan.Plan) []plan.Precision {
	if compute, ok := p.DType.Compute.Get(); ok && compute == plan.Float32 {
		return []plan.Precision{plan.FP32}
	}
	return []plan.Precision{plan.Pure16, plan.DeepSpeedMixed, plan.FSDPMixed, plan.MegatronMixed, plan.Autocast, plan.FP32}
}

func (n *need) report(pass *lint.Pass, run *workspace.Run, device *catalog.DeviceSpec) {
	at, key := n.place(run)
	if at.IsZero() {
		return
	}
	var text string
	if n.usage != nil {
		text = fmt.Sprintf("the run needs about %s on each rank, at the very least %s%s, and %s has %s: %s", gigabytes(n.usage.Needed.Bytes), gigabytes(n.bytes),
			n.openText(), device.Name, gigabytes(device.UsableBytes), partsText(n.usage.Parts))
	} else {
		text = fmt.Sprintf("weights, gradients and optimizer states alone need %s on each rank%s, and %s has %s", gigabytes(n.bytes), n.openText(), device.Name,
			gigabytes(device.UsableBytes))
	}
	d := pass.Reportf(at, "%s", text)
	d.Key = key
	if device.Assumption != "" {
		for _, place := range run.Plan.Device.From() {
			d.Note(place, "%s", device.Assumption)
		}
	}
	n.advise(d, run, device)
}

// tried are the values that were taken where no file says them.
func (n *need) tried() []string {
	var all []string
	if v, ok := n.plan.Sharding.Get(); ok && n.plan.Sharding.Note() == triedNote {
		all = append(all, "sharding "+string(v))
	}
	if v, ok := n.plan.Precision.Get(); ok && n.plan.Precision.Note() == triedNote {
		all = append(all, "precision "+string(v))
	}
	return all
}

// openText says that something was left open, of which the best was taken.
func (n *need) openText() string {
	for _, fact := range plan.Values(n.plan) {
		if fact.Note() == triedNote {
			return " whatever the files leave open"
		}
	}
	return ""
}

// place is the key that decides most: the micro-batch or the sequence length where activations decide, what shards where
// states do, else the model.
func (n *need) place(run *workspace.Run) (source.Place, string) {
	p := &run.Plan
	facts := []plan.Fact{p.Sharding, p.Model.Hidden, p.Model.Name, p.Parallel.Data, p.Batch.Micro, p.Batch.SeqLength}
	if n.usage != nil {
		parts := n.usage.Parts
		if parts.Activations+parts.Logits+parts.Temporaries >= parts.Weights+parts.Gradients+parts.Optimizer+parts.Gathered+parts.Buffers {
			facts = []plan.Fact{p.Batch.Micro, p.Batch.SeqLength, p.Checkpointing.Kind, p.Model.Hidden, p.Model.Name}
		}
	}
	for _, fact := range facts {
		if fact.How() != plan.IsWritten && fact.How() != plan.IsDerived {
			continue
		}
		for _, place := range fact.From() {
			if _, ok := run.Setting(place); ok {
				return place, ""
			}
		}
	}
	for _, part := range run.Parts {
		if part.Trains() && len(part.Tree.Root.Items) > 0 {
			return part.Tree.Root.Items[0].KeyAt, ""
		}
	}
	return source.Place{}, ""
}

// partsText lists the largest parts.
func partsText(b memory.Bytes) string {
	parts := []struct {
		name  string
		bytes int64
	}{{"weights", b.Weights}, {"gathered weights", b.Gathered}, {"gradients", b.Gradients}, {"optimizer states", b.Optimizer}, {"activations", b.Activations},
		{"logits", b.Logits}, {"buffers", b.Buffers}, {"temporaries", b.Temporaries}}
	slices.SortStableFunc(parts, func(x, y struct {
		name  string
		bytes int64
	}) int {
		return int(min(max(y.bytes-x.bytes, -1), 1))
	})
	var texts []string
	for _, part := range parts[:3] {
		if part.bytes > 0 {
			texts = append(texts, fmt.Sprintf("%s %s", part.name, gigabytes(part.bytes)))
		}
	}
	return strings.Join(texts, ", ")
}

func gigabytes(bytes int64) string {
	switch gb := float64(bytes) / 1e9; {
	case gb >= 100:
		return fmt.Sprintf("%.0f GB", gb)
	case gb >= 1:
		return fmt.Sprintf("%.1f GB", gb)
	default:
		return fmt.Sprintf("%.2f GB", gb)
	}
}
