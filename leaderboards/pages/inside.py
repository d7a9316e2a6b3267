"""A suite's page of analyses: what its backbones do inside, which ranks none of them."""

import pandas as pd

from leaderboards.choices.analyses import Analysis, View, analyses_of, measured, views_of
from leaderboards.choices.gaps import empty_analyses
from leaderboards.choices.selection import BoardBackbone, backbones_of, half_widths, is_analysis, newest
from leaderboards.display import inside_name, number_text, task_display
from leaderboards.pages.blocks import Block, Figure, Heading, Numbers, Page, Table, Text
from leaderboards.pages.inside_numbers import inside_frame
from leaderboards.pages.layers import depth_axis
from leaderboards.pages.notation import said
from leaderboards.pages.page import gap_blocks
from leaderboards.pages.provenance import partial_line, provenance_blocks, units_text
from leaderboards.pages.wording import ASKED, HEADS, INSIDE_NOTE, MEASURED, RANGES
from leaderboards.records.record import of_suite

TOKENS = {
    "cls": "class token",
    "patch": "patch tokens",
    "mean": "mean of the patch tokens",
    "all": "all tokens",
    "interior": "patch tokens off the border",
    "border": "patch tokens on the border",
    "filters": "first filters",
    "positions": "position embeddings",
}
"""What an analysis looks from, in words."""


def inside_page(records: pd.DataFrame, suite: str) -> Page:
    """The analyses of one suite.

    Args:
        records: Columns of `Record`; other suites, and tasks that rank, are left out.
        suite: Name of the suite, which has analyses.
    """
    own = newest(of_suite(records, suite))
    own = own[is_analysis(own)]
    blocks: list[Block] = [said(INSIDE_NOTE)]
    for one in analyses_of(own):
        blocks += _analysis_blocks(one.rows(own), one)
    name = inside_name(suite)
    blocks += provenance_blocks(own, Numbers(inside_frame(own, suite), name))
    blocks += gap_blocks(empty_analyses(own))
    return Page(name, f"Inside the backbones: {suite}", tuple(blocks))


def layers_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Numbers of one metric and view in every layer, with half their intervals, as text; a row a backbone."""
    layers = sorted({int(layer) for layer in rows["layer"]})
    spreads = half_widths(rows)
    cells = {
        (str(name), int(layer)): number_text(float(value), float(spread))
        for name, layer, value, spread in zip(
            rows["backbone"], rows["layer"], rows["value"], spreads, strict=True
        )
    }
    body = [
        {"backbone": one.label} | {str(layer): cells.get((one.name, layer), "") for layer in layers}
        for one in _shown(rows)
    ]
    return pd.DataFrame(body)


def ranges_table(rows: pd.DataFrame, metrics: tuple[str, ...]) -> pd.DataFrame:
    """For each backbone and metric its lowest and highest layer: ``0.112 (3) to 0.530 (12)``, as text."""
    body = []
    for one in _shown(rows):
        own = rows[rows["backbone"] == one.name]
        texts = {metric: _range(own[own["metric"] == metric]) for metric in metrics}
        body.append({"backbone": one.label} | texts)
    return pd.DataFrame(body)


def _analysis_blocks(rows: pd.DataFrame, one: Analysis) -> list[Block]:
    """The section of one analysis."""
    entry = task_display(one.task)
    blocks: list[Block] = [
        Heading(2, f"{one.task} on {one.place} ({one.protocol})"),
        said(ASKED, asks=entry.asks) if entry.asks else Text(()),
        said(MEASURED, measures=entry.measures) if entry.measures else Text(()),
    ]
    views = views_of(rows)
    for view in views:
        blocks += _view_blocks(measured(view.rows(rows)), one, view)
    if not views:
        blocks.append(said("Nothing could be measured; the last section says why."))
    return [*blocks, partial_line(rows)]


def _view_blocks(rows: pd.DataFrame, one: Analysis, view: View) -> list[Block]:
    """Tables and figures of what an analysis says of one view; all rows have numbers."""
    primary, others = one.metrics[0], one.metrics[1:]
    whole, heads = rows[rows["head"] == -1], rows[rows["head"] >= 0]
    main = whole[whole["metric"] == primary]
    words = f"{TOKENS.get(view.pooling, view.pooling)}, {view.tap}"
    title = f"{one.task} on {one.place} ({one.protocol}), {words}"
    units = units_text(rows)
    blocks: list[Block] = [Heading(3, f"{primary}: {words}")]
    if len(main):
        blocks += [
            _lines(main, f"{title}: {primary}", primary),
            said("Every layer{units}:", units=f", {units}" if units else ""),
            Table(layers_table(main), caption=f"{title}: {primary} of every layer"),
        ]
    further = tuple(metric for metric in others if (whole["metric"] == metric).any())
    if further:
        ranges = ranges_table(whole[whole["metric"].isin(further)], further)
        blocks += [said(RANGES), Table(ranges, caption=f"{title}: lowest and highest layer")]
    of_heads = heads[heads["metric"] == primary]
    return [*blocks, *_head_blocks(of_heads, main, title, primary)]


def _lines(rows: pd.DataFrame, title: str, metric: str) -> Figure:
    """The numbers of every layer, a line a backbone."""
    backbones = _shown(rows)
    axis, scale = depth_axis(backbones)
    points = [
        (one.label, layer / scale[one.name], value)
        for one in backbones
        for layer, value in _by_layer(rows[rows["backbone"] == one.name])
    ]
    return Figure(pd.DataFrame(points, columns=["series", "x", "y"]), "lines", title, axis, metric)


def _head_blocks(heads: pd.DataFrame, whole: pd.DataFrame, title: str, metric: str) -> list[Block]:
    """A figure a backbone: a point for each of its heads, and for their mean; all with one vertical scale."""
    if heads.empty:
        return []
    ends = (float(heads["value"].min()), float(heads["value"].max()))
    blocks: list[Block] = [said(HEADS)]
    for one in _shown(heads):
        points = [
            (name, layer, value)
            for name, rows in (("one head", heads), ("mean over heads", whole))
            for layer, value in _by_layer(rows[rows["backbone"] == one.name])
        ]
        frame = pd.DataFrame(points, columns=["series", "x", "y"])
        blocks.append(Figure(frame, "points", f"{one.label}: {title}, heads", "block", metric, ends))
    return blocks


def _by_layer(rows: pd.DataFrame) -> list[tuple[int, float]]:
    """Layers and numbers in order."""
    return sorted(
        (int(layer), float(value)) for layer, value in zip(rows["layer"], rows["value"], strict=True)
    )


def _range(rows: pd.DataFrame) -> str:
    """The lowest and the highest number with their layers; the lower layer of equal ones; "" without any."""
    if rows.empty:
        return ""
    rows = rows.sort_values("layer", kind="stable")
    low, high = (rows.iloc[int(place)] for place in (rows["value"].argmin(), rows["value"].argmax()))
    ends = [f"{number_text(float(end['value']))} ({end['layer']})" for end in (low, high)]
    return " to ".join(dict.fromkeys(ends))


def _shown(rows: pd.DataFrame) -> tuple[BoardBackbone, ...]:
    """The backbones that some rows are of, in the order of the tables."""
    names = set(rows["backbone"])
    return tuple(one for one in backbones_of(rows) if one.name in names)
