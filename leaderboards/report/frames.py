"""A board as the small tidy frames that every view and every CSV of the report is a part of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from leaderboards.board import Board
from leaderboards.display import task_display
from leaderboards.scores.column import Column
from leaderboards.scores.differences import Ties
from leaderboards.scores.frames import BoardBackbone, backbones_of
from zoo.spec import entry_name

BACKBONES = ("backbone", "name", "family", "supervision", "licence", "parameters", "depth")
COLUMNS = ("column", "task", "title", "dataset", "protocol", "metric", "asks", "floor", "deviation")
BEST = (
    *("column", "backbone", "family", "pooling", "layer", "depth", "value", "ci_low", "ci_high"),
    *("honest", "optimism", "group", "n"),
)
LAYERS = ("column", "backbone", "pooling", "layer", "depth", "value", "ci_low", "ci_high", "place", "chosen")
PUBLISHED = (
    *("column", "backbone", "layer", "depth", "value", "source", "measured", "difference", "verdict"),
    "conditions",
)

# groups of backbones in a column; the first two together hold the true best with 95 %
FIRST, MAYBE, WORSE, UNTESTED = "best score", "may be the best", "worse", "not compared"


@dataclass(frozen=True, slots=True)
class Facts:
    """A backbone as filters and costs need it."""

    supervision: str = ""  # what it learned from in a word or two, such as ``labels``; "" where not known
    licence: str = ""  # SPDX id or name of its weights' licence; "" where not known
    parameters: int | None = None  # weights of the whole network; None where nobody has counted them
    widths: tuple[int, ...] = ()  # length of a vector after each block, from block 1; empty where not known


UNKNOWN = Facts()  # what is known of a backbone of somebody's own


@dataclass(frozen=True, slots=True)
class ReportFrames:
    """What the report shows of a suite; backbones stand under their labels, columns under headings."""

    backbones: pd.DataFrame  # columns `BACKBONES`, in the order of the tables, without the random floor
    columns: pd.DataFrame  # columns `COLUMNS`; ``floor``, ``deviation`` are the random floor's mean and s.d
    best: pd.DataFrame  # columns `BEST`: the best layer of each backbone in each column
    # columns `LAYERS`: every block in the backbone's primary pooling; ``place`` is ``best``, ``tied`` or ""
    layers: pd.DataFrame
    published: pd.DataFrame  # columns `PUBLISHED`: numbers of others beside which something was measured


def frames_of(board: Board, facts: Mapping[str, Facts]) -> ReportFrames:
    """The frames of a board, given what is known of backbones, by name."""
    backbones = [backbone for backbone in backbones_of(board.plain) if not backbone.floor]
    ties = {column.key: board.ties.get(column.key, Ties()) for column in board.columns}
    rows = [_backbone(backbone, facts.get(entry_name(backbone.name), UNKNOWN)) for backbone in backbones]
    return ReportFrames(
        pd.DataFrame(rows, columns=[*BACKBONES]),
        pd.DataFrame([_column(column) for column in board.columns], columns=[*COLUMNS]),
        _labelled([_best(column, ties[column.key]) for column in board.columns], board.labels, BEST),
        _labelled([_layers(column) for column in board.columns], board.labels, LAYERS),
        _published(board, [backbone.name for backbone in backbones]),
    )


def _backbone(backbone: BoardBackbone, facts: Facts) -> tuple[object, ...]:
    weights = np.nan if facts.parameters is None else float(facts.parameters)
    names = (backbone.label, backbone.name, backbone.family)
    return (*names, facts.supervision, facts.licence, weights, backbone.depth)


def _column(column: Column) -> tuple[object, ...]:
    floors = column.floors
    noise = (floors["mean"].iloc[0], floors["deviation"].iloc[0]) if len(floors) else (np.nan, np.nan)
    task = task_display(column.task)
    source = (column.dataset_name, column.protocol, column.metric)
    return (column.heading, column.task, task.title, *source, task.asks, *noise)


def _best(column: Column, ties: Ties) -> pd.DataFrame:
    rows = column.best.sort_values("value", ascending=False, kind="stable")
    choices = [column.honest.get(name) for name in rows["backbone"]]
    marks = dict.fromkeys(ties.apart, WORSE) | dict.fromkeys(ties.tied, MAYBE)
    marks |= dict.fromkeys(rows["backbone"][rows["value"] == rows["value"].max()], FIRST)
    return rows.assign(
        column=column.heading,
        honest=[choice.score if choice else np.nan for choice in choices],
        optimism=[choice.optimism if choice else np.nan for choice in choices],
        group=[marks.get(name, UNTESTED) for name in rows["backbone"]],
    )


def _layers(column: Column) -> pd.DataFrame:
    rows = column.candidates
    best = set(zip(column.best["backbone"], column.best["layer"], strict=True))
    fields = rows[["backbone", "layer", "tied"]].itertuples(index=False, name=None)
    places = ["best" if (name, layer) in best else "tied" if tied else "" for name, layer, tied in fields]
    return rows.assign(column=column.heading, place=places).sort_values(["backbone", "layer"], kind="stable")


def _labelled(parts: Sequence[pd.DataFrame], labels: Mapping[str, str], names: Sequence[str]) -> pd.DataFrame:
    """Parts as one frame of some columns in which backbones have their labels."""
    there = [part for part in parts if len(part)]
    if not there:
        return pd.DataFrame(columns=[*names])
    rows = pd.concat(there, ignore_index=True)
    return rows.assign(backbone=rows["backbone"].map(dict(labels)))[[*names]]


def _published(board: Board, names: Sequence[str]) -> pd.DataFrame:
    """Numbers of others beside scores of the page, each at its own layer or at the measured one's."""
    if not board.published or not board.columns:
        return pd.DataFrame(columns=[*PUBLISHED])
    key = ("task", "dataset", "protocol", "metric")
    headings = {tuple(getattr(each, name) for name in key): each.heading for each in reversed(board.columns)}
    depths = {backbone.name: backbone.depth for backbone in board.backbones}
    rows = board.reproduced[board.reproduced["backbone"].isin(names)]
    keys = rows[[*key]].itertuples(index=False, name=None)
    layers = rows["published_layer"].astype(float)
    rows = rows.assign(
        column=[headings.get(key, "") for key in keys],
        depth=rows["backbone"].map(depths),
        layer=layers.where(layers.notna(), rows["measured_layer"].astype(float)),
        value=rows["published"],
    )
    return _labelled([rows[rows["column"] != ""]], board.labels, PUBLISHED)
