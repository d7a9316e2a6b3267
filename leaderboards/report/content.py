"""The contents of the report for one suite: small tidy frames from which all views and CSV files are made."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from operator import attrgetter

import numpy as np
import pandas as pd

from layerboard.leaderboards.answer.answer import Answer, answers_of
from layerboard.leaderboards.blocks.blocks import Numbers, Page, Text
from layerboard.leaderboards.blocks.display import NOT_WORSE, narrow, pooling_rank, score_text
from layerboard.leaderboards.board import frames
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.costs import disturbed_texts, find_measured_device, layer_costs
from layerboard.leaderboards.board.differences import Bounds, bounds_of, mean_ranks
from layerboard.leaderboards.board.tidy import numbers_of
from layerboard.leaderboards.charts.style import Spec, looks
from layerboard.leaderboards.findings.facts import Facts, facts_about
from layerboard.leaderboards.findings.reproduce import NOT_MEASURED, answered, reproduction
from layerboard.leaderboards.sections.layer_cka import CkaMap, cka_maps, cka_page
from layerboard.leaderboards.sections.tables import every_layer, overall_metrics

BACKBONES = ("backbone", "name", "family", "supervision", "licence", "parameters", "depth")
MEASURES = ("measure", "column", "metric", "floor")
SCORES = (
    *("column", "measure", "backbone", "family", "pooling", "layer", "depth", "value", "ci_low", "ci_high"),
    *("loss", "chosen", "held_out", "optimism", "n", "place", "group", "score", "source", "verdict"),
    "vectors",
)
COST = ("backbone", "layer", "timed_at", "ms", "disturbed", "parameters", "dim")
MATRICES = (
    *("table", "first", "second", "columns", "numbers", "first_layers", "second_layers"),
    *("nearest", "turned_nearest"),
)
CELLS = 400_000  # maximum numbers of CKA on the page

# groups of backbones in a column; with 95 % the best on average is in one of the first two
FIRST, MAYBE, WORSE, UNTESTED = "best score", NOT_WORSE, "worse", "not compared"
OTHERS = "published"  # in place of a place and of a group: a number of others

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
        for name in ("scores", "backbones", "measured_costs"):
            frame = getattr(self, name)
            vars(part)[name] = frame[frame["backbone"].isin(labels)]
        ranks = {label: rank for label, rank in self.ranks.items() if label in labels}
        vars(part).update(known=self.known, ranks=ranks, cka=[])
        return part

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """The answers of all columns that have a score."""
        return answers_of(self.board, self.facts)

    @cached_property
    def known(self) -> list[tuple[frames.BoardBackbone, Facts]]:
        """All backbones but the random floor, in table order, each with its facts."""
        backbones = [backbone for backbone in self.board.backbones if not backbone.floor]
        return [(each, facts_about(each.name, self.facts)) for each in backbones]

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
    def measures(self) -> pd.DataFrame:
        """Columns `MEASURES`: each metric of each column, its own first, under a name that no other has.

        ``floor`` is the random floor's mean by it, NaN without one.
        """
        rows = []
        for column in self.board.columns:
            others = [metric for metric in overall_metrics(column) if metric != column.metric]
            draws = frames.floor_draws(column.in_pooling())
            floors = dict(draws.loc[draws["family"] == frames.RANDOM, ["metric", "mean"]].to_numpy()[::-1])
            for metric in (column.metric, *others):
                name = column.heading if metric == column.metric else f"{column.heading}: {metric}"
                rows.append((name, column.heading, metric, floors.get(metric, np.nan)))
        return pd.DataFrame(rows, columns=[*MEASURES])

    @cached_property
    def ranks(self) -> dict[str, float]:
        """Mean ranks of backbones by label; empty unless all have scores in each of several columns."""
        return {self.board.labels[name]: rank for name, rank in mean_ranks(self.board.columns).items()}

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Columns `SCORES`: every block in the pooling that is shown, by each metric of a column.

        Their ``vectors`` are ""; if a column has several poolings, rows of each follow, named by ``vectors``.
        Backbones of a column are in descending order of their best scores. ``place`` is best, maybe (not
        shown to be worse than the backbone's best) or empty; ``group`` is that of the backbone, at its best
        layer by the column's own metric, and empty elsewhere. Published numbers, which come last, have
        `OTHERS` as both, and are at their own layer or at that of the measured number. ``relative`` is the
        share of the depth. Measured scores have the costs of their layers, with ``parameters`` in millions.
        """
        measures = self.measures.groupby("column")[["measure", "metric"]]
        parts = [
            _scores(column, self._bounds(column, metric, vectors), measure, metric, vectors)
            for column in self.board.columns
            for measure, metric in measures.get_group(column.heading).itertuples(index=False, name=None)
            for vectors in shown_poolings(column)
        ]
        places, costs = ["column", "backbone", "pooling", "layer"], [*dict(AXES)]
        facts = attrgetter(*places[2:], *costs)
        known = [
            (answer.column.heading, answer.column.labels[each.backbone], *facts(each))
            for answer in self.answers
            for each in answer.candidates
        ]
        there = [part.reindex(columns=[*SCORES]) for part in (*parts, self._published()) if len(part)]
        rows = pd.concat(there, ignore_index=True) if there else pd.DataFrame(columns=[*SCORES])
        rows = rows.assign(backbone=rows["backbone"].map(dict(self.board.labels)))
        rows = rows.merge(pd.DataFrame(known, columns=[*places, *costs]), "left", on=places)
        rows["parameters"] /= 1e6
        return rows.assign(relative=rows["layer"] / rows["depth"])

    def _bounds(self, column: Column, metric: str, vectors: str) -> Bounds:
        """What the data tell of a column's scores; of one kind of vectors, compared with their best."""
        if not vectors or metric != column.metric:
            return self.board.bounds[column.key]
        family = column.family
        return bounds_of(column, family[family["pooling"] == vectors], self.board.items)

    @property
    def best(self) -> pd.DataFrame:
        """The rows of `scores` of the best layer of each backbone in each column, the highest first."""
        return self.scores[~self.scores["group"].isin(["", OTHERS]) & (self.scores["vectors"] == "")]

    def _published(self) -> pd.DataFrame:
        """Published numbers of the backbones and columns of the board."""
        board, key = self.board, ["task", "dataset", "protocol", "metric"]
        headings = {tuple(getattr(each, name) for name in key): each.heading for each in board.columns[::-1]}
        rows = reproduction(board)
        rows = rows[~rows["verdict"].isin(NOT_MEASURED) & rows["backbone"].isin(self.backbones["name"])]
        layers = rows["published_layer"].astype(float)
        column = [headings.get(each, "") for each in rows[key].itertuples(index=False, name=None)]
        rows = rows[["backbone", "source", "verdict"]].assign(
            column=column,
            measure=column,
            depth=rows["backbone"].map({each.name: each.depth for each in board.backbones}),
            layer=layers.where(layers.notna(), rows["measured_layer"].astype(float)),
            value=rows["published"],
            place=OTHERS,
            group=OTHERS,
            vectors="",
        )
        return rows[rows["column"] != ""]

    @cached_property
    def device(self) -> str | None:
        """The device on which costs were measured last; None without any."""
        return find_measured_device(self.board.costs.records)

    @cached_property
    def disturbed(self) -> list[Text]:
        """A warning if other work disturbed times on that device."""
        return disturbed_texts(self.board.costs.records, self.device)

    @cached_property
    def measured_costs(self) -> pd.DataFrame:
        """Columns `COST`: costs of each block on that device, at each view size."""
        labels = dict(self.board.labels)
        costs = layer_costs(self.board.costs.records, self.device)
        costs = costs.assign(backbone=costs["backbone"].map(labels))
        return costs.loc[costs["backbone"].isin(self.labels), [*COST]]

    @cached_property
    def axes(self) -> tuple[tuple[str, str], ...]:
        """The axes of `AXES` for which there are numbers."""
        known = self.scores, self.measured_costs
        return tuple(axis for axis in AXES if any(rows[axis[0]].notna().any() for rows in known))

    @cached_property
    def cka(self) -> list[CkaMap]:
        """CKA of all compared layers."""
        return cka_maps(self.board)

    @cached_property
    def matrices(self) -> pd.DataFrame:
        """Columns `MATRICES`: CKA of each backbone with itself, then of each two once, row by row.

        ``columns`` is the number of columns of a matrix, ``nearest`` the most similar column of each row,
        ``turned_nearest`` the most similar row of each column. A matrix has one layer per block if there are
        more than `CELLS` numbers in all.
        """
        every = [each for own in (True, False) for cka in self.cka for each in cka.matrices(own=own)]
        coarse, rows = sum(each.values.size for each in every) > CELLS, list[tuple[object, ...]]()
        for matrix in (each.coarse if coarse else each for each in every):
            names = map(list, matrix.names)
            numbers = matrix.values.shape[1], matrix.values.round(3).ravel().tolist()
            nearest = (each.nearest.tolist() for each in (matrix, matrix.turned))
            rows.append((matrix.table, matrix.first, matrix.second, *numbers, *names, *nearest))
        return pd.DataFrame(rows, columns=[*MATRICES])

    @cached_property
    def cka_page(self) -> Page | None:
        """The page of CKA of all compared layers; None without any."""
        return cka_page(self.board)

    @cached_property
    def numbers(self) -> tuple[Numbers, ...]:
        """Tables of all scores, analyses, costs and CKA, as on the leaderboard's pages."""
        parts = [self.board] if len(self.board.plain) else []
        parts += [part for part in (self.board.analyses, self.board.costs) if part]
        cka = self.cka_page.numbers if self.cka_page else None
        return (*map(numbers_of, parts), *([cka] if cka else []))


