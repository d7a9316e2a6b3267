"""Records to the one model of the report: small tidy frames, of which every view and every CSV is a part.

What may be said of the numbers is decided in `leaderboards.choices`; here it is put side by side.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from leaderboards.choices.best import best_layers
from leaderboards.choices.floor import floor_scores
from leaderboards.choices.honest import Choice, choices
from leaderboards.choices.selection import (
    BoardBackbone,
    Column,
    backbones_of,
    best_rows,
    candidates,
    columns_of,
    is_floor,
    pooled,
    score_rows,
)
from leaderboards.choices.ties import ColumnTies, Ties
from leaderboards.display import task_display
from leaderboards.literature import Published
from leaderboards.report.facts import UNKNOWN, Facts
from leaderboards.reproduce import NOT_MEASURED, reproduce
from zoo.spec import entry_name

BACKBONES = ("backbone", "name", "family", "supervision", "licence", "parameters", "depth")
COLUMNS = ("column", "task", "title", "dataset", "protocol", "metric", "asks", "floor", "deviation")
BEST = (
    *("column", "backbone", "family", "pooling", "layer", "depth", "value", "ci_low", "ci_high"),
    *("honest", "optimism", "group", "n"),
)
LAYERS = (
    *("column", "backbone", "pooling", "layer", "depth", "value", "ci_low", "ci_high"),
    *("place", "chosen"),
)
PUBLISHED = (
    *("column", "backbone", "layer", "depth", "value", "source", "measured", "difference", "verdict"),
    "conditions",
)

FIRST, MAYBE, WORSE, UNTESTED = "best score", "may be the best", "worse", "not compared"
"""Groups of backbones in a column; the first two together hold the true best with 95 %."""


@dataclass(frozen=True, slots=True)
class Board:
    """What the report shows of one suite; backbones stand under their labels, columns under their headings.

    Attributes:
        backbones: Columns `BACKBONES`, in the order of the tables, without the random floor.
        columns: Columns `COLUMNS`; ``floor`` and ``deviation`` are the random floor's mean and s.d.
        best: Columns `BEST`: the best layer of each backbone in each column; ``group`` as the data tell.
        layers: Columns `LAYERS`: every block in the backbone's primary pooling; ``place`` is ``best``,
            ``tied`` or "".
        published: Columns `PUBLISHED`: numbers of others beside which something was measured.
    """

    backbones: pd.DataFrame
    columns: pd.DataFrame
    best: pd.DataFrame
    layers: pd.DataFrame
    published: pd.DataFrame


def board_of(
    records: pd.DataFrame,
    ties: ColumnTies,
    facts: Mapping[str, Facts],
    published: Sequence[Published] = (),
) -> Board:
    """The model of some records.

    Args:
        records: Columns of `Record`, of one suite and without analyses, in any order.
        ties: For the `Column.key` of each column, what is tied with its best.
        facts: What is known of backbones, by name.
        published: Numbers of others.
    """
    scores = score_rows(records)
    backbones = [one for one in backbones_of(records) if not one.floor]
    labels = {one.name: one.label for one in backbones}
    columns = columns_of(scores)
    best, layers = [], []
    rows = best_layers(scores)
    for column in columns:
        honest = choices(column.rows(scores), column)
        own = column.rows(rows)
        best.append(_best(own[own["metric"] == column.metric], column, honest, ties.get(column.key, Ties())))
        layers.append(_layers(column.rows(scores), column))
    return Board(
        pd.DataFrame(
            [_backbone(one, facts.get(entry_name(one.name), UNKNOWN)) for one in backbones],
            columns=[*BACKBONES],
        ),
        _columns(scores, columns),
        _labelled(best, labels, BEST),
        _labelled(layers, labels, LAYERS),
        _published(records, columns, labels, published),
    )


def _backbone(one: BoardBackbone, facts: Facts) -> tuple[object, ...]:
    """A row of `BACKBONES`; weights are NaN where they are not known."""
    weights = np.nan if facts.parameters is None else float(facts.parameters)
    return (one.label, one.name, one.family, facts.supervision, facts.licence, weights, one.depth)


def _columns(scores: pd.DataFrame, columns: Sequence[Column]) -> pd.DataFrame:
    """A row of `COLUMNS` for each column of the leaderboard."""
    floors = floor_scores(scores)
    floors = floors[floors["primary"].astype(bool)]
    body = []
    for one in columns:
        own = one.rows(floors)
        own = own[own["metric"] == one.metric]
        noise = (own["mean"].iloc[0], own["deviation"].iloc[0]) if len(own) else (np.nan, np.nan)
        shown = task_display(one.task)
        body.append(
            (one.heading, one.task, shown.title, one.place, one.protocol, one.metric, shown.asks, *noise)
        )
    return pd.DataFrame(body, columns=[*COLUMNS])


def _best(rows: pd.DataFrame, column: Column, honest: Mapping[str, Choice], ties: Ties) -> pd.DataFrame:
    """The best layers of a column, the highest first."""
    rows = rows.sort_values("value", ascending=False, kind="stable")
    names = [str(name) for name in rows["backbone"]]
    top = rows["value"].max()
    groups = [_group(name, ties, top=value == top) for name, value in zip(names, rows["value"], strict=True)]
    return rows.assign(
        column=column.heading,
        honest=[honest[name].score if name in honest else np.nan for name in names],
        optimism=[honest[name].optimism if name in honest else np.nan for name in names],
        group=groups,
    )


def _group(name: str, ties: Ties, *, top: bool) -> str:
    """What the data tell of a backbone in a column."""
    if top:
        return FIRST
    if name in ties.tied:
        return MAYBE
    return WORSE if name in ties.apart else UNTESTED


def _layers(rows: pd.DataFrame, column: Column) -> pd.DataFrame:
    """Every block of every backbone in one column, in order."""
    shown = pooled(rows, column)
    shown = candidates(shown[(shown["metric"] == column.metric) & ~is_floor(shown)])
    best = best_rows(shown)
    first = set(zip(best["backbone"], best["layer"], strict=True))
    fields = shown[["backbone", "layer", "tied"]].itertuples(index=False, name=None)
    places = ["best" if (name, layer) in first else "tied" if tied else "" for name, layer, tied in fields]
    return shown.assign(column=column.heading, place=places).sort_values(["backbone", "layer"], kind="stable")


def _labelled(parts: Sequence[pd.DataFrame], labels: Mapping[str, str], names: Sequence[str]) -> pd.DataFrame:
    """Parts as one frame of some columns in which backbones have their labels."""
    there = [part for part in parts if len(part)]
    if not there:
        return pd.DataFrame(columns=[*names])
    rows = pd.concat(there, ignore_index=True)
    return rows.assign(backbone=rows["backbone"].map(dict(labels)))[[*names]]


def _published(
    records: pd.DataFrame,
    columns: Sequence[Column],
    labels: Mapping[str, str],
    published: Sequence[Published],
) -> pd.DataFrame:
    """Numbers of others beside scores of the page, each at its own layer or at the measured one's."""
    if not published or not columns:
        return pd.DataFrame(columns=[*PUBLISHED])
    headings = {(one.task, one.dataset, one.protocol, one.metric): one.heading for one in reversed(columns)}
    depths = {one.name: one.depth for one in backbones_of(records)}
    found = reproduce(records, published)
    found = found[~found["verdict"].isin(NOT_MEASURED) & found["backbone"].isin(list(labels))]
    keys = zip(found["task"], found["dataset"], found["protocol"], found["metric"], strict=True)
    places = found["published_layer"].astype(float)
    rows = found.assign(
        column=[headings.get(key, "") for key in keys],
        depth=found["backbone"].map(depths),
        layer=places.where(places.notna(), found["measured_layer"].astype(float)),
        value=found["published"],
    )
    return _labelled([rows[rows["column"] != ""]], labels, PUBLISHED)
