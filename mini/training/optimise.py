"""The optimiser of a training, and what its numbers are at each step."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

_UNDECAYED = ("token", "position", "class_embedding")


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimisation:
    """How weights move.

    Attributes:
        learning_rate: Peak, for batches of 256; scaled with the square root of the batch size for AdamW and
            linearly for SGD.
        weight_decay: Of matrices; norms, biases, tokens and positions have none.
        final_weight_decay: Reached on a cosine at the end; the same if None.
        betas: Of AdamW; the first is the momentum of SGD.
        warmup: Share of the steps over which the learning rate rises linearly.
        floor: Learning rate at the end of the cosine, as a share of the peak.
        clip: Largest norm of the gradient; not clipped if None.
        kind: The optimiser; SGD has Nesterov momentum.
    """

    learning_rate: float
    weight_decay: float = 0.05
    final_weight_decay: float | None = None
    betas: tuple[float, float] = (0.9, 0.999)
    warmup: float = 0.1
    floor: float = 0.001
    clip: float | None = 1.0
    kind: Literal["adamw", "sgd"] = "adamw"

    def rate(self, step: int, steps: int, batch_size: int) -> float:
        """Learning rate of a step (from 0): linear warm-up, then a cosine."""
        scale = batch_size / 256
        peak = self.learning_rate * (scale if self.kind == "sgd" else math.sqrt(scale))
        warm = max(1, round(self.warmup * steps))
        if step < warm:
            return peak * (step + 1) / warm
        return peak * cosine(1.0, self.floor, (step - warm) / max(1, steps - warm))

    def decay(self, step: int, steps: int) -> float:
        """Weight decay of a step (from 0)."""
        last = self.weight_decay if self.final_weight_decay is None else self.final_weight_decay
        return cosine(self.weight_decay, last, step / steps)


def cosine(first: float, last: float, share: float) -> float:
    """From ``first`` to ``last`` on half a cosine, where ``share`` of the way is gone, 0 to 1."""
    return last + (first - last) * (1 + math.cos(math.pi * min(share, 1.0))) / 2


def make_optimiser(module: nn.Module, how: Optimisation) -> torch.optim.Optimizer:
    """An optimiser of the weights that have gradients: one group with weight decay, one without."""
    groups: dict[bool, list[nn.Parameter]] = {True: [], False: []}
    for name, weight in module.named_parameters():
        if weight.requires_grad:
            groups[weight.ndim > 1 and not any(word in name for word in _UNDECAYED)].append(weight)
    options: list[dict[str, Any]] = [
        {"params": weights, "decayed": decayed} for decayed, weights in groups.items() if weights
    ]
    if how.kind == "sgd":
        return torch.optim.SGD(options, how.learning_rate, momentum=how.betas[0], nesterov=True)
    return torch.optim.AdamW(options, how.learning_rate, betas=how.betas)


def set_numbers(optimiser: torch.optim.Optimizer, rate: float, decay: float) -> None:
    """Give the optimiser the learning rate and the weight decay of a step."""
    for group in optimiser.param_groups:
        group["lr"] = rate
        group["weight_decay"] = decay if group["decayed"] else 0.0
