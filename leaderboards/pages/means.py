"""Means over datasets in the table of best layers, and what they are means of."""

import pandas as pd

from leaderboards.choices.means import DatasetMean, dataset_means
from leaderboards.choices.selection import backbones_of
from leaderboards.display import score_text
from leaderboards.pages.notation import said
from leaderboards.pages.wording import MEANS
from tasks.blocks import Block, Bullets, Cell


def with_means(table: pd.DataFrame, records: pd.DataFrame) -> pd.DataFrame:
    """The table of best layers with each task's mean behind its columns.

    Args:
        table: A row for each backbone of the records, in order; columns are named by their headings.
        records: Columns of `Record`, in any order.
    """
    for mean in dataset_means(records):
        if mean.scores:
            scores = {**mean.floors, **mean.scores}
            texts = (
                score_text(scores[one.name].value, scores[one.name].spread) if one.name in scores else ""
                for one in backbones_of(records)
            )
            place = int(table.columns.get_loc(mean.after.heading)) + 1  # type: ignore[arg-type]
            table.insert(place, mean.heading, [Cell(text) for text in texts])
    return table


def mean_blocks(records: pd.DataFrame) -> list[Block]:
    """What the means are over; nothing where no task has several datasets."""
    means = dataset_means(records)
    if not means:
        return []
    labels = {backbone.name: backbone.label for backbone in backbones_of(records)}
    return [said(MEANS), Bullets(tuple(_line(mean, labels) for mean in means))]


def _line(mean: DatasetMean, labels: dict[str, str]) -> str:
    """One mean in words."""
    over = ", ".join(column.place for column in mean.columns)
    task = f"{mean.after.task} {mean.after.metric} ({mean.after.protocol})"
    line = f"{task}: {over}" if mean.scores else f"{task}: no mean"
    left_out = "; ".join(
        f"{column.place} (no score of {', '.join(labels[name] for name in names)})"
        for column, names in mean.left_out.items()
    )
    return f"{line}; left out: {left_out}" if left_out else line
