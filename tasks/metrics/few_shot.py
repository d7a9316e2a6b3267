"""Few-shot classification: a closed-form linear probe (ridge regression) on a few drawn images a class.

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

CONSTANT = 100.0  # the feature that stands for the intercept; it is penalised like all others
LEAST_DEVIATION = 1e-5  # is added to each feature's standard deviation before it is divided by
CHUNK_FLOATS = 1 << 24  # class scores held at a time


@dataclass(frozen=True, slots=True)
class RidgeProbe:
    """A fitted probe, with every penalty at once, in float64.

    Features are standardised by the mean and the population standard deviation of the training rows, so they
    sum to 0, and the constant feature is orthogonal to them: its weight is known by itself. The others follow
    for every penalty from one eigendecomposition, of the features' products or, where these are more than the
    rows, of the rows'.
    """

    mean: Tensor  # of each feature, [dim]
    deviation: Tensor  # what each feature is divided by, [dim]
    basis: Tensor  # directions of the standardised features, [dim r]
    spectrum: Tensor  # their eigenvalues, [r], not negative
    targets: Tensor  # the targets in these directions, [r classes]
    sums: Tensor  # sum of the targets of each class, [classes]
    rows: int  # training rows

    @classmethod
    def fit(cls, train: Tensor, labels: Tensor, classes: int) -> "RidgeProbe":
        """Fit to features [n dim] and labels [n] of 0 to classes - 1; ValueError where shapes do not fit."""
        if train.ndim != 2 or not len(train) or labels.shape != train.shape[:1]:
            raise ValueError(f"expected train [n dim] and labels [n], found {train.shape} and {labels.shape}")
        wide = train.double()
        mean = wide.mean(0)
        deviation = wide.std(0, correction=0) + LEAST_DEVIATION
        features = (wide - mean) / deviation
        targets = torch.full((len(wide), classes), -1.0, dtype=torch.float64, device=wide.device)
        targets[torch.arange(len(wide), device=wide.device), labels] = 1.0
        sums = targets.sum(0)
        if features.shape[1] + 1 > len(features):
            spectrum, vectors = torch.linalg.eigh(features @ features.T)
            basis, targets = features.T @ vectors, vectors.T @ targets
        else:
            spectrum, basis = torch.linalg.eigh(features.T @ features)
            targets = basis.T @ (features.T @ targets)
        return cls(mean, deviation, basis, spectrum.clamp(min=0), targets, sums, len(wide))

    def weights(self, penalty: float) -> Tensor:
        """Weights of the standardised features, without the constant one: [dim classes]."""
        return (self.basis / (self.spectrum + penalty)) @ self.targets

    def intercept(self, penalty: float) -> Tensor:
        """What the constant feature adds to each class's score: [classes]."""
        return CONSTANT**2 * self.sums / (CONSTANT**2 * self.rows + penalty)

    def scores(self, features: Tensor, penalty: float) -> Tensor:
        """Class scores [m classes] of features [m dim]."""
        standard = (features.double() - self.mean) / self.deviation
        return standard @ self.weights(penalty) + self.intercept(penalty)

    def predict(self, features: Tensor, penalties: Sequence[float]) -> Tensor:
        """The class of the highest score, the lower one of equal ones: [penalties m]."""
        parts = torch.split(features, self.rows_at_once)
        return torch.cat([self._predict(part, penalties) for part in parts], dim=1)

    @property
    def rows_at_once(self) -> int:
        """Rows of features whose scores are held together."""
        return max(1, CHUNK_FLOATS // max(self.basis.shape[1], self.targets.shape[1]))

    def _predict(self, features: Tensor, penalties: Sequence[float]) -> Tensor:
        if len(penalties) == 1:
            return self.scores(features, penalties[0]).argmax(1)[None]
        placed = ((features.double() - self.mean) / self.deviation) @ self.basis
        scores = (
            (placed / (self.spectrum + penalty)) @ self.targets + self.intercept(penalty)
            for penalty in penalties
        )
        return torch.stack([each.argmax(1) for each in scores])


@dataclass(frozen=True, slots=True)
class FewShotRule:
    """The numbers of few-shot classification."""

    shots: tuple[int, ...]  # images a class to learn from, that of the primary score first
    seeds: tuple[int, ...]  # one draw of the shots for each
    penalties: tuple[float, ...]  # tried on shots that are held out; none where `penalty` always counts
    held_out: int  # one in so many shots of a class is held out, where there are as many
    penalty: float  # counts where nothing is held out


@dataclass(frozen=True, slots=True)
class FewShotFit:
    """A probe, fitted to all shots, and the penalty that was chosen."""

    probe: RidgeProbe
    penalty: float

    def correct(self, features: Tensor, labels: Tensor) -> NDArray[np.bool_]:
        """Whether each of some features [m dim] is given its label: [m]."""
        right: NDArray[np.bool_] = (self.probe.predict(features, (self.penalty,))[0] == labels).cpu().numpy()
        return right

    def classified(self, features: Tensor) -> tuple[Integers, Floats]:
        """The class that features [m dim] are given, as `RidgeProbe.predict` says, and how sure it is: [m].

        Least squares on targets -1 and 1 estimate twice a class's probability less 1: confidence is that of
        the class, cut to 0 to 1, among those of all classes.
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
    """Indices of drawn images of each class, [classes shots]; fewer of the same seed are the first columns.

    One generator permutes the images of each class in the order of the classes. Labels [n] are 0 to classes -
    1. Raises ValueError where a class has fewer images.
    """
    generator = np.random.default_rng(seed)
    drawn = [generator.permutation(np.flatnonzero(labels == label))[:shots] for label in range(classes)]
    if (fewest := min(map(len, drawn), default=0)) < shots:
        raise ValueError(f"expected {shots} images of every class, found {fewest}")
    return np.stack(drawn).astype(np.int64)


def fit_few_shot(drawn: Tensor, rule: FewShotRule) -> FewShotFit:
    """A probe of the shots of every class, features [classes shots dim] in the order of the draw.

    With enough shots, those drawn last are held out in each class, one in ``rule.held_out``; the penalty is
    the one that is most often right on them, the strongest of equal ones, and the probe is fitted to all.
    """
    shots, penalty = drawn.shape[1], rule.penalty
    held = shots // rule.held_out
    if held and rule.penalties:
        probe = _fit(drawn[:, : shots - held])
        features, labels = _flat(drawn[:, shots - held :])
        right = (probe.predict(features, rule.penalties) == labels).sum(1).tolist()
        penalty = max(zip(right, rule.penalties, strict=True))[1]
    return FewShotFit(_fit(drawn), penalty)


def _flat(drawn: Tensor) -> tuple[Tensor, Tensor]:
    """Features of [classes shots dim] as rows, and their labels."""
    labels = torch.arange(len(drawn), device=drawn.device).repeat_interleave(drawn.shape[1])
    return drawn.flatten(0, 1), labels


def _fit(drawn: Tensor) -> RidgeProbe:
    return RidgeProbe.fit(*_flat(drawn), len(drawn))


def as_tensor(array: Features | Integers | NDArray[np.bool_], device: torch.device | None = None) -> Tensor:
    """An array as a tensor on a device; the CPU if None."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(device or "cpu")
