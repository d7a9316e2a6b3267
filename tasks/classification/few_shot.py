"""Closed-form linear probes (ridge regression) on a few random images per class, or on all training images.

Sources: Dosovitskiy et al., ICLR 2021, section 4.1 (least squares on targets -1 and 1); Raghu et al.,
NeurIPS 2021, appendices A and F; standardised features, the constant feature and a penalty of 2^10 as in
the later public evaluator (google-research/big_vision, commit 0127fb6, evaluators/fewshot_lsr).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.metrics.arrays import Features, Floats, Integers
from layerboard.zoo.errors import ensure

CONSTANT = 100.0  # value of the feature that acts as the intercept; it is penalised like all others
LEAST_DEVIATION = 1e-5  # added to the standard deviation that each feature is divided by
CHUNK_FLOATS = 1 << 24  # class scores in memory at a time


@dataclass(frozen=True, slots=True)
class RidgeProbe:
    """A fitted probe for all penalties, in float64.

    Features are standardised by the mean and the population standard deviation of the training rows. So they
    sum to 0 and are orthogonal to the constant feature, whose weight is independent of the others. The other
    weights follow for every penalty from one eigendecomposition of the smaller Gram matrix: that of the
    features, or that of the rows.
    """

    mean: Tensor  # of each feature, [dim]
    deviation: Tensor  # divisor of each feature, [dim]
    basis: Tensor  # directions of the standardised features, [dim r]
    spectrum: Tensor  # their eigenvalues, [r], not negative
    targets: Tensor  # the targets in these directions, [r classes]
    sums: Tensor  # sum of the targets of each class, [classes]
    rows: int  # training rows

    @classmethod
    def fit(cls, train: Tensor, labels: Tensor, classes: int) -> "RidgeProbe":
        """Fit to features [n dim] and labels [n], 0 to classes - 1."""
        rows, dim = train.shape
        parts = torch.split(train, max(1, CHUNK_FLOATS // max(dim, classes)))  # in float64 one by one
        none = torch.zeros(dim, dtype=torch.float64, device=train.device)
        mean = sum((part.double().sum(0) for part in parts), none) / rows
        squares = sum(((part.double() - mean).square().sum(0) for part in parts), none)
        deviation = (squares / rows).sqrt() + LEAST_DEVIATION
        target = 2 * torch.eye(classes, dtype=torch.float64, device=train.device) - 1  # of each class
        sums = 2 * labels.bincount(minlength=classes).double() - rows
        if dim + 1 > rows:
            features = (train.double() - mean) / deviation
            spectrum, vectors = torch.linalg.eigh(features @ features.T)
            basis, targets = features.T @ vectors, vectors.T @ target[labels]
        else:
            gram, products = none.new_zeros(dim, dim), none.new_zeros(dim, classes)
            for part, given in zip(parts, torch.split(labels, len(parts[0])), strict=True):
                features = (part.double() - mean) / deviation
                gram += features.T @ features
                products += features.T @ target[given]
            spectrum, basis = torch.linalg.eigh(gram)
            targets = basis.T @ products
        return cls(mean, deviation, basis, spectrum.clamp(min=0), targets, sums, rows)

    def weights(self, penalty: float) -> Tensor:
        """Weights of the standardised features, without the constant one: [dim classes]."""
        return (self.basis / (self.spectrum + penalty)) @ self.targets

    def intercept(self, penalty: float) -> Tensor:
        """Contribution of the constant feature to the score of each class: [classes]."""
        return CONSTANT**2 * self.sums / (CONSTANT**2 * self.rows + penalty)

    def scores(self, features: Tensor, penalty: float) -> Tensor:
        """Class scores [m classes] of features [m dim]."""
        standard = (features.double() - self.mean) / self.deviation
        return standard @ self.weights(penalty) + self.intercept(penalty)

    def predict(self, features: Tensor, penalties: Sequence[float]) -> Tensor:
        """Class with the highest score, ties to the lower class: [penalties m]."""
        predicted = []
        for part in torch.split(features, self.rows_at_once):
            placed = ((part.double() - self.mean) / self.deviation) @ self.basis
            scores = (
                (placed / (self.spectrum + penalty)) @ self.targets + self.intercept(penalty)
                for penalty in penalties
            )
            predicted.append(torch.stack([each.argmax(1) for each in scores]))
        return torch.cat(predicted, dim=1)

    @property
    def rows_at_once(self) -> int:
        """Rows of features whose scores are in memory at a time."""
        return max(1, CHUNK_FLOATS // max(self.basis.shape[1], self.targets.shape[1]))


@dataclass(frozen=True, slots=True)
class FewShotRule:
    """Settings of few-shot classification."""

    shots: tuple[int, ...]  # training images per class, that of the primary score first
    seeds: tuple[int, ...]  # one random draw of the shots for each seed
    penalties: tuple[float, ...]  # candidates, compared on held-out shots; empty to always use `penalty`
    held_out: int  # one in this many shots of a class is held out, if there are that many
    penalty: float  # used if nothing is held out


@dataclass(frozen=True, slots=True)
class FewShotFit:
    """A probe fitted to all shots, and its penalty."""

    probe: RidgeProbe
    penalty: float

    def classified(self, features: Tensor) -> tuple[Integers, Floats]:
        """Predicted class of features [m dim], ties to the lower class, and its confidence: [m] each.

        Least squares on targets -1 and 1 estimate twice the probability of a class minus 1. These
        probabilities are clipped to 0 to 1, and the confidence is that of the class, divided by the sum over
        all classes.
        """
        given, sure = [], []
        for part in torch.split(features, self.probe.rows_at_once):
            scores = self.probe.scores(part, self.penalty)
            likely = ((scores + 1) / 2).clamp(0, 1)
            given.append(scores.argmax(1))
            top = likely.gather(1, given[-1][:, None])[:, 0]
            sure.append(top / likely.sum(1).clamp(min=LEAST_DEVIATION))
        return torch.cat(given).cpu().numpy(), torch.cat(sure).cpu().numpy()


def draw_shots(labels: Integers, classes: int, shots: int, seed: int) -> Integers:
    """Indices of randomly drawn images of each class: [classes shots].

    With the same seed, a smaller number of shots gives the first columns. One generator permutes the images
    of each class, at least ``shots``, in the order of the classes. Labels [n] are 0 to classes - 1. Raises
    InputError for no shots.
    """
    ensure(shots >= 1, f"few shots are at least 1 image of each class, not {shots}")
    generator = np.random.default_rng(seed)
    drawn = [generator.permutation(np.flatnonzero(labels == label))[:shots] for label in range(classes)]
    return np.stack(drawn).astype(np.int64)


def fit_few_shot(drawn: Tensor, rule: FewShotRule) -> FewShotFit:
    """A probe fitted to the features of all shots [classes shots dim], in the order of the draw.

    With enough shots, the last of each class are held out to choose the penalty, one in ``rule.held_out``.
    """
    classes, shots = drawn.shape[:2]
    labels = torch.arange(classes, device=drawn.device).repeat_interleave(shots)
    held = torch.arange(shots, device=drawn.device) >= shots - shots // rule.held_out
    penalties = rule.penalties if held.any() else ()
    return fit_all(drawn.flatten(0, 1), labels, held.repeat(classes), classes, penalties or (rule.penalty,))


def fit_all(
    train: Tensor, labels: Tensor, held: Tensor, classes: int, penalties: Sequence[float]
) -> FewShotFit:
    """A probe fitted to all features [n dim], with the penalty that is most accurate on the held-out rows.

    ``held`` [n] marks these. For the choice the probe is fitted to the other rows; the largest of equally
    accurate penalties is taken.
    """
    penalty = penalties[0]
    if len(penalties) > 1:
        probe = RidgeProbe.fit(train[~held], labels[~held], classes)
        right = (probe.predict(train[held], penalties) == labels[held]).sum(1).tolist()
        penalty = max(zip(right, penalties, strict=True))[1]
    return FewShotFit(RidgeProbe.fit(train, labels, classes), penalty)


def as_tensor(array: Features | Integers | NDArray[np.bool_], device: torch.device | None = None) -> Tensor:
    """An array as a tensor on a device; the CPU if None."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(device or "cpu")
