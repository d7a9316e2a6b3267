"""Scores of layers that were chosen on other data than they are scored on, beside the arg-max."""

import math
from dataclasses import dataclass

import pandas as pd

from leaderboards.choices.selection import Column, best_rows, candidates, is_floor, pooled, score_rows


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
    rows = primary_candidates(records, column)
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


def primary_candidates(records: pd.DataFrame, column: Column) -> pd.DataFrame:
    """Candidates for the choice in a column: blocks of the primary pooling that have a score."""
    rows = pooled(score_rows(records), column)
    return candidates(rows[(rows["metric"] == column.metric) & ~is_floor(rows)])
