"""Scores of layers that were chosen on other data than they are scored on, beside the arg-max."""

import math
from dataclasses import dataclass

import pandas as pd

from leaderboards.choices.selection import (
    FLOOR,
    Column,
    backbones_of,
    best_rows,
    candidates,
    columns_of,
    pooled,
    score_rows,
)
from leaderboards.display import fixed, score_text, signed_text
from leaderboards.pages.scores import board

SHOWN_SHARE = 0.05
"""Blocks that fewer of the splits chose are not listed."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The layer of one backbone in one column, chosen on halves of the data.

    Attributes:
        score: Mean score of the chosen layers on the other halves, in percent.
        optimism: By how much the best layer's score on all data exceeds it.
        shares: Blocks that were chosen and the share of the splits that chose them, the commonest first.
    """

    score: float
    optimism: float
    shares: tuple[tuple[int, float], ...]


def choices(records: pd.DataFrame, column: Column) -> dict[str, Choice]:
    """The choice of each backbone by the column's metric in its primary pooling.

    Backbones whose data were not split have none; nor has the random floor, whose layers are draws.

    Args:
        records: Columns of `Record`, in any order; `Record.chosen` and `Record.held_out` say what was chosen.
        column: Task, dataset, protocol and metric.
    """
    rows = _primary(records, column)
    best = {row["backbone"]: float(row["value"]) for row in best_rows(rows).to_dict("records")}
    found = {}
    for name, own in rows[rows["chosen"] > 0].groupby("backbone", sort=True):
        if not math.isclose(own["chosen"].sum(), 1.0, abs_tol=1e-6) or own["held_out"].isna().any():
            continue  # layers of which some were not split together say nothing about the choice
        own = own.sort_values(["chosen", "layer"], ascending=[False, True])
        score = float((own["chosen"] * own["held_out"]).sum())
        shares = zip(own["layer"].astype(int), own["chosen"].astype(float), strict=True)
        found[str(name)] = Choice(score, best[str(name)] - score, tuple(shares))
    return found


def honest_table(records: pd.DataFrame) -> pd.DataFrame:
    """The leaderboard with honest choices as text: cells ``score (what the choice took off)``.

    Returns:
        Rows and columns as in `leaderboards.pages.scores.main_table`, without the random floor, each column's
        best bold; empty where no data were split.
    """
    columns = columns_of(records)
    made = {column: choices(records, column) for column in columns}
    if not any(made.values()):
        return pd.DataFrame()

    def cells(column: Column) -> dict[str, str]:
        found = made[column]
        top = max((choice.score for choice in found.values()), default=math.nan)
        texts = {name: _cell(choice) for name, choice in found.items()}
        return {name: f"**{texts[name]}**" if found[name].score == top else texts[name] for name in found}

    return board(records, [backbone for backbone in backbones_of(records) if not backbone.floor], cells)


def choice_table(records: pd.DataFrame, column: Column) -> pd.DataFrame:
    """Best and honest score, optimism and chosen blocks of each backbone in one column as text.

    Returns:
        A row a backbone; empty where no data were split. Blocks are listed with the share of the splits that
        chose them, from `SHOWN_SHARE` on.
    """
    found = choices(records, column)
    best = best_rows(_primary(records, column)).to_dict("records")
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


def _primary(records: pd.DataFrame, column: Column) -> pd.DataFrame:
    """Candidates for the choice in a column: blocks of the primary pooling that have a score."""
    rows = pooled(score_rows(records), column)
    return candidates(rows[(rows["metric"] == column.metric) & (rows["family"] != FLOOR)])


def _cell(choice: Choice) -> str:
    """A cell of `honest_table`."""
    return f"{score_text(choice.score)} ({signed_text(-choice.optimism)})"


def _shares(choice: Choice) -> str:
    """Chosen blocks in words: ``9 (62 %), 8 (30 %)``."""
    return ", ".join(
        f"{block} ({fixed(100 * share, 0)} %)" for block, share in choice.shares if share >= SHOWN_SHARE
    )
