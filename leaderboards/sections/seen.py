"""The section on what the trainings of the backbones have seen of the datasets."""

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Heading, Table, said
from layerboard.leaderboards.board.board import Board

# column of marks, joined to records by code that knows backbones; without it there is no such table
COLUMN = "seen"
UNREMARKABLE = ("", "no")  # marks for datasets outside the scheme, and for those not seen

NOTE = """\
Overlap of the training data with the datasets of this page, as the authors report it: `images` and `labels`
of the training split or of a collection that contains it; images `by a teacher` that was distilled; `similar
images`, retrieved with images of the dataset as queries; `images of its source`, some of which may be the
same; `no`: the training data are known and do not contain the dataset; `unknown`: web images, or not public;
`with texts`: images came with texts. No backbone is left out and no score is changed because of it. Empty:
not reported. `layerboard list backbones NAME` names the source."""


def seen_blocks(board: Board) -> list[Block]:
    """The section on what was seen in training; empty if no backbone has, or may have, seen a dataset."""
    rows = board.plain
    if not board.columns or COLUMN not in rows or set(rows[COLUMN].astype(str)) <= set(UNREMARKABLE):
        return []
    fields = rows[["backbone", "dataset", COLUMN]].astype(str).itertuples(index=False, name=None)
    backbones = [backbone for backbone in board.plain_backbones if not backbone.floor]
    names = {backbone.name for backbone in backbones}
    # datasets without marks are left out
    marks = {(name, dataset): mark for name, dataset, mark in fields if mark and name in names}
    datasets = sorted({dataset for _, dataset in marks})
    body = [
        {"backbone": each.label} | {dataset: marks.get((each.name, dataset), "") for dataset in datasets}
        for each in backbones
    ]
    table = Table(pd.DataFrame(body), left=1, caption="What was seen in training")
    return [Heading(2, "What the trainings have seen"), said(NOTE), table]
