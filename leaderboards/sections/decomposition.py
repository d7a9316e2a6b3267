"""Decomposition of the difference between two protocols, choice by choice, and its page."""

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from layerboard.leaderboards.blocks.blocks import Block, Bullets, Heading, Numbers, Page, Table, said
from layerboard.leaderboards.blocks.display import fixed, page_name
from layerboard.leaderboards.records.files import RESULTS_VERSION, scored_path, task_key
from layerboard.leaderboards.records.items import read_items
from layerboard.leaderboards.records.record import companion
from layerboard.tasks.decompose.paths import KIND, SIZE, Steps
from layerboard.tasks.framework.assess import measure, sampled_names
from layerboard.tasks.framework.base import Items, ceiling_metric
from layerboard.tasks.framework.registry import PULL
from layerboard.tasks.statistics.uncertainty import influence, sample
from layerboard.tasks.statistics.weighted import Ratios
from layerboard.zoo.spec import Layer, Tap

READ = """
Each row changes one choice, and keeps the changes of the rows above: the first score is that of {first},
the last that of {second}. `change` is the effect of that choice there, with its 95 % interval, paired over
pairs of images or over videos. Choices interact, so two more columns show the effect elsewhere: `alone`, if
nothing else is changed in {first}; `last`, if everything else is changed already. `gained` and `lost` count
keypoints or objects whose score rises or falls. `ceiling` is the score of the ground truth itself on the grid
of that layer. `pull` is the share of a soft arg-max that lies where nothing is similar, and draws points to
the middle.
"""

BEST = "Best layer of each step"
FIXED = "The best layer by {first}, in every step"

LEVEL = 0.95

Chosen = Literal["best", "fixed"]
"""Layers of a step: the best block before and after it, or the best of the first protocol for both. A stop
that reads the output of the final norm always uses that."""


def changes(records: pd.DataFrame, folder: Path, steps: Steps) -> pd.DataFrame:
    """What each choice changes, from a folder of items, for every backbone with scores under all configs.

    One row per backbone, way to choose its layers, and step, from 1. Scores and ceilings, the scores of the
    ground truth itself on the layer's grid, are in percent; NaN if missing. ``low`` and ``high`` are the ends
    of the paired 95 % interval of ``delta``; ``alone`` and ``last`` are the effects of this choice alone in
    the first protocol and just before the second; ``gained`` and ``lost`` count items whose score rises or
    falls; ``pull`` is the mean share, in percent, of a soft arg-max where nothing is similar; ``forward``
    says whether the choice changes how images are shown. In the records, ``stop`` is the number of the first
    stop with the same rule and transform.
    """
    rows = []
    for name, scores in records.groupby("backbone", sort=False):
        backbone = _Backbone(scores, folder, steps)
        if all(map(backbone.is_scored, range(len(steps.stops)))):
            rows += [
                {"backbone": name, **_change(backbone, steps, chosen, step)}
                for chosen in get_args(Chosen)
                for step in range(len(steps.choices))
            ]
    return pd.DataFrame(rows)


def _change(backbone: "_Backbone", steps: Steps, chosen: Chosen, step: int) -> dict[str, object]:
    start, end, choice = steps.path[0], steps.path[-1], steps.choices[step]
    old, new = steps.path[step : step + 2]

    def layer(stop: int) -> Layer:
        return backbone.layer(stop, stop if chosen == "best" else start)

    def value(stop: int) -> float:
        return backbone.scores(stop)[layer(stop)]

    before, after = backbone.items(old, layer(old)), backbone.items(new, layer(new))
    low, high = difference_interval(before, after)
    was, now = (
        pd.Series(items.values[items.statistics[metric].column], [*items.keys])
        for items, metric in (before, after)
    )
    moved = now - was  # NaN for items of one of them
    return {
        "chosen": chosen,
        "step": step + 1,
        "before": value(old),
        "after": value(new),
        "low": low,
        "high": high,
        "alone": value(steps.alone[step]) - value(start),
        "last": value(end) - value(steps.last[step]),
        "gained": int((moved > 0).sum()),
        "lost": int((moved < 0).sum()),
        "ceiling_before": backbone.scores(old, ceiling_metric(before[1])).get(layer(old), math.nan),
        "ceiling_after": backbone.scores(new, ceiling_metric(after[1])).get(layer(new), math.nan),
        "pull": backbone.scores(new, PULL).get(layer(new), math.nan),
        "forward": choice.name in (SIZE, KIND),
        "choice": choice.name,
        "old": choice.old,
        "new": choice.new,
        "metric": after[1],
        "layer_before": layer(old),
        "layer_after": layer(new),
        "delta": value(new) - value(old),
    }


