"""Centred kernel alignment between all layers of all backbones.

Source: Kornblith et al., ICML 2019; minibatch form, unbiased HSIC estimator: Nguyen et al., ICLR 2021.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.base import Group, Measurer, Source, digest
from tasks.feeds import WHOLE_GRIDS, GridFeed
from tasks.metrics.similarity import SMALLEST_BATCH, gram_matrix, scaled_gram, u_centred
from tasks.sources import ClassificationSources
from zoo.spec import Layer
from zoo.view.views import View


@dataclass(frozen=True, slots=True)
class CkaRule:
    """The numbers of CKA, beside the batches of its source.

    Attributes:
        poolings: What is compared: class token (``cls``), average of the patch tokens (``mean``), all patch
            tokens flattened (``patch``), or these and the class token (``all``).
        min_max: Whether each Gram matrix, of features that are not centred, is scaled to [0, 1] first.
    """

    poolings: tuple[str, ...]
    min_max: bool


@dataclass(frozen=True)
class CkaProblem:
    """Gram matrices of the probe subset, batch by batch; pooled forms come from its stored vectors."""

    where: ClassificationSources
    rule: CkaRule

    @property
    def source(self) -> Source:
        """The probe subset, of which every group holds whole batches."""
        return self.where.probe

    @cached_property
    def fingerprint(self) -> str:
        """Digest of CKA's rule and of how the images are cut into batches."""
        return digest(
            "cka", self.rule, self.where.batches, [len(group.samples) for group in self.source.groups]
        )

    def batches(self, positions: Sequence[int]) -> list[NDArray[np.int64]]:
        """Batches of a group whose images at those positions could be read, as indices into ``positions``.

        Images that could not be read leave their batch smaller; one of fewer than four is left out.
        """
        numbers = np.asarray(positions, np.int64) // self.where.batches.size
        found = [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
        return [rows for rows in found if len(rows) >= SMALLEST_BATCH]

    def gram(self, features: Tensor, *, checked: bool = True) -> Tensor:
        """Gram matrix [n n] of a batch's features [n dim], as `centred` takes it; float32 at least.

        Args:
            features: Of the images of one batch.
            checked: Refuse features that are not finite; otherwise the matrix says so by NaN.

        Raises:
            ValueError: A value is NaN or infinite.
        """
        return gram_matrix(features, centred=not self.rule.min_max, checked=checked)

    def centred(self, gram: Tensor) -> Tensor:
        """U-centred Gram matrix in float32, all zeros where the features do not vary."""
        return u_centred(scaled_gram(gram) if self.rule.min_max else gram).float()

    @property
    def feed(self) -> GridFeed:
        """Measurers are fed grids, whole batches of them at once."""
        return WHOLE_GRIDS

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        """What keeps the Gram matrices of one group's patch tokens."""
        return _GramMeasurer(self)


class _GramMeasurer:
    """Keeps the Gram matrices of a group's flattened grids, one a batch and flattened, never the grids."""

    def __init__(self, problem: CkaProblem) -> None:
        self._problem = problem
        self._grams: dict[Layer, Tensor] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        # a group comes whole: its source is joint
        batches = [torch.from_numpy(rows).to(grids.device) for rows in self._problem.batches(positions)]
        grams = [self._problem.gram(grids[rows].flatten(1)).float().flatten() for rows in batches]
        if grams:
            self._grams[layer] = torch.cat(grams)

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        return {"gram": self._grams.pop(layer, torch.zeros(0))}
