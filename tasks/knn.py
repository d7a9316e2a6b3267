"""k-nearest-neighbour classification by cosine similarity with a softmax-weighted vote.

Source: Wu et al., CVPR 2018; numbers as in the evaluation of DINO (Caron et al., ICCV 2021).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tasks.base import Device, Outcome, digest
from tasks.checks import unusable
from tasks.examples.draw import Predicted
from tasks.examples.knn import KnnExamples
from tasks.fused import Vectors
from tasks.labelled import Labelled, LabelledProblem
from tasks.metrics.fused import nearest_of_sets
from tasks.metrics.neighbours import nearest, top_k_correct, vote
from tasks.metrics.search import Neighbours
from zoo.spec import Layer


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
        if reason := _unusable(found):
            return Outcome((), empty=reason)
        neighbours = nearest(found.train, found.test, max(self._ks), device=device)
        correct, predicted = self._voted(found, neighbours)
        return replace(found.outcome(correct), predicted=predicted)

    def score_sets(
        self, layers: Mapping[Layer, Vectors], sets: Sequence[Layer], device: Device = None
    ) -> list[Outcome]:
        """The same for each set of layers, by the mean of their cosines; no examples."""
        found = {layer: self.labelled(vectors) for layer, vectors in layers.items()}
        reasons = {layer: _unusable(one) for layer, one in found.items()}
        members = {each: each.members for each in sets if not all(reasons[one] for one in each.members)}
        neighbours = nearest_of_sets(
            {layer: one.train for layer, one in found.items()},
            {layer: one.test for layer, one in found.items()},
            members,
            max(self._ks),
            device=device,
        )
        outcomes = []
        for each in sets:
            one = found[each.members[0]]
            if each in neighbours:
                outcomes.append(one.outcome(self._voted(one, neighbours[each])[0]))
            else:
                outcomes.append(Outcome((), empty=reasons[each.members[0]]))
        return outcomes

    @property
    def _ks(self) -> tuple[int, ...]:
        return self.rule.k, *self.rule.others

    def _voted(
        self, found: Labelled, neighbours: Neighbours
    ) -> tuple[dict[str, NDArray[np.float64]], Predicted]:
        """How often each image is given its class, by metric, and what is kept of examples."""
        correct: dict[str, NDArray[np.float64]] = {}
        predicted: Predicted = {}
        for k in self._ks:
            ranked = vote(neighbours, found.labels, k, len(self.data.train.classes), self.rule.temperature)
            for top in (1, 5):
                metric = f"top-{top}" if k == self.rule.k else f"top-{top} k={k}"
                correct[metric] = top_k_correct(ranked, found.truth, top).astype(np.float64)
            if k == self.rule.k:
                predicted = self.examples.predicted(found, neighbours, ranked[:, 0])
        return correct, predicted


def _unusable(found: Labelled) -> str:
    """Why nothing can be asked of vectors; "" if it can."""
    return unusable(found.train) or unusable(found.test, constant=False)