class _Backbone:
    """Scores and items of one backbone at all stops, which are numbered."""

    def __init__(self, rows: pd.DataFrame, folder: Path, steps: Steps) -> None:
        self._rows = rows[rows["tap"].isin(["block", "final"]) & (rows["layer"] > 0)]
        self._steps = steps
        name = str(rows["backbone"].iloc[0])
        self._read = cache(lambda key: read_items(companion(folder, scored_path(key, name))))
        # a ConvNet has no final norm: its last block replaces it
        tap: Tap = "final" if "final" in {*rows["tap"]} else "block"
        self._final = Layer(int(rows["depth"].iloc[0]), tap)

    def is_scored(self, stop: int) -> bool:
        scores = self.scores(stop)
        final = self._steps.stops[stop].tap == "final"
        return self._final in scores if final else any(layer.tap == "block" for layer in scores)

    def layer(self, stop: int, by: int) -> Layer:
        """The layer that a stop reads: the last, or the first best block under the config of stop ``by``."""
        if self._steps.stops[stop].tap == "final":
            return self._final
        scores = self.scores(by)
        blocks = sorted((layer for layer in scores if layer.tap == "block"), key=lambda layer: layer.index)
        return max(blocks, key=scores.__getitem__)

    def scores(self, stop: int, metric: str = "") -> dict[Layer, float]:
        """Primary score of every layer under the config of a stop, or another metric, such as its ceiling."""
        rows = self._of(stop, metric or self._steps.stops[stop].rule.primary)
        rows = rows[rows["value"].notna()]
        fields = zip(rows["layer"], rows["tap"], rows["value"], strict=True)
        return {Layer(int(index), tap): float(value) for index, tap, value in fields}

    def items(self, stop: int, layer: Layer) -> tuple[Items, str]:
        """Items of a layer, and the metric of a stop's config among their statistics."""
        metric = self._steps.stops[stop].rule.primary
        row = self._of(stop, metric).iloc[0]
        key = task_key(row["task"], row["dataset"], row["protocol"], row["transform"])
        return self._read(key)[layer.index, layer.tap, row["pooling"]], metric

    def _of(self, stop: int, metric: str) -> pd.DataFrame:
        """Records of a metric under the config of a stop."""
        same = self._rows["stop"] == self._steps.scored[stop]
        return self._rows[same & (self._rows["metric"] == metric)]


def difference_interval(before: tuple[Items, str], after: tuple[Items, str]) -> tuple[float, float]:
    """Ends of the 95 % interval of a difference of two scores; NaN if there are too few units.

    Each score is given by items and the name of one of their statistics. Units (images of pairs, videos) that
    both are measured on are paired, others count separately; so scores may be averaged differently or be of
    other items. By linearisation, with Student's t.
    """
    old, old_score, old_freedom = _effects(*before)
    new, new_score, new_freedom = _effects(*after)
    if not old or not new:
        return math.nan, math.nan
    moved = [new.get(name, 0.0) - old.get(name, 0.0) for name in {**old, **new}]
    quantile = float(stdtrit(min(old_freedom, new_freedom), (1 + LEVEL) / 2))
    half = quantile * float(np.sqrt(np.square(moved).sum()))
    return new_score - old_score - half, new_score - old_score + half


def _effects(items: Items, metric: str) -> tuple[dict[str, float], float, int]:
    """Contributions of units to a score, the score, and its degrees of freedom; none for too few units."""
    measured = measure([items], metric)
    units, strata = sample(measured)
    if not isinstance(measured, Ratios) or units <= strata:
        return {}, math.nan, 0
    by_unit = dict(zip(sampled_names(items, measured), influence(measured)[:, 0].tolist(), strict=True))
    return by_unit, float(measured.evaluate()[0, 0]), units - strata


def decomposition_page(
    task: str, suite: str, names: tuple[str, str], unlike: Sequence[str], changed: pd.DataFrame
) -> Page:
    """The page of one task and two protocols, with what these do differently from their sources."""
    first, second = names
    name = page_name(f"{suite}.decompose-{task}-{first}-{second}")
    fixed_caption = FIXED.format(first=first)
    blocks: list[Block] = [said(READ.strip(), first=first, second=second)]
    for backbone, rows in changed.groupby("backbone", sort=False):
        parts = (Heading(2, str(backbone)), BEST, "best"), (Heading(3, fixed_caption), fixed_caption, "fixed")
        for heading, caption, chosen in parts:
            blocks += [heading, Table(changes_table(rows[rows["chosen"] == chosen]), left=4, caption=caption)]
    blocks += [Heading(2, "What the protocols are not"), Bullets(tuple(unlike))] if unlike else []
    blocks.append(said("Results version {version}.", version=str(RESULTS_VERSION)))
    numbers = pd.DataFrame({"task": task, **changed})
    cells = numbers.map(lambda cell: repr(cell) if isinstance(cell, float) else str(cell))
    return Page(name, f"{task}: from {first} to {second}", (*blocks, Numbers(cells, name)))


def changes_table(changed: pd.DataFrame) -> pd.DataFrame:
    """What each choice changes, as text; the first row is the first protocol."""
    steps = changed.to_dict("records")
    layer, ceiling = str(steps[0]["layer_before"]), fixed(steps[0]["ceiling_before"], 1)
    rows = [{"layer": layer, "score": f"{steps[0]['before']:.1f}", "ceiling": ceiling}]
    for step in steps:
        interval = "" if math.isnan(step["low"]) else f" [{step['low']:+.1f}, {step['high']:+.1f}]"
        rows.append(
            {
                "choice": step["choice"],
                "from": step["old"],
                "to": step["new"],
                "layer": str(step["layer_after"]),
                "score": f"{step['after']:.1f}",
                "change": f"{step['delta']:+.1f}{interval}",
                **{name: f"{step[name]:+.1f}" for name in ("alone", "last")},
                **{name: str(step[name]) for name in ("gained", "lost")},
                "ceiling": fixed(step["ceiling_after"], 1),
                "pull": fixed(step["pull"], 1),
            }
        )
    frame = pd.DataFrame(rows, columns=list(rows[1])).fillna("")
    return frame.drop(columns=[name for name in ("ceiling", "pull") if not frame[name].any()])
