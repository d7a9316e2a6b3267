"""CKA of the skips, branches and outputs of the residual sums of blocks.

Source: Walmer et al., Teaching Matters, CVPR 2023, appendix D.4 and figure 23. CKA is that of `tasks.cka`.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from layerboard.tasks.analyses.base import Array, ImageAnalysis, KeptImages, LayerArrays
from layerboard.tasks.analyses.residuals import Taps, branches, sum_gaps, token_kinds, unsound
from layerboard.tasks.framework.base import Findings, Group, LayerOutcome, Outcome, Score, digest
from layerboard.tasks.framework.feeds import ResidualFeed, sums_of
from layerboard.tasks.framework.measurers import BatchMeasurer, Measurer
from layerboard.tasks.metrics.arrays import Floats
from layerboard.tasks.similarity.cka import UNDEFINED, CkaConfig, Grams
from layerboard.tasks.similarity.metric import CkaAccumulator
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import View

PAIRS = {"skip-branch": (0, 1), "skip-output": (0, 2), "branch-output": (1, 2)}
"""Which two of a sum's skip, branch and output are compared, by name."""


class ResidualCka(ImageAnalysis[Taps]):
    """Unbiased minibatch CKA of all skips with all branches, and of each with the outputs, in every block.

    ``cka-skip-branch``, ``cka-skip-output`` and ``cka-branch-output`` are within a block, at the tap of the
    branch; ``CKA`` compares the taps of every two blocks.
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
            halves = (Layer(layer.index, branch) for layer in layers for branch in branches(layers))
            return Findings(tuple(LayerOutcome(half, "patch", few) for half in halves))
        similarities = [_similarities(layers, pooling) for pooling in poolings]
        pairs = zip(poolings, similarities, strict=True)
        reported = tuple(outcome for pooling, cka in pairs for outcome in _outcomes(layers, pooling, *cka))
        arrays: dict[str, Array] = {
            "cka": np.array([value for value, _ in similarities], np.float32),
            "pooling": np.array(poolings),
            "half": np.array(branches(layers)),
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
        self._grams: dict[Layer, list[dict[str, list[Tensor]]]] = {}  # by tap, pooling and batch
        self._sums: dict[str, Tensor] = {}

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        arrays = super().finish(layer)
        if self._grams and not self._sums:
            self._sums = {pooling: self._products(pooling) for pooling in next(iter(self._grams.values()))[0]}
        if arrays and layer in self._grams:
            blocks, size = list(self._grams), len(self._grams[layer])
            start = size * blocks.index(layer)
            arrays["blocks"] = torch.tensor([block.index for block in blocks])
            arrays |= {f"hsic.{name}": sums[:, start : start + size] for name, sums in self._sums.items()}
        return arrays

    def _compare(self, layer: Layer, positions: Sequence[int], taps: Taps) -> dict[str, Tensor]:
        # a group comes whole: its source is joint
        batches = self._cka.batches(positions)
        if batches:
            kinds = (token_kinds(features) for features in taps.values())
            self._grams[layer] = [self._by_pooling(tokens, batches) for tokens in kinds]
        images = torch.tensor([sum(rows.stop - rows.start for rows in batches)])
        return sum_gaps(taps, layer) | {"images": images}

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
        """Sums over the batches of HSIC and of the terms for its errors, for all taps of all blocks."""
        accumulator = CkaAccumulator(errors=True)
        taps = (tap[pooling] for block in self._grams.values() for tap in block)
        for grams in zip(*taps, strict=True):
            accumulator.add(torch.stack(grams))
        return accumulator.sums()


def _similarities(layers: LayerArrays, pooling: str) -> tuple[Floats, Floats]:
    """CKA of each half and pair, of the first of the pair in all blocks with the second in all, and errors.

    Both are [halves pairs blocks blocks]: what the sums of HSIC of all layers come to; layers that failed
    elsewhere are left out.
    """
    layer = next(iter(layers))
    taps = [shown.tap for shown in ResidualCka.feed.shown(layer)]
    rows = [sums[:, :, layers.blocks] for sums in layers.every(pooling)]
    shape = (len(rows), len(taps)) * 2
    sums = np.concatenate(rows, axis=1).astype(np.float64)
    cka = CkaAccumulator.of(torch.from_numpy(sums.reshape(len(sums), *(2 * [shape[0] * shape[1]]))))
    broken = [row for row, reason in enumerate(layers.every("unsound")) if str(reason)]

    def by_half(matrix: Tensor) -> Floats:
        table = matrix.numpy().reshape(shape)
        table[broken], table[:, :, broken] = np.nan, np.nan
        places = [[taps.index(tap) for tap in terms] for terms in sums_of(layer)]
        return np.array([[table[:, half[a], :, half[b]] for a, b in PAIRS.values()] for half in places])

    return by_half(cka.matrix()), by_half(cka.standard_error())


def _outcomes(layers: LayerArrays, pooling: str, cka: Floats, error: Floats) -> Iterator[LayerOutcome]:
    """The comparisons within each half of each block, then those of a half of all blocks with all blocks."""
    images = int(layers.first["images"][0])
    blocks = [(row, layer, str(arrays["unsound"])) for row, (layer, arrays) in enumerate(layers.items())]
    halves = [*enumerate(sums_of(blocks[0][1]))]

    def score(metric: str, *cell: int) -> Score:
        return Score(metric, float(cka[cell]), images, "images", error=float(error[cell]))

    for (row, layer, reason), (half, terms) in product(blocks, halves):
        scores = [score(f"cka-{name}", half, pair, row, row) for pair, name in enumerate(PAIRS)]
        defined = tuple(each for each in scores if np.isfinite(each.value))
        lacking = reason or (UNDEFINED if scores[0] not in defined else "")
        yield LayerOutcome(Layer(layer.index, terms[1]), pooling, Outcome(defined, empty=lacking))
    for (half, terms), (pair, (a, b)) in product(halves, enumerate(PAIRS.values())):
        for (row, layer, reason), (column, other, of_other) in product(blocks, repeat=2):
            across = score("CKA", half, pair, row, column)
            outcome = Outcome((across,))
            if not np.isfinite(across.value):
                outcome = Outcome((), missing={"CKA": reason or of_other or UNDEFINED})
            first, second = Layer(layer.index, terms[a]), Layer(other.index, terms[b])
            yield LayerOutcome(first, pooling, outcome, second)


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
