"""Records to tables of scores: pure functions from data frame to data frame."""

from collections.abc import Callable, Mapping, Sequence
from statistics import mean, stdev

import pandas as pd

from leaderboards.choices.selection import (
    COLUMN,
    FLOOR,
    Backbone,
    Column,
    backbones_of,
    best_rows,
    candidates,
    columns_of,
    half_widths,
    pooled,
    primary_poolings,
    score_rows,
)
from leaderboards.choices.ties import Ties
from leaderboards.display import GLOBAL_AVERAGE, marked, metric_rank, score_text

BEST = [
    *("backbone", "family", "trained", *COLUMN, "pooling", "layer", "depth"),
    *("value", "ci_low", "ci_high", "n", "partial"),
]


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
    best = best_rows(rows[rows["primary"].astype(bool) & (rows["metric"] != "")])
    ranks = {backbone.name: rank for rank, backbone in enumerate(backbones_of(records))}
    places = {column.key: place for place, column in enumerate(columns_of(records))}
    order = [
        (ranks[str(backbone)], places[task, dataset, protocol, metric])
        for backbone, task, dataset, protocol, metric in best[["backbone", *COLUMN]].itertuples(
            index=False, name=None
        )
    ]
    positions = sorted(range(len(best)), key=lambda position: order[position])
    return best.iloc[positions].reset_index(drop=True)[BEST]


def floor_scores(records: pd.DataFrame) -> pd.DataFrame:
    """Mean, standard deviation (of a sample) and number of the random floor's draws for every metric.

    Returns:
        Columns backbone, task, dataset, protocol, metric, pooling, primary, mean, deviation, draws.
    """
    return _floors(score_rows(records))


def main_table(
    records: pd.DataFrame, ties: Mapping[tuple[str, str, str, str], Ties] | None = None
) -> pd.DataFrame:
    """The leaderboard as text: backbones by columns, cells ``score ± half interval (layer/depth)``.

    Each column's best is bold, and what is tied with it marked. The random floor's row is last, its cells
    are ``mean ± s.d.``, and it is never bold.

    Args:
        records: Columns of `Record`, in any order.
        ties: For the `Column.key` of each column, what is tied with its best.
    """
    best, floors = best_layers(records), floor_scores(records)
    floors = floors[floors["primary"].astype(bool)]
    ties = ties or {}

    def cells(column: Column) -> dict[str, str]:
        return _floor_cells(floors, column) | _best_cells(best, column, ties.get(column.key, Ties()))

    return board(records, backbones_of(records), cells)


def board(
    records: pd.DataFrame, backbones: Sequence[Backbone], cells: Callable[[Column], Mapping[str, str]]
) -> pd.DataFrame:
    """A table of the leaderboard's columns.

    Args:
        records: Columns of `Record`, in any order.
        backbones: Its rows.
        cells: For a column, the text of each backbone that has one, by name.
    """
    table = pd.DataFrame(
        {
            "family": [_family(backbone) for backbone in backbones],
            "backbone": [backbone.label for backbone in backbones],
        }
    )
    for column in columns_of(records):
        texts = cells(column)
        table[column.heading] = [texts.get(backbone.name, "") for backbone in backbones]
    return table


def layer_table(records: pd.DataFrame, column: Column, pooling: str | None = None) -> pd.DataFrame:
    """Scores of every layer in one column of the leaderboard as text.

    Args:
        records: Columns of `Record`, in any order.
        column: Task, dataset, protocol and metric.
        pooling: The pooling to show; None for each backbone's primary one.

    Returns:
        A row a backbone without the random floor, columns ``1``..greatest depth and, where there is one,
        ``final``. Each row's best block is bold: the layer that the leaderboard shows; layers that are tied
        with it are marked.
    """
    rows = score_rows(records)
    shown = pooled(rows, column, pooling)
    shown = shown[(shown["metric"] == column.metric) & (shown["family"] != FLOOR)]
    shown = shown[shown["tap"].isin(["block", "final"])]
    backbones = [backbone for backbone in backbones_of(records) if backbone.name in set(shown["backbone"])]
    heads = [str(layer) for layer in range(1, 1 + max((backbone.depth for backbone in backbones), default=0))]
    heads += ["final"] if (shown["tap"] == "final").any() else []
    best = {(str(row["backbone"]), str(row["layer"])) for _, row in best_rows(shown).iterrows()}
    cells: dict[tuple[str, str], str] = {}
    fields = shown[["backbone", "layer", "tap", "value", "tied"]].assign(spread=half_widths(shown))
    for name, layer, tap, value, tied, spread in fields.itertuples(index=False, name=None):
        place = (str(name), "final" if tap == "final" else str(layer))
        cells[place] = marked(score_text(value, spread), best=place in best, tied=bool(tied))
    body = [[cells.get((backbone.name, head), "") for head in heads] for backbone in backbones]
    table = pd.DataFrame(body, columns=heads, index=range(len(backbones)), dtype=object)
    table.insert(0, "backbone", _labels(backbones, primary_poolings(rows, column), pooling))
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
    best, floors = best_rows(rows), _floors(rows)
    table = pd.DataFrame({"backbone": [backbone.label for backbone in backbones]})
    for metric in sorted(metrics, key=lambda name: metric_rank(column.task, name)):
        one = Column(column.task, column.dataset, column.protocol, metric, metric, column.partial)
        cells = _floor_cells(floors, one) | _best_cells(best, one, Ties())
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
        f"R{labels[row['backbone']][1:]}: {score_text(row['mean'], row['deviation'])} "
        f"({row['draws']} {'draw' if row['draws'] == 1 else 'draws'})."
        for _, row in floors.iterrows()
    )


def _floors(rows: pd.DataFrame) -> pd.DataFrame:
    """`floor_scores` of rows that are scores already."""
    keys = ["backbone", *COLUMN, "pooling", "primary"]
    draws: dict[tuple[str | bool, ...], list[float]] = {}
    rows = rows[rows["family"] == FLOOR]
    rows = candidates(rows) if len(rows) else rows
    for *key, value in rows[[*keys, "value"]].itertuples(index=False, name=None):
        draws.setdefault(tuple(key), []).append(float(value))
    body = [
        (*key, mean(values), stdev(values) if len(values) > 1 else float("nan"), len(values))
        for key, values in sorted(draws.items())
    ]
    return pd.DataFrame(body, columns=[*keys, "mean", "deviation", "draws"])


def _best_cells(best: pd.DataFrame, column: Column, ties: Ties) -> dict[str, str]:
    """For each backbone its cell; the column's best bold and those tied with it marked."""
    rows = column.rows(best)
    rows = rows[rows["metric"] == column.metric]
    top, spreads = rows["value"].max(), half_widths(rows)
    cells = {}
    for (_, row), spread in zip(rows.iterrows(), spreads, strict=True):
        name = str(row["backbone"])
        text = f"{score_text(float(row['value']), spread)} ({row['layer']}/{row['depth']})"
        cells[name] = marked(text, best=row["value"] == top, tied=name in ties.tied)
    return cells


def _floor_cells(floors: pd.DataFrame, column: Column) -> dict[str, str]:
    """For each random floor its cell ``mean ± s.d.``, or the mean of a single draw."""
    rows = column.rows(floors)
    rows = rows[rows["metric"] == column.metric]
    return {str(row["backbone"]): score_text(row["mean"], row["deviation"]) for _, row in rows.iterrows()}


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
