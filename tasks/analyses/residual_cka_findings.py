"""What sums of HSIC say of skips, branches and outputs: CKA within blocks and across them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray

from tasks.analyses.sums import unsound
from tasks.base import Findings, LayerOutcome, Measurements, Outcome, Score
from tasks.feeds import sums_of
from tasks.metrics.similarity import CkaAccumulator
from zoo.spec import Layer, Tap

PAIRS = {"skip-branch": (0, 1), "skip-output": (0, 2), "branch-output": (1, 2)}
"""Which two of a sum's skip, branch and output are compared, by name."""

UNDEFINED = "features do not vary or are not finite"

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Similarities:
    """CKA of all taps of all blocks with each other in one pooling, blocks first.

    Attributes:
        value: [blocks taps blocks taps]; NaN where there is none.
        error: Standard errors, the same shape.
    """

    value: Floats
    error: Floats


@dataclass(frozen=True)
class SumsOfHsic:
    """What was measured of all blocks.

    Attributes:
        layers: The measured layers.
        images: How many images were compared.
        unsound: By layer, why a block has no values; "" where it has.
        similarities: By pooling.
    """

    layers: tuple[Layer, ...]
    images: int
    unsound: Mapping[Layer, str]
    similarities: Mapping[str, Similarities]

    @classmethod
    def read(
        cls, poolings: Sequence[str], measured: Mapping[Layer, Sequence[Measurements]]
    ) -> "SumsOfHsic | None":
        """From what the groups left behind; None where no image could be read."""
        found = {layer: [one for one in measured[layer] if "gap" in one] for layer in measured}
        layers = tuple(layer for layer, groups in found.items() if groups)
        if not layers:
            return None
        first = found[layers[0]]
        reasons = {
            layer: unsound([one["gap"] for one in found[layer]], float(found[layer][0]["precision"][0]))
            for layer in layers
        }
        there = {
            pooling: _similarities([found[layer] for layer in layers], layers, f"hsic.{pooling}")
            for pooling in poolings
            if any(f"hsic.{pooling}" in one for one in first)
        }
        images = sum(int(one["images"][0]) for one in first)
        return cls(layers, images, reasons, there)

    @property
    def taps(self) -> tuple[Tap, ...]:
        """Taps of every block."""
        return tuple(dict.fromkeys(tap for one in sums_of(self.layers[0]) for tap in one))

    def findings(self) -> Findings:
        """All scores and arrays."""
        if not self.similarities:
            reason = "no batch has four images that can be read"
            layers = [Layer(one.index, two[1]) for one in self.layers for two in sums_of(one)]
            return Findings(
                tuple(LayerOutcome(layer, "patch", Outcome((), empty=reason)) for layer in layers)
            )
        outcomes = [
            outcome
            for pooling in self.similarities
            for outcome in (*self._within(pooling), *self._across(pooling))
        ]
        return Findings(tuple(outcomes), self._arrays())

    def _within(self, pooling: str) -> Iterator[LayerOutcome]:
        """The three comparisons within each half of each block."""
        for row, layer in enumerate(self.layers):
            for terms in sums_of(layer):
                place = Layer(layer.index, terms[1])
                scores = tuple(
                    self._score(f"cka-{name}", pooling, (row, terms[a]), (row, terms[b]))
                    for name, (a, b) in PAIRS.items()
                )
                defined = tuple(score for score in scores if np.isfinite(score.value))
                lacking = self.unsound[layer] or (UNDEFINED if scores[0] not in defined else "")
                yield LayerOutcome(place, pooling, Outcome(defined, empty=lacking))

    def _across(self, pooling: str) -> Iterator[LayerOutcome]:
        """Every tap of a sum of a block with the others of such a sum of every block."""
        for terms, (a, b) in product(sums_of(self.layers[0]), PAIRS.values()):
            for (row, one), (column, other) in product(enumerate(self.layers), repeat=2):
                score = self._score("CKA", pooling, (row, terms[a]), (column, terms[b]))
                reason = self.unsound[one] or self.unsound[other] or UNDEFINED
                whole = np.isfinite(score.value)
                outcome = Outcome((score,)) if whole else Outcome((), missing={"CKA": reason})
                first, second = Layer(one.index, terms[a]), Layer(other.index, terms[b])
                yield LayerOutcome(first, pooling, outcome, second)

    def _score(self, metric: str, pooling: str, first: tuple[int, Tap], second: tuple[int, Tap]) -> Score:
        """CKA of two taps of two blocks, NaN where one of them is no sum."""
        found = self.similarities[pooling]
        place = (first[0], self.taps.index(first[1]), second[0], self.taps.index(second[1]))
        there = not (self.unsound[self.layers[first[0]]] or self.unsound[self.layers[second[0]]])
        value = float(found.value[place]) if there else float("nan")
        return Score(metric, value, self.images, "images", error=float(found.error[place]))

    def _arrays(self) -> dict[str, NDArray[np.generic]]:
        """CKA of all blocks with each other, and the names of its axes."""
        halves, taps = sums_of(self.layers[0]), self.taps
        pairs = [
            [(taps.index(terms[a]), taps.index(terms[b])) for a, b in PAIRS.values()] for terms in halves
        ]
        tables = [
            [[found.value[:, first, :, second] for first, second in half] for half in pairs]
            for found in self.similarities.values()
        ]
        cka = np.array(tables, np.float32)
        broken = [row for row, layer in enumerate(self.layers) if self.unsound[layer]]
        cka[..., broken, :], cka[..., broken] = np.nan, np.nan
        return {
            "cka": cka,
            "pooling": np.array(list(self.similarities)),
            "half": np.array([terms[1] for terms in halves]),
            "pair": np.array(list(PAIRS)),
            "block": np.array([layer.index for layer in self.layers], np.int64),
        }


def _similarities(
    found: Sequence[Sequence[Measurements]], layers: Sequence[Layer], name: str
) -> Similarities:
    """CKA from the rows that each layer's groups left behind; layers that failed elsewhere are left out."""
    indices, parts = [layer.index for layer in layers], []
    for groups in zip(*found, strict=True):
        if name not in groups[0]:
            continue
        blocks = np.asarray(groups[0]["blocks"]).tolist()
        taps = groups[0][name].shape[1]
        columns = [taps * blocks.index(index) + tap for index in indices for tap in range(taps)]
        rows = [np.asarray(one[name], np.float64)[..., columns] for one in groups]
        parts.append(np.concatenate(rows, axis=1))
    sums = torch.from_numpy(np.sum(parts, axis=0))
    shape = (len(layers), sums.shape[1] // len(layers)) * 2
    cka = CkaAccumulator.of(sums)
    value, error = cka.matrix().value.numpy(), cka.standard_error().numpy()
    return Similarities(value.reshape(shape), error.reshape(shape))
