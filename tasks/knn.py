"""k-nearest-neighbour classification by cosine similarity with a softmax-weighted vote.

Source: Wu et al., CVPR 2018; numbers as in the evaluation of DINO (Caron et al., ICCV 2021).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tasks.base import Device, Items, Outcome, Score, Source, Statistic, digest
from tasks.checks import unusable
from tasks.datasets.base import Classification
from tasks.metrics.neighbours import nearest, top_k_correct, vote
from tasks.sources import ClassificationSources


@dataclass(frozen=True, slots=True)
class KnnRule:
    """The numbers of k-nearest-neighbour classification.

    Attributes:
        k: Neighbours of the primary score.
        others: Further k of the same search.
        temperature: Divisor of the cosine in the vote exp(cos / temperature).
    """

    k: int
    others: tuple[int, ...]
    temperature: float


@dataclass(frozen=True)
class KnnProblem:
    """k-NN classification of validation images by a bank of training images."""

    data: Classification
    where: ClassificationSources
    rule: KnnRule

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources of the bank (probe subset and rest) and of the queries."""
        rest = () if self.where.rest is None else (self.where.rest,)
        return (self.where.probe, *rest, self.where.val)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the rule of the vote and of all labels."""
        return digest("knn", self.rule, self.data.train.labels, self.data.val.labels)

    def bank(self, vectors: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float32]:
        """Bank [images dim] in the dataset's order, whatever the order of its sources."""
        probe = vectors[self.where.probe.name]
        bank = np.empty((len(self.data.train.samples), probe.shape[1]), np.float32)
        bank[self.where.probe_order] = probe
        if self.where.rest is not None:
            bank[self.where.rest_order] = vectors[self.where.rest.name]
        return bank

    def score(self, vectors: Mapping[str, NDArray[np.float32]], device: Device = None) -> Outcome:
        """Top-1 and top-5 in percent, for every k of one search."""
        bank, queries = self.bank(vectors), vectors[self.where.val.name]
        stored, asked = ~np.isnan(bank[:, 0]), ~np.isnan(queries[:, 0])
        bank, queries = bank[stored], queries[asked]
        if reason := unusable(bank) or unusable(queries, constant=False):
            return Outcome((), empty=reason)
        labels, truth = self.data.train.labels[stored], self.data.val.labels[asked]
        ks = (self.rule.k, *self.rule.others)
        neighbours = nearest(bank, queries, max(ks), device=device)
        scores: list[Score] = []
        values: dict[str, NDArray[np.float64]] = {}
        for k in ks:
            ranked = vote(neighbours, labels, k, len(self.data.train.classes), self.rule.temperature)
            for top in (1, 5):
                metric = f"top-{top}" if k == self.rule.k else f"top-{top} k={k}"
                correct = top_k_correct(ranked, truth, top).astype(np.float64)
                values[metric] = 100.0 * correct
                scores.append(Score(metric, 100.0 * float(correct.mean()), len(correct), "images"))
        keys = tuple(s.key for s, ok in zip(self.data.val.samples, asked, strict=True) if ok)
        statistics = {metric: Statistic(metric) for metric in values}
        items = Items("images", keys, keys, ("",) * len(keys), values, statistics)
        return Outcome(tuple(scores), items)
