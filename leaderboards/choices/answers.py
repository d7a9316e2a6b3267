"""The answer to each column of a leaderboard: its best backbone and layer, how sure that is, and the cost."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pandas as pd

from leaderboards.choices.best import best_layers
from leaderboards.choices.honest import choices, primary_candidates
from leaderboards.choices.poolings import Better, better_poolings
from leaderboards.choices.selection import Column, backbones_of, columns_of, score_rows
from leaderboards.choices.ties import Compared, Ties, known_ties
from leaderboards.scores.costs import find_device, layer_costs

Costs = Mapping[tuple[str, int, int], float]
"""By backbone, input size and block, milliseconds of one image up to it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a column says.

    Attributes:
        column: Task, dataset, protocol and metric.
        backbone: The backbone that scores best, the first of equal ones in the order of the tables.
        layer: Its best block, from 1, the lower one of equal ones.
        depth: Its number of blocks.
        pooling: Pooling of the vectors, or ``grid``.
        score: Its score, in percent.
        ci_low: Lower end of the score's 95 % interval; NaN where there is none.
        ci_high: Upper end.
        honest: Score of the layer when it is chosen on other data than it is scored on; NaN where no data
            were split.
        rivals: Backbones of which the data cannot tell that they are worse: together with the best, they
            hold the true best with 95 %.
        untested: Backbones that could not be compared with the best.
        compared: Number of other backbones that were compared with the best.
        layers: Further blocks of the best backbone of which the data cannot tell that they are worse.
        better: The best layer of this backbone in another pooling, where that scores higher.
        milliseconds: Time of one image up to the layer; NaN where it was not measured.
        device: Name of the device that it was measured on; "" where it was not.
    """

    column: Column
    backbone: str
    layer: int
    depth: int
    pooling: str
    score: float
    ci_low: float
    ci_high: float
    honest: float
    rivals: tuple[str, ...]
    untested: tuple[str, ...]
    compared: int
    layers: tuple[int, ...]
    better: Better | None
    milliseconds: float
    device: str


def answers(records: pd.DataFrame, compared: Compared) -> list[Answer]:
    """The answer to every column of a suite's leaderboard, in their order.

    Args:
        records: Columns of `Record`, of one suite.
        compared: By what backbones are compared.
    """
    scores, device = score_rows(records), find_device(records, None)
    costs = _milliseconds(records, device)
    best = best_layers(scores)
    ties = known_ties(scores, compared)
    names = [backbone.name for backbone in backbones_of(scores)]
    found = []
    for column in columns_of(scores):
        rows = column.rows(best)
        rows = rows[rows["metric"] == column.metric]
        if len(rows):
            top = rows.loc[rows["value"] == rows["value"].max()].iloc[0]
            answer = _answer(scores, column, top, _rivals(rows, top, names, ties.get(column.key)), costs)
            found.append(answer if math.isnan(answer.milliseconds) else replace(answer, device=device or ""))
    return found


def _milliseconds(records: pd.DataFrame, device: str | None) -> Costs:
    """Times of the blocks on a device."""
    rows = layer_costs(records, device)[["backbone", "input_size", "layer", "ms"]]
    return {
        (str(name), int(size), int(layer)): float(value)
        for name, size, layer, value in rows.itertuples(index=False, name=None)
    }


@dataclass(frozen=True, slots=True)
class _Rivals:
    tied: tuple[str, ...]
    untested: tuple[str, ...]
    compared: int


def _rivals(rows: pd.DataFrame, top: pd.Series, names: list[str], ties: Ties | None) -> _Rivals:
    """The other backbones of a column; one that shares the best score cannot be told from it either."""
    others = {str(name) for name in rows["backbone"]} - {str(top["backbone"])}
    equal = {str(name) for name in rows.loc[rows["value"] == top["value"], "backbone"]} & others
    if ties is None:
        return _Rivals(tuple(name for name in names if name in equal), (), 0)
    tied, untested = equal | (ties.tied & others), ties.untested & others
    return _Rivals(
        tuple(name for name in names if name in tied),
        tuple(name for name in names if name in untested),
        len(others - untested),
    )


def _answer(scores: pd.DataFrame, column: Column, top: pd.Series, rivals: _Rivals, costs: Costs) -> Answer:
    name, layer = str(top["backbone"]), int(top["layer"])
    honest = choices(scores, column).get(name)
    own = primary_candidates(scores, column)
    own = own[own["backbone"] == name]
    tied = own[own["tied"].astype(bool) | (own["value"] == top["value"])]["layer"].astype(int)
    size = int(own.loc[own["layer"] == layer, "input_size"].iloc[0])
    return Answer(
        column=column,
        backbone=name,
        layer=layer,
        depth=int(top["depth"]),
        pooling=str(top["pooling"]),
        score=float(top["value"]),
        ci_low=float(top["ci_low"]),
        ci_high=float(top["ci_high"]),
        honest=math.nan if honest is None else honest.score,
        rivals=rivals.tied,
        untested=rivals.untested,
        compared=rivals.compared,
        layers=tuple(sorted({*tied} - {layer})),
        better=better_poolings(scores, column).get(name),
        milliseconds=costs.get((name, size, layer), math.nan),
        device="",
    )
