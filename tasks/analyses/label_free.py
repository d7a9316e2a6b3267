"""Label-free criteria for layers: spectrum of vectors, agreement of two sets. None of them is an accuracy.

Sources: Roy and Vetterli, The Effective Rank: A Measure of Effective Dimensionality, EUSIPCO 2007; Garrido
et al., RankMe: Assessing the Downstream Performance of Pretrained Self-Supervised Representations by Their
Rank, ICML 2023; Agrawal et al., alpha-ReQ: Assessing Representation Quality in Self-Supervised Learning by
Measuring Eigenspectrum Decay, NeurIPS 2022 (decay); Kornblith et al., ICML 2019, and Nguyen et al., ICLR 2021
(CKA); Huh et al., The Platonic Representation Hypothesis, ICML 2024, appendix A (mutual k-nearest
neighbours).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch

from layerboard.tasks.analyses.base import Tally
from layerboard.tasks.framework.base import Device, Findings, LayerOutcome, Outcome, Source, digest
from layerboard.tasks.framework.checks import unusable
from layerboard.tasks.framework.sources import ProbedImages, mirrored
from layerboard.tasks.framework.stored import StoredBackbone
from layerboard.tasks.framework.task import Task, map_in_parallel
from layerboard.tasks.metrics.arrays import Features, Floats, Integers
from layerboard.tasks.metrics.neighbours import Vectors, nearest
from layerboard.tasks.similarity.cka import UNDEFINED, CkaConfig, Grams
from layerboard.tasks.similarity.metric import SMALLEST_BATCH, CkaAccumulator
from layerboard.zoo.spec import Layer

EPSILON = 1e-7  # added to each share of a singular value by RankMe
ROUNDED = 1e-7  # singular values below this share of the largest one count as rounding error
FEWEST = 3  # least number of ranks that a decay is fitted to


@dataclass(frozen=True, slots=True)
class LabelFreeConfig:
    """Settings of the label-free criteria; the batches are those of their source."""

    neighbours: int  # number of neighbours of each image in the comparison of two views or two layers


class LabelFree(Task):
    """Effective rank, similarity to the last block and agreement of two views, from stored vectors.

    The second view is the first one mirrored horizontally, with a forward pass of its own. Images with an
    unreadable view are left out.
    """

    data: ProbedImages
    config: LabelFreeConfig
    configs: ClassVar = {"standard": LabelFreeConfig(neighbours=10)}

    @cached_property
    def vector_sources(self) -> tuple[Source, ...]:
        return (self.data.probe, mirrored(self.data.probe))

    @cached_property
    def _cka(self) -> Grams:
        """Batches and Gram matrices as in the task CKA, always unscaled."""
        return Grams(self.data, CkaConfig((), min_max=False))

    @cached_property
    def fingerprint(self) -> str:
        return digest("label-free", 2, self.config, self._cka.fingerprint)

    def results(self, backbone: StoredBackbone) -> Findings:
        stored = backbone.vectors
        poolings = next(iter(stored.values())).poolings()
        jobs = [(layer, pooling) for layer in backbone.layers for pooling in poolings]

        def describe(job: tuple[Layer, str]) -> LayerOutcome:
            vectors: dict[str, Vectors] = {name: each.read(*job) for name, each in stored.items()}
            plain = stored[self.data.probe.name]
            last = None if backbone.last is None else plain.read(backbone.last, job[1])
            return LayerOutcome(*job, self.describe(vectors, last, backbone.device))

        size = 2 * sum(each.bytes(*jobs[0]) for each in stored.values()) if jobs else 0
        return Findings(tuple(map_in_parallel(describe, jobs, backbone.workers, size)))

    def describe(
        self, vectors: Mapping[str, Vectors], last: Vectors | None, device: Device = None
    ) -> Outcome:
        """Criteria of one layer and pooling, from both views, and from the last block in the first view.

        ``effective-rank`` of the centred vectors and ``rankme`` of the vectors as they are, 1 to
        min(images, dim); ``spectrum-decay``, by which power of the rank the eigenvalues of their covariance
        fall; ``cka-to-last``, unbiased linear CKA with the last block in the batches of the task
        CKA; ``neighbours-to-last``, percent of the nearest neighbours of an image that it has there, too;
        ``view-neighbours``, the same of both views of one layer; ``view-top1``, percent of images whose
        mirrored view is more like (cosine) their own other view than like that of any other image.
        """
        read = ~np.any([np.isnan(each[:, 0]) for each in vectors.values()], axis=0)
        plain, other = (vectors[source.name][read] for source in self.sources)
        if reason := unusable(plain) or unusable(other):
            return Outcome((), empty=reason)
        tally = Tally([sample.key for sample, ok in zip(self.data.probe.samples, read, strict=True) if ok])
        _add_spectrum(tally, plain, device)
        others = {"view-neighbours": other}
        end = None if last is None else last[read]
        if reason := "the vectors of the last block are not stored" if end is None else unusable(end):
            tally.missing |= {"cka-to-last": reason, "neighbours-to-last": reason}
        elif end is not None:
            self._add_cka(tally, (plain, end), np.flatnonzero(read).tolist(), device)
            others["neighbours-to-last"] = end
        tally.images("view-top1", 100 * retrieved(plain, other, device))
        k = self.config.neighbours
        if len(plain) < k + 2:
            few = f"{k} neighbours need {k + 2} readable images; there are {len(plain)}"
            tally.missing |= dict.fromkeys(others, few)
        else:
            near = other_neighbours(plain, k, device)
            for name, same in others.items():
                tally.images(name, 100 * overlap(near, other_neighbours(same, k, device)))
        return tally.outcome()

    def _add_cka(
        self, tally: Tally, pair: tuple[Vectors, Vectors], positions: Sequence[int], device: Device
    ) -> None:
        """CKA of two sets of vectors over all batches of the images at those positions."""
        sums = CkaAccumulator(errors=True)
        batches = self._cka.batches(positions)
        for rows in batches:
            both = (torch.from_numpy(each[rows]).to(device or "cpu") for each in pair)
            sums.add(torch.stack([self._cka.centred(self._cka.gram(each)) for each in both]))
        if not batches:
            tally.missing["cka-to-last"] = f"CKA needs a batch of {SMALLEST_BATCH} readable images"
        elif math.isnan(value := float(sums.matrix()[0, 1])):
            tally.missing["cka-to-last"] = UNDEFINED
        else:
            tally.number("cka-to-last", value, error=float(sums.standard_error()[0, 1]))


def _add_spectrum(tally: Tally, plain: Vectors, device: Device) -> None:
    exact = plain.astype(np.float64)
    centred = singular_values(exact - exact.mean(axis=0), device)
    tally.number("effective-rank", effective_rank(centred))
    tally.number("rankme", rankme(singular_values(exact, device)))
    if math.isnan(decay := spectrum_decay(centred)):
        tally.missing["spectrum-decay"] = f"vectors vary in fewer than {2 * FEWEST} directions"
    else:
        tally.number("spectrum-decay", decay)


def singular_values(features: Features, device: torch.device | None = None) -> Floats:
    """Singular values of finite features [n dim], the largest first: [min(n, dim)] float64.

    They are the square roots of the eigenvalues of the smaller Gram matrix, in float64: those below a hundred
    millionth of the largest are rounding error. The product runs on the device, or on the CPU if it is None.
    """
    values = torch.as_tensor(features, dtype=torch.float64, device=device)
    gram = values.T @ values if values.shape[0] > values.shape[1] else values @ values.T
    roots: Floats = torch.linalg.eigvalsh(gram.cpu()).clamp_min(0).sqrt().flip(0).numpy()
    return roots


def effective_rank(values: Floats, added: float = 0.0) -> float:
    """exp of the entropy of singular values as shares of their sum: k for k equal ones; NaN if all are zero.

    ``added`` is added to every share.
    """
    total = values.sum()
    return equal_shares(values / total + added) if total > 0 else float("nan")


def equal_shares(shares: Floats) -> float:
    """exp of the entropy of shares that sum to 1: the number of equal shares with the same entropy."""
    some = shares[shares > 0]
    return float(np.exp(-(some * np.log(some)).sum()))


def rankme(values: Floats) -> float:
    """RankMe: effective rank of uncentred features, with `EPSILON` added to every share."""
    return effective_rank(values, EPSILON)


def spectrum_decay(values: Floats) -> float:
    """Exponent a of the power law rank^-a fitted to the eigenvalues of a covariance: 0 for equal ones.

    A weighted least-squares fit of log eigenvalue on log rank, over the first half of the ranks. The weight
    is 1 / rank, so that equal intervals of log rank count the same. The second half is left out because the
    eigenvalues of a finite sample fall off there for any features; alpha-ReQ chooses the range by hand.
    ``values`` are the singular values of centred features, the largest first; those below `ROUNDED` times the
    largest are left out. NaN if half of the ranks are fewer than `FEWEST`.
    """
    there = values[values > ROUNDED * values.max(initial=0)]
    ranks = np.arange(1, len(there) // 2 + 1)
    if len(ranks) < FEWEST:
        return float("nan")
    x, y, weights = np.log(ranks), 2 * np.log(there[: len(ranks)]), 1 / ranks
    away = x - np.average(x, weights=weights)
    return float(-(weights * away * y).sum() / (weights * away * away).sum()) + 0.0


def other_neighbours(vectors: Vectors, k: int, device: torch.device | None = None) -> Integers:
    """The k < n other images with the highest cosine to each image [n dim]: [n k]; ties by lower index."""
    neighbours = nearest(vectors, vectors, k + 1, device=device).index
    # among equal vectors an image may be missing from its own neighbours: then the last one is dropped
    own = neighbours == np.arange(len(vectors))[:, None]
    own[~own.any(axis=1), -1] = True
    return np.asarray(neighbours[~own].reshape(len(vectors), k), np.int64)


def overlap(first: Integers, second: Integers) -> Floats:
    """Share of each image's neighbours that two searches [n k] have in common: [n]; k / (n - 1) by chance."""
    k = first.shape[1]
    return np.asarray((first[:, :, None] == second[:, None, :]).any(axis=2).sum(axis=1) / k, np.float64)


def retrieved(vectors: Vectors, others: Vectors, device: torch.device | None = None) -> Floats:
    """Whether the nearest vector to another view of each image is its own, or an equal one: 1 or 0, [n]."""
    nearest_index = nearest(vectors, others, 1, device=device).index[:, 0]
    return np.asarray((vectors[nearest_index] == vectors).all(axis=1), np.float64)
