"""Count what autograd saves in one layer of real models, without a device.

    python saved_tensors.py > saved_tensors.json

Needs torch, transformers and peft; nothing is downloaded and next to nothing computed: models are made from configurations on fake tensors
that stand for a CUDA device (mixtures of experts on a CPU, since who goes where depends on values), and saved_tensors_hooks counts the distinct storages that autograd keeps, parameters left out. The
count of a layer is that of a model of three layers less that of one of two, so that embedding, head and loss drop out. Attention by
scaled_dot_product_attention is taken to run in the flash kernel, as it does on a device for 16-bit tensors without a mask.

Each case holds the native plan that describes it, so that a test can compare the count with the estimate. Renew the file with a newer
torch and transformers to see what they changed; the versions stand in it.
"""
import contextlib
import json
import sys

import peft
import torch
import torch.nn.functional as F
import transformers
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.checkpoint import checkpoint

HIDDEN, HEADS, KV_HEADS, FFN, VOCAB, SEQ, BATCH = 256, 8, 2, 704, 512, 120, 2
TOKENS = SEQ * BATCH


def flash(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """The flash kernel for what scaled_dot_product_attention is given."""
    return torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, False, scale=scale)[0]


def saved_bytes(model, run):
    """Bytes of the distinct storages that autograd keeps of one forward pass, without parameters and their copies of another type."""
    own = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
    shapes = {(tuple(sorted(parameter.shape)), parameter.dtype) for parameter in model.parameters()}
    copies = {shape for shape, _ in shapes}
    own |= {buffer.untyped_storage()._cdata for buffer in model.buffers()}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        shape = tuple(sorted(tensor.shape))
        if storage._cdata not in own and not (shape in copies and (shape, tensor.dtype) not in shapes and len(shape) == 2):
            kept[storage._cdata] = (storage, tensor)  # held, so that no address is used twice
        return tensor

    original = F.scaled_dot_product_attention
    if next(model.parameters()).device.type == "cuda":
        F.scaled_dot_product_attention = flash
    try:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            out = run(model)
    finally:
        F.scaled_dot_product_attention = original
    del out
    return sum(storage.nbytes() for storage, _ in kept.values())


# --- blocks of stacks that are no Transformers models, written from the operations that they run

class RotaryBlock(torch.nn.Module):
    """A LLaMA block as torchtitan writes it: RMSNorm module, complex rotary embedding, key and value repeated."""

    def __init__(self):
        super().__init__()
        size = HIDDEN // HEADS
        self.norms = torch.nn.ModuleList(torch.nn.RMSNorm(HIDDEN) for _ in range(2))
        self.q = torch.nn.Linear(HIDDEN, HEADS * size, bias=False)
        self.k = torch.nn.Linear(HIDDEN, KV_HEADS * size, bias=False)
        self.v = torch.nn.Linear(HIDDEN, KV_HEADS * size, bias=False)
        self.o = torch.nn.Linear(HEADS * size, HIDDEN, bias=False)
        self.gate = torch.nn.Linear(HIDDEN, FFN, bias=False)
        self.up = torch.nn.Linear(HIDDEN, FFN, bias=False)
        self.down = torch.nn.Linear(FFN, HIDDEN, bias=False)

    def forward(self, x, rotation):
        batch, length, _ = x.shape
        normed = self.norms[0](x)

        def heads(projected):
            return projected.view(batch, length, -1, HIDDEN // HEADS)

        def rotated(heads):
            pairs = torch.view_as_complex(heads.float().reshape(*heads.shape[:-1], -1, 2))
            return torch.view_as_real(pairs * rotation[None, :, None]).flatten(3).type_as(heads)

        def repeated(heads):
            return heads[:, :, :, None].expand(-1, -1, -1, HEADS // KV_HEADS, -1).reshape(batch, length, HEADS, -1)

        q, k, v = rotated(heads(self.q(normed))), repeated(rotated(heads(self.k(normed)))), repeated(heads(self.v(normed)))
        mixed = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        x = x + self.o(mixed.transpose(1, 2).contiguous().view(batch, length, -1))
        normed = self.norms[1](x)
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed))


