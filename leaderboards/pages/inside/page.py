"""A suite's page of analyses: what its backbones do inside, which ranks none of them."""

from pathlib import Path

import pandas as pd

from leaderboards.choices.analyses import Analysis, View, analyses_of, measured, views_of
from leaderboards.choices.gaps import empty_analyses
from leaderboards.choices.selection import is_analysis, newest
from leaderboards.display import inside_name, task_display
from leaderboards.pages.inside.accuracy import probe_blocks
from leaderboards.pages.inside.depth import depth_lines, head_facets
from leaderboards.pages.inside.drawings import DRAWINGS
from leaderboards.pages.inside.evidence import Evidence
from leaderboards.pages.inside.numbers import inside_frame
from leaderboards.pages.inside.tables import layers_table, pairs_table, ranges_table, whole_table
from leaderboards.pages.inside.unlabelled import unlabelled_blocks
from leaderboards.pages.notation import said
from leaderboards.pages.page import gap_blocks
from leaderboards.pages.provenance import partial_line, provenance_blocks, units_text
from leaderboards.pages.wording import ASKED, COMPARED, HEADS, INSIDE_NOTE, MEASURED, RANGES, WHOLE
from leaderboards.records.record import of_suite
from tasks.blocks import Block, Heading, Numbers, Page, Table, Text

TOKENS = {
    "cls": "class token",
    "patch": "patch tokens",
    "mean": "mean of the patch tokens",
    "all": "all tokens",
    "token": "single tokens",
    "interior": "patch tokens off the border",
    "border": "patch tokens on the border",
    "filters": "first filters",
    "positions": "position embeddings",
}
"""What an analysis looks from, in words."""


def tokens_text(pooling: str) -> str:
    """What an analysis looks from, in words, and what was done to it: ``patch tokens, debias:20``."""
    name, comma, transform = pooling.partition(", ")
    return f"{TOKENS.get(name, name)}{comma}{transform}"


def inside_page(records: pd.DataFrame, suite: str, arrays: Path | None = None) -> Page:
    """The analyses of one suite.

    Args:
        records: Columns of `Record`; other suites are left out, tasks that rank are only drawn.
        suite: Name of the suite, which has analyses.
        arrays: Folder of arrays of the records' run, of which pictures are drawn; None for those of records.
    """
    every = newest(of_suite(records, suite))
    inside = is_analysis(every)
    own, ranked = every[inside], every[~inside]
    blocks: list[Block] = [said(INSIDE_NOTE)]
    for one in analyses_of(own):
        rows = one.rows(own)
        there = measured(rows)
        alone, pairs = there[there["other"] == ""], there[there["other"] != ""]
        blocks += _analysis_blocks(rows, Evidence(one, alone, pairs, arrays))
    blocks += probe_blocks(ranked, own)
    blocks += unlabelled_blocks(every)
    name = inside_name(suite)
    blocks += provenance_blocks(own, Numbers(inside_frame(own, suite), name))
    blocks += gap_blocks(empty_analyses(own))
    return Page(name, f"Inside the backbones: {suite}", tuple(blocks))


def _analysis_blocks(rows: pd.DataFrame, evidence: Evidence) -> list[Block]:
    """The section of one analysis: the question, the number, figures, tables."""
    one = evidence.one
    entry = task_display(one.task)
    blocks: list[Block] = [
        Heading(2, f"{one.task} on {one.place} ({one.protocol})"),
        said(ASKED, asks=entry.asks) if entry.asks else Text(()),
        said(MEASURED, measures=entry.measures) if entry.measures else Text(()),
    ]
    if evidence.rows.empty and evidence.pairs.empty:
        return [*blocks, said("Nothing could be measured; the last section says why."), partial_line(rows)]
    drawn = DRAWINGS[one.task](evidence) if one.task in DRAWINGS else None
    blocks += drawn or []
    if len(evidence.rows[evidence.rows["head"] >= 0]):
        blocks.append(said(HEADS))
    layers = evidence.rows[evidence.rows["layer"] >= 0]
    for view in views_of(layers):
        blocks += _view_blocks(view.rows(layers), evidence, view, lines=drawn is None)
    whole = whole_table(evidence.rows, one.metrics)
    if len(whole):
        title = f"{one.task} on {one.place} ({one.protocol}): each backbone as a whole"
        blocks += [said(WHOLE), Table(whole, caption=title)]
    pairs = pairs_table(evidence.pairs, one.metrics)
    if len(pairs):
        title = f"{one.task} on {one.place} ({one.protocol}): backbones compared"
        blocks += [said(COMPARED), Table(pairs, left=2, caption=title)]
    return [*blocks, partial_line(rows)]


def _view_blocks(rows: pd.DataFrame, evidence: Evidence, view: View, *, lines: bool) -> list[Block]:
    """Tables of what an analysis says of one view, with its lines and heads where nothing else is drawn."""
    one: Analysis = evidence.one
    primary, others = one.metrics[0], one.metrics[1:]
    whole = rows[rows["head"] == -1]
    main = whole[whole["metric"] == primary]
    words = f"{tokens_text(view.pooling)}, {view.tap}"
    title = f"{one.task} on {one.place} ({one.protocol}), {words}"
    units = units_text(main)
    blocks: list[Block] = [Heading(3, f"{primary}: {words}" if len(main) else f"Other metrics: {words}")]
    if len(main):
        drawn = depth_lines(evidence, main, f"{primary}, {words}", primary, f"{view.pooling}-{view.tap}")
        blocks += [drawn] if lines else []
        blocks += [
            said("Every layer{units}:", units=f", {units}" if units else ""),
            Table(layers_table(main), caption=f"{title}: {primary} of every layer"),
        ]
    further = tuple(metric for metric in others if (whole["metric"] == metric).any())
    if further:
        ranges = ranges_table(whole[whole["metric"].isin(further)], further)
        blocks += [said(RANGES), Table(ranges, caption=f"{title}: lowest and highest layer")]
    what = f"{view.pooling}-{view.tap}-heads"
    heads = head_facets(evidence, primary, what, pooling=view.pooling, tap=view.tap) if lines else None
    return [*blocks, heads] if heads else blocks
