"""Records to a table of scores by kind of items: how hard a pair of images is."""

import pandas as pd

from leaderboards.choices.beside import NAMES, TURNS, at_best, kind_of
from leaderboards.choices.selection import Column, backbones_of
from leaderboards.pages.notation import said
from tasks.blocks import Block, Table

NOTE = """\
By kind, at the best layer of all: how far the viewpoints and the sizes of the two objects differ; which
object is cut off or covered; and points whose target image shows another one that stands for the same."""

AZIMUTHS = "`azimuth` is how many eighths of a turn lie between the two viewpoints."


def kind_blocks(records: pd.DataFrame, column: Column) -> list[Block]:
    """Scores of a column by kind of items; nothing where there are no kinds.

    Args:
        records: Scores of one suite.
        column: Task, dataset, protocol and metric.
    """
    rows = at_best(records, column)
    rows = rows.assign(kind=[kind_of(str(metric)) for metric in rows["metric"]])
    rows = rows[rows["kind"] != ""]
    if rows.empty:
        return []
    values = {(str(one.backbone), str(one.kind)): f"{one.value:.1f}" for one in rows.itertuples(index=False)}
    names = [name for name in NAMES if name in set(rows["kind"])]
    backbones = [one for one in backbones_of(records) if one.name in set(rows["backbone"])]
    body = [
        {"kind": name} | {one.label: values.get((one.name, name), "") for one in backbones} for name in names
    ]
    note = f"{NOTE}\n{AZIMUTHS}" if {*names} & {*TURNS} else NOTE
    return [said(note), Table(pd.DataFrame(body), left=1, caption=f"{column.heading} by kind")]
