"""Labels that an image's neighbours contradict: how probable it is that another class is the true one.

The votes of several searches count by how well they predict the labels, as logits whose weights have the
highest likelihood under labels of which a share is wrong. The idea of judging labels by predictions that did
not see them is that of confident learning (Northcutt et al., JAIR 2021); the model is ours.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from layerboard.tasks.metrics.arrays import Floats, Integers, Mask
from layerboard.tasks.metrics.neighbours import Neighbours, chunks

WRONG = 0.02  # share of labels that is assumed to be wrong, drawn evenly from all classes
LISTED = 0.3  # probability of another class from which on a label is listed
SMOOTHING = 0.5  # votes that every class has beforehand
STEEPEST = 5.0  # weight of a search at most
FITTED = 2000  # images at most by which searches are weighed, evenly spread


@dataclass(frozen=True, slots=True)
class Ballots:
    """The neighbours of each image that vote in one search."""

    index: Integers  # [images k] their places
    weight: Floats  # [images k] their shares of the votes, of which an image has as many as it has voters


def voters(found: Neighbours, allowed: Mask, k: int, temperature: float) -> Ballots:
    """The first k allowed neighbours of each image, which vote by exp(cosine / temperature).

    ``allowed`` is of each neighbour that was found, [images found]; where fewer are, fewer vote.
    """
    first = np.argsort(~allowed, axis=1, kind="stable")[:, :k]
    votes, index = (np.take_along_axis(each, first, axis=1) for each in (allowed, found.index))
    cosine = np.take_along_axis(found.similarity, first, axis=1).astype(np.float64)
    weight = np.exp((cosine - cosine.max(axis=1, keepdims=True)) / temperature) * votes
    total = np.maximum(weight.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return Ballots(index.astype(np.int64), weight * votes.sum(axis=1, keepdims=True) / total)


def votes_of(voting: Ballots, labels: Integers, classes: int, rows: slice = slice(None)) -> Floats:
    """Votes of each class for some images, [some classes], by the labels of all images."""
    index, weight = voting.index[rows], voting.weight[rows]
    cell = labels[index] + classes * np.arange(len(index))[:, None]
    votes = np.bincount(cell.ravel(), weight.ravel(), classes * len(index))
    return votes.reshape(len(index), classes).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Doubts:
    """What neighbours say of each image's label."""

    other: Integers  # [images] the class beside its own that is the most probable
    probability: Floats  # [images] of that class to be the true one
    share: Floats  # [images] of the votes, the mean of the searches, that class has
    agreeing: Integers  # [images] searches whose first class it is

    @property
    def listed(self) -> Integers:
        """The images whose labels are to be looked at, the most doubtful first."""
        order = np.argsort(-self.probability, kind="stable")
        return order[self.probability[order] > LISTED]


def label_doubts(searches: list[Ballots], labels: Integers, classes: int) -> Doubts:
    """What the neighbours of several searches, such as backbones, say of labels [images] of 0 to classes - 1.

    A label is the true class but for a share `WRONG`. Raises ValueError for fewer than two classes.
    """
    if classes < 2:
        raise ValueError(f"expected at least 2 classes, found {classes}")
    some = slice(None, None, -(-len(labels) // FITTED))
    scales = _weights(_evidence(searches, labels, classes, some), labels[some])
    whole, real = np.zeros((2, len(labels)), np.int64), np.zeros((2, len(labels)))
    doubts = Doubts(whole[0], real[0], real[1], whole[1])
    for rows in chunks(len(labels), classes * len(searches)):
        every = np.stack([votes_of(each, labels, classes, rows) for each in searches])
        odds = softmax(np.tensordot(scales, np.log(every + SMOOTHING), 1), axis=1)
        images, own = np.arange(len(odds)), labels[rows]
        noise = WRONG / classes
        likelihood = (1 - WRONG) * odds[images, own] + noise
        odds[images, own] = -1.0
        other = doubts.other[rows] = odds.argmax(axis=1)
        doubts.probability[rows] = odds.max(axis=1) * noise / likelihood
        shares = every / np.maximum(every.sum(axis=2, keepdims=True), 1.0)
        doubts.share[rows] = shares[:, images, other].mean(axis=0)
        doubts.agreeing[rows] = (every.argmax(axis=2) == other).sum(axis=0)
    return doubts


def found_of_planted(searches: list[Ballots], labels: Integers, classes: int, draws: int = 5) -> float:
    """The share that would be listed of labels that are made wrong, `WRONG` of all.

    The mean of some draws with seeds of their own, 0 to ``draws - 1``: how much a short list says.
    """
    shares = []
    for seed in range(draws):
        random = np.random.default_rng(seed)
        wrong = random.choice(len(labels), max(1, round(WRONG * len(labels))), replace=False)
        planted = labels.copy()
        planted[wrong] = (planted[wrong] + random.integers(1, classes, len(wrong))) % classes
        shares.append(np.isin(wrong, label_doubts(searches, planted, classes).listed).mean())
    return float(np.mean(shares))


def _evidence(searches: list[Ballots], labels: Integers, classes: int, rows: slice) -> Floats:
    """Logits of some images that each search gives its classes, [searches some classes]."""
    return np.log(np.stack([votes_of(each, labels, classes, rows) for each in searches]) + SMOOTHING)


def _weights(evidence: Floats, labels: Integers) -> Floats:
    """The weight of each search, [searches], of the highest likelihood of the labels."""
    images, classes = np.arange(len(labels)), evidence.shape[2]

    def loss(scales: Floats) -> tuple[float, Floats]:
        odds = softmax(np.tensordot(scales, evidence, 1), axis=1)
        true = (1 - WRONG) * odds[images, labels]
        likelihood = true + WRONG / classes
        slope = evidence[:, images, labels] - (odds * evidence).sum(axis=2)
        return -np.log(likelihood).mean(), -(slope * (true / likelihood)).mean(axis=1)

    start = np.full(len(evidence), 1.0 / len(evidence))
    bounds = [(0.0, STEEPEST)] * len(evidence)
    return np.asarray(minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x, np.float64)
