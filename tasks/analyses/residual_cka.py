"""CKA of what skips the halves of blocks, what they add, and what comes of it.

Source: Walmer et al., Teaching Matters, CVPR 2023, appendix D.4 and figure 23. CKA is that of `tasks.cka`.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from tasks.analyses.base import Array, BatchMeasurer, ImageAnalysis, KeptImages, LayerArrays
from tasks.analyses.residuals import Taps, precision, sum_gaps, token_kinds, unsound
from tasks.base import Findings, Group, LayerOutcome, Measurer, Outcome, Score, digest
from tasks.cka import UNDEFINED, CkaConfig, Grams
from tasks.feeds import ResidualFeed, sums_of
from tasks.metrics.arrays import Floats
from tasks.metrics.similarity import CkaAccumulator
from zoo.spec import Layer, Tap
from zoo.view.views import View

PAIRS = {"skip-branch": (0, 1), "skip-output": (0, 2), "branch-output": (1, 2)}
"""Which two of a sum's skip, branch and output are compared, by name."""


class ResidualCka(ImageAnalysis[Taps]):
    """Unbiased minibatch CKA of all skips with all branches, and of each with the outputs, in every block.

    ``cka-skip-branch``, ``cka-skip-output`` and ``cka-branch-output`` are those within a block, at the tap of
    the branch; ``CKA`` compares every block's tap with every other's.
    """

    config: CkaConfig
    configs: ClassVar = {
        "standard": CkaConfig(poolings=("cls", "patch", "all"), min_max=False),
        "paper": CkaConfig(poolings=("cls", "patch", "all"), min_max=True),
    }
    feed = ResidualFeed(whole=True)

    @cached_property
    def cka(self) -> Grams:
        return Grams(self.data, self.config)

    @cached_property
    def fingerprint(self) -> str:
        return digest("residual-cka", self.cka.fingerprint)

    def measure(self, group: Group, view: View) -> Measurer[Taps]:
        return _BlockGrams(self.cka)

    def summarise(self, layer: Layer, images: KeptImages) -> Findings:
        compared = {pooling: images.having(f"hsic.{pooling}") for pooling in self.config.poolings}
        sums = {name: _of_all_blocks(some, f"hsic.{name}") for name, some in compared.items() if some.groups}
        return Findings((), sums | {"images": images.total("images"), "unsound": np.array(unsound(images))})

    def report(self, outcomes: Sequence[LayerOutcome], layers: LayerArrays) -> Findings:
        poolings = [pooling for pooling in self.config.poolings if pooling in layers.first]
        if not poolings:
            few = Outcome((), empty="no batch has four images that can be read")
            halves = (Layer(layer.index, terms[1]) for layer in layers for terms in sums_of(layer))
            return Findings(tuple(LayerOutcome(half, "patch", few) for half in halves))
        every = [_Similarities(layers, pooling) for pooling in poolings]
        reported = tuple(outcome for cka in every for outcome in (*cka.within(), *cka.across()))
        arrays: dict[str, Array] = {
            "cka": np.array([cka.tables() for cka in every], np.float32),
            "pooling": np.array(poolings),
            "half": np.array([terms[1] for terms in every[0].halves]),
            "pair": np.array(list(PAIRS)),
            "block": layers.blocks,
        }
        return Findings(reported, arrays)


class _BlockGrams(BatchMeasurer[Taps]):
    """Keeps the Gram matrices of a group's batches until its last block, then sums of their products.

    A Gram matrix is small, [images images] for each tap and pooling; features are dropped with their block.
    """

    def __init__(self, cka: Grams) -> None:
        super().__init__(self._compare)
        self._cka = cka
        self._grams: dict[Layer, dict[str, list[Tensor]]] = {}
        self._sums: dict[str, Tensor] = {}

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        arrays = super().finish(layer)
        if self._grams and not self._sums:
            self._sums = {pooling: self._products(pooling) for pooling in next(iter(self._grams.values()))}
        if arrays and layer in self._grams:
            blocks, size = list(self._grams), len(_taps(layer))
            start = size * blocks.index(layer)
            arrays["blocks"] = torch.tensor([block.index for block in blocks])
            arrays |= {f"hsic.{name}": sums[:, start : start + size] for name, sums in self._sums.items()}
        return arrays

    def _compare(self, layer: Layer, positions: Sequence[int], taps: Taps) -> dict[str, Tensor]:
        # a group comes whole: its source is joint
        batches = self._cka.batches(positions)
        if batches:
            by_tap = [self._by_pooling(token_kinds(features), batches) for features in taps.values()]
            self._grams[layer] = {
                pooling: [torch.stack(grams) for grams in zip(*(tap[pooling] for tap in by_tap), strict=True)]
                for pooling in by_tap[0]
            }
        images = torch.tensor([sum(rows.stop - rows.start for rows in batches)])
        return {"gap": sum_gaps(taps, layer), "precision": precision(taps), "images": images}

    def _by_pooling(self, kinds: Sequence[Tensor], batches: Sequence[slice]) -> dict[str, list[Tensor]]:
        """U-centred Gram matrices of each batch of one tap, by pooling; inner products add over tokens."""
        plain = [self._cka.grams(tokens.flatten(1), batches) for tokens in kinds]
        pooled = {"patch": plain[-1]}
        if len(kinds) > 1:
            pooled |= {"cls": plain[0], "all": [cls + patch for cls, patch in zip(*plain, strict=True)]}
        return {
            name: [gram for grams in pooled[name] for gram in self._cka.centred(grams)]
            for name in self._cka.config.poolings
            if name in pooled
        }

    def _products(self, pooling: str) -> Tensor:
        """Sums of HSIC and of what its errors take, over the batches, of all taps of all blocks."""
        accumulator = CkaAccumulator(errors=True)
        for grams in zip(*(block[pooling] for block in self._grams.values()), strict=True):
            accumulator.add(torch.cat(grams))
        return accumulator.sums()


