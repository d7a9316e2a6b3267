"""Scores as functions of weighted units, which is what a bootstrap and a split into halves need.

A unit is what was sampled (an image, a query, a video, a pair); its weight is how often a resample holds it.
Draws of units depend on the seed and the strata only, so what is measured on the same units has the same
resamples.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Literal, Protocol, Self, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from tasks.metrics.arrays import Floats, Integers
from tasks.metrics.clustering import Contingency, agreement

WEIGHTS = 2_000_000  # numbers in one block of weights, 16 MB
BLOCK = 130_000  # units drawn at once, 1 MB, so that counting them stays in the cache


def generator_of(*facts: object) -> np.random.Generator:
    """A generator whose numbers follow from some facts alone, such as an image's name and a seed."""
    state = blake2b(repr(facts).encode(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(state, "little")))


def draws(stratum: Integers, resamples: int, seed: int) -> Iterator[tuple[int, Floats]]:
    """Blocks of bootstrap weights, each with the number of its first resample.

    Units are drawn with replacement within their stratum, as many as it has. A block [R units] float64 is
    valid until the next one is asked for.
    """
    generator = np.random.default_rng(seed)
    strata, units = members_of(stratum), len(stratum)
    buffer = np.empty((min(resamples, max(1, WEIGHTS // max(1, units))), units))
    for start in range(0, resamples, len(buffer)):
        weights = buffer[: resamples - start]
        for members in strata:
            _draw(generator, members, weights)
        yield start, weights


def halves(stratum: Integers, splits: int, seed: int) -> NDArray[np.bool_]:
    """Random halves, True for the first: [splits units]. Each stratum is halved.

    An odd one out falls to either side at random, and so does the only unit of a stratum.
    """
    generator = np.random.default_rng(seed)
    first = np.zeros((splits, len(stratum)), dtype=bool)
    for members in members_of(stratum):
        size = len(members)
        taken = size // 2 + generator.integers(2, size=(splits, 1)) * (size % 2)
        first[:, members] = generator.permuted(np.arange(size) < taken, axis=1)
    return first


def _draw(generator: np.random.Generator, members: Integers, weights: Floats) -> None:
    """Write bootstrap weights of the units of one stratum into weights [R units]."""
    size, places = len(members), span(members)
    step = max(1, BLOCK // size)
    for start in range(0, len(weights), step):
        rows = min(step, len(weights) - start)
        drawn = generator.integers(size, size=(rows, size))
        drawn += size * np.arange(rows)[:, None]
        counts = np.bincount(drawn.reshape(-1), minlength=rows * size)
        weights[start : start + rows, places] = counts.reshape(rows, size)


def multinomial(stratum: Integers, units: Integers, resamples: int, seed: int) -> Floats:
    """Bootstrap weights of rows that stand for so many units each: [R rows]."""
    generator = np.random.default_rng(seed)
    weights = np.empty((resamples, len(stratum)))
    for members in members_of(stratum):
        size = int(units[members].sum())
        weights[:, members] = generator.multinomial(size, units[members] / size, size=resamples)
    return weights


def members_of(names: Integers) -> list[Integers]:
    """Places of each name, by name."""
    order = np.argsort(names, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(names[order])) + 1) if len(order) else []


def span(members: Integers) -> Integers | slice:
    """Places as a slice where they follow each other: a matrix is then not copied to reach them."""
    first, last = int(members[0]), int(members[-1])
    return slice(first, last + 1) if last - first == len(members) - 1 else members


Index = Literal["purity", "NMI", "ARI"]

CELLS = 4_000_000  # numbers in one block of contingency tables, 32 MB a temporary
UNITS_PER_ROW = 500  # where a score has fewer different rows than units by this, rows are drawn, not units


class WeightedScores(Protocol):
    """Several scores (layers) as functions of the same weighted units.

    ``counts`` [units] is how much of what is scored each unit holds, 0 where it does not count, ``stratum``
    [units], from 0, what it is resampled within. ``evaluate`` gives the scores of units with weights
    [R units], or all of weight 1, [R scores], NaN where there is none; ``resample`` those of units drawn with
    replacement within their strata.
    """

    @property
    def scores(self) -> int: ...

    @property
    def counts(self) -> Floats: ...

    @property
    def stratum(self) -> Integers: ...

    def evaluate(self, weights: Floats | None = None) -> Floats: ...

    def resample(self, resamples: int = ..., seed: int = 0) -> Floats: ...


@dataclass(frozen=True, slots=True)
class Trials:
    """What hits and misses are behind scores."""

    count: Floats  # [units] how many trials a unit holds
    hit: Floats  # [scores] the value of a hit, 1 or 100; NaN where values are not hits and misses


@dataclass(frozen=True)
class Ratios:
    """Several scores (layers) that are means over groups of sum(totals) / sum(counts), on the same units.

    Groups whose count is 0 are left out. Units are resampled within their stratum. Raises ValueError where
    shapes do not fit, a count or an id is negative, or a value is not finite.
    """

    totals: Floats  # [units scores] float64
    counts: Floats  # [units] float64 >= 0: how many items a unit holds; 0 where it does not count
    group: Integers  # [units] from 0
    stratum: Integers  # [units] from 0
    trials: Trials | None = None  # None where nothing is known of hits and misses

    def __post_init__(self) -> None:
        shape = self.counts.shape
        if self.totals.ndim != 2 or not (
            self.totals.shape[:1] == shape == self.group.shape == self.stratum.shape
        ):
            shapes = f"{self.totals.shape}, {shape}, {self.group.shape} and {self.stratum.shape}"
            raise ValueError(f"expected totals [units scores] and three arrays [units], found {shapes}")
        if not np.isfinite(self.totals).all() or not (np.isfinite(self.counts) & (self.counts >= 0)).all():
            raise ValueError("totals must be finite, and counts finite and not negative")
        check_ids(self.group, self.stratum)
        trials = self.trials
        if trials is not None and (trials.count.shape != shape or trials.hit.shape != self.totals.shape[1:]):
            shapes = f"{trials.count.shape} and {trials.hit.shape}"
            raise ValueError(f"expected trials [units] and hits [scores], found {shapes}")

    @property
    def scores(self) -> int:
        return int(self.totals.shape[1])

    def evaluate(self, weights: Floats | None = None) -> Floats:
        """Scores [R scores] of units with weights [R units]; NaN where nothing that counts has one."""
        weights = as_weights(weights, len(self.counts))
        total, groups = np.zeros((len(weights), self.scores)), np.zeros((len(weights), 1))
        for members in self._groups:
            sums = weights[:, members] @ self._columns[members]
            count = sums[:, -1:]
            total += np.divide(sums[:, :-1], count, out=np.zeros_like(sums[:, :-1]), where=count > 0)
            groups += count > 0
        return np.divide(total, groups, out=np.full_like(total, np.nan), where=groups > 0)

    def resample(self, resamples: int = 10_000, seed: int = 0) -> Floats:
        """Scores of units drawn with replacement within their strata, as many as each has: [R scores].

        What a score gets depends on its own totals and the seed, not on the other scores beside it. Scores
        of few different rows (hits of images) are drawn by themselves, as multinomial counts of those rows:
        take ``minus`` for a difference of two scores, not the difference of two columns.
        """
        check_resamples(resamples)
        result = np.empty((resamples, self.scores))
        kinds, shared = _ranks(np.stack([self.counts, self.group, self.stratum], axis=1)), []
        for score in range(self.scores):
            rows, units = self._rows(score, kinds)
            if len(units) * UNITS_PER_ROW > len(kinds):
                shared.append(score)
            else:
                result[:, score] = rows.evaluate(multinomial(rows.stratum, units, resamples, seed))[:, 0]
        if shared:
            # in an order in which strata and groups are spans
            order = np.lexsort((self.group, self.stratum))
            part = Ratios(
                self.totals[order][:, shared], self.counts[order], self.group[order], self.stratum[order]
            )
            for start, weights in draws(part.stratum, resamples, seed):
                result[start : start + len(weights), shared] = part.evaluate(weights)
        return result

    def minus(self, reference: int) -> Self:
        """The paired differences of all scores from one of them."""
        return replace(self, totals=self.totals - self.totals[:, [reference]], trials=None)

    def columns(self, scores: Integers) -> Self:
        hits = None if self.trials is None else Trials(self.trials.count, self.trials.hit[scores])
        return replace(self, totals=self.totals[:, scores], trials=hits)

    def _rows(self, score: int, kinds: Integers) -> tuple["Ratios", Integers]:
        """Different rows of one score, and their units; ``kinds`` [units] are rows without their totals."""
        value = np.unique(self.totals[:, score], return_inverse=True)[1]
        _, first, units = np.unique(
            kinds * (value.max(initial=0) + 1) + value, return_index=True, return_counts=True
        )
        column = self.totals[first][:, [score]]
        return Ratios(column, self.counts[first], self.group[first], self.stratum[first]), units

    @cached_property
    def _columns(self) -> Floats:
        return np.concatenate([self.totals, self.counts[:, None]], axis=1)

    @cached_property
    def _groups(self) -> list[Integers | slice]:
        return [span(members) for members in members_of(self.group)]


@dataclass(frozen=True)
class Partitions:
    """Several clusterings (layers) of the same items, each by k-means from several starts.

    Its scores are every layer by the first index, then every layer by the next. Raises ValueError where
    shapes do not fit, a unit has no stratum, or an id is negative.
    """

    labels: Integers  # [items] class of each item, from 0
    starts: Integers  # [layers starts items] clusters from 0; the starts by inertia, best first
    indices: tuple[Index, ...]  # agreements of clusters and classes, fractions
    unit: Integers  # [items] from 0: what an item is sampled with (its image)
    stratum: Integers  # [units] from 0

    def __post_init__(self) -> None:
        items = self.labels.shape
        if self.starts.ndim != 3 or self.starts.shape[2:] != items or self.unit.shape != items:
            shapes = f"{self.starts.shape}, {items} and {self.unit.shape}"
            raise ValueError(
                f"expected starts [layers starts items], labels and unit [items], found {shapes}"
            )
        if not self.starts.shape[1] or not self.indices or set(self.indices) - set(get_args(Index)):
            raise ValueError(f"expected at least one start and purity, NMI or ARI, found {self.indices}")
        check_ids(self.labels, self.starts, self.unit, self.stratum)
        if self.unit.max(initial=-1) >= len(self.stratum):
            raise ValueError(f"unit {self.unit.max()} is not among the {len(self.stratum)} of stratum")

    @property
    def scores(self) -> int:
        return len(self.starts) * len(self.indices)

    @cached_property
    def counts(self) -> Floats:
        return np.bincount(self.unit, minlength=len(self.stratum)).astype(np.float64)

    def evaluate(self, weights: Floats | None = None) -> Floats:
        """Indices of the best start with weights [R units]: [R scores]; NaN where no item has one."""
        weights = as_weights(weights, len(self.stratum))
        return self._evaluate(weights, np.zeros(len(weights), np.int64))

    def resample(self, resamples: int = 1_000, seed: int = 0) -> Floats:
        """Indices of units drawn with replacement within their strata, and of starts drawn, too: [R scores].

        Of as many starts as there are, drawn with replacement, the best one counts, the same for all scores.
        The clusters themselves are not fitted again.
        """
        check_resamples(resamples)
        count = self.starts.shape[1]
        # a stream of its own: the units' draws do not depend on how many starts there are
        best = np.random.default_rng((seed, 1)).integers(count, size=(resamples, count)).min(axis=1)
        result = np.empty((resamples, self.scores))
        for first, weights in draws(self.stratum, resamples, seed):
            rows = slice(first, first + len(weights))
            result[rows] = self._evaluate(weights, best[rows])
        return result

    def _evaluate(self, weights: Floats, best: Integers) -> Floats:
        """Indices of the start ``best`` [R] of every layer with weights [R units]: [R scores]."""
        result = np.empty((len(weights), len(self.indices), len(self.starts)))
        for start in np.unique(best):
            rows = np.flatnonzero(best == start)
            # a contingency table has no more cells in use than items
            for part in np.array_split(rows, max(1, -(-rows.size * self.labels.size // CELLS))):
                columns = np.ascontiguousarray(weights[part].T)
                classes = self._sums(self.labels) @ columns
                for layer, clusters in enumerate(self.starts[:, start]):
                    tables = self._tables(clusters, classes, columns)
                    for number, index in enumerate(self.indices):
                        result[part, number, layer] = agreement(index, tables)
        return result.reshape(len(weights), -1)

    def _tables(self, clusters: Integers, classes: Floats, columns: Floats) -> Contingency:
        """Tables of one partition with weights [units R] and their sums [classes R]."""
        width = self.labels.max(initial=0) + 1
        cells, cell = np.unique(clusters * width + self.labels, return_inverse=True)
        first = np.unique(cells // width, return_index=True)[1]
        return Contingency(self._sums(cell) @ columns, first, classes)

    def _sums(self, names: Integers) -> csr_array:
        """[names units] how many items of each unit have each name."""
        ones = np.ones(len(names))
        shape = (int(names.max(initial=-1)) + 1, len(self.stratum))
        return coo_array((ones, (names, self.unit)), shape=shape).tocsr()


def _ranks(rows: Floats) -> Integers:
    """A number for each different row."""
    rank = np.zeros(len(rows), np.int64)
    for column in rows.T:
        value = np.unique(column, return_inverse=True)[1]
        rank = np.unique(rank * (value.max(initial=0) + 1) + value, return_inverse=True)[1].astype(np.int64)
    return rank


def as_weights(weights: Floats | None, units: int) -> Floats:
    """Weights [R units]: those given, or one row of ones."""
    weights = np.ones((1, units)) if weights is None else weights
    if weights.ndim != 2 or weights.shape[1] != units:
        raise ValueError(f"expected weights [R {units}], found shape {weights.shape}")
    return weights


def check_resamples(resamples: int) -> None:
    """Raise ValueError where there is none."""
    if resamples < 1:
        raise ValueError(f"expected at least one resample, found {resamples}")


def check_ids(*ids: Integers) -> None:
    """Raise ValueError unless all are whole numbers from 0."""
    if any(not np.issubdtype(array.dtype, np.integer) or array.min(initial=0) < 0 for array in ids):
        raise ValueError("ids must be whole numbers from 0")
