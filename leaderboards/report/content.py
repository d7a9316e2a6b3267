"""The contents of the report for one suite: small tidy frames from which all views and CSV files are made."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from layerboard.leaderboards.blocks.blocks import Numbers, Text, said
from layerboard.leaderboards.blocks.display import score_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.costs import (
    DISTURBANCE,
    disturbances,
    find_measured_device,
    layer_costs,
    with_costs,
)
from layerboard.leaderboards.board.differences import Bounds
from layerboard.leaderboards.board.frames import (
    INTERVAL,
    RANDOM,
    BoardBackbone,
    best_rows,
    candidates,
    floor_draws,
)
from layerboard.leaderboards.board.ranks import mean_ranks
from layerboard.leaderboards.board.tidy import numbers_of
from layerboard.leaderboards.charts.style import Spec, looks
from layerboard.leaderboards.findings.facts import UNKNOWN, Facts
from layerboard.leaderboards.findings.reproduce import NOT_MEASURED, answered, reproduction
from layerboard.leaderboards.sections.layer_cka import CkaMap, LayerCka, alike_words, cka_maps
from layerboard.leaderboards.sections.tables import every_layer, overall_metrics
from layerboard.tasks.metrics.arrays import mean_of_any
from layerboard.zoo.spec import entry_name

BACKBONES = ("backbone", "name", "family", "supervision", "licence", "parameters", "depth")
COLUMNS = ("column", "task", "dataset", "protocol", "metric", "floor")
BEST = (
    *("column", "backbone", "family", "pooling", "layer", "depth", "value", "ci_low", "ci_high"),
    *("loss", "held_out", "optimism", "group", "n"),
)
LAYERS = (
    *("column", "measure", "backbone", "pooling", "layer", "depth", "value", "ci_low", "ci_high"),
    *("loss", "place", "chosen"),
)
PUBLISHED = (
    *("column", "measure", "backbone", "layer", "depth", "value", "source", "measured", "difference"),
    *("verdict", "conditions"),
)
MEASURES = ("measure", "column", "metric", "floor")
COST = ("backbone", "layer", "timed_at", "ms", "disturbed", "parameters", "dim")
MATRICES = (
    *("table", "detail", "first", "second", "mean", "columns", "numbers"),
    *("first_layers", "second_layers", "words", "turned_words", "nearest", "turned_nearest"),
)
TAPS, BLOCKS = "every tap", "one layer per block"  # detail of matrices
CELLS = 400_000  # maximum numbers of CKA on the page
SCORE = "score"  # further column of the first two: the score as tables show it

# groups of backbones in a column; with 95 % the best on average is in one of the first two
FIRST, MAYBE, WORSE, UNTESTED = "best score", "not shown to be worse", "worse", "not compared"
OTHERS = "published"  # in place of a group: a number of others

# costs for the horizontal axis, in order of preference, and their names
AXES: tuple[tuple[str, str], ...] = (
    ("ms", "latency of one image as the task shows it, ms"),
    ("parameters", "parameters up to the layer, millions"),
    ("dim", "dimensions of a vector"),
)


@dataclass(frozen=True, eq=False)
class Report:
    """The contents of a report on a board; backbones are named by labels, columns by headings."""

    board: Board
    facts: Mapping[str, Facts]  # by name of the backbone
    highlight: str = ""  # label of the backbone to highlight in charts; "" for none

    def only(self, labels: Collection[str]) -> "Report":
        """The report of the scores of some backbones; colours, marks and bounds are those among all."""
        part = replace(self)
        for name in ("best", "layers", "by_metrics", "published", "backbones", "measured_costs"):
            frame = getattr(self, name)
            vars(part)[name] = frame[frame["backbone"].isin(labels)]
        ranks = {label: rank for label, rank in self.ranks.items() if label in labels}
        vars(part).update(known=self.known, ranks=ranks, cka=[])
        return part

    @cached_property
    def known(self) -> list[tuple[BoardBackbone, Facts]]:
        """All backbones but the random floor, in table order, each with its facts."""
        backbones = [backbone for backbone in self.board.backbones if not backbone.floor]
        return [(each, self.facts.get(entry_name(each.name), UNKNOWN)) for each in backbones]

    @cached_property
    def labels(self) -> list[str]:
        """Labels of all backbones, whose order determines their colours."""
        return [backbone.label for backbone, _ in self.known]

    @cached_property
    def looks(self) -> dict[str, Spec]:
        """How each backbone with scores is drawn, by label, and the ``anchor`` of its swatch."""
        series = looks(self.backbones["backbone"], self.labels)
        return {
            label: look | {"anchor": f"look-{self.labels.index(label)}"} for label, look in series.items()
        }

    @cached_property
    def backbones(self) -> pd.DataFrame:
        """Columns `BACKBONES`: those with scores, in table order, without the random floor."""
        rows = [
            asdict(backbone) | asdict(facts) | {"backbone": backbone.label}
            for backbone, facts in self.known
            if backbone in self.board.plain_backbones
        ]
        return pd.DataFrame(rows, columns=[*BACKBONES])

    @cached_property
    def columns(self) -> pd.DataFrame:
        """Columns `COLUMNS`; ``floor`` is the random floor's mean, NaN without one."""
        rows = []
        for column in self.board.columns:
            source = (column.task, column.dataset_name, column.protocol, column.metric)
            rows.append((column.heading, *source, _floors(column).get(column.metric, np.nan)))
        return pd.DataFrame(rows, columns=[*COLUMNS])

    @cached_property
    def measures(self) -> pd.DataFrame:
        """Columns `MEASURES`: each metric of each column, its own first, under a name that no other has.

        ``floor`` is the random floor's mean by it, NaN without one.
        """
        rows = []
        for column in self.board.columns:
            others = [metric for metric in overall_metrics(column) if metric != column.metric]
            floors = _floors(column)
            for metric in (column.metric, *others):
                name = column.heading if metric == column.metric else f"{column.heading}: {metric}"
                rows.append((name, column.heading, metric, floors.get(metric, np.nan)))
        return pd.DataFrame(rows, columns=[*MEASURES])

    @cached_property
    def best(self) -> pd.DataFrame:
        """Columns `BEST` and `SCORE`: the best layer of each backbone in each column, the highest first."""
        parts = [_best(column, self.board.bounds[column.key]) for column in self.board.columns]
        return self._labelled(parts, (*BEST, SCORE))

    @cached_property
    def ranks(self) -> dict[str, float]:
        """Mean ranks of backbones by label; empty unless all have scores in each of several columns."""
        return {self.board.labels[name]: rank for name, rank in mean_ranks(self.board.columns).items()}

    @cached_property
    def layers(self) -> pd.DataFrame:
        """Columns `LAYERS` and `SCORE`: every block in the pooling that is shown, with what it costs.

        ``place`` is best, maybe (not shown to be worse) or empty, ``relative`` the share of the depth;
        ``parameters`` are in millions.
        """
        parts = [_layers(column, self.board.bounds[column.key]) for column in self.board.columns]
        rows = self._labelled(parts, (*LAYERS, "view_size", SCORE))
        if rows.empty:
            return rows.drop(columns="view_size")
        costs = self.costs.assign(parameters=self.costs["parameters"] / 1e6)
        return with_costs(rows.assign(relative=rows["layer"] / rows["depth"]), costs)

    @cached_property
    def by_metrics(self) -> pd.DataFrame:
        """Columns `LAYERS` and `SCORE`: as `layers`, by the other metrics; nothing tells what is the best."""
        columns = {column.heading: column for column in self.board.columns}
        others = self.measures[self.measures["measure"] != self.measures["column"]]
        names = others[["measure", "column", "metric"]].itertuples(index=False, name=None)
        parts = [_by_metric(columns[heading], metric, measure) for measure, heading, metric in names]
        rows = self._labelled(parts, (*LAYERS, SCORE))
        return rows.assign(relative=rows["layer"] / rows["depth"])

    @cached_property
    def published(self) -> pd.DataFrame:
        """Columns `PUBLISHED`: published numbers, each at its own layer or at that of the measured one.

        ``group`` and ``place`` tell them from measured ones, ``relative`` is the share of the depth.
        """
        board, key = self.board, ["task", "dataset", "protocol", "metric"]
        headings = {tuple(getattr(each, name) for name in key): each.heading for each in board.columns[::-1]}
        rows = reproduction(board)
        rows = rows[~rows["verdict"].isin(NOT_MEASURED) & rows["backbone"].isin(self.backbones["name"])]
        layers = rows["published_layer"].astype(float)
        rows = rows.assign(
            column=[headings.get(each, "") for each in rows[key].itertuples(index=False, name=None)],
            depth=rows["backbone"].map({each.name: each.depth for each in board.backbones}),
            layer=layers.where(layers.notna(), rows["measured_layer"].astype(float)),
            value=rows["published"],
        )
        rows = self._labelled([rows[rows["column"] != ""].assign(measure=rows["column"])], PUBLISHED)
        return rows.assign(group=OTHERS, place=OTHERS, relative=rows["layer"] / rows["depth"])

    def _labelled(self, parts: Sequence[pd.DataFrame], names: Sequence[str]) -> pd.DataFrame:
        """Parts as one frame with some columns, in which backbones are named by labels."""
        there = [part for part in parts if len(part)]
        if not there:
            return pd.DataFrame(columns=[*names])
        rows = pd.concat(there, ignore_index=True)
        return rows.assign(backbone=rows["backbone"].map(dict(self.board.labels)))[[*names]]

    @cached_property
    def device(self) -> str | None:
        """The device on which costs were measured last; None without any."""
        return find_measured_device(self.board.costs.records)

    @cached_property
    def disturbed(self) -> list[Text]:
        """A warning if other work disturbed times on that device."""
        return [said(DISTURBANCE, **each) for each in disturbances(self.board.costs.records, self.device)]

    @cached_property
    def measured_costs(self) -> pd.DataFrame:
        """Columns `COST`: costs of each block on that device, at each view size."""
        labels = dict(self.board.labels)
        costs = layer_costs(self.board.costs.records, self.device)
        costs = costs.assign(backbone=costs["backbone"].map(labels))
        return costs.loc[costs["backbone"].isin(self.labels), [*COST]]

    @cached_property
    def costs(self) -> pd.DataFrame:
        """Columns `COST` of all backbones: latency of an image and weights up to a block, size of a vector.

        If a backbone was not measured, weights are an equal share per block, and latency is NaN.
        """
        guessed = [
            (backbone.label, layer, "", np.nan, False, facts.parameters / backbone.depth * layer, width)
            for backbone, facts in self.known
            if backbone.label not in set(self.measured_costs["backbone"])
            for widths in [facts.widths if len(facts.widths) == backbone.depth else [np.nan] * backbone.depth]
            for layer, width in enumerate(widths, start=1)
        ]
        parts = [part for part in (self.measured_costs, pd.DataFrame(guessed, columns=[*COST])) if len(part)]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*COST])

    @cached_property
    def axes(self) -> tuple[tuple[str, str], ...]:
        """The axes of `AXES` for which there are numbers."""
        return tuple((name, title) for name, title in AXES if self.costs[name].notna().any())

    @cached_property
    def cka(self) -> list[CkaMap]:
        """CKA of all compared layers."""
        return cka_maps(self.board)

    @cached_property
    def alike(self) -> tuple[list[LayerCka], int]:
        """Matrices of CKA, each backbone with itself first, and how many fit with all of their taps."""
        every = [each for own in (True, False) for cka in self.cka for each in cka.matrices(own=own)]
        return every, int((np.cumsum([each.values.size for each in every]) <= CELLS).sum())

    @cached_property
    def matrices(self) -> pd.DataFrame:
        """Columns `MATRICES`: those of CKA, each with its mean and its numbers row by row, NaN for none.

        ``detail`` is `BLOCKS`, or `TAPS` for further ones if there is more than one layer per block. The
        words say where the layers of each of the two find their most similar ones in the other.
        """
        every, fitting = self.alike
        coarse = [each.coarse for each in every]
        parts = [_matrix(BLOCKS, each, 3) for each in coarse]
        if any(len(some.rows) < len(each.rows) for some, each in zip(coarse, every, strict=True)):
            parts += [_matrix(TAPS, each, 2) for each in (*every[:fitting], *coarse[fitting:])]
        return pd.DataFrame(parts, columns=[*MATRICES])

    @cached_property
    def numbers(self) -> tuple[Numbers, ...]:
        """Tables of all scores, analyses and costs, as on the leaderboard's pages."""
        parts = [self.board] if len(self.board.plain) else []
        parts += [part for part in (self.board.analyses, self.board.costs) if part]
        return tuple(map(numbers_of, parts))


