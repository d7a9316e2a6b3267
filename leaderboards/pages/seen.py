"""Records to a table of what the trainings of their backbones have seen of their datasets."""

import pandas as pd

from leaderboards.choices.selection import backbones_of, is_floor
from leaderboards.pages.notation import said
from tasks.blocks import Block, Heading, Table

COLUMN = "seen"
"""The column of marks, which whoever knows backbones joins to records; without it there is no such table."""

UNREMARKABLE = ("", "no")
"""Marks of a training that has seen nothing of a dataset, and of a dataset that marks are not about."""

NOTE = """\
What each training has seen of a dataset of this page, as its authors say: `images` and `labels` of the
training split or of a collection that holds it; images `by a teacher` that it was distilled from; `similar
images`, which were looked for with the dataset's as queries; `images of its source`, of which some may be the
same; `no`: the training data are known, and the dataset is not among them; `unknown`: images of the web, or
not public; `with texts`: its images came with texts. Nothing is left out for it, and no score is changed.
Empty: nobody has said. `python -m benchmark list backbones NAME` tells who says so."""


def seen_blocks(records: pd.DataFrame) -> list[Block]:
    """The section on what was seen in training; nothing where no training has, or may have, seen a dataset.

    Args:
        records: Columns of `Record`, and `COLUMN` where marks are known.
    """
    if COLUMN not in records or set(records[COLUMN].astype(str)) <= set(UNREMARKABLE):
        return []
    table = Table(seen_table(records), left=1, caption="What was seen in training")
    return [Heading(2, "What the trainings have seen"), said(NOTE), table]


def seen_table(records: pd.DataFrame) -> pd.DataFrame:
    """Backbones by datasets; datasets that no mark is about are left out."""
    rows = records[~is_floor(records)]
    marked = rows[rows[COLUMN].astype(str) != ""]
    datasets = sorted({str(name) for name in marked["dataset"]})
    marks = {(str(row["backbone"]), str(row["dataset"])): str(row[COLUMN]) for _, row in marked.iterrows()}
    body = [
        {"backbone": backbone.label}
        | {dataset: marks.get((backbone.name, dataset), "") for dataset in datasets}
        for backbone in backbones_of(rows)
        if not backbone.floor
    ]
    return pd.DataFrame(body)
