"""The section on number formats and resizing: scores and vectors of one backbone in each variant."""

from collections.abc import Iterator
from math import isnan
from typing import get_args

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Heading, Plot, Table, said, slug
from layerboard.leaderboards.blocks.display import fixed, task_display
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.sections.provenance import units_text
from layerboard.leaderboards.sections.transforms import difference_text, gain_of, side_text
from layerboard.tasks.framework.registry import DRIFT
from layerboard.zoo.spec import Dtype, NameParts

FAR = 0.01  # relative difference that readers should know of
NOT_FINITE = "not finite"

NOTE = """\
The same backbones in several number formats, or on images resized by torch (`@fast-resize`) and by Pillow. In
the other tables each has its own row (`@bfloat16`; no suffix means Pillow, and float32 unless the table of
backbones below has another dtype); `amp-` is mixed precision, with weights in float32 (autocast). `reference`
is the widest format that was run, resized by Pillow if that was run. `difference` is the score of the best
layer minus that of the best layer of the reference, in points, with its 95 % interval over the same items,
not corrected for multiple comparisons; both layers were chosen on these items. `at the same layer` keeps the
layer that is best in the reference."""

DRIFT_NOTE = """\
Drift of vectors: the norm of the difference relative to the vector of the reference, in percent, as the
median over images and, in brackets, the maximum. `beyond 1 %` is the first layer whose median exceeds 1 %, or
whose numbers are not finite in one of the two. Vectors are class tokens (`cls`) and means of the patch tokens
(`mean`); the chart shows class tokens where there are any."""


def formats_of(board: Board) -> dict[str, str]:
    """The reference of each backbone that was also run in a wider format or resized by Pillow, by name."""
    every = {name: NameParts.of(name) for name in board.labels}
    # a name without a suffix does not say the format: a run in one format gives none
    dtypes = dict(zip(board.records["backbone"], board.records["dtype"], strict=True))

    def way(name: str) -> tuple[bool, int]:
        parts = every[name]
        return parts.fast_resize, get_args(Dtype).index(parts.dtype or dtypes.get(name) or "float32")

    references: dict[tuple[str, int | None], str] = {}
    for name in sorted(every, key=way):
        references.setdefault(every[name][:2], name)
    pairs = {name: references[parts[:2]] for name, parts in every.items()}
    return {name: reference for name, reference in pairs.items() if name != reference}


def format_blocks(board: Board) -> list[Block]:
    """The section on number formats and resizing; empty if each backbone has one variant."""
    formats = formats_of(board)
    rows = [row for column in board.columns for row in _scores(board, column, formats)] if formats else []
    if not formats or not (rows or len(board.drifts)):
        return []
    blocks: list[Block] = [Heading(2, "Number formats and resizing"), said(NOTE)]
    if rows:
        caption = "Scores in other formats and resizings"
        blocks.append(Table(pd.DataFrame(rows), left=2, caption=caption, head=1))
    return [*blocks, *_drift_blocks(board, formats)]


def _scores(board: Board, column: Column, formats: dict[str, str]) -> Iterator[dict[str, str]]:
    scored = set(column.candidates["backbone"])
    for name, reference in formats.items():
        if {name, reference} <= scored:
            gain = gain_of(board, column, reference, column, name)
            yield {
                "column": column.heading,
                "backbone": board.labels[name],
                "reference": side_text(gain.plain),
                "this one": side_text(gain.best),
                "difference": difference_text(gain.gain),
                "at the same layer": difference_text(gain.same_layer),
            }


def _drift_blocks(board: Board, formats: dict[str, str]) -> Iterator[Block]:
    """Lines and tables of the drift of vectors, for each dataset and protocol."""
    rows = board.drifts[board.drifts["other"] == board.drifts["backbone"].map(formats)]
    if rows.empty:
        return
    yield said(DRIFT_NOTE)
    median, _ = task_display(DRIFT).metrics
    for (dataset, protocol), group in rows.groupby(["dataset", "protocol"], sort=True):
        medians = group[group["metric"] == median]
        title = f"Drift of vectors: {dataset} ({protocol})"
        lines = medians[(medians["tap"] == "block") & medians["primary"].astype(bool)]
        frame = pd.DataFrame(
            {"series": lines["backbone"].map(board.labels), "x": lines["layer"], "y": 100 * lines["value"]}
        )
        yield Plot(frame, "lines", title, "block", "median difference, %", name=slug(title))
        yield Table(drift_table(board, group), caption=f"{title}{units_text(medians)}", head=1)


def drift_table(board: Board, rows: pd.DataFrame) -> pd.DataFrame:
    """One row per backbone and pooling: first layer beyond `FAR`, then median and maximum, in percent."""
    medians, largests = (rows[rows["metric"] == metric] for metric in task_display(DRIFT).metrics)
    most = largests.set_index(["backbone", "pooling", "layer", "tap"])["value"]
    body = []
    for (name, pooling), layers in medians.groupby(["backbone", "pooling"], sort=False):
        fields = list(layers[["layer", "tap", "value"]].itertuples(index=False, name=None))
        names = [str(layer) if tap == "block" else str(tap) for layer, tap, _ in fields]
        far = [heading for heading, (*_, value) in zip(names, fields, strict=True) if not value <= FAR]
        beyond = far[0] if far else "none"
        cells = {"backbone": board.labels[str(name)], "vectors": str(pooling), "beyond 1 %": beyond}
        for heading, (layer, tap, value) in zip(names, fields, strict=True):
            largest = most.loc[str(name), str(pooling), layer, tap]
            text = f"{fixed(100 * value, 2)} ({fixed(100 * largest, 2)})"
            cells[heading] = NOT_FINITE if isnan(value) else text
        body.append(cells)
    table = pd.DataFrame(body).fillna("")
    columns = [str(column) for column in table]
    blocks = sorted(filter(str.isdecimal, columns), key=int)  # of backbones of any depth, then `final`
    others = [column for column in columns if not column.isdecimal()]
    return table[[*others[:3], *blocks, *others[3:]]]