def report_of(board: Board, facts: Mapping[str, Facts], highlight: str = "") -> Report:
    """The contents of a report, with facts by backbone; numbers of others only if some have a place in it."""
    if board.published and answered(reproduction(board), board.published, board.plain).empty:
        board = replace(board, published=())
    return Report(board, facts, board.labels.get(highlight, ""))


def _matrix(detail: str, matrix: LayerCka, decimals: int) -> tuple[object, ...]:
    mean = mean_of_any(matrix.values[np.isfinite(matrix.values)])
    numbers = matrix.values.round(decimals).ravel().tolist()
    names = ([*map(str, layers)] for layers in (matrix.rows, matrix.columns))
    sides = matrix, matrix.turned
    lines = ([*map(alike_words, sides)], [each.nearest.tolist() for each in sides])
    ends = matrix.first, matrix.second, mean, matrix.values.shape[1]
    return (matrix.table, detail, *ends, numbers, *names, *lines[0], *lines[1])


def _floors(column: Column) -> "pd.Series[float]":
    """The random floor's mean by each metric of a column."""
    draws = floor_draws(column.in_pooling())
    return draws[draws["family"] == RANDOM].drop_duplicates("metric").set_index("metric")["mean"]


def _best(column: Column, bounds: Bounds) -> pd.DataFrame:
    rows = column.best.sort_values("value", ascending=False, kind="stable")
    choices = [column.held_out.get(name) for name in rows["backbone"]]
    marks = dict.fromkeys(bounds.worse, WORSE) | dict.fromkeys(bounds.maybe, MAYBE)
    marks |= dict.fromkeys(rows["backbone"][rows["value"] == rows["value"].max()], FIRST)
    return rows.assign(
        column=column.heading,
        loss=bounds.losses_of(rows),
        held_out=[choice.score if choice else np.nan for choice in choices],
        optimism=[choice.optimism if choice else np.nan for choice in choices],
        group=[marks.get(name, UNTESTED) for name in rows["backbone"]],
        score=_texts(rows),
    )


