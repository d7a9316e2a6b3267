"""Records to a table of scores beside what the grids of their layers allow."""

import pandas as pd

from leaderboards.choices.allowed import allowed
from leaderboards.choices.selection import Column, backbones_of
from leaderboards.pages.blocks import Block, Heading, Table
from leaderboards.pages.notation import said

NOTE = """\
A layer can say no more than its grid: a keypoint is a pixel or a token, a mask is made of cells. The ceiling
is what the ground truth itself gets on the best layer's grid: for `spair` the points that lie near enough to
a place that can be said at all, for `davis` and `segment` the true masks, put on the grid and read off again
as predicted ones are. A cell shows score, ceiling and how much of it the score is. That of `spair` is a
bound; true masks may be beaten by soft predictions in rare cases. Larger inputs raise ceilings."""


def allowed_blocks(records: pd.DataFrame, columns: tuple[Column, ...]) -> list[Block]:
    """The section on ceilings; nothing where none is known.

    Args:
        records: Scores of one suite.
        columns: Its columns.
    """
    cells: dict[str, dict[str, str]] = {}
    for column in columns:
        found = {
            one.backbone: f"{one.score:.1f} of {one.ceiling:.1f}: {100 * one.score / one.ceiling:.0f} %"
            for one in allowed(records, column)
        }
        if found:
            cells[column.heading] = found
    if not cells:
        return []
    shown = [one for one in backbones_of(records) if any(one.name in found for found in cells.values())]
    body = [
        {"backbone": one.label} | {heading: found.get(one.name, "") for heading, found in cells.items()}
        for one in shown
    ]
    table = Table(pd.DataFrame(body), left=1, caption="Scores beside what the grids allow")
    return [Heading(2, "What the grid allows"), said(NOTE), table]
