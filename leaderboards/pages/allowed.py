"""Records to a table of scores beside what the grids of their layers allow."""

import pandas as pd

from leaderboards.choices.allowed import Allowed, allowed
from leaderboards.choices.selection import Column, backbones_of
from leaderboards.pages.notation import said
from tasks.blocks import Block, Heading, Table

NOTE = """\
A layer can say no more than its grid: a keypoint is a pixel or a token, a mask is made of cells. The ceiling
is what the ground truth itself gets on the best layer's grid: for `spair` the points that lie near enough to
a place that can be said at all, for `davis` and `segment` the true masks, put on the grid and read off again
as predicted ones are. A cell shows score, ceiling and how much of it the score is. That of `spair` is a
bound; true masks may be beaten by soft predictions in rare cases. Larger inputs raise ceilings."""

AREAS = """\
In brackets for `davis`: the ceiling of masks that tell each cell exactly how much of it each object covers.
Masks that are seeded on cells say less; soft predictions may come near it."""

REGIONS = """\
For `cluster-object` and `cluster-part` the ceiling is the purity where each region is put with the class that
its cells show most: regions of the same cells cannot be told apart by any feature. Of clusters of whole
images there is none: each has a vector of its own."""

CLUSTERINGS = ("cluster-object", "cluster-part")


def allowed_blocks(records: pd.DataFrame, columns: tuple[Column, ...]) -> list[Block]:
    """The section on ceilings; nothing where none is known.

    Args:
        records: Scores of one suite.
        columns: Its columns.
    """
    every = {column: own for column in columns if (own := allowed(records, column))}
    if not every:
        return []
    cells = {column.heading: {one.backbone: _cell(one) for one in own} for column, own in every.items()}
    shown = [one for one in backbones_of(records) if any(one.name in found for found in cells.values())]
    body = [
        {"backbone": one.label} | {heading: found.get(one.name, "") for heading, found in cells.items()}
        for one in shown
    ]
    notes = [said(NOTE)]
    notes += [said(AREAS)] if any(one.has_area for own in every.values() for one in own) else []
    notes += [said(REGIONS)] if any(column.task in CLUSTERINGS for column in every) else []
    table = Table(pd.DataFrame(body), left=1, caption="Scores beside what the grids allow")
    return [Heading(2, "What the grid allows"), *notes, table]


def _cell(one: Allowed) -> str:
    """``61.9 of 70.3 (75.1): 88 %``: score, ceiling, that by area where there is one, and the share."""
    return f"{one.score:.1f} of {ceilings_text(one)}: {100 * one.score / one.ceiling:.0f} %"


def ceilings_text(one: Allowed) -> str:
    """``70.3 (75.1)``: a ceiling, and in brackets that by area where there is one."""
    return f"{one.ceiling:.1f}" + (f" ({one.by_area:.1f})" if one.has_area else "")