def _layers(column: Column, bounds: Bounds) -> pd.DataFrame:
    rows = column.candidates
    best = set(zip(column.best["backbone"], column.best["layer"], strict=True))
    fields = rows[["backbone", "layer", "maybe_best"]].itertuples(index=False, name=None)
    places = ["best" if (name, layer) in best else "maybe" if maybe else "" for name, layer, maybe in fields]
    rows = rows.assign(column=column.heading, loss=bounds.losses_of(rows), place=places, score=_texts(rows))
    return rows.assign(measure=column.heading).sort_values(["backbone", "layer"], kind="stable")


def _by_metric(column: Column, metric: str, measure: str) -> pd.DataFrame:
    """Scores of every block by another metric than the column's own; its highest are marked."""
    rows = every_layer(column, None, metric)
    rows = candidates(rows).sort_values(["backbone", "layer"], kind="stable")
    places = np.where(rows.index.isin(best_rows(rows).index), "best", "")
    unknown = {"loss": np.nan, "chosen": np.nan}
    return rows.assign(column=column.heading, measure=measure, place=places, score=_texts(rows), **unknown)


def _texts(rows: pd.DataFrame) -> list[str]:
    return [score_text(*each) for each in rows[INTERVAL].astype(float).itertuples(index=False, name=None)]
