"""A suite's page: records to Markdown, the same text for the same records in any order."""

import pandas as pd

from leaderboards.display import (
    COMPARISON_TASK,
    GLOBAL_AVERAGE,
    file_name,
    pooling_name,
    pooling_rank,
    task_display,
)
from leaderboards.gaps import empty_cells
from leaderboards.markdown import bullets, paragraph, plain, table
from leaderboards.provenance import backbones_table, datasets_table, join, run_sentence, units_text
from leaderboards.selection import (
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
from leaderboards.similarity import Comparison, cka_table, comparisons_of, most_similar
from leaderboards.tables import floor_sentence, layer_table, main_table, metrics_table
from leaderboards.tidy import digest, tidy_text

READING = """\
Each row is a backbone: a pretrained vision network that is used as it is, without any further training.
Each column is a task that is solved with nothing but its features. The features of **every layer** were
scored; a cell shows the best layer's score and which layer that is: `61.2 (9/12)` is 61.2 %, reached by the
features after block 9 of 12. Higher is better, 100 is perfect, and the best backbone of each column is in
**bold**. An empty cell is a missing score, not a zero; the last section says why it is missing."""

OPTIMISM = """\
The best layer is chosen on the same data that its score is reported on, so the scores are a little
optimistic, most of all where the data are few."""

UNTRAINED_NOTE = """\
An untrained backbone has the usual blocks but random weights: what the architecture gives without any
learning."""

FLOOR_NOTE = """\
The random floor is what features of pure noise reach: the mean ± standard deviation over independent
draws. A score near it says that the features hold nothing the task can use."""

LAYERS_NOTE = """\
Layer k is the output of block k, before any final norm. The bold score of each row is the one in the table
above. `final` is the last block's output after the network's final norm; it is shown for comparison and
takes no part in the choice of the best layer. Cells beyond a backbone's last block, and `final` where it has
no such norm, are empty by nature."""

CKA_NOTE = """\
CKA compares two layers, of one backbone or of two, by asking whether they find the same images alike: 1 is
the same up to rotation and scale, 0 is unrelated. It says how similar features are, not how good."""


def render_page(records: pd.DataFrame, suite: str) -> str:
    """The page of one suite.

    Args:
        records: Columns of `Record`; other suites are left out.
        suite: Name of the suite.

    Returns:
        Markdown that ends with a line break.
    """
    own = newest(records[records["suite"] == suite])
    blocks = [f"# Leaderboard: {suite}"]
    columns = columns_of(own)
    if columns:
        blocks += [READING, *_main(score_rows(own), columns), *_layers(score_rows(own), columns)]
    if comparisons_of(own):
        blocks += _similarity(own)
    blocks += [*_provenance(own, suite), *_gaps(own)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _main(records: pd.DataFrame, columns: tuple[Column, ...]) -> list[str]:
    """The leaderboard with what is needed to read it."""
    asked = [task_display(name) for name in dict.fromkeys(column.task for column in columns)]
    legend = [
        {"task": task.name, "the question": task.asks, "the score, in percent": task.measures}
        for task in asked
    ]
    return [
        "## The best layer of each backbone",
        table(main_table(records), left=2),
        _partial_note(records, columns),
        FLOOR_NOTE if (records["family"] == FLOOR).any() else "",
        UNTRAINED_NOTE if any(not one.trained and not one.floor for one in backbones_of(records)) else "",
        OPTIMISM,
        "What the columns ask:",
        table(pd.DataFrame(legend), left=3),
        _pooling_note(records, columns),
    ]


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
    blocks = ["## Every layer", LAYERS_NOTE]
    for column in columns:
        rows = column.rows(records)
        blocks += [f"### {_title(column)}", *_layer_block(rows, column, None)]
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
    scored = rows[rows["family"] != FLOOR]
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
    similar = most_similar(records, comparison)
    return [
        ", ".join(filter(None, ["The last block of each backbone against each other's", units_text(rows)]))
        + ":",
        table(cka_table(records, comparison)),
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
