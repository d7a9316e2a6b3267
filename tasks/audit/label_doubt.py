"""Doubtful labels: the probability, from an image's neighbours, that another class is the true one.

The votes of several searches are combined as logits. Their weights maximise the likelihood of the labels, of
which a fixed share is assumed to be wrong. The idea of judging labels by held-out predictions is that of
confident learning (Northcutt et al., JAIR 2021); the model is ours.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from layerboard.tasks.metrics.arrays import Floats, Integers, Mask
from layerboard.tasks.metrics.neighbours import Neighbours, chunks

WRONG = 0.02  # share of labels assumed to be wrong, drawn uniformly from all classes
LISTED = 0.3  # a label is listed if the probability of another class is above this
SMOOTHING = 0.5  # votes added to each class
DRAWS = 5  # times that labels are changed deliberately
STEEPEST = 5.0  # largest weight of a search
FITTED = 2000  # most images, evenly spaced, that the weights of the searches are fitted to


@dataclass(frozen=True, slots=True)
class NeighbourVotes:
    """The voting neighbours of each image in one search."""

    index: Integers  # [images k] indices of the neighbours
    weight: Floats  # [images k] their votes, which sum to their number


def neighbour_votes(found: Neighbours, allowed: Mask, k: int, temperature: float) -> NeighbourVotes:
    """The first k allowed neighbours of each image, with votes weighted by exp(cosine / temperature).

    ``allowed`` [images found] says which neighbours may vote; if fewer than k may, fewer vote.
    """
    first = np.argsort(~allowed, axis=1, kind="stable")[:, :k]
    votes, index = (np.take_along_axis(each, first, axis=1) for each in (allowed, found.index))
    cosine = np.take_along_axis(found.similarity, first, axis=1).astype(np.float64)
    weight = np.exp((cosine - cosine.max(axis=1, keepdims=True)) / temperature) * votes
    total = np.maximum(weight.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return NeighbourVotes(index.astype(np.int64), weight * votes.sum(axis=1, keepdims=True) / total)


def votes_of(voting: NeighbourVotes, labels: Integers, classes: int, rows: slice = slice(None)) -> Floats:
    """Votes for each class from the neighbours of the images in ``rows``: [rows classes]."""
    index, weight = voting.index[rows], voting.weight[rows]
    cell = labels[index] + classes * np.arange(len(index))[:, None]
    votes = np.bincount(cell.ravel(), weight.ravel(), classes * len(index))
    return votes.reshape(len(index), classes).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Doubts:
    """Evidence of the neighbours against each image's label."""

    other: Integers  # [images] the most probable class other than the label
    probability: Floats  # [images] probability that this class is the true one
    share: Floats  # [images] share of the votes for this class, averaged over the searches
    agreeing: Integers  # [images] number of searches in which this class has the most votes

    @property
    def listed(self) -> Integers:
        """Images whose labels should be checked, the most doubtful first."""
        order = np.argsort(-self.probability, kind="stable")
        return order[self.probability[order] > LISTED]


def label_doubts(searches: list[NeighbourVotes], labels: Integers, classes: int) -> Doubts:
    """Doubts about labels [images], 0 to classes - 1, from several neighbour searches, such as backbones.

    All labels but a share `WRONG` are assumed to be true. Raises ValueError for fewer than two classes.
    """
    if classes < 2:
        raise ValueError(f"expected at least 2 classes, found {classes}")
    some = slice(None, None, -(-len(labels) // FITTED))
    votes = np.stack([votes_of(each, labels, classes, some) for each in searches])
    scales = _weights(np.log(votes + SMOOTHING), labels[some])
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


def found_of_planted(searches: list[NeighbourVotes], labels: Integers, classes: int) -> float:
    """Share of deliberately wrong labels that are listed, a measure of how complete the list is.

    A share `WRONG` of all labels is changed. The result is the mean over draws, with seeds 0 to `DRAWS` - 1.
    """
    shares = []
    for seed in range(DRAWS):
        random = np.random.default_rng(seed)
        wrong = random.choice(len(labels), max(1, round(WRONG * len(labels))), replace=False)
        planted = labels.copy()
        planted[wrong] = (planted[wrong] + random.integers(1, classes, len(wrong))) % classes
        shares.append(np.isin(wrong, label_doubts(searches, planted, classes).listed).mean())
    return float(np.mean(shares))


def _weights(evidence: Floats, labels: Integers) -> Floats:
    """Maximum-likelihood weight of each search, [searches], from the logits [searches images classes]."""
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
