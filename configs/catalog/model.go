// Package catalog holds what is known of models and devices: shapes and parameter counts, memory sizes and rates.
package catalog

import (
	"fmt"

	"github.com/trainvet/trainvet/configs/plan"
)

// ModelSpec is the shape of a model. Sizes count elements, rows or layers.
type ModelSpec struct {
	Name             string          `json:"name"`
	Aliases          []string        `json:"aliases"`
	Family           string          `json:"family"`
	Hidden           int64           `json:"hidden"`
	Layers           int64           `json:"layers"`
	DecoderLayers    int64           `json:"decoder_layers"` // encoder-decoder models; Layers are then the encoder's
	Heads            int64           `json:"heads"`
	KVHeads          int64           `json:"kv_heads"`
	HeadDim          int64           `json:"head_dim"`
	FFN              int64           `json:"ffn"`
	Vocab            int64           `json:"vocab"`
	Tied             bool            `json:"tied"`
	Gated            bool            `json:"gated"`
	Norm             plan.Norm       `json:"norm"`
	NormsPerLayer    int64           `json:"norms_per_layer"`
	FinalNorm        bool            `json:"final_norm"`
	EmbeddingNorm    bool            `json:"embedding_norm"`
	QKNorm           plan.QKNorm     `json:"qk_norm"`
	QKVBias          bool            `json:"qkv_bias"`
	OutputBias       bool            `json:"output_bias"`
	MLPBias          bool            `json:"mlp_bias"`
	HeadBias         bool            `json:"head_bias"`
	LearnedPositions int64           `json:"learned_positions"`
	TypeVocab        int64           `json:"type_vocab"`
	ExtraParameters  int64           `json:"extra_parameters"` // e.g. BERT's pooler
	Experts          int64           `json:"experts"`
	ActiveExperts    int64           `json:"active_experts"`
	ExpertFFN        int64           `json:"expert_ffn"`
	SharedFFN        int64           `json:"shared_ffn"`
	SharedGate       bool            `json:"shared_gate"`
	RouterBias       bool            `json:"router_bias"`
	DenseLayers      int64           `json:"dense_layers"`
	LatentAttention  LatentAttention `json:"latent_attention"`
	MaxPositions     int64           `json:"max_positions"`
	Parameters       int64           `json:"parameters"`        // published count; 0: none
	ActiveParameters int64           `json:"active_parameters"` // per token; 0: all
	Count            string          `json:"count"`             // how the count was checked
	Source           string          `json:"source"`
}

// LatentAttention are the dimensions of DeepSeek's multi-head latent attention; KVRank 0: ordinary attention.
type LatentAttention struct {
	NopeDim  int64 `json:"nope_dim"`
	RopeDim  int64 `json:"rope_dim"`
	ValueDim int64 `json:"value_dim"`
	KVRank   int64 `json:"kv_rank"`
	QRank    int64 `json:"q_rank"` // 0: the query projection has full rank
}

// complete fills in what a shape leaves out because it is the common case.
func (m *ModelSpec) complete() {
	if m.KVHeads == 0 {
		m.KVHeads = m.Heads
	}
	if m.HeadDim == 0 && m.Heads > 0 {
		m.HeadDim = m.Hidden / m.Heads
	}
	if m.ExpertFFN == 0 {
		m.ExpertFFN = m.FFN
	}
}

// QueryDim is the width of all query heads together, elements.
func (m *ModelSpec) QueryDim() int64 { return m.Heads * m.HeadDim }

// KVDim is the width of all key (or value) heads together, elements.
func (m *ModelSpec) KVDim() int64 { return m.KVHeads * m.HeadDim }

// Encoder reports whether the model is a BERT-like encoder, whose head is not as wide as its vocabulary.
func (m *ModelSpec) Encoder() bool { return m.Family == "bert" || m.Family == "roberta" }

// Counts are numbers of parameters.
type Counts struct {
	Total, Active   int64 // Active: what one token meets
	Embedding, Head int64
	Body            int64 // all layers
	Layer           int64 // one layer; of a mixture of experts one with experts
	DenseLayer      int64
	Experts         int64 // routed experts of one layer
	Attention       int64 // of one layer
	LargestMatrix   int64 // the largest single weight in a layer
}

