"""Records to tables of scores: pure functions from data frame to a data frame of cells."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from leaderboards.choices.beside import is_beside
from leaderboards.choices.best import best_layers
from leaderboards.choices.floor import draws_of, floor_scores
from leaderboards.choices.poolings import better_poolings
from leaderboards.choices.selection import (
    BoardBackbone,
    Column,
    backbones_of,
    best_rows,
    columns_of,
    half_widths,
    is_floor,
    pooled,
    primary_poolings,
    score_rows,
)
from leaderboards.choices.ties import ColumnTies, Ties
from leaderboards.display import GLOBAL_AVERAGE, metric_rank, score_text
from tasks.blocks import Cell, Mark

EMPTY = Cell("")

BETTER = "↑"
"""Stands behind a score that another pooling of the backbone's layers exceeds."""


def mark_of(*, best: bool, tied: bool) -> Mark:
    """The mark of a score: the best one, one that cannot be told from it, or neither."""
    if best:
        return "best"
    return "tied" if tied else "none"


def has_intervals(records: pd.DataFrame) -> bool:
    """Whether any score of a backbone, the random floor apart, has an interval."""
    return bool(records.loc[~is_floor(records), "ci_low"].notna().any())


def main_table(records: pd.DataFrame, ties: ColumnTies | None = None) -> pd.DataFrame:
    """The leaderboard: backbones by columns, cells ``score ± half interval (layer/depth)``.

    Each column's best is marked, what is tied with it, and where another pooling is better. The random
    floor's row is last, its cells are ``mean ± s.d.``, and it is never marked.

    Args:
        records: Columns of `Record`, in any order.
        ties: For the `Column.key` of each column, what is tied with its best.
    """
    best, floors = best_layers(records), floor_scores(records)
    better = {column: better_poolings(records, column) for column in columns_of(records)}
    floors = floors[floors["primary"].astype(bool)]
    ties = ties or {}

    def cells(column: Column) -> dict[str, Cell]:
        found = _best_cells(best, column, ties.get(column.key, Ties()))
        marked = {
            name: replace(cell, text=f"{cell.text} {BETTER}") if name in better[column] else cell
            for name, cell in found.items()
        }
        return _floor_cells(floors, column) | marked

    return board(records, backbones_of(records), cells)


def board(
    records: pd.DataFrame, backbones: Sequence[BoardBackbone], cells: Callable[[Column], Mapping[str, Cell]]
) -> pd.DataFrame:
    """A table of the leaderboard's columns.

    Args:
        records: Columns of `Record`, in any order.
        backbones: Its rows.
        cells: For a column, the cell of each backbone that has one, by name.
    """
    table: dict[str, list[str] | list[Cell]] = {
        "family": [_family(backbone) for backbone in backbones],
        "backbone": [backbone.label for backbone in backbones],
    }
    for column in columns_of(records):
        found = cells(column)
        table[column.heading] = [found.get(backbone.name, EMPTY) for backbone in backbones]
    return pd.DataFrame(table)


def layer_table(records: pd.DataFrame, column: Column, pooling: str | None = None) -> pd.DataFrame:
    """Scores of every layer in one column of the leaderboard.

    Args:
        records: Columns of `Record`, in any order.
        column: Task, dataset, protocol and metric.
        pooling: The pooling to show; None for each backbone's primary one.

    Returns:
        A row a backbone without the random floor, columns ``1``..greatest depth and, where there is one,
        ``final``. Each row's best block, which the leaderboard shows, is marked, and layers that are tied
        with it.
    """
    rows = score_rows(records)
    shown = pooled(rows, column, pooling)
    shown = shown[(shown["metric"] == column.metric) & ~is_floor(shown)]
    shown = shown[shown["tap"].isin(["block", "final"])]
    backbones = [backbone for backbone in backbones_of(records) if backbone.name in set(shown["backbone"])]
    heads = [str(layer) for layer in range(1, 1 + max((backbone.depth for backbone in backbones), default=0))]
    heads += ["final"] if (shown["tap"] == "final").any() else []
    best = {(str(row["backbone"]), str(row["layer"])) for _, row in best_rows(shown).iterrows()}
    cells: dict[tuple[str, str], Cell] = {}
    fields = shown[["backbone", "layer", "tap", "value", "tied"]].assign(spread=half_widths(shown))
    for name, layer, tap, value, tied, spread in fields.itertuples(index=False, name=None):
        place = (str(name), "final" if tap == "final" else str(layer))
        cells[place] = Cell(score_text(value, spread), mark_of(best=place in best, tied=bool(tied)))
    body = [[cells.get((backbone.name, head), EMPTY) for head in heads] for backbone in backbones]
    table = pd.DataFrame(body, columns=heads, index=range(len(backbones)), dtype=object)
    table.insert(0, "backbone", _labels(backbones, primary_poolings(rows, column), pooling))
    return table


