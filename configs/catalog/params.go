package catalog

import "github.com/trainvet/trainvet/configs/plan"

// t5Buckets is the number of relative-position buckets of T5's attention (transformers, T5Config.relative_attention_num_buckets).
const t5Buckets = 32

// CountParameters counts the parameters by closed formulas, exactly. They are checked against published counts of 114 models.
func (m *ModelSpec) CountParameters() Counts {
	if m.DecoderLayers > 0 {
		return m.countEncoderDecoder()
	}
	attention := m.attentionParameters()
	norms := m.NormsPerLayer * m.normParameters()
	dense := attention + m.mlpParameters() + norms
	c := Counts{Attention: attention, DenseLayer: dense, Layer: dense, LargestMatrix: m.largestMatrix()}
	c.Body = m.Layers * dense
	active := c.Body
	if m.Experts > 0 {
		matrices := int64(2)
		if m.Gated {
			matrices = 3
		}
		c.Experts = matrices * m.Experts * m.Hidden * m.ExpertFFN
		shared := matrices * m.Hidden * m.SharedFFN
		router := m.Hidden * m.Experts
		always := attention + norms + router + shared
		c.Layer = always + c.Experts
		if m.RouterBias {
			c.Layer += m.Experts
		}
		if m.SharedGate {
			c.Layer += m.Hidden
		}
		c.Body = m.DenseLayers*dense + (m.Layers-m.DenseLayers)*c.Layer
		active = m.DenseLayers*dense + (m.Layers-m.DenseLayers)*(always+matrices*m.ActiveExperts*m.Hidden*m.ExpertFFN)
	}
	c.Embedding = (m.Vocab+m.LearnedPositions)*m.Hidden + m.TypeVocab*m.Hidden
	if !m.Tied {
		c.Head = m.Vocab * m.Hidden
	}
	if m.HeadBias {
		c.Head += m.Vocab
	}
	extra := m.ExtraParameters
	if m.FinalNorm {
		extra += m.normParameters()
	}
	if m.EmbeddingNorm {
		extra += m.normParameters()
	}
	c.Total = c.Embedding + c.Head + c.Body + extra
	c.Active = c.Embedding + c.Head + active + extra
	return c
}

// normParameters: H for RMSNorm, 2H for LayerNorm with bias, 0 without parameters (OLMo-1).
func (m *ModelSpec) normParameters() int64 {
	switch m.Norm {
	case plan.LayerNorm:
		return 2 * m.Hidden
	case plan.NonParametric:
		return 0
	}
	return m.Hidden
}

// attentionParameters: H*Hq + 2*H*Hkv + Hq*H, with Hq = heads*d and Hkv = kv heads*d, plus biases and query-key norms; for
// latent attention (DeepSeek-V2, arXiv 2405.04434) the down- and up-projections of query and key-value with their norms.
func (m *ModelSpec) attentionParameters() int64 {
	h, q, kv := m.Hidden, m.QueryDim(), m.KVDim()
	var n int64
	if a := m.LatentAttention; a.KVRank > 0 {
		perHead := a.NopeDim + a.RopeDim
		if a.QRank > 0 {
			n = h*a.QRank + a.QRank + a.QRank*m.Heads*perHead
		} else {
			n = h * m.Heads * perHead
		}
		n += h*(a.KVRank+a.RopeDim) + a.KVRank + a.KVRank*m.Heads*(a.NopeDim+a.ValueDim) + m.Heads*a.ValueDim*h
	} else {
		n = h*q + 2*h*kv + q*h
		if m.QKVBias {
			n += q + 2*kv
		}
		if m.OutputBias {
			n += h
		}
	}
	switch m.QKNorm {
	case plan.HeadQKNorm:
		n += 2 * m.HeadDim
	case plan.FullQKNorm:
		n += q + kv
	}
	return n
}

// mlpParameters: 3HF with a gate (LLaMA, Mistral, Qwen, Gemma), 2HF without (GPT-2, NeoX, OPT, BLOOM), plus biases.
func (m *ModelSpec) mlpParameters() int64 {
	if m.Gated {
		n := 3 * m.Hidden * m.FFN
		if m.MLPBias {
			n += 2*m.FFN + m.Hidden
		}
		return n
	}
	n := 2 * m.Hidden * m.FFN
	if m.MLPBias {
		n += m.FFN + m.Hidden
	}
	return n
}

func (m *ModelSpec) largestMatrix() int64 {
	largest := max(m.Hidden*m.FFN, m.Hidden*m.QueryDim())
	if m.Experts > 0 && m.DenseLayers == 0 {
		largest = max(m.Hidden*m.ExpertFFN, m.Hidden*m.SharedFFN, m.Hidden*m.QueryDim())
	}
	return largest
}

// countEncoderDecoder counts T5 (arXiv 1910.10683; transformers, modeling_t5.py): no biases, RMSNorm, relative-position
// buckets in the first layer of encoder and decoder, cross-attention in the decoder.
func (m *ModelSpec) countEncoderDecoder() Counts {
	inner := m.QueryDim()
	attention := 4 * m.Hidden * inner
	mlp := m.mlpParameters()
	c := Counts{Embedding: m.Vocab * m.Hidden, Attention: attention, Layer: attention + mlp + 2*m.Hidden, LargestMatrix: m.largestMatrix()}
	c.DenseLayer = c.Layer
	if !m.Tied {
		c.Head = m.Vocab * m.Hidden
	}
	c.Body = m.Layers*c.Layer + m.DecoderLayers*(2*attention+mlp+3*m.Hidden) + 2*m.Hidden + 2*t5Buckets*m.Heads
	c.Total = c.Embedding + c.Head + c.Body
	c.Active = c.Total
	return c
}
