"""The section on the best layer of each backbone, with what is needed to read it."""

import pandas as pd

from leaderboards.choices.selection import (
    Column,
    backbones_of,
    is_floor,
    primary_poolings,
    score_rows,
)
from leaderboards.choices.ties import ColumnTies
from leaderboards.display import GLOBAL_AVERAGE, pooling_name, pooling_rank, task_display
from leaderboards.pages.honest import honest_table
from leaderboards.pages.means import mean_blocks, with_means
from leaderboards.pages.notation import said
from leaderboards.pages.poolings import better_blocks
from leaderboards.pages.provenance import join
from leaderboards.pages.scores import has_intervals, main_table
from leaderboards.pages.wording import (
    APART,
    AVERAGED,
    FEATURES,
    HONEST,
    NO_ITEMS,
    NOT_SAID,
    NOTHING_COMPARED,
    OPTIMISM,
    PARTIAL,
    UNTESTED,
    UNTRAINED_NOTE,
    floor_note,
    reading,
)
from tasks.blocks import Block, Bullets, Heading, Table, Text

CAPTION = "The best layer of each backbone"


def best_blocks(records: pd.DataFrame, columns: tuple[Column, ...], ties: ColumnTies) -> list[Block]:
    """The leaderboard, how to read it, and what its columns ask.

    Args:
        records: Scores of one suite.
        columns: Its columns.
        ties: For the `Column.key` of each column, what is tied with its best; empty where nothing was tested.
    """
    intervals, honest = has_intervals(records), honest_table(records)
    blocks: list[Block] = [
        reading(intervals=intervals, ties=_compared(ties)),
        Heading(2, "The best layer of each backbone"),
        Table(with_means(main_table(records, ties), records), left=2, caption=CAPTION, head=1),
        _pooling_note(records, columns),
        *better_blocks(records, columns),
        *mean_blocks(records),
        *_apart_blocks(records, columns),
        *_partial_blocks(records, columns),
        _tie_note(records, columns, ties),
    ]
    if honest.empty:
        blocks.append(said(OPTIMISM))
    else:
        caption = "The best layer of each backbone with an honest choice"
        blocks += [said(HONEST), Table(honest, left=2, caption=caption, head=1)]
    if is_floor(records).any():
        blocks.append(floor_note(intervals=intervals))
    if any(not one.trained and not one.floor for one in backbones_of(records)):
        blocks.append(said(UNTRAINED_NOTE))
    legend = Table(_legend(columns), left=3, caption="What the columns ask")
    return [*blocks, said("What the columns ask:"), legend]


def _legend(columns: tuple[Column, ...]) -> pd.DataFrame:
    """What each task of the columns asks and counts."""
    asked = [task_display(name) for name in dict.fromkeys(column.task for column in columns)]
    return pd.DataFrame(
        [
            {"task": task.name, "the question": task.asks, "the score, in percent": task.measures}
            for task in asked
        ]
    )


def _tie_note(records: pd.DataFrame, columns: tuple[Column, ...], ties: ColumnTies) -> Text:
    """Which backbones were not compared; no words where all were or nothing says how sure a score is."""
    labels = {backbone.name: backbone.label for backbone in backbones_of(records) if not backbone.floor}
    if len(labels) < 2 or not has_intervals(records):
        return Text(())
    if not ties:
        return said(NO_ITEMS)
    untested = {column.heading: ties[column.key].untested for column in columns if column.key in ties}
    if any(untested.values()) and not _compared(ties):
        return said(NOTHING_COMPARED)
    names = [
        f"{heading} ({', '.join(label for name, label in labels.items() if name in lacking)})"
        for heading, lacking in untested.items()
        if lacking
    ]
    return said(UNTESTED, names="; ".join(names)) if names else Text(())


def _compared(ties: ColumnTies) -> bool:
    """Whether any backbone was compared with the best of its column."""
    return any(one.tied or one.apart for one in ties.values())


def _apart_blocks(records: pd.DataFrame, columns: tuple[Column, ...]) -> list[Block]:
    """Which columns hold scores of one dataset over different images, and what each is over."""
    apart = [column for column in columns if column.apart]
    if not apart:
        return []
    rows = score_rows(records)
    said_of = [
        f"{column.heading}: {join(column.rows(rows)['coverage']) if column.data else NOT_SAID}"
        for column in apart
    ]
    return [said(APART), Bullets(tuple(said_of))]


def _partial_blocks(records: pd.DataFrame, columns: tuple[Column, ...]) -> list[Block]:
    """What the mark † means, where something is marked."""
    if not any(column.partial for column in columns):
        return []
    rows = pd.concat([column.rows(score_rows(records)) for column in columns])
    rows = rows[rows["partial"].astype(bool)]
    found = [f"{dataset}: {join(own['coverage'])}" for dataset, own in rows.groupby("dataset", sort=True)]
    return [said(PARTIAL), Bullets(tuple(found))]


def _pooling_note(records: pd.DataFrame, columns: tuple[Column, ...]) -> Text:
    """Which features of a layer the cells are computed from."""
    rows = score_rows(records)
    labels = {backbone.name: backbone.label for backbone in backbones_of(records) if not backbone.floor}
    tasks: dict[str, list[str]] = {}
    averaged: set[str] = set()
    for column in columns:
        taken = {name: pooling for name, pooling in primary_poolings(rows, column).items() if name in labels}
        averaged |= {name for name, pooling in taken.items() if pooling == "mean"}
        for pooling in {"cls" if pooling == "mean" else pooling for pooling in taken.values()}:
            tasks.setdefault(pooling, []).append(column.task)
    uses = [
        f"{', '.join(dict.fromkeys(tasks[pooling]))}: {pooling_name(pooling)}"
        for pooling in sorted(tasks, key=pooling_rank)
    ]
    stand_in = [label for name, label in labels.items() if name in averaged]
    sentences = [FEATURES] if uses else []
    sentences += [AVERAGED] if stand_in else []
    return said(" ".join(sentences), uses="; ".join(uses), average=GLOBAL_AVERAGE, names=", ".join(stand_in))
