package memory

import "github.com/trainvet/trainvet/configs/plan"

// loraTargets lists the single layers that can carry an adapter.
var loraTargets = [...]plan.Targets{plan.TargetQ, plan.TargetK, plan.TargetV, plan.TargetO, plan.TargetQKV, plan.TargetUp, plan.TargetGate,
	plan.TargetDown}

// loraParameters counts adapter parameters on one stage: r*(in+out) for each adapted layer (LoRA, arXiv 2106.09685), for each
// expert where the layer is an expert's.
func (j *job) loraParameters() float64 {
	expertFFN, experts := float64(j.model.ExpertFFN), float64(max(j.model.Experts, 1))
	perLayer := 0.0
	for _, target := range loraTargets {
		if !j.lora.targets.Has(target) {
			continue
		}
		switch target {
		case plan.TargetQ, plan.TargetO:
			perLayer += j.hidden + j.queryDim
		case plan.TargetK, plan.TargetV:
			perLayer += j.hidden + j.kvDim
		case plan.TargetQKV:
			perLayer += j.hidden + j.queryDim + 2*j.kvDim
		case plan.TargetGate:
			if j.model.Gated {
				perLayer += experts * (j.hidden + expertFFN)
			}
		default:
			perLayer += experts * (j.hidden + expertFFN)
		}
	}
	n := j.lora.rank * perLayer * j.stageLayers
	if j.lora.targets.Has(plan.TargetHead) {
		n += j.lora.rank * (j.hidden + j.vocab)
	}
	return n
}

// loraSaved is what adapters keep for backward, bytes per token of one layer, split as layerBytes is. Under dropout PEFT keeps
// a one-byte mask and the dropped input in the adapter's dtype, for each adapted layer apart; without, an adapter of another
// dtype than the activations keeps its cast of the input, and one of the same dtype shares the base's. mlpWidth is the width
// of the input of the down projection.
func (j *job) loraSaved(mlpWidth float64) (residual, split float64) {
	a, adapter := j.element, j.lora.bytes
	shared := plan.Targets(0)
	for _, target := range loraTargets {
		if !j.lora.targets.Has(target) {
			continue
		}
		if j.stack == plan.LitGPT && target&(plan.TargetQ|plan.TargetK|plan.TargetV) != 0 {
			if shared != 0 {
				continue // LoRAQKVLinear drops its input once for q, k and v
			}
			shared = target
		}
		width := j.hidden
		switch target {
		case plan.TargetO:
			width = j.queryDim
		case plan.TargetDown:
			width = mlpWidth
		}
		var saved float64
		switch {
		case j.autocast() || j.lora.autocast:
			switch {
			case j.lora.dropout:
				saved = (a + 1) * width
			case adapter == 4:
				saved = a * width
			}
		case j.lora.dropout:
			saved = (adapter + 1) * width
		case adapter != a:
			saved = adapter * width
		}
		between := adapter // what its first matrix gives to the second
		if j.autocast() || j.lora.autocast {
			between = a
		}
		saved += j.lora.rank * between
		if target == plan.TargetO || target == plan.TargetDown {
			split += saved
		} else {
			residual += saved
		}
	}
	return residual, split
}
