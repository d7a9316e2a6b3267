"""Scores of layers that were chosen on other data than they are scored on, beside the arg-max."""

import math
from dataclasses import dataclass

import pandas as pd

from leaderboards.choices.kept import once
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
    rows = column.rows(score_rows(records))
    return once(rows, ("choices", column.key), lambda: _choices(rows, column))


def _choices(rows: pd.DataFrame, column: Column) -> dict[str, Choice]:
    """The choices by the rows of a column."""
    rows = primary_candidates(rows, column)
    top = best_rows(rows)
    best = dict(zip(top["backbone"], top["value"].astype(float), strict=True))
    blocks: dict[str, list[tuple[float, int, float]]] = {}
    chosen = rows.loc[rows["chosen"] > 0, ["backbone", "chosen", "layer", "held_out"]]
    for name, share, layer, held_out in chosen.itertuples(index=False, name=None):
        blocks.setdefault(str(name), []).append((-float(share), int(layer), float(held_out)))
    found = {}
    for name, own in sorted(blocks.items()):
        own.sort()
        shares = [(layer, -share) for share, layer, _ in own]
        score = math.fsum(-share * held_out for share, _, held_out in own)
        if not math.isclose(math.fsum(share for _, share in shares), 1.0, abs_tol=1e-6) or math.isnan(score):
            continue  # layers of which some were not split together say nothing about the choice
        found[name] = Choice(score, best[name] - score, tuple(shares))
    return found


def primary_candidates(records: pd.DataFrame, column: Column) -> pd.DataFrame:
    """Candidates for the choice in a column: blocks of the primary pooling that have a score."""
    rows = pooled(score_rows(records), column)
    return candidates(rows[(rows["metric"] == column.metric) & ~is_floor(rows)])
