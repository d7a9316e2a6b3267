"""k-nearest-neighbour classification by cosine similarity with a softmax-weighted vote.

Source: Wu et al., CVPR 2018; numbers as in the evaluation of DINO (Caron et al., ICCV 2021).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.classification.probes import ECE, Answers, LabelledTask, LabelledVectors
from layerboard.tasks.datasets.base import Sample
from layerboard.tasks.framework.base import Device, Outcome
from layerboard.tasks.framework.examples import Predicted, by_key
from layerboard.tasks.framework.task import JointVectorTask
from layerboard.tasks.framework.transformed import Vectors
from layerboard.tasks.metrics.arrays import SHORTEST, Floats, Integers
from layerboard.tasks.metrics.neighbours import (
    Neighbours,
    concatenate_neighbours,
    nearest_of_layers,
    top_k_correct,
    vote,
    vote_share,
)
from layerboard.zoo.errors import ensure
from layerboard.zoo.spec import Layer

TOPS = (1, 5)  # a query is correct if its class is among so many
FEW = 200  # below so many images that are tested by the others, their influence as neighbours is measured
WIDTH = 3.0  # of the kernel over margins, in Silverman's bandwidths; found by simulation
NEIGHBOURS = 3  # nearest neighbours kept of each example


@dataclass(frozen=True, slots=True)
class KnnConfig:
    """Settings of k-nearest-neighbour classification."""

    k: int  # neighbours of the primary score
    others: tuple[int, ...]  # further k of the same search
    temperature: float  # divisor of the cosine in the vote exp(cos / temperature)

    def __post_init__(self) -> None:
        sound = min((self.k, *self.others)) >= 1 and self.temperature > 0
        ensure(sound, f"k-NN takes k of at least 1 and a temperature above 0, not {self}")


@dataclass(frozen=True, eq=False)
class KnnTask(JointVectorTask, LabelledTask):
    """k-NN classification of validation images with a bank of training images, or leave-one-out."""

    config: KnnConfig
    configs: ClassVar = {"standard": KnnConfig(k=20, others=(10, 100, 200), temperature=0.07)}
    by_folds = False
    scorer = "knn"

    @property
    def products(self) -> int:
        return len(self.images.train.labels) * len(self.images.tested.labels)

    def score_together(
        self, vectors: Mapping[Layer, Vectors], layers: Sequence[Layer], device: Device = None
    ) -> list[Outcome]:
        """Top-1 and top-5 accuracy in percent, for every k, from one search by the members' mean cosine."""
        images = {member: self.labelled(each) for member, each in vectors.items()}
        reasons = {member: each.unusable for member, each in images.items()}
        outcomes = {layer: Outcome((), empty=reasons[layer.members[0]]) for layer in layers}
        usable = [layer for layer in layers if not all(reasons[member] for member in layer.members)]
        some = next(iter(images.values()))  # classes and names are the same for all
        parts: dict[Layer, list[tuple[Neighbours, dict[str, Floats], Answers]]] = {}
        for layer, rows, neighbours in self._neighbours(images, usable, device):
            voted = self._correct(neighbours, some.labels, some.truth[rows])
            kept = neighbours if self._few(some) else neighbours.first(NEIGHBOURS)
            parts.setdefault(layer, []).append((kept, *voted))
        for layer, voted_parts in parts.items():
            near, columns, given = zip(*voted_parts, strict=True)
            correct = {name: np.concatenate([part[name] for part in columns]) for name in columns[0]}
            answers = Answers(*map(np.concatenate, zip(*given, strict=True)))
            calibration = {ECE + "top-1": answers.calibration(some.truth)}
            moved = self._moved(some, concatenate_neighbours(near, NEIGHBOURS))
            outcome = some.outcome(correct, calibration=calibration, moved=moved)
            if len(layer.members) == 1:  # sets of layers have no examples
                shown = self._predicted(images[layer], concatenate_neighbours(near, NEIGHBOURS), answers)
                outcome = replace(outcome, predicted=shown)
            outcomes[layer] = outcome
        return [outcomes[layer] for layer in layers]

    def _neighbours(
        self, images: Mapping[Layer, LabelledVectors], layers: Sequence[Layer], device: Device
    ) -> Iterator[tuple[Layer, slice, Neighbours]]:
        """Neighbours, outside their group, of consecutive queries for each layer."""
        if not layers:  # there may be no image at all
            return
        groups, k = next(iter(images.values())).groups, max(self._ks)
        k, wide = (k, k) if groups is None else room_for(groups, k)
        banks = {member: each.train for member, each in images.items()}
        queries = {member: each.test for member, each in images.items()}
        members, start = {layer: layer.members for layer in layers}, 0
        for searched in nearest_of_layers(banks, queries, members, wide, device=device):
            for layer, neighbours in searched.items():
                rows = slice(start, start + len(neighbours.index))
                if groups is not None:
                    neighbours = outside(neighbours, groups[rows], groups, k)
                yield layer, rows, neighbours
            start = rows.stop

    def exported(self, vectors: Vectors) -> dict[str, NDArray[np.generic]]:
        """Bank and queries with their labels and the names of the images."""
        images = self.labelled(vectors)
        bank: dict[str, NDArray[np.generic]] = {
            "train": images.train,
            "train_labels": images.labels,
            "train_keys": np.array([sample.key for sample in self.images.train.samples])[images.stored],
        }
        if images.groups is not None:
            return bank | {"groups": np.array(images.clusters)}
        keys = np.array(images.keys)
        return bank | {"test": images.test, "test_labels": images.truth, "test_keys": keys}

    @property
    def _ks(self) -> tuple[int, ...]:
        return self.config.k, *self.config.others

    def _correct(
        self, neighbours: Neighbours, labels: Integers, truth: Integers
    ) -> tuple[dict[str, Floats], Answers]:
        """Whether each query is classified correctly, for each metric, and the answers for the first k.

        ``labels`` are the classes of the bank.
        """
        correct: dict[str, Floats] = {}
        given = {}
        for k in self._ks:
            most = min(k, neighbours.index.shape[1])
            ranked = vote(neighbours, labels, most, len(self.classes), self.config.temperature)
            given[k] = ranked[:, 0]
            for top in TOPS:
                correct[self._metric(top, k)] = top_k_correct(ranked, truth, top).astype(np.float64)
        first = given[self.config.k]
        share = vote_share(neighbours, labels, first, self.config.k, self.config.temperature)
        return correct, Answers(first, share)

    @staticmethod
    def _few(images: LabelledVectors) -> bool:
        """Whether the images are tested by each other, and few."""
        return images.groups is not None and len(images.labels) < FEW

    def _moved(self, images: LabelledVectors, neighbours: Neighbours) -> dict[str, Floats]:
        """For few images, what each adds to the correct ones as a neighbour, for each metric: [images]."""
        if images.groups is None or not self._few(images):
            return {}
        classes, temperature = len(self.classes), self.config.temperature
        moved = {}
        for k in self._ks:
            added = neighbour_influence(neighbours, images.labels, images.groups, k, classes, temperature)
            for top, column in zip(TOPS, added, strict=True):
                moved[self._metric(top, k)] = column
        return moved

    def _metric(self, top: int, k: int) -> str:
        return f"top-{top}" if k == self.config.k else f"top-{top} k={k}"

    def _predicted(self, images: LabelledVectors, neighbours: Neighbours, answers: Answers) -> Predicted:
        """Predictions of a layer for the examples; empty texts for an unreadable example."""
        train, wanted = self.images.train, {*self.queries}
        rows = {key: row for row, key in enumerate(images.keys) if key in wanted}
        names = np.asarray(train.classes, str)
        shape = (len(self.queries), min(NEIGHBOURS, neighbours.index.shape[1]))
        classes, keys = np.full(shape, "", names.dtype), np.full(shape, "", object)
        cosine = np.full(shape, np.nan, np.float32)
        for number, row in enumerate(rows.get(key, -1) for key in self.queries):
            if row < 0:
                continue
            near = neighbours.index[row, : shape[1]]
            classes[number] = names[images.labels[near]]
            keys[number] = [train.samples[image].key for image in images.stored[near]]
            cosine[number] = neighbours.similarity[row, : shape[1]].round(4)
        near_by = {"neighbour": keys.astype(str), "neighbour_class": classes, "cosine": cosine}
        every = self.predicted(images, answers)
        return {"predicted": every["predicted"], "right": every["right"], **near_by, **every}

    def pictures(self, predicted: Sequence[Predicted]) -> Mapping[str, Sample]:
        ranks = [layer["neighbour"][:, rank : rank + 1] for rank in range(NEIGHBOURS) for layer in predicted]
        near = [str(key) for names in ranks for key in names.flat]
        return dict(super().pictures(predicted)) | by_key(self.images.train.samples, near)


