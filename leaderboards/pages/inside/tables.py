"""Tables of analyses: every layer, ranges over layers, whole backbones, and all numbers in one frame."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from leaderboards.display import fixed, metric_rank, number_text, pooling_rank, task_rank
from leaderboards.scores.frames import backbones_of, half_widths
from zoo.spec import WHOLE_BACKBONE, Layer

DECIMALS = 6
INSIDE = [
    *("backbone", "family", "trained", "task", "dataset", "protocol", "pooling", "metric"),
    *("layer", "tap", "head", "other", "value", "ci_low", "ci_high", "n", "partial", "data", "reason"),
]
"""Columns of the CSV. ``layer`` is -1 for a backbone as a whole, ``head`` for all heads together;
``other`` is the backbone that it is compared with; ``data`` tells datasets of one name apart; ``reason`` says
why a ``value`` is empty."""


def inside_frame(records: pd.DataFrame) -> pd.DataFrame:
    """Records of analyses, or of costs, of one suite as text, columns `INSIDE`, in the order of the page.

    Numbers of two layers, which are many, are in the records and arrays alone.
    """
    own = records[records["other_layer"] < 0].reset_index(drop=True)
    ranks = {backbone.name: rank for rank, backbone in enumerate(backbones_of(own))}
    keys = [_rank(row, ranks) for row in own.to_dict("records")]
    rows = own.iloc[sorted(range(len(own)), key=keys.__getitem__)].reset_index(drop=True)
    text = pd.DataFrame({column: rows[column].astype(str) for column in INSIDE})
    for column in ("value", "ci_low", "ci_high"):
        text[column] = [fixed(float(value), DECIMALS) for value in rows[column]]
    return text


def _rank(row: Mapping[Hashable, Any], ranks: dict[str, int]) -> tuple[object, ...]:
    task = str(row["task"])
    return (
        (task_rank(task), row["dataset"], row["protocol"] != "standard", row["protocol"]),
        (metric_rank(task, str(row["metric"])), ranks[str(row["backbone"])]),
        (pooling_rank(str(row["pooling"])), Layer(int(row["layer"]), row["tap"]).place, int(row["head"])),
        str(row["other"]),
    )


def layers_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Numbers of one metric and view in every layer, with half their intervals, as text; a row a backbone."""
    rows = rows.sort_values("layer", kind="stable")
    return _table(rows, [str(layer) for layer in rows["layer"]])


def ranges_table(rows: pd.DataFrame, metrics: tuple[str, ...]) -> pd.DataFrame:
    """For each backbone and metric its lowest and highest layer: ``0.112 (3) to 0.530 (12)``, as text."""
    body = []
    for backbone in backbones_of(rows):
        numbers = rows[rows["backbone"] == backbone.name]
        texts = {metric: _range(numbers[numbers["metric"] == metric]) for metric in metrics}
        body.append({"backbone": backbone.label} | texts)
    return pd.DataFrame(body)


def whole_table(rows: pd.DataFrame, metrics: tuple[str, ...]) -> pd.DataFrame:
    """Numbers of backbones as wholes, with half their intervals; a row a backbone, no columns without any.

    Rows of layers and of single heads are left out. A metric that is measured on several kinds of tokens or
    taps has a column for each.
    """
    rows = rows[(rows["layer"] == WHOLE_BACKBONE.index) & (rows["head"] == -1)]
    views = list(zip(rows["metric"], rows["pooling"], rows["tap"], strict=True))
    ranks = [(metrics.index(metric), pooling_rank(pooling), tap) for metric, pooling, tap in views]
    order = sorted(range(len(rows)), key=ranks.__getitem__)
    several = Counter(metric for metric, *_ in set(views))
    names = [", ".join(views[row]) if several[views[row][0]] > 1 else views[row][0] for row in order]
    return _table(rows.iloc[order], names)


def pairs_table(rows: pd.DataFrame, metrics: tuple[str, ...]) -> pd.DataFrame:
    """Numbers of two backbones, each as a whole: a row a pair, a column a metric; no columns without any."""
    labels = {backbone.name: backbone.label for backbone in backbones_of(rows)}
    keys = zip(rows["backbone"], rows["other"], rows["metric"], strict=True)
    cells = dict(zip(keys, _texts(rows), strict=True))
    pairs = sorted({key[:2] for key in cells}, key=lambda pair: ([*labels].index(pair[0]), pair[1]))
    body = [
        {"backbone": labels[first], "other": labels.get(second, second)}
        | {metric: cells.get((first, second, metric), "") for metric in metrics}
        for first, second in pairs
    ]
    return pd.DataFrame(body)


def _table(rows: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Numbers as text, a row a backbone; ``columns`` names for each row the column in which it stands."""
    cells = dict(zip(zip(rows["backbone"], columns, strict=True), _texts(rows), strict=True))
    body = [
        {"backbone": backbone.label} | {name: cells.get((backbone.name, name), "") for name in columns}
        for backbone in backbones_of(rows)
    ]
    return pd.DataFrame(body)


def _texts(rows: pd.DataFrame) -> list[str]:
    pairs = zip(rows["value"], half_widths(rows), strict=True)
    return [number_text(float(value), float(spread)) for value, spread in pairs]


def _range(rows: pd.DataFrame) -> str:
    """The lowest and the highest number with their layers; the lower layer of equal ones; "" without any."""
    if rows.empty:
        return ""
    rows = rows.sort_values("layer", kind="stable")
    low, high = (rows.iloc[int(row)] for row in (rows["value"].argmin(), rows["value"].argmax()))
    ends = [f"{number_text(float(end['value']))} ({end['layer']})" for end in (low, high)]
    return " to ".join(dict.fromkeys(ends))