// Shape is the model that a plan states: the one it names, with what it writes besides taken over the catalogue, or the one
// whose shape it gives. missing are dotted names of plan values without which there is no shape; err is set where a name is
// not in the catalogue and the shape is not given either.
func Shape(p *plan.Plan) (m *ModelSpec, missing []string, err error) {
	name, named := p.Model.Name.Get()
	m = &ModelSpec{Name: name, Gated: true, Norm: plan.RMSNorm, NormsPerLayer: 2, FinalNorm: true, QKNorm: plan.NoQKNorm}
	weakest := plan.IsDefault
	if named {
		if known, lookupErr := Model(name); lookupErr == nil {
			copied := *known
			m, weakest = &copied, plan.IsDerived
		} else {
			err = lookupErr
		}
	}
	overlay(m, &p.Model, weakest)
	for _, need := range []struct {
		name string
		size int64
	}{
		{"model.hidden", m.Hidden}, {"model.layers", m.Layers}, {"model.heads", m.Heads}, {"model.ffn", m.FFN}, {"model.vocab", m.Vocab},
	} {
		if need.size < 1 {
			missing = append(missing, need.name)
		}
	}
	if len(missing) > 0 {
		if err == nil && len(missing) == 5 {
			missing = []string{"model"}
		}
		return nil, missing, err
	}
	m.complete()
	if m.HeadDim < 1 || m.roughSize() > maxParameters {
		return nil, []string{"model"}, fmt.Errorf("model: no model has %d layers of hidden size %d with %d heads, intermediate size %d and a vocabulary of %d",
			m.Layers, m.Hidden, m.Heads, m.FFN, m.Vocab)
	}
	return m, nil, nil
}

// maxParameters bounds a model, so that no count overflows.
const maxParameters = 1e16

// roughSize is the number of parameters without small terms.
func (m *ModelSpec) roughSize() float64 {
	hidden, wide := float64(m.Hidden), float64(m.FFN)+float64(m.SharedFFN)+float64(m.ExpertFFN)*float64(max(m.Experts, 1))
	attention := 4 * float64(m.Heads) * float64(m.HeadDim)
	attention += float64(m.LatentAttention.KVRank+m.LatentAttention.QRank+m.Heads) * float64(m.LatentAttention.NopeDim+m.LatentAttention.RopeDim+m.LatentAttention.ValueDim+1)
	return hidden * (float64(m.Layers+m.DecoderLayers)*(attention+3*wide) + 2*float64(m.Vocab) + float64(m.LearnedPositions+m.TypeVocab))
}

// overlay writes what the plan states over the spec, leaving out claims weaker than weakest: a default of a file format says
// nothing against the catalogue.
func overlay(m *ModelSpec, s *plan.Model, weakest plan.How) {
	changed := over(&m.Hidden, s.Hidden, weakest)
	changed = over(&m.Heads, s.Heads, weakest) || changed
	if changed && !s.HeadDim.Known() {
		m.HeadDim = 0
	}
	if changed && !s.KVHeads.Known() && m.KVHeads > m.Heads {
		m.KVHeads = 0
	}
	over(&m.Family, s.Family, weakest)
	over(&m.Layers, s.Layers, weakest)
	over(&m.DecoderLayers, s.DecoderLayers, weakest)
	over(&m.KVHeads, s.KVHeads, weakest)
	over(&m.HeadDim, s.HeadDim, weakest)
	over(&m.FFN, s.FFN, weakest)
	over(&m.Vocab, s.Vocab, weakest)
	over(&m.Tied, s.Tied, weakest)
	over(&m.Gated, s.Gated, weakest)
	over(&m.Norm, s.Norm, weakest)
	over(&m.NormsPerLayer, s.NormsPerLayer, weakest)
	over(&m.FinalNorm, s.FinalNorm, weakest)
	over(&m.EmbeddingNorm, s.EmbeddingNorm, weakest)
	over(&m.QKNorm, s.QKNorm, weakest)
	over(&m.QKVBias, s.QKVBias, weakest)
	over(&m.OutputBias, s.OutputBias, weakest)
	over(&m.MLPBias, s.MLPBias, weakest)
	over(&m.HeadBias, s.HeadBias, weakest)
	over(&m.LearnedPositions, s.LearnedPositions, weakest)
	over(&m.TypeVocab, s.TypeVocab, weakest)
	over(&m.Experts, s.Experts, weakest)
	over(&m.ActiveExperts, s.ActiveExperts, weakest)
	over(&m.ExpertFFN, s.ExpertFFN, weakest)
	over(&m.SharedFFN, s.SharedFFN, weakest)
	over(&m.SharedGate, s.SharedGate, weakest)
	over(&m.RouterBias, s.RouterBias, weakest)
	over(&m.DenseLayers, s.DenseLayers, weakest)
	over(&m.LatentAttention.NopeDim, s.NopeDim, weakest)
	over(&m.LatentAttention.RopeDim, s.RopeDim, weakest)
	over(&m.LatentAttention.ValueDim, s.ValueDim, weakest)
	over(&m.LatentAttention.KVRank, s.KVLoRARank, weakest)
	over(&m.LatentAttention.QRank, s.QLoRARank, weakest)
	over(&m.MaxPositions, s.MaxPositions, weakest)
}

func over[T comparable](into *T, from plan.Value[T], weakest plan.How) bool {
	v, ok := from.Get()
	if !ok || from.How() < weakest || v == *into {
		return false
	}
	*into = v
	return true
}
