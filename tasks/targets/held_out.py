"""Predictions of images by models that were fitted without their fold, and how these depend on each image.

Ridge regression is in closed form: all penalties from one decomposition, selected by exact leave-one-out.
Sources: Hoerl and Kennard, Ridge Regression, Technometrics 12, 1970; Allen, The Relationship Between Variable
Selection and Data Augmentation and a Method for Prediction, Technometrics 16, 1974 (errors of rows left out).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array
from torch import Tensor

from layerboard.tasks.metrics.arrays import ROUNDING, Features, Floats, Integers, Mask
from layerboard.tasks.metrics.folds import ALWAYS_TRAINING
from layerboard.tasks.metrics.neighbours import nearest

EMPTY = 1e-12  # squared singular values below this share of the largest are 0


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


class Fit(NamedTuple):
    """The ridge regressions of one fold."""

    held: Mask  # whether an image is predicted, [images]
    ridge: Ridge  # without what it has of each row
    shrunk: Tensor  # `Ridge.shrinkage` of each target, [r targets]
    lost: Tensor  # `Ridge.lost` of the other images, [images targets]


@dataclass(frozen=True, eq=False)
class RidgePredictions:
    """Predictions [images targets] by ridge regressions; NaN for images that are always in training."""

    predicted: Floats
    unit: Integers  # [images] from 0: what each image is sampled with
    rows: Tensor  # features, [images dim]
    fits: list[Fit]

    @classmethod
    def of(
        cls,
        features: Features,
        targets: Floats,
        fold: Integers,
        unit: Integers,
        penalties: Sequence[float],
        device: torch.device | None = None,
    ) -> "RidgePredictions":
        """Predict targets [images targets] from features [images dim], fold by fold [images] from 0.

        The penalty for each fold and target is selected on the images of the other folds and those of
        `ALWAYS_TRAINING`. Raises ValueError if a fold leaves fewer than 2 of them.
        """
        predicted, fits = np.full(targets.shape, np.nan), []
        arrays = (np.ascontiguousarray(array) for array in (features, targets, unit))
        rows, values, units = (torch.from_numpy(array).to(device or "cpu") for array in arrays)
        for number in np.unique(fold[fold != ALWAYS_TRAINING]).tolist():
            held = torch.from_numpy(fold == number).to(rows.device)
            ridge = Ridge.fit(rows[~held], values[~held])
            chosen = ridge.best(penalties)
            predicted[fold == number] = ridge.predict(rows[held], chosen).cpu().numpy()
            shrunk = torch.stack([ridge.shrinkage(penalty) for penalty in chosen], dim=1)
            lost = ridge.lost(chosen, units[~held])
            nothing = ridge.left.new_empty(0)  # a slice would keep what is as large as the features
            fits.append(Fit(fold == number, replace(ridge, left=nothing, targets=nothing), shrunk, lost))
        return cls(predicted, unit, rows, fits)

    def changes(self) -> Floats:
        changes = np.zeros((self.predicted.shape[1], len(self.unit), self.unit.max() + 1))
        for fit in self.fits:
            tested, left = self._coordinates(fit)
            for change, shrunk, lost in zip(changes, fit.shrunk.T, fit.lost.T, strict=True):
                without = ((tested * shrunk) @ left.T + 1 / len(left)) * lost
                change[fit.held] = -_sums(self.unit, ~fit.held, without.T.cpu().numpy()).T
        return changes

    def moved(self, slopes: Floats) -> Floats:
        totals = np.zeros((len(slopes), self.unit.max() + 1, slopes.shape[2]))
        for fit in self.fits:
            tested, left = self._coordinates(fit)
            for sums, slope in zip(
                totals, torch.from_numpy(slopes[:, fit.held]).to(tested.device), strict=True
            ):
                pulled = left @ (fit.shrunk * (tested.T @ slope)) + slope.sum(dim=0) / len(left)
                sums -= _sums(self.unit, ~fit.held, (pulled * fit.lost).cpu().numpy())
        return totals

    def _coordinates(self, fit: Fit) -> tuple[Tensor, Tensor]:
        """Coordinates of the images that are predicted and, as `Ridge.left`, of the others: [images r]."""
        every, gains = fit.ridge.coordinates(self.rows), fit.ridge.gains
        there = gains > EMPTY * gains.max()
        held = torch.from_numpy(fit.held).to(every.device)
        return every[held], torch.where(there, every[~held] / torch.where(there, gains, 1), 0)


@dataclass(frozen=True, eq=False)
class VotePredictions:
    """Shares [images targets] of an image's nearest neighbours of other folds whose value is 1."""

    predicted: Floats
    unit: Integers  # [images] from 0: what each image is sampled with
    voter: Integers  # unit of each neighbour, [images k]
    change: NDArray[
        np.float32
    ]  # of the shares, if another image votes for this neighbour, [images k targets]

    @classmethod
    def of(
        cls,
        features: Features,
        values: Floats,
        fold: Integers,
        unit: Integers,
        k: int,
        device: torch.device | None = None,
    ) -> "VotePredictions":
        """Shares of values [images targets], from features [images dim], fold by fold [images] from 0."""
        predicted = np.full(values.shape, np.nan)
        most, largest = min(k, len(fold)), min(int(np.bincount(unit).max(initial=1)), k)
        voter = np.zeros((len(fold), most), np.int64)
        change = np.zeros((len(fold), most, values.shape[1]), np.float32)
        for number in np.unique(fold[fold != ALWAYS_TRAINING]):
            held = fold == number
            near = nearest(features[~held], features[held], k + largest, device=device).index
            votes, units = values[~held][near], unit[~held][near]
            kept = min(k, near.shape[1])
            predicted[held] = votes[:, :kept].mean(axis=1)
            rows, further = np.arange(len(votes)), units[:, kept:]
            for rank in range(kept):
                mine = units[:, rank, None]
                earlier = (units[:, :rank] == mine).sum(axis=1, keepdims=True)
                # the next neighbour that is not of this unit, for each of the unit's votes
                step = (np.cumsum(further != mine, axis=1) <= earlier).sum(axis=1)
                there = kept + step < near.shape[1]
                instead = votes[rows, np.where(there, kept + step, 0)]
                fewer = (predicted[held] - votes[:, rank]) / max(kept - 1, 1)
                change[held, rank] = np.where(there[:, None], (instead - votes[:, rank]) / kept, fewer)
            voter[held, :kept] = units[:, :kept]
        return cls(predicted, unit, voter, change)

    def changes(self) -> Floats:
        changes = np.zeros((self.predicted.shape[1], len(self.unit), self.unit.max() + 1))
        rows = np.arange(len(self.unit))[:, None]
        for target, change in enumerate(changes):
            np.add.at(change, (rows, self.voter), self.change[:, :, target])
        return changes

    def moved(self, slopes: Floats) -> Floats:
        totals = np.zeros((len(slopes), self.unit.max() + 1, slopes.shape[2]))
        for sums, slope in zip(totals, slopes, strict=True):
            for target in range(slope.shape[1]):
                moved = (slope[:, [target]] * self.change[:, :, target]).ravel()
                sums[:, target] = np.bincount(self.voter.ravel(), moved, len(sums))
        return totals


def _sums(unit: Integers, taken: Mask, values: Floats) -> Floats:
    """Sums of values [taken columns] over the images of each unit: [units columns]."""
    shape = (int(unit.max()) + 1, len(values))
    ones = coo_array((np.ones(len(values)), (unit[taken], np.arange(len(values)))), shape)
    return np.asarray(ones.tocsr() @ values, np.float64)
