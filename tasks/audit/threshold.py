"""From which distance on two images are listed as duplicates, and what that rests on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, log
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from layerboard.tasks.audit.near_duplicates import SHARE, clusters_of
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
    independent: float = 0.0  # number of independent pairs that say as much as those
    times: float = 1.0  # images of the folder for each labelled one, which is how often a wrong pair counts
    missed: int = 0  # further pairs among the candidates that are labelled as copies

    @classmethod
    def of(cls, usual: Sequence[float]) -> Self:
        """The threshold by the rule; ``usual`` are the usual distances of the spaces."""
        return cls(SHARE, tuple(1 - SHARE * each for each in usual))

    def labelled(self, candidates: CandidatePairs, things: NDArray[np.str_], precision: float) -> Self:
        """The loosest threshold at which labelled pairs have the precision; the strictest if none has.

        ``things`` [images] are equal for copies, and "" where that is not known. Pairs whose thumbnails are
        copies are listed at any threshold. The rule remains if no candidate is labelled. In the whole folder
        an image meets more different ones than in the table, but not more copies if these are all in it: so
        a listed pair of different images counts once for each labelled image's share of the folder.
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
        times = len(things) / int((things != "").sum())
        precise = np.flatnonzero(right >= precision * (right + times * (judged - right)))
        best = int(precise[-1]) if len(precise) else 0
        share = float(shares[best])
        usual = [(1 - cosine) / self.share for cosine in self.cosines]
        counts = int(right[best]), int(judged[best])
        sizes = _dependent(things[candidates.pairs[known & candidates.listed(share)]])
        return replace(
            self,
            share=share,
            cosines=tuple(1 - share * each for each in usual),
            wanted=precision,
            right=counts[0],
            judged=counts[1],
            independent=float(sizes.sum() ** 2 / max((sizes**2).sum(), 1)),
            times=times,
            missed=int(same.sum()) - counts[0],
        )

    @property
    def precision(self) -> float:
        """Precision of the listed pairs of the whole folder, 0 to 1; NaN without labelled ones."""
        return self._in_folder(self.right / self.judged) if self.judged else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of `precision`, 0 to 1; from 0 to 1 without labelled pairs.

        It is the exact one of Clopper and Pearson for the number of independent pairs (Korn and Graubard,
        Survey Methodology 24, 1998): pairs of things that are linked by listed pairs are not independent.
        """
        if not self.judged:
            return 0.0, 1.0
        right = self.independent * self.right / self.judged
        wrong, tail = self.independent - right, (1 - CONFIDENCE) / 2
        low = betaincinv(right, wrong + 1, tail) if right else 0.0
        high = betaincinv(right + 1, wrong, 1 - tail) if wrong else 1.0
        return self._in_folder(float(low)), self._in_folder(float(high))

    @property
    def needed(self) -> int:
        """The fewest independent pairs, all copies, whose `interval` shows the precision; 0: none do."""
        share = self.wanted * self.times / (1 - self.wanted + self.wanted * self.times)
        return 0 if share >= 1 else ceil(log((1 - CONFIDENCE) / 2) / log(share))

    def _in_folder(self, share: float) -> float:
        """The precision in the folder, from the share of labelled pairs that are copies."""
        return share / (share + (1 - share) * self.times)


def _dependent(things: NDArray[np.str_]) -> Integers:
    """Numbers of pairs that hang together: those of the same thing, or of things that pairs link.

    ``things`` [pairs 2] are those of both images.
    """
    names, ends = np.unique(things, return_inverse=True)
    ends = ends.reshape(-1, 2)
    return np.bincount(clusters_of(len(names), [ends])[ends[:, 0]], minlength=1)
