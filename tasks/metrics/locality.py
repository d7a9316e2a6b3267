"""Whether heads that look near are like the first blocks of a ConvNet, and where CKA falls into two parts.

Source: Raghu et al., Do Vision Transformers See Like Convolutional Neural Networks?, NeurIPS 2021, section
5 and figure 5, which leaves open which subsets of heads are taken; figure 8 shows the two parts that a
missing skip connection makes as a picture, and the number is ours.
"""

from dataclasses import dataclass

import numpy as np

from layerboard.tasks.metrics.arrays import Floats, Integers, mean_of_any
from layerboard.tasks.metrics.layer_choice import rank_correlation


@dataclass(frozen=True, slots=True)
class HeadSubsets:
    """Subsets of the heads of a block against the blocks of a ConvNet; NaN where there is no number."""

    heads: Integers  # of each subset, [subsets size], the nearest-looking subset first
    distance: Floats  # mean distance over which each attends, [subsets]
    cka: Floats  # [subsets blocks]
    rho: Floats  # Spearman's rank correlation of distance and CKA for each block, [blocks]


def window_size(heads: int) -> int:
    """Heads of a subset: a quarter of them, at least one."""
    return max(1, heads // 4)


def windows(distance: Floats) -> Integers:
    """Heads of every window of `window_size` neighbours in the order of their distance, [windows size]."""
    order = np.argsort(distance, kind="stable")
    return np.lib.stride_tricks.sliding_window_view(order, window_size(len(distance))).copy()


def subsets_of(distance: Floats, heads: Floats, across: Floats, blocks: Floats) -> HeadSubsets:
    """Compare windows of heads with blocks.

    The Gram matrix of concatenated features is the sum of theirs, and HSIC is linear in each of its two Gram
    matrices, so that of a subset follows from that of its heads. Given are the mean distance over which each
    head attends, [heads], and the HSIC, of plain Gram matrices, of the heads' outputs with each other, [heads
    heads], of each with each block, [heads blocks], and of each block with itself, [blocks].
    """
    chosen = windows(distance)
    own = np.array([heads[np.ix_(each, each)].sum() for each in chosen])
    with np.errstate(invalid="ignore", divide="ignore"):
        cka = across[chosen].sum(axis=1) / np.sqrt(own[:, None] * blocks[None, :])
    cka[~(own > 0)], cka[:, ~(blocks > 0)] = np.nan, np.nan
    near = distance[chosen].mean(axis=1)
    rho = [rank_correlation(near, column) for column in cka.T]
    known = np.isfinite(cka).all(axis=0) & np.isfinite(near).all()
    return HeadSubsets(chosen, near, cka, np.where(known, rho, np.nan))


def partition(cka: Floats, layers: Integers, block: int) -> tuple[float, float]:
    """How a block, from 1, parts the layers of a network: those before its output, and the others.

    Gives the mean CKA of two different layers on one side, and of two on different sides, NaN without such
    pairs; their difference is 1 for two parts that share nothing, 0 where the block parts nothing.
    The CKA of the blocks' outputs with each other is [layers layers], NaN where there is none; ``layers`` are
    the distinct indices of these, 0 is what enters block 1.
    """
    before, _ = np.meshgrid(layers < block, layers, indexing="ij")
    after = before.T
    upper = (layers[:, None] < layers[None, :]) & np.isfinite(cka)
    return mean_of_any(cka[upper & (before == after)]), mean_of_any(cka[upper & before & ~after])
