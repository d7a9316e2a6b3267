"""Analyses that ask a loaded backbone something beside the passes: for gradients, or for its weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tasks.base import Device, Findings, Outcome, Source
from zoo.features import Weights
from zoo.spec import Layer


@dataclass(frozen=True, slots=True)
class Fields:
    """Which pixels move the centre cell, ``(rows // 2, columns // 2)``, of each layer of a backbone.

    Attributes:
        strength: For each layer how strongly each pixel does, summed over images, [height width].
        cells: For each layer, rows and columns of its grid.
        coarsest: Rows and columns of the backbone's coarsest grid.
        images: Images that are in the sums.
        refused: Why the backbone cannot say it of some other layers.
    """

    strength: Mapping[Layer, NDArray[np.float64]]
    cells: Mapping[Layer, tuple[int, int]]
    coarsest: tuple[int, int]
    images: int
    refused: Mapping[Layer, str]


class VectorsAnalysis(Protocol):
    """An analysis of stored vectors, which sees each layer beside the last block."""

    @property
    def fingerprint(self) -> str:
        """Digest of everything but the features that decides its numbers."""
        ...

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources whose vectors it needs, in a fixed order."""
        ...

    def describe(
        self,
        vectors: Mapping[str, NDArray[np.float32]],
        last: Mapping[str, NDArray[np.float32]] | None,
        device: Device = None,
    ) -> Outcome:
        """What it says of one layer and pooling.

        Args:
            vectors: For each source name, [images dim] in the source's order; a row of an image that could
                not be read is NaN.
            last: The same of the last block; None where its vectors are not kept.
            device: Where large products may run; None for the CPU.
        """
        ...


class GradientProblem(Protocol):
    """An analysis of which pixels move the layers of a backbone, by gradients: a pass of its own."""

    @property
    def fingerprint(self) -> str:
        """Digest of everything but the backbone that decides its numbers."""
        ...

    @property
    def source(self) -> Source:
        """The images whose gradients are wanted, all shown at one size; those not readable are left out."""
        ...

    def layers(self, scored: Sequence[Layer]) -> tuple[Layer, ...]:
        """Layers that are asked for where those are scored, in order; a backbone may lack some."""
        ...

    def channels(self, width: int) -> Sequence[int]:
        """Which channels of a layer of so many are looked at."""
        ...

    def findings(self, fields: Fields) -> Findings:
        """What the fields say about one backbone."""
        ...


class WeightsProblem(Protocol):
    """An analysis of the weights of a backbone, which needs no image."""

    @property
    def fingerprint(self) -> str:
        """Digest of everything but the backbone that decides its numbers."""
        ...

    def findings(self, weights: Weights, std: tuple[float, float, float]) -> Findings:
        """What the weights say about one backbone.

        Args:
            weights: The weights.
            std: What each channel of RGB in [0, 1] is divided by before the backbone sees it.
        """
        ...
