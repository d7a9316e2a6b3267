"""The section on every layer: for each column its tables and its figure."""

import pandas as pd

from leaderboards.choices.selection import (
    Column,
    is_floor,
    pooled,
    score_rows,
    secondary_poolings,
)
from leaderboards.display import fixed, pooling_name, pooling_rank
from leaderboards.pages.honest import SHOWN_SHARE, choice_table
from leaderboards.pages.kinds import kind_blocks
from leaderboards.pages.notation import said
from leaderboards.pages.provenance import partial_line, units_text
from leaderboards.pages.scores import floor_sentence, has_intervals, layer_table, metrics_table
from leaderboards.pages.wording import CHOICES, layers_note
from tasks.blocks import Block, Heading, Table


def layer_blocks(records: pd.DataFrame, columns: tuple[Column, ...]) -> list[Block]:
    """For each column its scores of every layer, in each pooling, and its task's other metrics.

    Args:
        records: Scores of one suite.
        columns: Its columns.
    """
    tables = [choice_table(column.rows(records), column) for column in columns]
    least = "" if all(chosen.empty for chosen in tables) else f"{fixed(100 * SHOWN_SHARE, 0)} %"
    blocks: list[Block] = [
        Heading(2, "Every layer"),
        layers_note(intervals=has_intervals(records), least=least),
    ]
    for column, chosen in zip(columns, tables, strict=True):
        blocks += _column_blocks(column.rows(records), column, chosen)
    return blocks


def _column_blocks(rows: pd.DataFrame, column: Column, chosen: pd.DataFrame) -> list[Block]:
    """The part of one column."""
    mark = " †" if column.partial else ""
    title = f"{column.task} on {column.place} ({column.protocol}): {column.metric}, %{mark}"
    blocks: list[Block] = [Heading(3, title)]
    blocks += _pooling_blocks(rows, column, None, title)
    if not chosen.empty:
        blocks += [said(CHOICES), Table(chosen, caption=f"{title}: blocks chosen on random halves")]
    for pooling in secondary_poolings(rows, column):
        blocks += _pooling_blocks(rows, column, pooling, title)
    metrics = metrics_table(rows, column)
    if not metrics.empty:
        blocks += [
            said("All metrics, each at its own best layer:"),
            Table(metrics, caption=f"{title}: all metrics"),
        ]
    return [*blocks, *kind_blocks(rows, column)]


def _pooling_blocks(records: pd.DataFrame, column: Column, pooling: str | None, title: str) -> list[Block]:
    """One table of every layer with its caption, its floor and its mark."""
    rows = pooled(score_rows(records), column, pooling)
    rows = rows[rows["metric"] == column.metric]
    scored = rows[~is_floor(rows) & rows["tap"].isin(["block", "final"])]
    floor = floor_sentence(records, column, pooling)
    if scored.empty:
        return [said("{floor}", floor=floor)]
    names = sorted({str(name) for name in scored["pooling"]}, key=pooling_rank)
    if "cls" in names and pooling is None:
        names = [name for name in names if name != "mean"]
    caption = ", ".join(pooling_name(name) for name in names)
    units = units_text(scored)
    return [
        said(
            "**{caption}**{units}. {floor}",
            caption=f"{caption[:1].upper()}{caption[1:]}",
            units=f", {units}" if units else "",
            floor=floor,
        ),
        Table(layer_table(records, column, pooling), caption=f"{title}: every layer, {caption}"),
        partial_line(scored),
    ]
