"""Similarity of local attention heads to the first blocks of a ConvNet, and partition of the CKA matrix.

Source: Raghu et al., Do Vision Transformers See Like Convolutional Neural Networks?, NeurIPS 2021, section
5 and figure 5, which does not say which subsets of heads are used. Their figure 8 shows how a missing skip
connection splits the CKA matrix into two parts; the number for it is ours.
"""

from dataclasses import dataclass

import numpy as np

from layerboard.tasks.metrics.arrays import Floats, Integers, mean_of_any
from layerboard.tasks.statistics.layer_choice import rank_correlation


@dataclass(frozen=True, slots=True)
class HeadSubsets:
    """Comparison of subsets of the heads of a block with the blocks of a ConvNet; NaN if undefined."""

    heads: Integers  # heads of each subset, [subsets size], in order of increasing attention distance
    distance: Floats  # mean attention distance of each subset, [subsets]
    cka: Floats  # CKA of each subset with each block, [subsets blocks]
    rho: Floats  # Spearman's rank correlation of distance and CKA for each block, [blocks]


def window_size(heads: int) -> int:
    """Number of heads in a subset: a quarter of them, at least one."""
    return max(1, heads // 4)


def windows(distance: Floats) -> Integers:
    """Heads of each window of `window_size` consecutive heads by attention distance: [windows size]."""
    order = np.argsort(distance, kind="stable")
    return np.lib.stride_tricks.sliding_window_view(order, window_size(len(distance))).copy()


def subsets_of(distance: Floats, heads: Floats, across: Floats, blocks: Floats) -> HeadSubsets:
    """Compare windows of heads with the blocks of a ConvNet.

    The Gram matrix of concatenated features is the sum of their Gram matrices, and HSIC is linear in each of
    its two Gram matrices. So the HSIC of a subset follows from that of its heads. ``distance`` [heads] is the
    mean attention distance of each head. The others are HSIC of unnormalised Gram matrices: ``heads`` [heads
    heads] of the heads' outputs with each other, ``across`` [heads blocks] of heads with blocks, and
    ``blocks`` [blocks] of each block with itself.
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
    """Mean CKA of two layers on the same side of a block (numbered from 1), and on different sides.

    One side is the layers before the output of the block, the other side the rest. The difference of the two
    means is 1 for parts that share nothing, and 0 if the block separates nothing. A mean without pairs is
    NaN. ``cka`` [layers layers] is the CKA of the block outputs, NaN if undefined. ``layers`` are their
    distinct indices, where 0 is the input of block 1.
    """
    before, _ = np.meshgrid(layers < block, layers, indexing="ij")
    after = before.T
    upper = (layers[:, None] < layers[None, :]) & np.isfinite(cka)
    return mean_of_any(cka[upper & (before == after)]), mean_of_any(cka[upper & before & ~after])
