"""CKA of what skips the halves of blocks, what they add, and what comes of it.

Source: Walmer et al., Teaching Matters, CVPR 2023, appendix D.4 and figure 23. CKA is that of `tasks.cka`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from tasks.analyses.residual_cka_findings import SumsOfHsic
from tasks.analyses.sums import Taps, gap_of, parts_of, rounding
from tasks.base import Findings, Group, Measurements, Measurer, Source, digest
from tasks.checks import nothing_read
from tasks.cka import CkaProblem, CkaRule
from tasks.feeds import ResidualFeed, sums_of
from tasks.metrics.similarity import CkaAccumulator
from tasks.sources import ProbeSources
from zoo.spec import Layer, Tap
from zoo.view.views import View


@dataclass(frozen=True)
class ResidualCka:
    """Unbiased minibatch CKA of all skips with all branches, and of each with the outputs, in every block."""

    where: ProbeSources
    rule: CkaRule

    @property
    def source(self) -> Source:
        """The source that is looked at: the probe subset, of which every group holds whole batches."""
        return self.where.probe

    @property
    def feed(self) -> ResidualFeed:
        """Measurers are fed the terms of each block's sums, whole batches at once."""
        return ResidualFeed(whole=True)

    @cached_property
    def cka(self) -> CkaProblem:
        """How CKA is computed of these batches."""
        return CkaProblem(self.where, self.rule)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of CKA's rule and of how the images are cut into batches."""
        return digest("residual-cka", self.cka.fingerprint)

    def measure(self, group: Group, view: View) -> Measurer[Taps]:
        """What compares the blocks of one group's images."""
        return _Measurer(self.cka)

    def findings(self, measured: Mapping[Layer, Sequence[Measurements]]) -> Findings:
        """CKA of the two terms of each sum, and of each with the output; raises UnreadableImageError.

        Metrics ``cka-skip-branch``, ``cka-skip-output`` and ``cka-branch-output`` are those within a block,
        at the tap of the branch; ``CKA`` compares every block's tap with every other's.

        Arrays: ``cka`` [poolings halves pairs blocks blocks], of the pair ``skip-branch`` the skip of the
        first block with the branch of the second, and so on; NaN where there is none. ``pooling``,
        ``half``, ``pair`` and ``block`` name the axes.
        """
        found = SumsOfHsic.read(self.rule.poolings, measured)
        if found is None:
            raise nothing_read(self.source)
        return found.findings()


class _Measurer:
    """Keeps the Gram matrices of a group's batches until its last block, then sums of their products.

    A Gram matrix is small, [images images] for each tap and pooling; features are dropped with their block.
    """

    def __init__(self, problem: CkaProblem) -> None:
        self._problem = problem
        self._grams: dict[Layer, dict[str, list[Tensor]]] = {}
        self._kept: dict[Layer, dict[str, Tensor]] = {}
        self._sums: dict[str, Tensor] = {}

    def update(self, layer: Layer, positions: Sequence[int], taps: Taps) -> None:
        # a group comes whole: its source is joint
        batches = self._problem.batches(positions)
        self._kept[layer] = {
            "gap": torch.stack([gap_of(taps, one, layer) for one in sums_of(layer)]),
            "precision": rounding(taps),
            "images": torch.tensor([sum(rows.stop - rows.start for rows in batches)]),
        }
        if batches:
            self._grams[layer] = self._centred(taps, batches)

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        if layer not in self._kept:
            return {}
        if self._grams and not self._sums:
            self._sums = {pooling: self._products(pooling) for pooling in next(iter(self._grams.values()))}
        kept = self._kept[layer]
        if layer in self._grams:
            blocks = list(self._grams)
            size = len(_taps(layer))
            start = size * blocks.index(layer)
            kept["blocks"] = torch.tensor([one.index for one in blocks])
            kept |= {f"hsic.{name}": one[:, start : start + size] for name, one in self._sums.items()}
        return kept

    def _centred(self, taps: Taps, batches: Sequence[slice]) -> dict[str, list[Tensor]]:
        """U-centred Gram matrices [taps images images] of each batch, by pooling."""
        by_tap = [self._by_pooling(parts_of(one), batches) for one in taps.values()]
        return {
            pooling: [torch.stack(grams) for grams in zip(*(one[pooling] for one in by_tap), strict=True)]
            for pooling in by_tap[0]
        }

    def _by_pooling(self, parts: Sequence[Tensor], batches: Sequence[slice]) -> dict[str, list[Tensor]]:
        """U-centred Gram matrices of one tap; inner products add over tokens."""
        plain = [self._problem.grams(part.flatten(1), batches) for part in parts]
        found = {"patch": plain[-1]}
        if len(parts) > 1:
            found |= {"cls": plain[0], "all": [one + other for one, other in zip(*plain, strict=True)]}
        wanted = self._problem.rule.poolings
        return {
            name: [gram for some in found[name] for gram in self._problem.centred(some)]
            for name in wanted
            if name in found
        }

    def _products(self, pooling: str) -> Tensor:
        """Sums of HSIC and of what its errors take, over the batches, of all taps of all blocks."""
        accumulator = CkaAccumulator(errors=True)
        for grams in zip(*(one[pooling] for one in self._grams.values()), strict=True):
            accumulator.add(torch.cat(grams))
        return accumulator.sums()


def _taps(layer: Layer) -> tuple[Tap, ...]:
    """Taps of a block, in the order in which they are fed."""
    return tuple(dict.fromkeys(tap for one in sums_of(layer) for tap in one))
