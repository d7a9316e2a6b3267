"""A suite's page: records to Markdown, the same text for the same records in any order."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from leaderboards.choices.gaps import empty_cells
from leaderboards.choices.honest import SHOWN_SHARE, choice_table, honest_table
from leaderboards.choices.selection import (
    FLOOR,
    Column,
    backbones_of,
    columns_of,
    newest,
    pooled,
    primary_poolings,
    score_rows,
    secondary_poolings,
)
from leaderboards.choices.ties import Ties, column_ties
from leaderboards.display import (
    COMPARISON_TASK,
    GLOBAL_AVERAGE,
    file_name,
    fixed,
    pooling_name,
    pooling_rank,
    task_display,
)
from leaderboards.pages.csv import digest, tidy_text
from leaderboards.pages.markdown import bullets, paragraph, plain, table
from leaderboards.pages.provenance import backbones_table, datasets_table, join, run_sentence, units_text
from leaderboards.pages.scores import floor_sentence, layer_table, main_table, metrics_table
from leaderboards.pages.similarity import Comparison, cka_table, comparisons_of, most_similar
from leaderboards.pages.wording import (
    CHOICES,
    CKA_NOTE,
    HONEST,
    NO_ITEMS,
    OPTIMISM,
    UNTESTED,
    UNTRAINED_NOTE,
    floor_note,
    layers_note,
    reading,
)
from leaderboards.records.record import of_suite

ColumnTies = Mapping[tuple[str, str, str, str], Ties]


def render_page(records: pd.DataFrame, suite: str, items: Path | None = None) -> str:
    """The page of one suite.

    Args:
        records: Columns of `Record`; other suites are left out.
        suite: Name of the suite.
        items: Folder of the per-item measurements, by which backbones are compared; None for no comparison.

    Returns:
        Markdown that ends with a line break.
    """
    own = newest(of_suite(records, suite))
    blocks = [f"# Leaderboard: {suite}"]
    columns = columns_of(own)
    if columns:
        scores = score_rows(own)
        ties = column_ties(scores, items) if items is not None else {}
        blocks += [*_main(scores, columns, ties), *_layers(scores, columns)]
    if comparisons_of(own):
        blocks += _similarity(own)
    blocks += [*_provenance(own, suite), *_gaps(own)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _main(records: pd.DataFrame, columns: tuple[Column, ...], ties: ColumnTies) -> list[str]:
    """The leaderboard with what is needed to read it."""
    intervals, honest = _intervals(records), honest_table(records)
    asked = [task_display(name) for name in dict.fromkeys(column.task for column in columns)]
    legend = [
        {"task": task.name, "the question": task.asks, "the score, in percent": task.measures}
        for task in asked
    ]
    return [
        reading(intervals=intervals, ties=_compared(ties)),
        "## The best layer of each backbone",
        table(main_table(records, ties), left=2),
        _partial_note(records, columns),
        _tie_note(records, columns, ties),
        OPTIMISM if honest.empty else HONEST,
        "" if honest.empty else table(honest, left=2),
        floor_note(intervals=intervals) if (records["family"] == FLOOR).any() else "",
        UNTRAINED_NOTE if any(not one.trained and not one.floor for one in backbones_of(records)) else "",
        "What the columns ask:",
        table(pd.DataFrame(legend), left=3),
        _pooling_note(records, columns),
    ]


def _intervals(records: pd.DataFrame) -> bool:
    """Whether any score of a backbone has an interval."""
    return bool(records.loc[records["family"] != FLOOR, "ci_low"].notna().any())


def _tie_note(records: pd.DataFrame, columns: tuple[Column, ...], ties: ColumnTies) -> str:
    """Which backbones were not compared, "" where all were or nothing says how sure a score is."""
    labels = {backbone.name: backbone.label for backbone in backbones_of(records) if not backbone.floor}
    if len(labels) < 2 or not _intervals(records):
        return ""
    untested = {column.heading: ties[column.key].untested for column in columns if column.key in ties}
    if not ties or (any(untested.values()) and not _compared(ties)):
        return NO_ITEMS
    names = [
        f"{plain(heading)} ({', '.join(label for name, label in labels.items() if name in lacking)})"
        for heading, lacking in untested.items()
        if lacking
    ]
    return UNTESTED.format(names="; ".join(names)) if names else ""


def _compared(ties: ColumnTies) -> bool:
    """Whether any backbone was compared with the best of its column."""
    return any(one.tied or one.apart for one in ties.values())


def _partial_note(records: pd.DataFrame, columns: tuple[Column, ...]) -> str:
    """What the mark † means, "" where nothing is marked."""
    if not any(column.partial for column in columns):
        return ""
    rows = pd.concat([column.rows(score_rows(records)) for column in columns])
    rows = rows[rows["partial"].astype(bool)]
    return "\n".join(
        ["† PARTIAL data: not comparable with scores on the complete dataset.", ""]
        + [
            f"- {dataset}: {plain(join(own['coverage']))}"
            for dataset, own in rows.groupby("dataset", sort=True)
        ]
    )


def _pooling_note(records: pd.DataFrame, columns: tuple[Column, ...]) -> str:
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
    return paragraph(
        f"What a layer's features are: {'; '.join(uses)}." if uses else "",
        f"Without a class token, the {GLOBAL_AVERAGE} of the feature map stands in: {', '.join(stand_in)}."
        if stand_in
        else "",
    )


def _layers(records: pd.DataFrame, columns: tuple[Column, ...]) -> list[str]:
    """For each column its scores of every layer, in each pooling, and its task's other metrics."""
    tables = [choice_table(column.rows(records), column) for column in columns]
    least = "" if all(chosen.empty for chosen in tables) else f"{fixed(100 * SHOWN_SHARE, 0)} %"
    blocks = ["## Every layer", layers_note(intervals=_intervals(records), least=least)]
    for column, chosen in zip(columns, tables, strict=True):
        rows = column.rows(records)
        blocks += [f"### {_title(column)}", *_layer_block(rows, column, None)]
        blocks += [] if chosen.empty else [CHOICES, table(chosen)]
        for pooling in secondary_poolings(rows, column):
            blocks += _layer_block(rows, column, pooling)
        metrics = metrics_table(rows, column)
        if not metrics.empty:
            blocks += ["All metrics, each at its own best layer:", table(metrics)]
    return blocks


