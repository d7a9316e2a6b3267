"""Honest choices of the layer as tables: beside the leaderboard, and beside every layer."""

import math

import pandas as pd

from leaderboards.choices.honest import Choice, choices, primary_candidates
from leaderboards.choices.selection import Column, backbones_of, best_rows, columns_of
from leaderboards.display import fixed, score_text, signed_text
from leaderboards.pages.scores import board, mark_of
from tasks.blocks import Cell

SHOWN_SHARE = 0.05
"""Blocks that fewer of the splits chose are not listed."""


def honest_table(records: pd.DataFrame) -> pd.DataFrame:
    """The leaderboard with honest choices: cells ``score (what the choice took off)``.

    Returns:
        Rows and columns as in `leaderboards.pages.scores.main_table`, without the random floor, each column's
        best marked; empty where no data were split.
    """
    columns = columns_of(records)
    made = {column: choices(records, column) for column in columns}
    if not any(made.values()):
        return pd.DataFrame()

    def cells(column: Column) -> dict[str, Cell]:
        found = made[column]
        top = max((choice.score for choice in found.values()), default=math.nan)
        return {
            name: Cell(_cell(choice), mark_of(best=choice.score == top, tied=False))
            for name, choice in found.items()
        }

    return board(records, [backbone for backbone in backbones_of(records) if not backbone.floor], cells)


def choice_table(records: pd.DataFrame, column: Column) -> pd.DataFrame:
    """Best and honest score, optimism and chosen blocks of each backbone in one column as text.

    Returns:
        A row a backbone; empty where no data were split. Blocks are listed with the share of the splits that
        chose them, from `SHOWN_SHARE` on.
    """
    found = choices(records, column)
    best = best_rows(primary_candidates(records, column)).to_dict("records")
    body = {
        row["backbone"]: {
            "best": f"{score_text(row['value'])} ({row['layer']}/{row['depth']})",
            "honest": score_text(found[row["backbone"]].score),
            "optimism": score_text(found[row["backbone"]].optimism),
            "blocks chosen": _shares(found[row["backbone"]]),
        }
        for row in best
        if row["backbone"] in found
    }
    shown = [backbone for backbone in backbones_of(records) if backbone.name in body]
    return pd.DataFrame([{"backbone": backbone.label, **body[backbone.name]} for backbone in shown])


def _cell(choice: Choice) -> str:
    """A cell of `honest_table`."""
    return f"{score_text(choice.score)} ({signed_text(-choice.optimism)})"


def _shares(choice: Choice) -> str:
    """Chosen blocks in words: ``9 (62 %), 8 (30 %)``."""
    return ", ".join(
        f"{block} ({fixed(100 * share, 0)} %)" for block, share in choice.shares if share >= SHOWN_SHARE
    )