def metrics_table(records: pd.DataFrame, column: Column) -> pd.DataFrame:
    """All metrics of a column's task in the primary pooling, each at its own best layer.

    Returns:
        Rows and cells as in `main_table`, without the family; empty where there is only one metric.
    """
    rows = pooled(score_rows(records), column)
    metrics = {str(metric) for metric in rows["metric"] if metric and not is_beside(str(metric))}
    if len(metrics) < 2:
        return pd.DataFrame()
    backbones = [backbone for backbone in backbones_of(records) if backbone.name in set(rows["backbone"])]
    best, floors = best_rows(rows), draws_of(rows)
    table: dict[str, list[str] | list[Cell]] = {"backbone": [backbone.label for backbone in backbones]}
    for metric in sorted(metrics, key=lambda name: metric_rank(column.task, name)):
        one = replace(column, metric=metric, heading=metric)
        cells = _floor_cells(floors, one) | _best_cells(best, one, Ties())
        table[metric] = [cells.get(backbone.name, EMPTY) for backbone in backbones]
    return pd.DataFrame(table)


def floor_sentence(records: pd.DataFrame, column: Column, pooling: str | None = None) -> str:
    """The random floor of one column in words, "" where there is none."""
    rows = score_rows(records)
    if not is_floor(rows).any():
        return ""
    floors = draws_of(pooled(rows, column, pooling))
    floors = floors[floors["metric"] == column.metric]
    labels = {backbone.name: backbone.label for backbone in backbones_of(records)}
    return " ".join(
        f"R{labels[row['backbone']][1:]}: {score_text(row['mean'], row['deviation'])} "
        f"({row['draws']} {'draw' if row['draws'] == 1 else 'draws'})."
        for _, row in floors.iterrows()
    )


def _best_cells(best: pd.DataFrame, column: Column, ties: Ties) -> dict[str, Cell]:
    """For each backbone its cell; the column's best and those tied with it are marked."""
    rows = column.rows(best)
    rows = rows[rows["metric"] == column.metric]
    top, spreads = rows["value"].max(), half_widths(rows)
    cells = {}
    for (_, row), spread in zip(rows.iterrows(), spreads, strict=True):
        name = str(row["backbone"])
        text = f"{score_text(float(row['value']), spread)} ({row['layer']}/{row['depth']})"
        cells[name] = Cell(text, mark_of(best=row["value"] == top, tied=name in ties.tied))
    return cells


def _floor_cells(floors: pd.DataFrame, column: Column) -> dict[str, Cell]:
    """For each random floor its cell ``mean ± s.d.``, or the mean of a single draw."""
    rows = column.rows(floors)
    rows = rows[rows["metric"] == column.metric]
    return {
        str(row["backbone"]): Cell(score_text(row["mean"], row["deviation"])) for _, row in rows.iterrows()
    }


def _family(backbone: BoardBackbone) -> str:
    """A backbone's family in tables; the random floor belongs to none."""
    return "" if backbone.floor else backbone.family


def _labels(backbones: Sequence[BoardBackbone], primary: Mapping[str, str], pooling: str | None) -> list[str]:
    """Names of a table's rows, saying where the global average stands in for the class token."""
    return [
        f"{backbone.label}, {GLOBAL_AVERAGE}"
        if primary.get(backbone.name) == "mean" and pooling in (None, "mean")
        else backbone.label
        for backbone in backbones
    ]
