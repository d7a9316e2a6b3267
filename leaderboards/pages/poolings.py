"""Where another pooling than the shown one is better, in words below the leaderboard."""

import pandas as pd

from leaderboards.choices.poolings import better_poolings
from leaderboards.choices.selection import Column, backbones_of
from leaderboards.display import pooling_name, score_text
from leaderboards.pages.notation import said
from leaderboards.pages.wording import BETTER
from tasks.blocks import Block, Bullets


def better_blocks(records: pd.DataFrame, columns: tuple[Column, ...]) -> list[Block]:
    """One line a column with the backbones that score higher in another pooling; none without any."""
    labels = {backbone.name: backbone.label for backbone in backbones_of(records)}
    lines = []
    for column in columns:
        found = better_poolings(records, column)
        texts = [
            f"{label} {score_text(found[name].value)} ({found[name].layer}/{found[name].depth}, "
            f"{pooling_name(found[name].pooling)})"
            for name, label in labels.items()
            if name in found
        ]
        if texts:
            lines.append(f"{column.heading}: {', '.join(texts)}")
    return [said(BETTER), Bullets(tuple(lines))] if lines else []