def neighbour_influence(
    neighbours: Neighbours, labels: Integers, groups: Integers, k: int, classes: int, temperature: float
) -> Floats:
    """What each image adds to the number of correct others as their neighbour: [`TOPS` images], mean 0.

    Each image is tested by the others outside its group: ``neighbours`` [n W] are these, at least k of them,
    or all, best first; ``labels`` and ``groups`` are [n], from 0. Without a group, the vote of an image has
    another margin, which is the share of its class minus that of the rival that would displace it. Whether
    the image is correct then changes with the density of margins at 0, estimated with a normal kernel: single
    changes of 0 and 1 are mostly chance, and would double the variance. The influence of a group is divided
    equally among its images.

    Source of the bandwidth: Silverman, Density Estimation, 1986, section 3.4; it is `WIDTH` times as large.
    """
    truth, of_group = labels, groups[neighbours.index]
    similarity = neighbours.similarity.astype(np.float64)
    weight = np.exp((similarity - similarity.max(axis=1, keepdims=True)) / temperature)
    label = labels[neighbours.index]

    def margins(rows: Integers, kept: NDArray[np.bool_]) -> Floats:
        cell = label[rows] + classes * np.arange(len(rows))[:, None]
        votes = np.bincount(cell.ravel(), (weight[rows] * kept).ravel(), len(rows) * classes)
        shares = votes.astype(np.float64).reshape(len(rows), classes)
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), SHORTEST)
        own = shares[np.arange(len(rows)), truth[rows]]
        shares[np.arange(len(rows)), truth[rows]] = -1.0
        rivals = -np.sort(-shares, axis=1)
        return np.stack([own - rivals[:, top - 1] if top < classes else np.ones(len(rows)) for top in TOPS])

    every, count = np.arange(len(labels)), len(labels)
    first = margins(every, np.broadcast_to(np.arange(of_group.shape[1]) < k, of_group.shape))
    width = WIDTH * 1.06 * first.std(axis=1, keepdims=True) * count**-0.2
    width = np.where(width > 0, width, np.inf)
    density = np.exp(-((first / width) ** 2) / 2) / (width * np.sqrt(2 * np.pi))
    sizes = np.bincount(groups)
    added = np.zeros((len(TOPS), len(sizes)))
    for group in range(len(sizes)):
        mine = of_group == group
        rows = np.flatnonzero(mine[:, :k].any(axis=1))
        others = ~mine[rows]
        change = first[:, rows] - margins(rows, others & (np.cumsum(others, axis=1) <= k))
        added[:, group] = (density[:, rows] * change).sum(axis=1) / max(1, sizes[group])
    influence = added[:, groups]
    return np.asarray(influence - influence.mean(axis=1, keepdims=True), np.float64)


def room_for(groups: Integers, k: int) -> tuple[int, int]:
    """Number of neighbours, at most k, that every item has outside its group, and the number to search.

    Groups are [n], from 0. The search must return that many plus the size of the largest group.
    """
    largest = int(np.bincount(groups).max())
    k = min(k, len(groups) - largest)
    return k, k + largest


def outside(neighbours: Neighbours, asked: Integers, groups: Integers, k: int) -> Neighbours:
    """The first k neighbours of each item that are outside its group, in order.

    ``asked`` [queries] are the groups of the items, ``groups`` those of the bank. `room_for` gives the number
    of neighbours that is needed.
    """
    own = groups[neighbours.index] == asked[:, None]
    first = np.argsort(own, axis=1, kind="stable")[:, :k]
    return Neighbours(
        np.take_along_axis(neighbours.similarity, first, axis=1),
        np.take_along_axis(neighbours.index, first, axis=1),
    )
