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
from tasks.decompose import CEILING, step_metric
from tasks.keypoints.task import PULL
from tasks.metrics.arrays import Floats
from tasks.metrics.influence import influence, sample
from tasks.metrics.resampling import Ratios
from tasks.paths import KIND, SIZE, Steps
from tasks.uncertainty import measure
from zoo.spec import Layer

LEVEL = 0.95

Chosen = Literal["best", "fixed"]


@dataclass(frozen=True, slots=True)
class Change:
    """What one choice changes in a backbone's score.

    Attributes:
        backbone: Name.
        chosen: ``best``: the best block before and the best block after; ``fixed``: the best block of the
            first protocol before and after. Where a stop reads the last block behind the final norm, that.
        layers: Layers before and after.
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
        ceiling_before: What the ground truth itself gets on the layer's grid before, in percent; NaN if
            unknown.
        ceiling_after: The same after.
        pull: Mean share, in percent, of a soft arg-max after the choice that lies where nothing is similar;
            NaN without one.
        forward: Whether the choice shows images otherwise.
    """

    backbone: str
    chosen: Chosen
    layers: tuple[Layer, Layer]
    step: int
    before: float
    after: float
    low: float
    high: float
    alone: float
    last: float
    gained: int
    lost: int
    ceiling_before: float
    ceiling_after: float
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
        own = _Backbone(str(backbone), rows, folder, steps)
        if all(own.scored(number) for number in range(len(steps.stops))):
            found += [one for chosen in ("best", "fixed") for one in _changes(own, steps, chosen)]
    return tuple(found)


def _changes(own: "_Backbone", steps: Steps, chosen: Chosen) -> list[Change]:
    def layer(number: int) -> Layer:
        if steps.stops[number].tap == "final":
            return own.final
        return own.best_block(number if chosen == "best" else steps.path[0])

    def value(number: int) -> float:
        return own.scores(number)[layer(number)]

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
                ceiling_before=own.beside(before, layer(before), CEILING),
                ceiling_after=own.beside(after, layer(after), CEILING),
                pull=own.beside(after, layer(after), PULL),
                forward=choice.name in (SIZE, KIND),
            )
        )
    return rows


class _Backbone:
    """Scores and items of one backbone at all stops, which are told by their numbers."""

    def __init__(self, name: str, rows: pd.DataFrame, folder: Path, steps: Steps) -> None:
        self.name = name
        self._rows = rows[rows["tap"].isin(["block", "final"]) & (rows["layer"] > 0)]
        self._folder = folder
        self._steps = steps
        self._items: dict[str, Mapping[Place, Items]] = {}
        depth = int(rows["depth"].iloc[0])
        # a ConvNet has no final norm: its last block stands for it
        self.final = Layer(depth, "final" if "final" in {*rows["tap"]} else "block")

    def scored(self, number: int) -> bool:
        """Whether the layers that a stop reads have scores by its rule."""
        scores = self.scores(number)
        final = self._steps.stops[number].tap == "final"
        return self.final in scores if final else any(layer.tap == "block" for layer in scores)

    def scores(self, number: int) -> Mapping[Layer, float]:
        """Score of every layer by the rule of a stop."""
        return self._values(self._metric(number))

    def best_block(self, number: int) -> Layer:
        """The block with the highest score by the rule of a stop, the first of equal ones."""
        scores = {layer: value for layer, value in self.scores(number).items() if layer.tap == "block"}
        return max(sorted(scores, key=lambda layer: layer.index), key=lambda layer: scores[layer])

    def beside(self, number: int, layer: Layer, name: str) -> float:
        """What stands beside a layer's score at a stop; NaN where there is none."""
        return self._values(f"{self._metric(number)} {name}").get(layer, math.nan)

    def column(self, number: int, layer: Layer) -> tuple[Items, str]:
        """Items of a layer, and the metric of a stop's rule among their statistics."""
        metric = self._metric(number)
        row = self._rows[self._rows["metric"] == metric].iloc[0]
        key = task_key(row["task"], row["dataset"], row["protocol"], row["transform"])
        if key not in self._items:
            self._items[key] = read_items(self._folder / scored_path(key, self.name))
        return self._items[key][layer.index, layer.tap, row["pooling"]], metric

    def _metric(self, number: int) -> str:
        return step_metric(self._steps.scored[number])

    def _values(self, metric: str) -> Mapping[Layer, float]:
        rows = self._rows[self._rows["metric"] == metric].dropna(subset=["value"])
        places = zip(rows["layer"], rows["tap"], rows["value"], strict=True)
        return {Layer(int(index), tap): float(value) for index, tap, value in places}


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
