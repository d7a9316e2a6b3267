"""Scores as tables: frames of text and of cells that may be marked."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import pandas as pd

from layerboard.leaderboards.blocks import display
from layerboard.leaderboards.blocks.blocks import Cell, Mark
from layerboard.leaderboards.board import frames
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column
from layerboard.tasks.datasets.spair_facts import AZIMUTH, KINDS, MISTAKABLE
from layerboard.tasks.framework.base import area_ceiling_metric, ceiling_metric, open_metrics
from layerboard.tasks.framework.registry import PULL
from layerboard.zoo.errors import counted

EMPTY = Cell("")
LAYER = "layer"  # name of the row that says which layer the numbers of a table are of
Cells = dict[str, Cell]  # of a column, by backbone
Texts = Mapping[tuple[str, str], str | Cell]  # cells of a table, by backbone and column

TURNS, LEVELS = (
    tuple(f"{field} {level}" for field, levels in kinds.items() for level in levels)
    for kinds in (AZIMUTH, KINDS)
)
KIND_NAMES = (*LEVELS, *TURNS, MISTAKABLE)  # kinds of keypoints, in the order of tables
CEILINGS = (ceiling_metric(""), area_ceiling_metric(""))
OF_ALL = (*CEILINGS, *open_metrics(""))  # ends of metrics that are of all items, as the metric itself is


def kind_suffix(task: str, metric: str) -> str:
    """The suffix of the name of a metric that says which kind of items it is of; "" for all items."""
    names = display.task_display(task).metrics
    if metric in names or metric.endswith(OF_ALL):
        return ""
    whole = max((name for name in names if metric.startswith(f"{name} ")), key=len, default=metric)
    return metric[len(whole) + 1 :]


def mark_of(*, best: bool, maybe: bool) -> Mark:
    """The mark of a score: best, may be the best, or neither."""
    return "best" if best else "maybe" if maybe else "none"


def cell_table(
    labels: Mapping[str, str], columns: Iterable[str], cells: Texts, head: str = "backbone"
) -> pd.DataFrame:
    """A row for each backbone that has a cell, ``labels`` by name in order; empty in columns without one."""
    named, heads = {name for name, _ in cells}, [*dict.fromkeys(columns)]
    rows: list[dict[str, str | Cell]] = [
        {head: label, **{column: cells.get((name, column), "") for column in heads}}
        for name, label in labels.items()
        if name in named
    ]
    return pd.DataFrame(rows)


def main_table(board: Board) -> pd.DataFrame:
    """The leaderboard: backbones by columns, cells ``score with interval (layer/depth pooling)``.

    Marked are each column's best and scores that may be the best. The random floor's row is last, its cells
    are ``mean ± s.d.``, and it is never marked.
    """

    def cells(column: Column) -> Cells:
        maybe = board.bounds[column.key].maybe
        return _floor_cells(column.floors) | _best_cells(column.best, maybe)

    return board_table(board, cells)


def board_table(board: Board, cells: Callable[[Column], Cells], *, floor: bool = True) -> pd.DataFrame:
    """A table of the leaderboard from the cells of each column, with or without the random floor."""
    backbones = [backbone for backbone in board.scored_backbones if floor or not backbone.floor]
    table: dict[str, list[str] | list[Cell]] = {
        "family": ["" if backbone.floor else backbone.family for backbone in backbones],
        "backbone": [backbone.label for backbone in backbones],
    }
    for column in board.columns:
        by_name = cells(column)
        table[column.heading] = [by_name.get(backbone.name, EMPTY) for backbone in backbones]
    return pd.DataFrame(table)


def layer_table(column: Column, pooling: str | None = None, metric: str = "") -> pd.DataFrame:
    """Scores of every layer in one column, as shown, or in another pooling, or by another metric.

    One row per backbone without the random floor, columns ``1``..greatest depth and, if there is one,
    ``final``. The best block, by the column's metric the one that the leaderboard shows, and those not shown
    to be worse are marked.
    """
    rows = every_layer(column, pooling, metric)
    backbones = frames.backbones_of(rows)
    heads = [str(layer) for layer in range(1, 1 + max((backbone.depth for backbone in backbones), default=0))]
    heads += ["final"] if (rows["tap"] == "final").any() else []
    best_ones = frames.best_rows(rows) if metric else column.best
    best = {*zip(best_ones["backbone"].map(str), best_ones["layer"].map(str), strict=True)}
    best = best if pooling is None else set()  # no backbone is shown in another pooling
    cells: dict[tuple[str, str], Cell] = {}
    fields = rows[["backbone", "layer", "tap", "maybe_best", *frames.INTERVAL]]
    for name, layer, tap, maybe, *score in fields.itertuples(index=False, name=None):
        key = (str(name), "final" if tap == "final" else str(layer))
        cells[key] = Cell(display.score_text(*score), mark_of(best=key in best, maybe=bool(maybe)))
    poolings = dict(zip(rows["backbone"], rows["pooling"], strict=True))
    several = len({*poolings.values()}) > 1  # a single one is in the caption
    labels = {each.name: each.label + f", {poolings[each.name]}" * several for each in backbones}
    return cell_table(labels, heads, cells)


def every_layer(column: Column, pooling: str | None, metric: str = "") -> pd.DataFrame:
    """Scores of blocks and final norms, as shown or in another pooling; no floor.

    They are by a metric of the column's task, its own for none.
    """
    rows = column.in_pooling(pooling)
    rows = rows[rows["metric"] == (metric or column.metric)]
    return rows[rows["tap"].isin(["block", "final"]) & ~frames.is_floor(rows)]


def overall_metrics(column: Column) -> list[str]:
    """Metrics of a column's task over all items, in order; kinds, ceilings and rules have other tables."""
    elsewhere = ("", PULL, *display.task_display(column.task).at_best)
    names = {str(name) for name in column.rows["metric"] if not str(name).endswith(CEILINGS)}
    names = {name for name in names if name not in elsewhere and not kind_suffix(column.task, name)}
    return sorted(names, key=lambda name: display.metric_rank(column.task, name))