def _title(column: Column) -> str:
    """A column's heading in full."""
    mark = " †" if column.partial else ""
    return f"{column.task} on {column.dataset} ({column.protocol}): {column.metric}, %{mark}"


def _layer_block(records: pd.DataFrame, column: Column, pooling: str | None) -> list[str]:
    """One table of every layer with its caption, its floor and its mark."""
    rows = pooled(score_rows(records), column, pooling)
    rows = rows[rows["metric"] == column.metric]
    scored = rows[(rows["family"] != FLOOR) & rows["tap"].isin(["block", "final"])]
    if scored.empty:
        return [floor_sentence(records, column, pooling)]
    names = sorted({str(name) for name in scored["pooling"]}, key=pooling_rank)
    if "cls" in names and pooling is None:
        names = [name for name in names if name != "mean"]
    caption = ", ".join(pooling_name(name) for name in names)
    caption = f"**{caption[:1].upper()}{caption[1:]}**"
    return [
        paragraph(
            f"{', '.join(filter(None, [caption, units_text(scored)]))}.",
            floor_sentence(records, column, pooling),
        ),
        table(layer_table(records, column, pooling)),
        _partial_line(scored),
    ]


def _partial_line(rows: pd.DataFrame) -> str:
    """The mark's meaning beside one table, "" where its data are complete."""
    partial = rows[rows["partial"].astype(bool)]
    return f"† PARTIAL data: {plain(join(partial['coverage']))}" if len(partial) else ""


def _similarity(records: pd.DataFrame) -> list[str]:
    """The tables of CKA."""
    blocks = ["## How similar the backbones are (CKA)", CKA_NOTE]
    for comparison in comparisons_of(records):
        rows = comparison.rows(records[records["task"] == COMPARISON_TASK])
        mark = " †" if rows["partial"].any() else ""
        title = f"{pooling_name(comparison.pooling)}, {comparison.dataset} ({comparison.protocol}){mark}"
        blocks += [f"### CKA: {title}", *_comparison(records, comparison, rows)]
    return blocks


def _comparison(records: pd.DataFrame, comparison: Comparison, rows: pd.DataFrame) -> list[str]:
    """The table of last blocks and the list of most similar blocks in one pooling."""
    similar, lasts = most_similar(records, comparison), cka_table(records, comparison)
    if lasts.empty:
        return ["The last blocks were not compared, only other layers, whose numbers are in the records."]
    return [
        ", ".join(filter(None, ["The last block of each backbone against each other's", units_text(rows)]))
        + ":",
        table(lasts),
        _partial_line(rows),
        "The most similar blocks of each two backbones:" if len(similar) else "",
        table(similar) if len(similar) else "",
    ]


def _provenance(records: pd.DataFrame, suite: str) -> list[str]:
    """What stands behind the numbers."""
    name = file_name(suite)
    return [
        "## Where the numbers come from",
        paragraph(
            run_sentence(records),
            f"The numbers as a table: [{name}.csv]({name}.csv), SHA-256 {digest(tidy_text(records, suite))}.",
        ),
        table(datasets_table(records), left=6),
        table(backbones_table(records), left=6),
    ]


def _gaps(records: pd.DataFrame) -> list[str]:
    """The empty cells with their reasons, where there are any."""
    sentences = empty_cells(records)
    return ["## Empty cells", bullets(sentences)] if sentences else []
