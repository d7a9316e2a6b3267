"""Ridge regression in closed form: all penalties from one decomposition, selected by exact leave-one-out.

Sources: Hoerl and Kennard, Ridge Regression, Technometrics 12, 1970; Allen, The Relationship Between Variable
Selection and Data Augmentation and a Method for Prediction, Technometrics 16, 1974 (errors of rows left out).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from layerboard.tasks.metrics.arrays import ROUNDING


@dataclass(frozen=True, slots=True)
class Ridge:
    """Ridge regressions of several targets on standardised features, float64, with an intercept.

    A penalty is stated per row, in units of the features' mean variance. The penalty of the sum of squared
    errors is that times the number of rows, so one value means the same for any number of images.
    """

    mean: Tensor  # of each feature, [dim]
    deviation: Tensor  # divisor of each feature, [dim]; 1 for a constant feature
    intercept: Tensor  # means of the targets, [targets]
    spectrum: Tensor  # squared singular values of the standardised features, [r]
    basis: Tensor  # directions that span the weights, [dim r]
    left: Tensor  # coordinates of the rows in these directions, [n r]
    gains: Tensor  # factors of the squared ``left``, without that of the penalty, [r]
    targets: Tensor  # centred, [n targets]

    @classmethod
    def fit(cls, train: Tensor, targets: Tensor) -> "Ridge":
        """Fit to features [n dim] and targets [n targets] of at least 2 rows."""
        wide, intercept = train.double(), targets.double().mean(0)
        mean, deviation = wide.mean(0), wide.std(0, correction=0)
        still = deviation <= ROUNDING * torch.finfo(train.dtype).eps * wide.abs().amax(0)
        deviation = torch.where(still, 1.0, deviation)
        features = torch.where(still, 0.0, (wide - mean) / deviation)
        # the smaller of the two Gram matrices has all singular values
        if features.shape[1] < len(features):
            spectrum, basis = torch.linalg.eigh(features.T @ features)
            left, gains = features @ basis, torch.ones_like(spectrum)
        else:
            spectrum, left = torch.linalg.eigh(features @ features.T)
            # centred rows have a direction without variance; its rounding is divided by small penalties
            least = len(features) * torch.finfo(spectrum.dtype).eps * spectrum.amax()
            spectrum = torch.where(spectrum > least, spectrum, 0.0)
            basis, gains = features.T @ left, spectrum
        spectrum = spectrum.clamp(min=0)
        centred = targets.double() - intercept
        return cls(mean, deviation, intercept, spectrum, basis, left, gains, centred)

    def shrinkage(self, penalty: float) -> Tensor:
        """1 / (squared singular values + penalty): [r]; 0 if all features are constant."""
        scale = self.spectrum.sum() / len(self.mean)
        return torch.where(scale > 0, 1 / (self.spectrum + penalty * scale), 0.0)

    def left_out(self, penalty: float) -> Tensor:
        """Leave-one-out errors of each row, which is left in the standardisation only: [n targets].

        They are the residuals divided by (1 - leverage), which is exact. Infinite for a row with leverage 1,
        whose prediction depends on its own target alone.
        """
        gains = self.gains * self.shrinkage(penalty)
        errors = self.targets - (self.left * gains) @ (self.left.T @ self.targets)
        leverage = 1 / len(self.left) + (self.left.square() * gains).sum(1)
        return errors / (1 - leverage).clamp(min=0)[:, None]

    def best(self, penalties: Sequence[float]) -> list[float]:
        """For each target the penalty with the least squared leave-one-out error; ties go to the largest."""
        strongest_first = sorted(penalties, reverse=True)
        errors = torch.stack([self.left_out(penalty).square().mean(0) for penalty in strongest_first])
        return [strongest_first[index] for index in errors.argmin(0).tolist()]

    def predict(self, features: Tensor, penalties: Sequence[float]) -> Tensor:
        """Predicted targets [m targets] of features [m dim], with one penalty per target."""
        shrunk = torch.stack([self.shrinkage(penalty) for penalty in penalties], dim=1)
        return self.coordinates(features) @ (shrunk * (self.left.T @ self.targets)) + self.intercept

    def coordinates(self, features: Tensor) -> Tensor:
        """Coordinates [m r] of features [m dim] in the directions of `basis`."""
        return ((features.double() - self.mean) / self.deviation) @ self.basis

    def lost(self, penalties: Sequence[float], unit: Tensor) -> Tensor:
        """What each row adds to predictions, with its unit's others: [n targets].

        A prediction for coordinates c without all rows of a unit [n] is smaller by the sum over these rows of
        ``(c * shrinkage) @ left + 1 / n`` times the result, for fixed penalties and standardisation. It is
        the error of the row if its unit is left out, (I - leverage)^-1 times the residuals of the unit.
        """
        lost = torch.empty_like(self.targets)
        several = torch.unique(unit, return_counts=True)
        several = several[0][several[1] > 1]
        for penalty in set(penalties):
            same = [number for number, other in enumerate(penalties) if other == penalty]
            lost[:, same] = self.left_out(penalty)[:, same]
            gains = self.gains * self.shrinkage(penalty)
            weights = gains[:, None] * (self.left.T @ self.targets[:, same])
            for rows in (torch.nonzero(unit == number)[:, 0] for number in several):
                mine = self.left[rows]
                leverage = (mine * gains) @ mine.T + 1 / len(self.left)
                errors = self.targets[rows][:, same] - mine @ weights
                block = torch.eye(len(rows), dtype=leverage.dtype, device=leverage.device) - leverage
                lost[rows[:, None], torch.tensor(same, device=rows.device)] = torch.linalg.solve(
                    block, errors
                )
        return lost
