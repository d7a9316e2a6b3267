"""What every objective is: a module that holds the backbone and whatever its training needs beside it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from mini.training.augment import TrainingView, augment
from mini.training.data import Examples
from mini.training.optimise import Optimisation
from zoo.spec import BackboneSpec


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a training is.

    Attributes:
        step: Steps that are done.
        steps: Steps in all.
        generator: All draws of this step come from it.
    """

    step: int
    steps: int
    generator: torch.Generator

    @property
    def share(self) -> float:
        """Share of the steps that is done, 0 to 1."""
        return self.step / self.steps


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """What a batch gave.

    Attributes:
        loss: To be minimised, a scalar.
        metrics: Scalars to be shown, without gradient.
    """

    loss: Tensor
    metrics: Mapping[str, Tensor]


class Objective(nn.Module, ABC):
    """A pretraining objective of a backbone.

    Attributes:
        backbone: The network that is exported.
        optimisation: How its weights move.
    """

    def __init__(self, spec: BackboneSpec, backbone: PreTrainedModel, optimisation: Optimisation) -> None:
        super().__init__()
        self.backbone: Any = backbone
        self.optimisation = optimisation
        self.mean: Tensor
        self.std: Tensor
        for name, values in (("mean", spec.mean), ("std", spec.std)):
            self.register_buffer(name, torch.tensor(values)[:, None, None], persistent=False)

    @abstractmethod
    def forward(self, batch: Examples, moment: Moment) -> StepOutcome:
        """Loss and metrics of a batch on the objective's device."""

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