class Blocks(torch.nn.Module):
    """Layers over hidden states, checkpointed or not."""

    def __init__(self, layers, checkpointed):
        super().__init__()
        self.layers = torch.nn.ModuleList(RotaryBlock() for _ in range(layers))
        self.checkpointed = checkpointed

    def forward(self, x, rotation):
        for layer in self.layers:
            x = checkpoint(layer, x, rotation, use_reentrant=False) if self.checkpointed else layer(x, rotation)
        return x


# --- cases

def shape(**changes):
    keys = {"hidden_size": HIDDEN, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "intermediate_size": FFN, "vocab_size": VOCAB,
            "num_layers": 3, "family": "llama"}
    keys.update(changes)
    return keys


def plan(model, **changes):
    keys = {"model": model, "seq_length": SEQ, "micro_batch_size": BATCH, "precision": "pure_16bit", "attention": "sdpa", "stack": "hf",
            "loss_kernel": "none"}
    keys.update(changes)
    return keys


COMMON = dict(hidden_size=HIDDEN, num_attention_heads=HEADS, vocab_size=VOCAB, use_cache=False)
GATED = dict(COMMON, num_key_value_heads=KV_HEADS, intermediate_size=FFN)
GPT = dict(family="gpt2", num_key_value_heads=HEADS, intermediate_size=4 * HIDDEN, gated_mlp=False, norm="layernorm", qkv_bias=True,
           attention_output_bias=True, mlp_bias=True, learned_positions=SEQ, tie_word_embeddings=True)
EXPERTS = {"model.experts": 8, "model.active_experts": 2, "model.expert_ffn": FFN}


