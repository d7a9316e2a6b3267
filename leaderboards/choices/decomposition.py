"""Where the difference between two protocols comes from: choices one at a time, with paired intervals."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from leaderboards.records.files import scored_path, task_key
from leaderboards.records.items import Place, read_items
from tasks.base import Items
from tasks.decompose import step_metric
from tasks.keypoints.problem import PULL
from tasks.metrics.arrays import Floats
from tasks.metrics.influence import influence, sample
from tasks.metrics.resampling import Ratios
from tasks.paths import KIND, SIZE, Steps
from tasks.uncertainty import measure

LEVEL = 0.95

Chosen = Literal["best", "fixed"]


@dataclass(frozen=True, slots=True)
class Change:
    """What one choice changes in a backbone's score.

    Attributes:
        backbone: Name.
        chosen: ``best``: the best block before and the best block after; ``fixed``: the best block of the
            first protocol before and after.
        layers: Blocks before and after.
        step: Which choice, from 1.
        before: Score before, in percent.
        after: Score after.
        low: Lower end of the 95 % interval of after - before, paired over what both are measured on; NaN
            where that is too little.
        high: Upper end.
        alone: What only this choice changes in the first protocol.
        last: What only this choice changes before the second protocol.
        gained: Items whose value rises.
        lost: Items whose value falls.
        pull: Mean share, in percent, of a soft arg-max after the choice that lies where nothing is similar;
            NaN without one.
        forward: Whether the choice shows images otherwise.
    """

    backbone: str
    chosen: Chosen
    layers: tuple[int, int]
    step: int
    before: float
    after: float
    low: float
    high: float
    alone: float
    last: float
    gained: int
    lost: int
    pull: float
    forward: bool

    @property
    def delta(self) -> float:
        """What the choice changes on the way."""
        return self.after - self.before


def changes(records: pd.DataFrame, folder: Path, steps: Steps) -> tuple[Change, ...]:
    """What each choice changes, for every backbone with scores by all rules.

    Args:
        records: Records of the steps of one task and dataset.
        folder: Folder of the items beside them.
        steps: The choices and rules.
    """
    found: list[Change] = []
    for backbone, rows in records.groupby("backbone", sort=False):
        own = _Backbone(str(backbone), rows, folder)
        if all(own.blocks(number) for number in range(len(steps.rules))):
            found += [one for chosen in ("best", "fixed") for one in _changes(own, steps, chosen)]
    return tuple(found)


def _changes(own: "_Backbone", steps: Steps, chosen: Chosen) -> list[Change]:
    first = own.best(steps.path[0])

    def layer(number: int) -> int:
        return own.best(number) if chosen == "best" else first

    def value(number: int) -> float:
        return own.blocks(number)[layer(number)]

    rows = []
    for place, choice in enumerate(steps.choices):
        before, after = steps.path[place : place + 2]
        columns = own.column(before, layer(before)), own.column(after, layer(after))
        low, high = difference_interval(*columns)
        gained, lost = _moved(*columns)
        rows.append(
            Change(
                backbone=own.name,
                chosen=chosen,
                layers=(layer(before), layer(after)),
                step=place + 1,
                before=value(before),
                after=value(after),
                low=low,
                high=high,
                alone=value(steps.alone[place]) - value(steps.path[0]),
                last=value(steps.path[-1]) - value(steps.last[place]),
                gained=gained,
                lost=lost,
                pull=own.pull(after, layer(after)),
                forward=choice.name in (SIZE, KIND),
            )
        )
    return rows


class _Backbone:
    """Scores and items of one backbone by all rules."""

    def __init__(self, name: str, rows: pd.DataFrame, folder: Path) -> None:
        self.name = name
        self._rows = rows[(rows["tap"] == "block") & (rows["layer"] > 0)]
        self._folder = folder
        self._items: dict[str, Mapping[Place, Items]] = {}

    def blocks(self, number: int) -> Mapping[int, float]:
        """Score of every block by a rule."""
        rows = self._of(step_metric(number)).dropna(subset=["value"])
        return {int(layer): float(value) for layer, value in zip(rows["layer"], rows["value"], strict=True)}

    def best(self, number: int) -> int:
        """The block with the highest score by a rule, the first of equal ones."""
        scores = self.blocks(number)
        return max(sorted(scores), key=lambda layer: scores[layer])

    def pull(self, number: int, layer: int) -> float:
        """Mean pull of a block by a rule; NaN where there is none."""
        rows = self._of(f"{step_metric(number)} {PULL}")
        found = rows.loc[rows["layer"] == layer, "value"]
        return float(found.iloc[0]) if len(found) else math.nan

    def column(self, number: int, layer: int) -> tuple[Items, str]:
        """Items of a block, and the metric of a rule among their statistics."""
        (protocol,) = set(self._of(step_metric(number))["protocol"])
        if protocol not in self._items:
            row = self._rows[self._rows["protocol"] == protocol].iloc[0]
            key = task_key(row["task"], row["dataset"], protocol)
            self._items[protocol] = read_items(self._folder / scored_path(key, self.name))
        return self._items[protocol][layer, "block", "grid"], step_metric(number)

    def _of(self, metric: str) -> pd.DataFrame:
        return self._rows[self._rows["metric"] == metric]


def difference_interval(before: tuple[Items, str], after: tuple[Items, str]) -> tuple[float, float]:
    """Ends of the 95 % interval of a difference of two scores; NaN where units are too few.

    Units (pairs of images, videos) that both scores are measured on are paired, others count for themselves;
    so scores may be averaged differently or be of other items. By linearisation, with Student's t.

    Args:
        before: Items, and the name of a statistic of theirs.
        after: The same of the other score.
    """
    effects = [_effects(*one) for one in (before, after)]
    if any(one is None for one in effects):
        return math.nan, math.nan
    (old, old_value, freedom), (new, new_value, other) = (one for one in effects if one is not None)
    moved = [new.get(name, 0.0) - old.get(name, 0.0) for name in {**old, **new}]
    half = float(stdtrit(min(freedom, other), (1 + LEVEL) / 2)) * float(np.sqrt(np.square(moved).sum()))
    return new_value - old_value - half, new_value - old_value + half


def _effects(items: Items, metric: str) -> tuple[dict[str, float], float, int] | None:
    """What each unit adds to a score, the score, and the degrees of freedom; None for too few units."""
    measured = measure([items], metric)
    units, strata = sample(measured)
    if not isinstance(measured, Ratios) or units <= strata:
        return None
    names = np.unique(np.asarray(items.clusters, str))[measured.counts > 0]
    added = influence(measured)[:, 0]
    return (
        dict(zip(names.tolist(), added.tolist(), strict=True)),
        float(measured.evaluate()[0, 0]),
        units - strata,
    )


def _moved(before: tuple[Items, str], after: tuple[Items, str]) -> tuple[int, int]:
    """How many items that both have rise and fall."""
    old, new = (_values(*one) for one in (before, after))
    pairs = [(old[key], new[key]) for key in old if key in new]
    return sum(b > a for a, b in pairs), sum(b < a for a, b in pairs)


def _values(items: Items, metric: str) -> dict[str, float]:
    column: Floats = np.asarray(items.values[items.statistics[metric].column], np.float64)
    there: Sequence[int] = np.flatnonzero(~np.isnan(column)).tolist()
    return {items.keys[row]: float(column[row]) for row in there}
