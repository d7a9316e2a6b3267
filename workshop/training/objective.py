"""Base class of objectives: the backbone with further parts for its training; and the optimiser."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from layerboard.zoo.spec import BackboneSpec
from workshop.training.augment import TrainingView, augment
from workshop.training.data import Examples

_UNDECAYED = ("token", "position", "class_embedding")


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimisation:
    """Settings of the optimiser."""

    # peak, for batches of 256; scaled with the square root of the batch size for AdamW and linearly for SGD
    learning_rate: float
    weight_decay: float = 0.05  # of matrices; norms, biases, tokens and positions have none
    final_weight_decay: float | None = None  # reached on a cosine at the end; the same if None
    betas: tuple[float, float] = (0.9, 0.999)  # of AdamW; the first is the momentum of SGD
    warmup: float = 0.1  # share of the steps over which the learning rate rises linearly
    floor: float = 0.001  # learning rate at the end of the cosine, as a share of the peak
    clip: float | None = 1.0  # largest norm of the gradient; not clipped if None
    kind: Literal["adamw", "sgd"] = "adamw"  # the optimiser; SGD has Nesterov momentum

    def rate(self, step: int, steps: int, batch_size: int) -> float:
        """Learning rate of a step (from 0): linear warm-up, then a cosine."""
        scale = batch_size / 256
        peak = self.learning_rate * (scale if self.kind == "sgd" else math.sqrt(scale))
        warm = max(1, round(self.warmup * steps))
        if step < warm:
            return peak * (step + 1) / warm
        return peak * cosine_schedule(1.0, self.floor, (step - warm) / max(1, steps - warm))

    def decay(self, step: int, steps: int) -> float:
        """Weight decay of a step (from 0)."""
        last = self.weight_decay if self.final_weight_decay is None else self.final_weight_decay
        return cosine_schedule(self.weight_decay, last, step / steps)


def cosine_schedule(first: float, last: float, share: float) -> float:
    """The value on half a cosine from ``first`` to ``last`` where ``share`` of the way is gone, 0 to 1."""
    return last + (first - last) * (1 + math.cos(math.pi * min(share, 1.0))) / 2


def make_optimiser(module: nn.Module, how: Optimisation) -> torch.optim.Optimizer:
    """An optimiser of the weights that have gradients: one group with weight decay, one without."""
    groups: dict[bool, list[nn.Parameter]] = {True: [], False: []}
    for name, weight in module.named_parameters():
        if weight.requires_grad:
            groups[weight.ndim > 1 and not any(word in name for word in _UNDECAYED)].append(weight)
    options = [{"params": weights, "decayed": decayed} for decayed, weights in groups.items() if weights]
    if how.kind == "sgd":
        return torch.optim.SGD(options, how.learning_rate, momentum=how.betas[0], nesterov=True)
    return torch.optim.AdamW(options, how.learning_rate, betas=how.betas)


@dataclass(frozen=True, slots=True)
class Moment:
    """Progress of a training."""

    step: int  # steps that are done
    steps: int  # steps in all
    generator: torch.Generator  # all draws of this step come from it

    @property
    def share(self) -> float:
        """Share of the steps that is done, 0 to 1."""
        return self.step / self.steps


class Objective(nn.Module, ABC):
    """A pretraining objective of the backbone that is exported."""

    def __init__(self, spec: BackboneSpec, backbone: PreTrainedModel, optimisation: Optimisation) -> None:
        super().__init__()
        self.backbone: Any = backbone
        self.optimisation = optimisation
        self.mean: Tensor
        self.std: Tensor
        for name, values in (("mean", spec.mean), ("std", spec.std)):
            self.register_buffer(name, torch.tensor(values)[:, None, None], persistent=False)

    @abstractmethod
    def forward(self, batch: Examples, moment: Moment) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss of a batch on the objective's device, and metrics to be shown: scalars without gradient."""

    def before_update(self, moment: Moment) -> None:
        """Called between the backward pass and the optimiser; changes gradients where a paper does."""

    def after_update(self, moment: Moment) -> None:
        """Called after the optimiser; moves what no gradient moves."""

    def normalised(self, images: Tensor) -> Tensor:
        """The network's input from pixels in [0, 1]."""
        return (images - self.mean) / self.std

    def view(self, batch: Examples, view: TrainingView, moment: Moment) -> Tensor:
        """A random view of each image, normalised, [batch 3 side side]."""
        return self.normalised(augment(batch.images, view, moment.generator))


def follow(follower: nn.Module, leader: nn.Module, momentum: float) -> None:
    """Move a momentum network: its weights become ``momentum`` x itself + (1 - momentum) x the leader."""
    with torch.no_grad():
        for slow, fast in zip(follower.parameters(), leader.parameters(), strict=True):
            slow.lerp_(fast, 1 - momentum)