def cases():
    """(name, configuration of transformers with its layers open, plan, values of the plan by dotted name, options)."""
    llama = lambda layers: transformers.LlamaConfig(num_hidden_layers=layers, **GATED)
    full = lambda layers: transformers.LlamaConfig(num_hidden_layers=layers, **dict(GATED, num_key_value_heads=HEADS))
    yield "llama", full, plan(shape(num_key_value_heads=HEADS)), {}, {}
    yield "llama flash", full, plan(shape(num_key_value_heads=HEADS), attention="flash"), {}, {}
    yield "llama eager", full, plan(shape(num_key_value_heads=HEADS), attention="eager"), {}, {"attention": "eager"}
    yield "llama grouped", llama, plan(shape()), {}, {}
    yield "llama grouped eager", llama, plan(shape(), attention="eager"), {}, {"attention": "eager"}
    yield "llama fp32 eager", full, plan(shape(num_key_value_heads=HEADS), attention="eager", precision="fp32"), {}, {"attention": "eager", "dtype": torch.float32}
    yield "llama fp32", full, plan(shape(num_key_value_heads=HEADS), attention="flash", precision="fp32"), {}, {"dtype": torch.float32}
    yield "llama autocast", full, plan(shape(num_key_value_heads=HEADS), attention="flash", precision="autocast"), {}, {"dtype": torch.float32, "autocast": True}
    yield "llama autocast eager", full, plan(shape(num_key_value_heads=HEADS), attention="eager", precision="autocast"), {}, {
        "attention": "eager", "dtype": torch.float32, "autocast": True}
    yield "llama checkpointed", llama, plan(shape(), activation_checkpointing="full"), {}, {"checkpointed": True}
    yield "llama checkpointed autocast", llama, plan(shape(), activation_checkpointing="full", precision="autocast"), {}, {
        "checkpointed": True, "dtype": torch.float32, "autocast": True}
    for name, targets, modules in (("attention", ["q", "k", "v", "o"], ["q_proj", "k_proj", "v_proj", "o_proj"]), ("q and v", ["q", "v"], ["q_proj", "v_proj"]),
                                   ("all", ["q", "k", "v", "o", "gate", "up", "down"], "all-linear")):
        for dropout in (0.0, 0.1):
            for dtype in ("bf16", "fp32"):
                yield "llama lora on %s, dropout %s, %s adapters" % (name, dropout, dtype), full, plan(
                    shape(num_key_value_heads=HEADS), attention="flash", lora={"rank": 8, "targets": targets, "dropout": dropout, "dtype": dtype}), {}, {
                    "lora": dict(r=8, target_modules=modules, lora_dropout=dropout), "adapters": dtype}
    yield "qwen2", lambda layers: transformers.Qwen2Config(num_hidden_layers=layers, **GATED), plan(shape(family="qwen2", qkv_bias=True)), {}, {}
    yield "qwen3", lambda layers: transformers.Qwen3Config(num_hidden_layers=layers, head_dim=HIDDEN // HEADS, **GATED), plan(
        shape(family="qwen3")), {"model.qk_norm": "head"}, {}
    yield "mistral", lambda layers: transformers.MistralConfig(num_hidden_layers=layers, sliding_window=None, **GATED), plan(shape(family="mistral")), {}, {}
    yield "gemma", lambda layers: transformers.GemmaConfig(num_hidden_layers=layers, head_dim=HIDDEN // HEADS, **GATED), plan(shape(family="gemma")), {}, {}
    yield "phi3", lambda layers: transformers.Phi3Config(num_hidden_layers=layers, pad_token_id=0, resid_pdrop=0.0, **GATED), plan(shape(family="phi3")), {}, {}
    yield "gpt2 eager dropout", lambda layers: transformers.GPT2Config(n_layer=layers, n_embd=HIDDEN, n_head=HEADS, vocab_size=VOCAB, n_positions=SEQ, use_cache=False,
                                                                     activation_function="gelu"), plan(
        shape(**GPT), attention="eager", attention_dropout=0.1, hidden_dropout=True), {}, {"attention": "eager"}
    yield "gpt2 eager", lambda layers: transformers.GPT2Config(n_layer=layers, n_embd=HIDDEN, n_head=HEADS, vocab_size=VOCAB, n_positions=SEQ, use_cache=False,
                                                              activation_function="gelu", attn_pdrop=0, resid_pdrop=0, embd_pdrop=0), plan(
        shape(**GPT), attention="eager"), {}, {"attention": "eager"}
    yield "gpt2", lambda layers: transformers.GPT2Config(n_layer=layers, n_embd=HIDDEN, n_head=HEADS, vocab_size=VOCAB, n_positions=SEQ, use_cache=False,
                                                        activation_function="gelu", attn_pdrop=0, resid_pdrop=0, embd_pdrop=0), plan(
        shape(**GPT), attention="flash"), {}, {}
    yield "gpt2 tanh in python", lambda layers: transformers.GPT2Config(n_layer=layers, n_embd=HIDDEN, n_head=HEADS, vocab_size=VOCAB, n_positions=SEQ, use_cache=False,
                                                                      attn_pdrop=0, resid_pdrop=0, embd_pdrop=0), plan(
        shape(**GPT), attention="flash", mlp_activation="tanh_python"), {}, {}
    opt = dict(GPT, family="opt")
    yield "opt", lambda layers: transformers.OPTConfig(num_hidden_layers=layers, hidden_size=HIDDEN, num_attention_heads=HEADS, ffn_dim=4 * HIDDEN, vocab_size=VOCAB,
                                                      word_embed_proj_dim=HIDDEN, max_position_embeddings=SEQ, dropout=0.0, attention_dropout=0.0, use_cache=False), plan(
        shape(**opt), attention="flash"), {}, {}
    yield "opt eager dropout", lambda layers: transformers.OPTConfig(num_hidden_layers=layers, hidden_size=HIDDEN, num_attention_heads=HEADS, ffn_dim=4 * HIDDEN, vocab_size=VOCAB,
                                                                    word_embed_proj_dim=HIDDEN, max_position_embeddings=SEQ, dropout=0.1, attention_dropout=0.1, use_cache=False), plan(
        shape(**opt), attention="eager", attention_dropout=0.1, hidden_dropout=True), {}, {"attention": "eager"}
    neox = dict(GPT, family="gpt_neox", learned_positions=0, tie_word_embeddings=False)
    yield "gpt-neox", lambda layers: transformers.GPTNeoXConfig(num_hidden_layers=layers, intermediate_size=4 * HIDDEN, use_parallel_residual=True, **COMMON), plan(
        shape(**neox), attention="flash"), {}, {}
    yield "starcoder2", lambda layers: transformers.Starcoder2Config(num_hidden_layers=layers, sliding_window=None, **dict(GATED, intermediate_size=4 * HIDDEN)), plan(
        shape(family="starcoder2", gated_mlp=False, norm="layernorm", intermediate_size=4 * HIDDEN, qkv_bias=True, attention_output_bias=True, mlp_bias=True)), {}, {}
    bert = dict(GPT, family="bert", tie_word_embeddings=True)
    yield "bert eager dropout fp32", lambda layers: transformers.BertConfig(num_hidden_layers=layers, intermediate_size=4 * HIDDEN, max_position_embeddings=SEQ, **COMMON), plan(
        shape(**bert), attention="eager", attention_dropout=0.1, hidden_dropout=True, precision="fp32", stack="hf_bert"), {}, {
        "attention": "eager", "dtype": torch.float32, "encoder": True}
    yield "bert eager dropout autocast", lambda layers: transformers.BertConfig(num_hidden_layers=layers, intermediate_size=4 * HIDDEN, max_position_embeddings=SEQ, **COMMON), plan(
        shape(**bert), attention="eager", attention_dropout=0.1, hidden_dropout=True, precision="autocast", stack="hf_bert"), {}, {
        "attention": "eager", "dtype": torch.float32, "autocast": True, "encoder": True}
    yield "mixtral", lambda layers: transformers.MixtralConfig(num_hidden_layers=layers, num_local_experts=8, num_experts_per_tok=2, sliding_window=None, **GATED), plan(
        shape(family="mixtral")), EXPERTS, {"real": True}
    yield "rotary block", None, plan(shape(), stack="torchtitan", fused_norm=True), {}, {}
    yield "rotary block checkpointed", None, plan(shape(), stack="torchtitan", activation_checkpointing="full"), {}, {"checkpointed": True}


def model_of(make, layers, options):
    """The model in training mode on the fake device, and how to run it."""
    dtype = options.get("dtype", torch.bfloat16)
    checkpointed = options.get("checkpointed", False)
    if make is None:
        with torch.device("cuda"):
            torch.set_default_dtype(dtype)
            model = Blocks(layers, checkpointed)
            torch.set_default_dtype(torch.float32)
            x = torch.empty(BATCH, SEQ, HIDDEN, dtype=dtype, requires_grad=True)
            rotation = torch.empty(SEQ, HIDDEN // HEADS // 2, dtype=torch.complex64)
        return model, lambda model: model(x, rotation)
    config = make(layers)
    config._experts_implementation = "eager"
    config._attn_implementation = options.get("attention", "sdpa")
    kind = transformers.AutoModel if options.get("encoder") else transformers.AutoModelForCausalLM
    device = torch.device("cpu" if options.get("real") else "cuda")
    with device:
        model = kind.from_config(config, dtype=dtype)
        ids = torch.zeros(BATCH, SEQ, dtype=torch.long)
    if "lora" in options:
        # Adapters are made as they are wanted, since fake parameters cannot be converted.
        move = torch.nn.Module._apply
        torch.nn.Module._apply = lambda self, fn, recurse=True: self
        torch.set_default_dtype(torch.bfloat16 if options["adapters"] == "bf16" else torch.float32)
        with device:
            model = peft.get_peft_model(model, peft.LoraConfig(**options["lora"]), autocast_adapter_dtype=options["adapters"] == "fp32")
        torch.set_default_dtype(torch.float32)
        torch.nn.Module._apply = move
    model.train()
    if checkpointed:
        model.gradient_checkpointing_enable({"use_reentrant": False})

    def run(model):
        with torch.autocast("cuda", torch.float16) if options.get("autocast") else contextlib.nullcontext():
            return model(ids)

    return model, run


def count(make, options):
    totals = []
    for layers in (2, 3):
        with contextlib.nullcontext() if options.get("real") else FakeTensorMode(allow_non_fake_inputs=True):
            model, run = model_of(make, layers, options)
            totals.append(saved_bytes(model, run))
    return totals[1] - totals[0]


def main():
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False  # autocast of the fake device
    rows = []
    for name, make, described, values, options in cases():
        try:
            row = {"name": name, "plan": described, "layer_bytes_per_token": round(count(make, options) / TOKENS, 3)}
        except Exception as problem:  # a model that a release no longer runs so; said, and left out
            print("%s: %s: %s" % (name, type(problem).__name__, str(problem).splitlines()[:1]), file=sys.stderr)
            continue
        if values:
            row["values"] = values
        rows.append(row)
    versions = {"torch": torch.__version__, "transformers": transformers.__version__, "peft": peft.__version__}
    print('{"versions": %s,\n "cases": [\n%s\n]}' % (json.dumps(versions), ",\n".join("  " + json.dumps(row) for row in rows)))


if __name__ == "__main__":
    main()
