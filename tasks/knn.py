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
from tasks.datasets.base import Sample
from tasks.datasets.classes import Classification
from tasks.examples import Predicted, by_key, drawn
from tasks.metrics.arrays import Integers
from tasks.metrics.fused import nearest_of_sets
from tasks.metrics.neighbours import Neighbours, nearest, top_k_correct, vote
from tasks.probes import LabelledTask, LabelledVectors
from tasks.transformed import Vectors
from zoo.spec import Layer

QUERIES = 16  # queries whose predictions are kept, the classes in turn
NEIGHBOURS = 3  # nearest neighbours of each


@dataclass(frozen=True)
class KnnExamples:
    """Queries of a dataset and what layers take them for."""

    data: Classification

    @cached_property
    def queries(self) -> tuple[str, ...]:
        """Names of the queries."""
        keys = [sample.key for sample in self.data.val.samples]
        return tuple(keys[row] for row in drawn(keys, QUERIES, self.data.val.labels.tolist()))

    def predicted(self, found: LabelledVectors, neighbours: Neighbours, given: Integers) -> Predicted:
        """What a layer takes the queries for; empty texts for one that could not be read.

        Args:
            found: Vectors and classes of the images that could be read.
            neighbours: Of all that could be read.
            given: Class that each of those was given, [queries].
        """
        train, wanted = self.data.train, {*self.queries}
        rows = {key: row for row, key in enumerate(found.keys) if key in wanted}
        read = [(number, rows[key]) for number, key in enumerate(self.queries) if key in rows]
        names = np.asarray(train.classes, str)
        shape = (len(self.queries), min(NEIGHBOURS, neighbours.index.shape[1]))
        classes, keys = np.full(shape, "", names.dtype), np.full(shape, "", object)
        predicted, right = np.full(shape[0], "", names.dtype), np.zeros(shape[0], np.bool_)
        cosine = np.full(shape, np.nan, np.float32)
        for number, row in read:
            near = neighbours.index[row, : shape[1]]
            predicted[number], right[number] = names[given[row]], given[row] == found.truth[row]
            classes[number] = names[found.labels[near]]
            keys[number] = [train.samples[image].key for image in found.stored[near]]
            cosine[number] = neighbours.similarity[row, : shape[1]].round(4)
        return {
            "predicted": predicted,
            "right": right,
            "neighbour": keys.astype(str),
            "neighbour_class": classes,
            "cosine": cosine,
        }

    def facts(self) -> Predicted:
        val = self.data.val
        labels = {sample.key: label for sample, label in zip(val.samples, val.labels, strict=True)}
        classes = [self.data.train.classes[labels[key]] for key in self.queries]
        return {"query": np.asarray(self.queries, str), "class": np.asarray(classes, str)}

    def pictures(self, predicted: Sequence[Predicted]) -> Mapping[str, Sample]:
        near = [str(key) for rank in range(NEIGHBOURS) for layer in predicted for key in _of(layer, rank)]
        return by_key(self.data.val.samples, self.queries) | by_key(self.data.train.samples, near)


def _of(predicted: Predicted, rank: int) -> Sequence[object]:
    """Names of the neighbours of that rank, of every query."""
    return list(predicted["neighbour"][:, rank : rank + 1].ravel())


@dataclass(frozen=True, slots=True)
class KnnConfig:
    """The numbers of k-nearest-neighbour classification."""

    k: int  # neighbours of the primary score
    others: tuple[int, ...]  # further k of the same search
    temperature: float  # divisor of the cosine in the vote exp(cos / temperature)


CONFIGS = {
    "standard": KnnConfig(k=20, others=(10, 100, 200), temperature=0.07),
}
"""By name of the protocol."""


