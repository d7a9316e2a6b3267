"""k-nearest-neighbour classification by cosine similarity with a softmax-weighted vote.

Source: Wu et al., CVPR 2018; numbers as in the evaluation of DINO (Caron et al., ICCV 2021).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tasks.base import Device, Outcome, digest
from tasks.checks import unusable
from tasks.examples.draw import Predicted
from tasks.examples.knn import KnnExamples
from tasks.labelled import LabelledProblem
from tasks.metrics.neighbours import nearest, top_k_correct, vote


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
class KnnProblem(LabelledProblem):
    """k-NN classification of validation images by a bank of training images."""

    rule: KnnRule

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the rule of the vote and of all labels."""
        return digest("knn", self.rule, self.data.train.labels, self.data.val.labels)

    @cached_property
    def examples(self) -> KnnExamples:
        """What of its predictions is kept."""
        return KnnExamples(self.data)

    def score(self, vectors: Mapping[str, NDArray[np.float32]], device: Device = None) -> Outcome:
        """Top-1 and top-5 in percent, for every k of one search."""
        found = self.labelled(vectors)
        if reason := unusable(found.train) or unusable(found.test, constant=False):
            return Outcome((), empty=reason)
        ks = (self.rule.k, *self.rule.others)
        neighbours = nearest(found.train, found.test, max(ks), device=device)
        correct: dict[str, NDArray[np.float64]] = {}
        predicted: Predicted = {}
        for k in ks:
            ranked = vote(neighbours, found.labels, k, len(self.data.train.classes), self.rule.temperature)
            for top in (1, 5):
                metric = f"top-{top}" if k == self.rule.k else f"top-{top} k={k}"
                correct[metric] = top_k_correct(ranked, found.truth, top).astype(np.float64)
            if k == self.rule.k:
                predicted = self.examples.predicted(found, neighbours, ranked[:, 0])
        return replace(found.outcome(correct), predicted=predicted)
