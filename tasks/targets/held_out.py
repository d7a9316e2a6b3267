"""Predictions of images by models that were fitted without their fold, and how these depend on each image."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array
from torch import Tensor

from layerboard.tasks.metrics.arrays import Features, Floats, Integers, Mask
from layerboard.tasks.metrics.folds import ALWAYS_TRAINING
from layerboard.tasks.metrics.neighbours import nearest
from layerboard.tasks.targets.ridge import Ridge

EMPTY = 1e-12  # squared singular values below this share of the largest are 0


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
