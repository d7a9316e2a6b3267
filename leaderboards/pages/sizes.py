"""Records to a table of scores against the input size."""

import math
from pathlib import Path

import pandas as pd

from leaderboards.choices.selection import backbones_of
from leaderboards.choices.sizes import AtSize, BySize, by_size, size_columns
from leaderboards.display import fixed, score_text, signed_text
from leaderboards.pages.allowed import ceilings_text
from leaderboards.pages.notation import said
from tasks.blocks import Block, Heading, Table
from zoo.spec import entry_name

NOTE = """\
The same backbones, shown images of several sizes; views scale with them. In the other tables each size has a
row of its own, called after it (`@448px`; without one it is the backbone's own). A cell is the best layer at
that size, `of` what the ground truth itself would get on that layer's grid. `largest less smallest`
is in points, with its 95 % interval over the same items; the interval is of that difference alone, so of
twenty about one lies off 0 by chance, and both layers were chosen on the items that score them. `alike`: all
layers score the same, as they do where the protocol shows images at one size whatever the backbone's. A
larger image costs more: the tokens grow with the square of its side."""


def size_blocks(records: pd.DataFrame, items: Path | None) -> list[Block]:
    """The section on scores against input sizes; nothing where each backbone was run at one.

    Args:
        records: Scores of one suite.
        items: The items of their run; None where they are not there.
    """
    found = by_size(records, items)
    if not found:
        return []
    sizes = size_columns(found)
    labels = {entry_name(one.name): one.entry_label for one in backbones_of(records)}
    body = [_row(one, labels[one.backbone], sizes) for one in found]
    table = Table(pd.DataFrame(body), left=2, caption="Scores against the input size", head=1)
    return [Heading(2, "Score against input size"), said(NOTE), table]


def _row(found: BySize, label: str, sizes: tuple[tuple[int, ...], ...]) -> dict[str, str]:
    cells = {
        _heading(column): next(
            (_cell(one, exact=len(column) > 1) for one in found.sizes if one.input_size in column), ""
        )
        for column in sizes
    }
    row = {"column": found.column.heading, "backbone": label, **cells}
    return row | {"largest less smallest": "alike" if found.same else _gain(found)}


def _heading(sizes: tuple[int, ...]) -> str:
    """``768 px``, or ``768 to 770 px`` of sizes that share a column."""
    return f"{sizes[0]} px" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} px"


def _cell(one: AtSize, *, exact: bool) -> str:
    """``71.2 (9/12) of 89.3``: score, best layer, depth and ceiling; the size where columns have several."""
    layer = "" if one.best is None else f" ({one.best.layer}/{one.best.depth})"
    ceiling = "" if one.ceiling is None else f" of {ceilings_text(one.ceiling)}"
    size = f", {one.input_size} px" if exact else ""
    return f"{score_text(one.score)}{layer}{ceiling}{size}"


def _gain(found: BySize) -> str:
    """``+1.2 (0.3 to 2.1)``; "" of the random floor."""
    gain = found.gain
    if gain is None:
        return ""
    around = "" if math.isnan(gain.low) else f" ({fixed(gain.low, 1)} to {fixed(gain.high, 1)})"
    return f"{signed_text(gain.value)}{around}"
