"""Ridge regression on class targets in closed form: a linear probe for few labels.

Sources: regularised least squares on targets -1 and 1 as in Dosovitskiy et al., ICLR 2021, section 4.1;
standardised features, the constant feature and a penalty of 2^10 as in its authors' later public evaluator
(google-research/big_vision, commit 0127fb6, evaluators/fewshot_lsr).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

CONSTANT = 100.0
"""The feature that stands for the intercept; it is penalised like all others."""

LEAST_DEVIATION = 1e-5
"""Is added to each feature's standard deviation before it is divided by."""

CHUNK_FLOATS = 1 << 24  # class scores held at a time


@dataclass(frozen=True, slots=True)
class RidgeProbe:
    """A fitted probe, with every penalty at once, in float64.

    Features are standardised by the mean and the population standard deviation of the training rows, so they
    sum to 0, and the constant feature is orthogonal to them: its weight is known by itself. The others follow
    for every penalty from one eigendecomposition, of the features' products or, where these are more than the
    rows, of the rows'.

    Attributes:
        mean: Of each feature, [dim].
        deviation: What each feature is divided by, [dim].
        basis: Directions of the standardised features, [dim r].
        spectrum: Their eigenvalues, [r], not negative.
        targets: The targets in these directions, [r classes].
        sums: Sum of the targets of each class, [classes].
        rows: Training rows.
    """

    mean: Tensor
    deviation: Tensor
    basis: Tensor
    spectrum: Tensor
    targets: Tensor
    sums: Tensor
    rows: int

    @classmethod
    def fit(cls, train: Tensor, labels: Tensor, classes: int) -> "RidgeProbe":
        """Fit to features [n dim] and labels [n] of 0 to classes - 1, on the device of the features.

        Raises:
            ValueError: Shapes do not fit, or there is no row.
        """
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
        rows = max(1, CHUNK_FLOATS // max(self.basis.shape[1], self.targets.shape[1]))
        classes = [self._predict(part, penalties) for part in torch.split(features, rows)]
        return torch.cat(classes, dim=1)

    def _predict(self, features: Tensor, penalties: Sequence[float]) -> Tensor:
        if len(penalties) == 1:
            return self.scores(features, penalties[0]).argmax(1)[None]
        placed = ((features.double() - self.mean) / self.deviation) @ self.basis
        return torch.stack(
            [
                ((placed / (self.spectrum + penalty)) @ self.targets + self.intercept(penalty)).argmax(1)
                for penalty in penalties
            ]
        )
