"""Records to tables of scores: pure functions from data frame to data frame."""

from collections.abc import Mapping, Sequence
from statistics import mean, stdev

import pandas as pd

from leaderboards.display import GLOBAL_AVERAGE, floor_text, metric_rank, score_text
from leaderboards.selection import (
    COLUMN,
    FLOOR,
    Backbone,
    Column,
    backbones_of,
    columns_of,
    pooled,
    primary_poolings,
    score_rows,
)

BEST = ["backbone", "family", "trained", *COLUMN, "pooling", "layer", "depth", "value", "n", "partial"]


def best_layers(records: pd.DataFrame) -> pd.DataFrame:
    """The best layer of every backbone for each task's primary metric and pooling.

    Candidates are the blocks 1..depth (neither what enters block 1 nor the output of the final norm); ties
    go to the lower layer. A backbone without any score for a task has no row there; the random floor has
    none at all, since its layers are draws.

    Args:
        records: Columns of `Record`, in any order.

    Returns:
        Columns `BEST`, in the order of the tables.
    """
    rows = score_rows(records)
    best = _best(rows[rows["primary"].astype(bool) & (rows["metric"] != "")])
    ranks = {backbone.name: rank for rank, backbone in enumerate(backbones_of(records))}
    places = {_key(column): place for place, column in enumerate(columns_of(records))}
    order = [
        (ranks[str(backbone)], places[key])
        for backbone, *rest in best[["backbone", *COLUMN]].itertuples(index=False, name=None)
        for key in [tuple(rest)]
    ]
    positions = sorted(range(len(best)), key=lambda position: order[position])
    return best.iloc[positions].reset_index(drop=True)[BEST]


def floor_scores(records: pd.DataFrame) -> pd.DataFrame:
    """Mean, standard deviation (of a sample) and number of the random floor's draws for every metric.

    Returns:
        Columns backbone, task, dataset, protocol, metric, pooling, primary, mean, deviation, draws.
    """
    return _floors(score_rows(records))


def main_table(records: pd.DataFrame) -> pd.DataFrame:
    """The leaderboard as text: backbones by columns, cells ``score (layer/depth)``, each column's best bold.

    The random floor's row is last, its cells are ``mean ± s.d.``, and it is never bold.
    """
    backbones, columns = backbones_of(records), columns_of(records)
    best, floors = best_layers(records), floor_scores(records)
    floors = floors[floors["primary"].astype(bool)]
    table = pd.DataFrame(
        {
            "family": [_family(backbone) for backbone in backbones],
            "backbone": [backbone.label for backbone in backbones],
        }
    )
    for column in columns:
        cells = _floor_cells(floors, column) | _best_cells(best, column)
        table[column.heading] = [cells.get(backbone.name, "") for backbone in backbones]
    return table


def layer_table(records: pd.DataFrame, column: Column, pooling: str | None = None) -> pd.DataFrame:
    """Scores of every layer in one column of the leaderboard as text.

    Args:
        records: Columns of `Record`, in any order.
        column: Task, dataset, protocol and metric.
        pooling: The pooling to show; None for each backbone's primary one.

    Returns:
        A row a backbone without the random floor, columns ``1``..greatest depth and, where there is one,
        ``final``. Each row's best block is bold: the layer that the leaderboard shows.
    """
    rows = score_rows(records)
    shown = pooled(rows, column, pooling)
    shown = shown[(shown["metric"] == column.metric) & (shown["family"] != FLOOR)]
    backbones = [backbone for backbone in backbones_of(records) if backbone.name in set(shown["backbone"])]
    heads = [str(layer) for layer in range(1, 1 + max((backbone.depth for backbone in backbones), default=0))]
    heads += ["final"] if (shown["tap"] == "final").any() else []
    cells = {
        (str(name), "final" if tap == "final" else str(layer)): score_text(float(value))
        for name, layer, tap, value in shown[["backbone", "layer", "tap", "value"]].itertuples(
            index=False, name=None
        )
    }
    for name, layer in _best(shown)[["backbone", "layer"]].itertuples(index=False, name=None):
        cells[name, str(layer)] = f"**{cells[name, str(layer)]}**"
    labels = _labels(backbones, primary_poolings(rows, column), pooling)
    body = [[cells.get((backbone.name, head), "") for head in heads] for backbone in backbones]
    table = pd.DataFrame(body, columns=heads, index=range(len(backbones)), dtype=object)
    table.insert(0, "backbone", labels)
    return table