class _Similarities:
    """CKA of all taps of all blocks with each other in one pooling, [blocks taps blocks taps], and errors.

    It is what the sums of HSIC of all layers come to; layers that failed elsewhere are left out.
    """

    def __init__(self, layers: LayerArrays, pooling: str) -> None:
        self._pooling = pooling
        self._images = int(layers.first["images"][0])
        self._unsound = {layer: str(arrays["unsound"]) for layer, arrays in layers.items()}
        self.halves = sums_of(next(iter(layers)))
        self._taps = _taps(next(iter(layers)))
        rows = [sums[:, :, layers.blocks] for sums in layers.every(pooling)]
        shape = (len(rows), len(self._taps)) * 2
        sums = np.concatenate(rows, axis=1).astype(np.float64)
        cka = CkaAccumulator.of(torch.from_numpy(sums.reshape(len(sums), *(2 * [shape[0] * shape[1]]))))
        self._value = cka.matrix().numpy().reshape(shape)
        self._error = cka.standard_error().numpy().reshape(shape)
        broken = [row for row, reason in enumerate(self._unsound.values()) if reason]
        self._value[broken], self._value[:, :, broken] = np.nan, np.nan

    def within(self) -> Iterator[LayerOutcome]:
        """The three comparisons within each half of each block."""
        for row, (layer, reason) in enumerate(self._unsound.items()):
            for terms in self.halves:
                pairs = {name: ((row, terms[a]), (row, terms[b])) for name, (a, b) in PAIRS.items()}
                scores = [self._score(f"cka-{name}", *pair) for name, pair in pairs.items()]
                defined = tuple(score for score in scores if np.isfinite(score.value))
                lacking = reason or (UNDEFINED if scores[0] not in defined else "")
                half = Layer(layer.index, terms[1])
                yield LayerOutcome(half, self._pooling, Outcome(defined, empty=lacking))

    def across(self) -> Iterator[LayerOutcome]:
        """Every tap of a sum of a block with the others of such a sum of every block."""
        blocks = [*enumerate(self._unsound.items())]
        for terms, (a, b) in product(self.halves, PAIRS.values()):
            for (row, (layer, reason)), (column, (other, of_other)) in product(blocks, repeat=2):
                score = self._score("CKA", (row, terms[a]), (column, terms[b]))
                outcome = Outcome((score,))
                if not np.isfinite(score.value):
                    outcome = Outcome((), missing={"CKA": reason or of_other or UNDEFINED})
                first, second = Layer(layer.index, terms[a]), Layer(other.index, terms[b])
                yield LayerOutcome(first, self._pooling, outcome, second)

    def tables(self) -> list[list[Floats]]:
        """CKA [blocks blocks] of each half and pair, of the first of a pair with the second of it."""
        column = self._taps.index
        return [
            [self._value[:, column(terms[a]), :, column(terms[b])] for a, b in PAIRS.values()]
            for terms in self.halves
        ]

    def _score(self, metric: str, first: tuple[int, Tap], second: tuple[int, Tap]) -> Score:
        """CKA of two taps, each of the block in a row."""
        cell = (first[0], self._taps.index(first[1]), second[0], self._taps.index(second[1]))
        return Score(metric, float(self._value[cell]), self._images, "images", error=float(self._error[cell]))


def _of_all_blocks(images: KeptImages, name: str) -> Floats:
    """Sums of HSIC of one block's taps, [4 taps blocks taps], by the number of the other block from 0 on."""
    sums = []
    most = max(int(blocks.max()) for blocks in images.every("blocks"))
    for _, arrays in images.groups:
        blocks, rows = arrays["blocks"], np.asarray(arrays[name], np.float64)
        dense = np.full((*rows.shape[:2], most + 1, rows.shape[1]), np.nan)
        dense[:, :, blocks] = rows.reshape(*rows.shape[:2], len(blocks), rows.shape[1])
        sums.append(dense)
    return np.asarray(np.sum(sums, axis=0))


def _taps(layer: Layer) -> tuple[Tap, ...]:
    """Taps of a block, in the order in which they are fed."""
    return tuple(dict.fromkeys(tap for terms in sums_of(layer) for tap in terms))