@dataclass(frozen=True, eq=False)
class KnnTask(LabelledTask):
    """k-NN classification of validation images by a bank of training images."""

    config: KnnConfig
    configs = CONFIGS
    scorer = "knn"

    @cached_property
    def fingerprint(self) -> str:
        return digest("knn", self.config, self.images.train.labels, self.images.val.labels)

    @cached_property
    def kept_examples(self) -> KnnExamples:
        return KnnExamples(self.images)

    @property
    def products(self) -> int:
        return len(self.images.train.labels) * len(self.images.val.labels)

    def score(self, vectors: Mapping[str, NDArray[np.float32]], device: Device = None) -> Outcome:
        """Top-1 and top-5 in percent, for every k of one search."""
        given_vectors = self.labelled(vectors)
        if reason := _unusable(given_vectors):
            return Outcome((), empty=reason)
        neighbours = nearest(given_vectors.train, given_vectors.test, max(self._ks), device=device)
        correct, given = self._correct(neighbours, given_vectors.labels, given_vectors.truth)
        predicted = self.kept_examples.predicted(given_vectors, neighbours, given)
        return replace(given_vectors.outcome(correct), predicted=predicted)

    def score_sets(
        self, layers: Mapping[Layer, Vectors], sets: Sequence[Layer], device: Device = None
    ) -> list[Outcome]:
        """Top-1 and top-5 of each set of layers, by the mean of their cosines; no examples."""
        by_layer = {layer: self.labelled(vectors) for layer, vectors in layers.items()}
        reasons = {layer: _unusable(vectors_of) for layer, vectors_of in by_layer.items()}
        usable = {each: each.members for each in sets if not all(reasons[member] for member in each.members)}
        banks = {layer: vectors_of.train for layer, vectors_of in by_layer.items()}
        queries = {layer: vectors_of.test for layer, vectors_of in by_layer.items()}
        some = next(iter(by_layer.values()))  # classes and names are those of every layer
        votes: dict[Layer, list[dict[str, NDArray[np.float64]]]] = {each: [] for each in usable}
        start = 0
        for searched in nearest_of_sets(banks, queries, usable, max(self._ks), device=device):
            for each, neighbours in searched.items():
                stop = start + len(neighbours.index)
                votes[each].append(self._correct(neighbours, some.labels, some.truth[start:stop])[0])
            start = stop
        return [
            some.outcome(_joined(votes[each]))
            if each in usable
            else Outcome((), empty=reasons[each.members[0]])
            for each in sets
        ]

    def exported(self, vectors: Vectors) -> dict[str, NDArray[np.generic]]:
        """Bank and queries with their labels and the names of the images."""
        images = self.labelled(vectors)
        train_keys = np.array([sample.key for sample in self.images.train.samples])[images.stored]
        return {
            "train": images.train,
            "train_labels": images.labels,
            "train_keys": train_keys,
            "test": images.test,
            "test_labels": images.truth,
            "test_keys": np.array(images.keys),
        }

    @property
    def _ks(self) -> tuple[int, ...]:
        return self.config.k, *self.config.others

    def _correct(
        self, neighbours: Neighbours, labels: Integers, truth: Integers
    ) -> tuple[dict[str, NDArray[np.float64]], Integers]:
        """How often each query is given its class, by metric, and the class that it is given by the first k.

        Args:
            neighbours: Of the queries.
            labels: Classes of the bank.
            truth: Classes of the queries.
        """
        correct: dict[str, NDArray[np.float64]] = {}
        given = {}
        for k in self._ks:
            ranked = vote(neighbours, labels, k, len(self.images.train.classes), self.config.temperature)
            given[k] = ranked[:, 0]
            for top in (1, 5):
                metric = f"top-{top}" if k == self.config.k else f"top-{top} k={k}"
                correct[metric] = top_k_correct(ranked, truth, top).astype(np.float64)
        return correct, given[self.config.k]


def _joined(parts: Sequence[Mapping[str, NDArray[np.float64]]]) -> dict[str, NDArray[np.float64]]:
    """What was found of consecutive queries, by metric."""
    return {metric: np.concatenate([part[metric] for part in parts]) for metric in parts[0]}


def _unusable(found: LabelledVectors) -> str:
    """Why nothing can be asked of vectors; "" if it can."""
    return unusable(found.train) or unusable(found.test, constant=False)