def report_of(board: Board, facts: Mapping[str, Facts], highlight: str = "") -> Report:
    """The contents of a report, with facts by backbone; numbers of others only if some have a place in it."""
    if board.published and answered(reproduction(board), board.published, board.plain).empty:
        board = replace(board, published=())
    return Report(board, facts, board.labels.get(highlight, ""))


def shown_poolings(column: Column) -> list[str]:
    """The poolings that can be shown of a column: "" for each backbone's own, and each of several."""
    several = {*column.other_poolings, *column.poolings.values()} if column.other_poolings else set()
    return ["", *sorted(several, key=pooling_rank)]


def _scores(column: Column, bounds: Bounds, measure: str, metric: str, vectors: str) -> pd.DataFrame:
    """Scores of every block by a metric; as shown and by the column's own with what the data tell of them."""
    rows = every_layer(column, None, metric)
    if vectors:
        rows = pd.concat([rows[rows["pooling"] == vectors], every_layer(column, vectors, metric)])
    rows = frames.candidates(rows)
    is_best = rows.index.isin(frames.best_rows(rows).index)
    best = frames.in_order(rows[is_best], column.backbones)
    best = best.sort_values("value", ascending=False, kind="stable")
    marks = dict.fromkeys(best["backbone"], UNTESTED)
    marks |= dict.fromkeys(bounds.worse, WORSE) | dict.fromkeys(bounds.maybe, MAYBE)
    marks |= dict.fromkeys(best["backbone"][best["value"] == best["value"].max()], FIRST)
    choices = [column.held_out.get(name) for name in rows["backbone"].where(is_best, "")]
    ranks = {name: rank for rank, name in enumerate(best["backbone"])}
    intervals = rows[frames.INTERVAL].astype(float).itertuples(index=False, name=None)
    is_narrow = np.array([*map(narrow, rows["ci_low"], rows["ci_high"])], np.bool_)
    rows = rows.assign(
        column=column.heading,
        measure=measure,
        loss=bounds.losses_of(rows),
        held_out=[choice.score if choice else np.nan for choice in choices],
        optimism=[choice.optimism if choice else np.nan for choice in choices],
        place=np.select([is_best, rows["maybe_best"].astype(bool)], ["best", "maybe"], ""),
        group=np.where(is_best, rows["backbone"].map(marks), ""),
        score=[score_text(*each) for each in intervals],
        vectors=vectors,
        ci_low=rows["ci_low"].where(is_narrow),
        ci_high=rows["ci_high"].where(is_narrow),
        rank=rows["backbone"].map(ranks),
    )
    if vectors or metric != column.metric:  # layers were chosen among all vectors, by the column's metric
        unknown = dict.fromkeys(("chosen", "held_out", "optimism"), np.nan)
        rows = rows.assign(place=np.where(is_best, "best", ""), **unknown)
    if metric != column.metric:
        rows = rows.assign(group="", loss=np.nan)
    return rows.sort_values(["rank", "layer"], kind="stable")
