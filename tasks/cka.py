"""Centred kernel alignment between all layers of all backbones.

Source: Kornblith et al., ICML 2019; minibatch form, unbiased HSIC estimator: Nguyen et al., ICLR 2021.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from tasks.base import Group, Measurer, Source, digest
from tasks.metrics.similarity import centred_gram
from tasks.sources import ClassificationSources
from zoo.preprocess import View
from zoo.spec import Layer

SMALLEST_BATCH = 4
"""The unbiased estimator is undefined below four images."""

POOLINGS = ("cls", "mean", "patch")
"""What is compared: class token, average of the patch tokens, all patch tokens flattened."""


@dataclass(frozen=True)
class CkaProblem:
    """Gram matrices of the probe subset, batch by batch; pooled forms come from its stored vectors."""

    where: ClassificationSources

    @property
    def source(self) -> Source:
        """The probe subset; every group is a batch."""
        return self.where.probe

    @cached_property
    def identity(self) -> str:
        """Digest of the batches."""
        return digest("cka", [len(group.samples) for group in self.source.groups])

    def measure(self, group: Group, view: View) -> Measurer:
        """A measurer of one batch."""
        return _GramMeasurer()


class _GramMeasurer:
    """Keeps the U-centred Gram matrix of a batch's flattened grids, never the grids."""

    def __init__(self) -> None:
        self._grams: dict[Layer, Tensor] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        del positions  # a batch comes whole: its source is joint
        if len(grids) >= SMALLEST_BATCH:
            self._grams[layer] = centred_gram(grids.flatten(1)).float()

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        return {"gram": self._grams.pop(layer, torch.zeros(0, 0))}
