"""k-nearest-neighbour classification by cosine similarity with a softmax-weighted vote.

Source: Wu et al., CVPR 2018; numbers as in the evaluation of DINO (Caron et al., ICCV 2021).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.base import Device, Outcome
from layerboard.tasks.checks import unusable
from layerboard.tasks.datasets.base import Sample
from layerboard.tasks.examples import Predicted, by_key, drawn
from layerboard.tasks.metrics.arrays import Floats, Integers
from layerboard.tasks.metrics.fused import nearest_of_sets
from layerboard.tasks.metrics.neighbours import Neighbours, nearest, top_k_correct, vote
from layerboard.tasks.probes import LabelledTask, LabelledVectors
from layerboard.tasks.transformed import Vectors
from layerboard.zoo.spec import Layer

QUERIES = 16  # queries whose predictions are kept, the classes in turn
NEIGHBOURS = 3  # nearest neighbours of each
MISTAKES = 128  # pairs of classes of which it is kept how often one is taken for the other, the commonest


@dataclass(frozen=True, slots=True)
class KnnConfig:
    """The numbers of k-nearest-neighbour classification."""

    k: int  # neighbours of the primary score
    others: tuple[int, ...]  # further k of the same search
    temperature: float  # divisor of the cosine in the vote exp(cos / temperature)


@dataclass(frozen=True, eq=False)
class KnnTask(LabelledTask):
    """k-NN classification of validation images by a bank of training images."""

    config: KnnConfig
    configs: ClassVar = {"standard": KnnConfig(k=20, others=(10, 100, 200), temperature=0.07)}
    keeps_examples = True
    scorer = "knn"

    @property
    def products(self) -> int:
        return len(self.images.train.labels) * len(self.images.val.labels)

    def score(self, vectors: Vectors, device: Device = None) -> Outcome:
        """Top-1 and top-5 in percent, for every k of one search."""
        images = self.labelled(vectors)
        if reason := _unusable(images):
            return Outcome((), empty=reason)
        neighbours = nearest(images.train, images.test, max(self._ks), device=device)
        correct, given = self._correct(neighbours, images.labels, images.truth)
        return replace(images.outcome(correct), predicted=self._predicted(images, neighbours, given))

    def score_sets(
        self, layers: Mapping[Layer, Vectors], sets: Sequence[Layer], device: Device = None
    ) -> list[Outcome]:
        """Top-1 and top-5 of each set of layers, by the mean of their cosines; no examples."""
        by_layer = {layer: self.labelled(vectors) for layer, vectors in layers.items()}
        reasons = {layer: _unusable(images) for layer, images in by_layer.items()}
        usable = {each: each.members for each in sets if not all(reasons[member] for member in each.members)}
        banks = {layer: images.train for layer, images in by_layer.items()}
        queries = {layer: images.test for layer, images in by_layer.items()}
        some = next(iter(by_layer.values()))  # classes and names are those of every layer
        votes: dict[Layer, list[dict[str, Floats]]] = {each: [] for each in usable}
        start = 0
        for searched in nearest_of_sets(banks, queries, usable, max(self._ks), device=device):
            for each, neighbours in searched.items():
                stop = start + len(neighbours.index)
                votes[each].append(self._correct(neighbours, some.labels, some.truth[start:stop])[0])
            start = stop
        outcomes = {each: Outcome((), empty=reasons[each.members[0]]) for each in sets}
        for each, parts in votes.items():
            joined = {metric: np.concatenate([part[metric] for part in parts]) for metric in parts[0]}
            outcomes[each] = some.outcome(joined)
        return [outcomes[each] for each in sets]

    def exported(self, vectors: Vectors) -> dict[str, NDArray[np.generic]]:
        """Bank and queries with their labels and the names of the images."""
        images = self.labelled(vectors)
        return {
            "train": images.train,
            "train_labels": images.labels,
            "train_keys": np.array([sample.key for sample in self.images.train.samples])[images.stored],
            "test": images.test,
            "test_labels": images.truth,
            "test_keys": np.array(images.keys),
        }

    @property
    def _ks(self) -> tuple[int, ...]:
        return self.config.k, *self.config.others

    def _correct(
        self, neighbours: Neighbours, labels: Integers, truth: Integers
    ) -> tuple[dict[str, Floats], Integers]:
        """How often queries are given their true class, by metric, and which class by the first k.

        ``labels`` are the classes of the bank.
        """
        correct: dict[str, Floats] = {}
        given = {}
        for k in self._ks:
            ranked = vote(neighbours, labels, k, len(self.images.train.classes), self.config.temperature)
            given[k] = ranked[:, 0]
            for top in (1, 5):
                metric = f"top-{top}" if k == self.config.k else f"top-{top} k={k}"
                correct[metric] = top_k_correct(ranked, truth, top).astype(np.float64)
        return correct, given[self.config.k]

    @cached_property
    def queries(self) -> tuple[str, ...]:
        """Names of the examples among the queries."""
        keys = [sample.key for sample in self.images.val.samples]
        return tuple(keys[row] for row in drawn(keys, QUERIES, self.images.val.labels.tolist()))

    def _predicted(self, images: LabelledVectors, neighbours: Neighbours, given: Integers) -> Predicted:
        """What a layer takes the examples for; empty texts for one that could not be read.

        ``given`` are the classes that all queries were given, [queries].
        """
        train, wanted = self.images.train, {*self.queries}
        rows = {key: row for row, key in enumerate(images.keys) if key in wanted}
        names = np.asarray(train.classes, str)
        shape = (len(self.queries), min(NEIGHBOURS, neighbours.index.shape[1]))
        classes, keys = np.full(shape, "", names.dtype), np.full(shape, "", object)
        predicted, right = np.full(shape[0], "", names.dtype), np.zeros(shape[0], np.bool_)
        cosine = np.full(shape, np.nan, np.float32)
        for number, row in enumerate(rows.get(key, -1) for key in self.queries):
            if row < 0:
                continue
            near = neighbours.index[row, : shape[1]]
            predicted[number], right[number] = names[given[row]], given[row] == images.truth[row]
            classes[number] = names[images.labels[near]]
            keys[number] = [train.samples[image].key for image in images.stored[near]]
            cosine[number] = neighbours.similarity[row, : shape[1]].round(4)
        return {
            "predicted": predicted,
            "right": right,
            "neighbour": keys.astype(str),
            "neighbour_class": classes,
            "cosine": cosine,
            **self._by_class(images.truth, given),
        }

    def _by_class(self, truth: Integers, given: Integers) -> Predicted:
        """Queries of each class and those that are right, [classes], and the commonest mistakes.

        A mistake is a row of the true class, the class given and the number of queries, zeros for none.
        """
        classes = len(self.images.train.classes)
        wrong = truth != given
        pairs, counts = np.unique(truth[wrong] * classes + given[wrong], return_counts=True)
        order = np.argsort(-counts, kind="stable")[:MISTAKES]
        mistaken = np.zeros((MISTAKES, 3), np.int32)
        mistaken[: len(order)] = np.stack([*np.divmod(pairs[order], classes), counts[order]], axis=1)
        right = np.bincount(truth[~wrong], minlength=classes)
        every = np.bincount(truth, minlength=classes)
        return {"class_right": right, "class_images": every, "mistaken": mistaken}

    def facts(self) -> Predicted:
        val = self.images.val
        labels = {sample.key: label for sample, label in zip(val.samples, val.labels, strict=True)}
        classes = [self.images.train.classes[labels[key]] for key in self.queries]
        every = np.asarray(self.images.train.classes, str)
        return {"query": np.asarray(self.queries, str), "class": np.asarray(classes, str), "classes": every}

    def pictures(self, predicted: Sequence[Predicted]) -> Mapping[str, Sample]:
        ranks = [layer["neighbour"][:, rank : rank + 1] for rank in range(NEIGHBOURS) for layer in predicted]
        near = [str(key) for names in ranks for key in names.flat]
        return by_key(self.images.val.samples, self.queries) | by_key(self.images.train.samples, near)


def _unusable(images: LabelledVectors) -> str:
    """Why nothing can be asked of vectors; "" if it can."""
    return unusable(images.train) or unusable(images.test, constant=False)