def metrics_table(column: Column) -> pd.DataFrame:
    """All metrics of a task in the shown pooling, each at its own best layer; empty for a single one."""
    rows, metrics = column.in_pooling(), overall_metrics(column)
    if len(metrics) < 2:
        return pd.DataFrame()
    best, floors = frames.best_rows(rows), frames.floor_draws(rows)
    cells: dict[tuple[str, str], Cell] = {}
    for metric in metrics:
        by_name = _floor_cells(floors[floors["metric"] == metric])
        by_name |= _best_cells(best[best["metric"] == metric])
        cells |= {(name, metric): cell for name, cell in by_name.items()}
    return cell_table({each.name: each.label for each in frames.backbones_of(rows)}, metrics, cells)


def metric_layers_table(column: Column) -> pd.DataFrame:
    """Scores of every layer by the other metrics of a task in the shown pooling; empty for a single metric.

    One row per metric and backbone, as in `layer_table`; the best block by that metric is marked.
    """
    parts = [pd.DataFrame()]
    for metric in overall_metrics(column):
        if metric != column.metric:
            parts.append(layer_table(column, metric=metric))
            parts[-1].insert(0, "metric", metric)
    return pd.concat(parts, ignore_index=True).fillna("")


def kind_table(column: Column) -> pd.DataFrame:
    """Primary scores by kind of items at the overall best layer, a column per backbone; empty if none."""
    metrics = column.at_best["metric"].astype(str)
    rows = column.at_best.assign(kind=[kind_suffix(column.task, metric) for metric in metrics])
    rows = rows[(rows["kind"] != "") & metrics.str.startswith(f"{column.metric} ")]
    ranks = {kind: rank for rank, kind in enumerate(KIND_NAMES)}
    kinds = sorted(set(rows["kind"]), key=lambda kind: (ranks.get(kind, len(ranks)), display.natural(kind)))
    return _by_backbone(column, rows, "kind", kinds, lambda _, value: display.fixed(value, 1))


def at_best_table(column: Column) -> pd.DataFrame:
    """Metrics that exist only at the best layer, one column per backbone; empty without such metrics.

    A metric that is given by kind has no overall row.
    """
    names = display.task_display(column.task).at_best
    kinds = {str(metric): kind_suffix(column.task, str(metric)) for metric in column.at_best["metric"]}
    wholes = {metric: metric.removesuffix(f" {kind}") if kind else metric for metric, kind in kinds.items()}
    parted = {wholes[metric] for metric, kind in kinds.items() if kind}
    there = sorted(
        (metric for metric, whole in wholes.items() if whole in names and metric not in parted),
        key=lambda metric: (names.index(wholes[metric]), display.natural(metric)),
    )

    def text(metric: str, value: float) -> str:  # a cosine needs more decimals than a percentage
        number = display.fixed(value, 3 if abs(value) < 1 else 1)
        return display.cosine_text(value) if metric.startswith("cosine") else number

    return _by_backbone(column, column.at_best, "metric", there, text)


def _by_backbone(
    column: Column, rows: pd.DataFrame, field: str, names: Sequence[str], text: Callable[[str, float], str]
) -> pd.DataFrame:
    """Values by backbone, with one row per name in ``field``, below the layer that they are of."""
    keys = zip(rows["backbone"], rows[field], strict=True)
    texts = map(text, rows[field], rows["value"].astype(float))
    values = dict(zip(keys, texts, strict=True))
    fields = column.best[["backbone", "layer", "depth", "pooling"]].itertuples(index=False, name=None)
    values |= {(name, LAYER): display.place_text(*layer) for name, *layer in fields}
    backbones = frames.backbones_of(rows)
    return pd.DataFrame(
        {field: name} | {backbone.label: values.get((backbone.name, name), "") for backbone in backbones}
        for name in ((LAYER, *names) if names else ())
    )


def floor_sentence(column: Column, pooling: str | None = None) -> str:
    """Floors of one column in words, "" if there are none."""
    floors = frames.floor_draws(column.in_pooling(pooling))
    words = []
    for row in floors[floors["metric"] == column.metric].to_dict("records"):
        draws = f" ({counted(row['draws'], 'draws')})" if row["family"] == frames.RANDOM else ""
        score = display.spread_text(row["mean"], row["deviation"], 1)
        words.append(f"R{column.labels[row['backbone']][1:]}: {score}{draws}.")
    return " ".join(words)


def _best_cells(best: pd.DataFrame, maybe: Collection[str] = ()) -> Cells:
    """The cell of each best layer; the highest and those that may be the best are marked."""
    top = best["value"].max()
    fields = best[["backbone", "layer", "depth", "pooling", *frames.INTERVAL]]
    cells = {}
    for name, *layer, value, low, high in fields.itertuples(index=False, name=None):
        mark, where = mark_of(best=value == top, maybe=name in maybe), f"({display.place_text(*layer)})"
        cells[str(name)] = Cell(display.score_text(value, low, high), mark, where, float(value))
    return cells


def _floor_cells(floors: pd.DataFrame) -> Cells:
    """For each random floor its cell ``mean ± s.d.``, or the mean of a single draw."""
    fields = floors[["backbone", "mean", "deviation"]].itertuples(index=False, name=None)
    return {str(name): Cell(display.spread_text(mean, deviation, 1)) for name, mean, deviation in fields}
