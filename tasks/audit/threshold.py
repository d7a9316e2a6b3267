"""From which distance on two images are listed as duplicates, and what that rests on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from layerboard.tasks.audit.near_duplicates import SHARE
from layerboard.tasks.metrics.arrays import Floats, Integers, Mask

PRECISION = 0.95  # wanted of the listed pairs, by default
CONFIDENCE = 0.95  # of the interval of a precision


class CandidatePairs(NamedTuple):
    """Pairs of images that may be duplicates."""

    pairs: Integers  # indices of both, the lower one first: [pairs 2]
    relative: Floats  # their distance in units of the usual one, median of the backbones: [pairs]
    distance: Floats  # 1 - cosine, median of the backbones: [pairs]
    copied: Mask  # whether their thumbnails are copies: [pairs]

    def listed(self, share: float) -> Mask:
        """Whether each pair is listed at a largest share of the usual distance: [pairs]."""
        return np.asarray(self.copied | (self.relative <= share), np.bool_)

    def within(self, share: float) -> Self:
        """The listed pairs."""
        kept = self.listed(share)
        return type(self)(self.pairs[kept], self.relative[kept], self.distance[kept], self.copied[kept])


@dataclass(frozen=True, slots=True)
class DuplicateThreshold:
    """The largest distance of duplicates whose thumbnails differ, and the labelled pairs that it rests on.

    Without labelled pairs it is the rule `SHARE`, of which no precision is known.
    """

    share: float  # of the usual distance
    cosines: tuple[float, ...]  # the same as the least cosine in each space
    wanted: float = float("nan")  # precision, 0 to 1; NaN without labelled pairs
    right: int = 0  # listed pairs that are labelled as copies
    judged: int = 0  # listed pairs that are labelled as copies or as different
    missed: int = 0  # further pairs among the candidates that are labelled as copies

    @classmethod
    def of(cls, usual: Sequence[float]) -> Self:
        """The threshold by the rule; ``usual`` are the usual distances of the spaces."""
        return cls(SHARE, tuple(1 - SHARE * each for each in usual))

    def labelled(self, candidates: CandidatePairs, things: NDArray[np.str_], precision: float) -> Self:
        """The loosest threshold at which labelled pairs have the precision; the strictest if none has.

        ``things`` [images] are equal for copies, and "" where that is not known. Pairs whose thumbnails are
        copies are listed at any threshold. The rule remains if no candidate is labelled.
        """
        known = (things[candidates.pairs] != "").all(axis=1)
        same = known & np.equal(*things[candidates.pairs].T)
        if not known.any():
            return self
        shares = np.unique(np.append(candidates.relative[same & ~candidates.copied], 0.0))
        always, order = candidates.copied, np.argsort(candidates.relative, kind="stable")
        order = order[known[order] & ~always[order]]
        reached = np.searchsorted(candidates.relative[order], shares, "right")
        right = np.append(0, same[order].cumsum())[reached] + int((same & always).sum())
        judged = reached + int((known & always).sum())
        precise = np.flatnonzero(right >= precision * judged)
        best = int(precise[-1]) if len(precise) else 0
        share = float(shares[best])
        usual = [(1 - cosine) / self.share for cosine in self.cosines]
        counts = int(right[best]), int(judged[best])
        return replace(
            self,
            share=share,
            cosines=tuple(1 - share * each for each in usual),
            wanted=precision,
            right=counts[0],
            judged=counts[1],
            missed=int(same.sum()) - counts[0],
        )

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of the precision of the labelled pairs that are listed, 0 to 1; from 0 to 1 for none."""
        if not self.judged:
            return 0.0, 1.0
        low, high = binomtest(self.right, self.judged).proportion_ci(CONFIDENCE, method="exact")
        return float(low), float(high)
