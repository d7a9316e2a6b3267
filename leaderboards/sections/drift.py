"""The part on drift in the section on variants: vectors in other number formats and resizings."""

from collections.abc import Iterator, Mapping
from math import isnan

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Heading, Plot, Table, said, slug
from layerboard.leaderboards.blocks.display import fixed, task_display
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.sections.provenance import units_text
from layerboard.tasks.framework.registry import DRIFT

FAR = 0.01  # relative difference that readers should know of
NOT_FINITE = "not finite"

NOTE = """\
Drift of vectors: the norm of the difference relative to the vector of the reference, in percent, as the
median over images and, in brackets, the maximum. `beyond 1 %` is the first layer whose median exceeds 1 %, or
whose numbers are not finite in one of the two. Vectors are class tokens (`cls`) and means of the patch tokens
(`mean`); the chart shows class tokens where there are any."""


def drift_blocks(board: Board, references: Mapping[str, str]) -> Iterator[Block]:
    """Lines and tables of the drift of vectors from each backbone's reference, by dataset and protocol."""
    rows = board.drifts[board.drifts["other"] == board.drifts["backbone"].map(references)]
    median, _ = task_display(DRIFT).metrics
    for (dataset, protocol), group in rows.groupby(["dataset", "protocol"], sort=True):
        medians = group[group["metric"] == median]
        title = f"Drift of vectors: {dataset} ({protocol})"
        lines = medians[(medians["tap"] == "block") & medians["primary"].astype(bool)]
        frame = pd.DataFrame(
            {"series": lines["backbone"].map(board.labels), "x": lines["layer"], "y": 100 * lines["value"]}
        )
        yield Heading(3, title)
        yield said(NOTE)
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