def metrics_table(records: pd.DataFrame, column: Column) -> pd.DataFrame:
    """All metrics of a column's task in the primary pooling, each at its own best layer, as text.

    Returns:
        Rows and cells as in `main_table`, without the family; empty where there is only one metric.
    """
    rows = pooled(score_rows(records), column)
    metrics = {str(metric) for metric in rows["metric"]} - {""}
    if len(metrics) < 2:
        return pd.DataFrame()
    backbones = [backbone for backbone in backbones_of(records) if backbone.name in set(rows["backbone"])]
    best, floors = _best(rows), _floors(rows)
    table = pd.DataFrame({"backbone": [backbone.label for backbone in backbones]})
    for metric in sorted(metrics, key=lambda name: metric_rank(column.task, name)):
        one = Column(column.task, column.dataset, column.protocol, metric, metric, column.partial)
        cells = _floor_cells(floors, one) | _best_cells(best, one)
        table[metric] = [cells.get(backbone.name, "") for backbone in backbones]
    return table


def floor_sentence(records: pd.DataFrame, column: Column, pooling: str | None = None) -> str:
    """The random floor of one column in words, "" where there is none."""
    rows = score_rows(records)
    if not (rows["family"] == FLOOR).any():
        return ""
    floors = _floors(pooled(rows, column, pooling))
    floors = floors[floors["metric"] == column.metric]
    labels = {backbone.name: backbone.label for backbone in backbones_of(records)}
    return " ".join(
        f"R{labels[row['backbone']][1:]}: {floor_text(row['mean'], row['deviation'])} "
        f"({row['draws']} {'draw' if row['draws'] == 1 else 'draws'})."
        for _, row in floors.iterrows()
    )


def _floors(rows: pd.DataFrame) -> pd.DataFrame:
    """`floor_scores` of rows that are scores already."""
    keys = ["backbone", *COLUMN, "pooling", "primary"]
    draws: dict[tuple[str | bool, ...], list[float]] = {}
    rows = rows[rows["family"] == FLOOR]
    rows = _candidates(rows) if len(rows) else rows
    for *key, value in rows[[*keys, "value"]].itertuples(index=False, name=None):
        draws.setdefault(tuple(key), []).append(float(value))
    body = [
        (*key, mean(values), stdev(values) if len(values) > 1 else float("nan"), len(values))
        for key, values in sorted(draws.items())
    ]
    return pd.DataFrame(body, columns=[*keys, "mean", "deviation", "draws"])


def _candidates(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of blocks from 1 on that have a value."""
    return rows[(rows["tap"] == "block") & (rows["layer"] >= 1) & rows["value"].notna()]


def _best(rows: pd.DataFrame) -> pd.DataFrame:
    """The best row of each backbone, column and metric; the lower layer of equal ones; no random floor."""
    rows = _candidates(rows)
    rows = rows[rows["family"] != FLOOR].sort_values(
        ["value", "layer", "pooling"], ascending=[False, True, True], kind="stable"
    )
    return rows.drop_duplicates(["backbone", *COLUMN])


def _key(column: Column) -> tuple[str, ...]:
    """A column's values of `COLUMN`."""
    return (column.task, column.dataset, column.protocol, column.metric)


def _best_cells(best: pd.DataFrame, column: Column) -> dict[str, str]:
    """For each backbone its cell ``score (layer/depth)``; those that reach the column's best value bold."""
    rows = column.rows(best)
    rows = rows[rows["metric"] == column.metric]
    top = rows["value"].max()
    cells = {}
    for _, row in rows.iterrows():
        text = f"{score_text(float(row['value']))} ({row['layer']}/{row['depth']})"
        cells[str(row["backbone"])] = f"**{text}**" if row["value"] == top else text
    return cells


def _floor_cells(floors: pd.DataFrame, column: Column) -> dict[str, str]:
    """For each random floor its cell ``mean ± s.d.``."""
    rows = column.rows(floors)
    rows = rows[rows["metric"] == column.metric]
    return {str(row["backbone"]): floor_text(row["mean"], row["deviation"]) for _, row in rows.iterrows()}


def _family(backbone: Backbone) -> str:
    """A backbone's family in tables; the random floor belongs to none."""
    return "" if backbone.floor else backbone.family


def _labels(backbones: Sequence[Backbone], primary: Mapping[str, str], pooling: str | None) -> list[str]:
    """Names of a table's rows, saying where the global average stands in for the class token."""
    return [
        f"{backbone.label}, {GLOBAL_AVERAGE}"
        if primary.get(backbone.name) == "mean" and pooling in (None, "mean")
        else backbone.label
        for backbone in backbones
    ]
