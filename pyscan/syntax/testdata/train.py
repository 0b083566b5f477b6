"""Train a small language model.

The script is made up: it has the shapes of training code, so that deleting any one of its brackets, quotes or colons tries the
recovery of the parser on them.
"""
import argparse
import math
import os
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, DistributedSampler

DEFAULTS = {
    "lr": float(os.environ.get("LR", "3e-4")),
    "betas": tuple(map(float, "0.9,0.95".split(","))),
    'schedule': {"warmup": int(1e3), "total": max(10, 100_000)},
}


@dataclass
class Config:
    """Settings of a run, with what `python train.py` takes."""

    model: str = "tiny"
    lr: float = field(default=3e-4)
    betas: Tuple[float, float] = (0.9, 0.95)
    extra: Dict[str, Any] = field(default_factory=dict)

    def scaled(self, world_size: int) -> float:
        return self.lr * math.sqrt(world_size)


class Block(nn.Module):
    def __init__(self, dim: int, heads: int = 8, *, bias: bool = False, dropout=0.0):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, bias=bias, batch_first=True)
        self.mlp = nn.Sequential(
            nn.Linear(dim, 4 * dim),
            nn.GELU(approximate="tanh"),
            nn.Dropout(dropout),
            nn.Linear(4 * dim, dim),
        )

    def forward(self, x: torch.Tensor, mask: Optional[torch.Tensor] = None) -> torch.Tensor:
        """Run the block.

        Args:
            x: the hidden states (batch, length, dim).
            mask: what "None" means is left to torch.
        """
        h = self.norm(x)
        h, _ = self.attn(h, h, h, attn_mask=mask, need_weights=False)
        return x + self.mlp(h)


def build(config: Config, device: str = "cuda") -> nn.Module:
    layers = [Block(config.extra.get("dim", 64), heads=config.extra["heads"]) for _ in range(4)]
    model = nn.Sequential(*layers).to(device)
    for name, parameter in model.named_parameters():
        if name.endswith("bias") or parameter.dim() < 2:
            nn.init.zeros_(parameter)
        else:
            nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * len(layers)))
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters on {device!r}")
    return model


def groups(model, weight_decay):
    decay, no_decay = [], []
    for name, p in model.named_parameters():
        (decay if p.dim() >= 2 else no_decay).append(p)
    return [{"params": decay, "weight_decay": weight_decay}, {"params": no_decay, "weight_decay": 0.0}]


def train(
    config: Config,
    loader: DataLoader,
    model: nn.Module,
    steps: int = 1000,
    accumulate: int = 4,
) -> List[float]:
    optimizer = torch.optim.AdamW(groups(model, 0.1), lr=config.lr, betas=config.betas)
    scaler = torch.cuda.amp.GradScaler(enabled=config.extra.get("fp16", False))
    losses: List[float] = []
    step = 0
    while step < steps:
        for i, batch in enumerate(loader):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                logits = model(batch["input_ids"].to("cuda", non_blocking=True))
                loss = F.cross_entropy(logits.view(-1, logits.size(-1)), batch["labels"].view(-1), ignore_index=-100)
            scaler.scale(loss / accumulate).backward()
            if (i + 1) % accumulate:
                continue
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
            losses.append(loss.item())
            if step % 10 == 0:
                print("step %d: loss %.4f" % (step, losses[-1]), flush=True)
            step += 1
            if step >= steps: break
    return losses


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default='tiny', help="one of: " + ", ".join(sorted(["tiny", "small"])))
    parser.add_argument("--steps", type=int, default=DEFAULTS["schedule"]["total"])
    args = parser.parse_args(argv)
    try:
        config = Config(model=args.model, extra={"heads": 4, "dim": 64})
        data = torch.load("data.pt", map_location=lambda storage, location: storage.cuda())
    except (FileNotFoundError, KeyError) as error:
        raise SystemExit(f"cannot start: {error}") from error
    finally:
        torch.manual_seed(0)
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, batch_size=8, sampler=sampler, pin_memory=True)
    model = build(config)
    losses = train(config, loader, model, steps=args.steps)
    if losses and min(losses) < 1.0:
        torch.save({"model": model.state_dict(), "loss": losses[-1]}, os.path.join("out", f"{args.model}.pt"))


if __name__ == "__main__":
    main()
