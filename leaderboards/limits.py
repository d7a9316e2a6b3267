"""Candidates for a choice, with what they cost, and what limits leave of them."""

from dataclasses import dataclass

import pandas as pd

from leaderboards.licences import fits_licence
from leaderboards.scores.column import Column
from leaderboards.scores.frames import half_widths

CANDIDATE = [
    *("backbone", "layer", "depth", "pooling", "tap", "input_size", "protocol", "value", "half"),
    *("ms", "parameters", "gflops", "dim", "licence"),
]
MOST_NAMED = 5  # backbones that a sentence names one by one
FACTS = ["backbone", "layer", "dim", "parameters", "licence"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be chosen; None is no limit."""

    ms: float | None = None  # most milliseconds of one image up to the layer
    dim: int | None = None  # most channels of a vector
    parameters: int | None = None  # most weights up to the layer
    commercial: bool = False  # whether the licence must be known to allow commercial use

    def refused(self, rows: pd.DataFrame) -> dict[str, "pd.Series[bool]"]:
        """For each limit, in the words of the command, which rows it refuses: what is not known, too."""
        refused = {}
        for flag, column, most in (
            ("--max-ms", "ms", self.ms),
            ("--max-dim", "dim", self.dim),
            ("--max-parameters", "parameters", self.parameters),
        ):
            if most is not None:
                refused[f"{flag} {most:g}" if column != "parameters" else f"{flag} {most}"] = ~(
                    rows[column] <= most
                )
        if self.commercial:
            fits = [fits_licence(name, "commercial") for name in rows["licence"]]
            refused["--licence commercial"] = ~pd.Series(fits, rows.index, dtype=bool)
        return refused


def candidates_of(column: Column, costs: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """Blocks of trained and untrained backbones with a score in a column, and what they cost.

    Weights and channels are those that were measured; where nothing was, those of the facts, whose weights
    are of the whole backbone.

    Args:
        column: Task, dataset, protocol and metric.
        costs: Columns `leaderboards.scores.costs.LAYER_COSTS`.
        facts: Columns `FACTS`, of all layers of the backbones that are known.

    Returns:
        Columns `CANDIDATE`.
    """
    rows = column.candidates
    rows = rows.assign(half=half_widths(rows), layer=rows["layer"].astype(int))
    keys = ["backbone", "input_size", "layer"]
    rows = rows.merge(costs.astype({"layer": int, "input_size": int}), on=keys, how="left")
    known = facts.rename(columns={"dim": "dim_known", "parameters": "parameters_known"})
    rows = rows.merge(known.astype({"layer": int}), on=["backbone", "layer"], how="left")
    for name in ("dim", "parameters"):
        measured = rows[name].astype(float)
        rows[name] = measured.where(measured.notna(), rows[f"{name}_known"].astype(float))
    for name in ("ms", "gflops"):
        rows[name] = rows[name].astype(float)
    rows["licence"] = rows["licence"].fillna("unknown")
    return rows[CANDIDATE].reset_index(drop=True)


def allowed(rows: pd.DataFrame, limits: Limits) -> pd.DataFrame:
    """The candidates that no limit refuses."""
    keep = pd.Series(data=True, index=rows.index)
    for refused in limits.refused(rows).values():
        keep &= ~refused
    return rows[keep].reset_index(drop=True)


def exclusions(rows: pd.DataFrame, limits: Limits) -> list[str]:
    """What each limit alone leaves out, in a sentence each; none where it leaves out nothing."""
    return [
        _sentence(words, rows, refused) for words, refused in limits.refused(rows).items() if refused.any()
    ]


def _sentence(words: str, rows: pd.DataFrame, refused: "pd.Series[bool]") -> str:
    """How many layers a limit leaves out, and of which backbones all of them."""
    count, whole = int(refused.sum()), len(rows)
    by_backbone = refused.groupby(rows["backbone"]).all()
    names = sorted(str(name) for name in by_backbone.index[by_backbone])
    if count == whole:
        return f"{words} leaves out all {whole} layers"
    more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
    all_of = f", all of {', '.join([*names[:MOST_NAMED], *more])}" if names else ""
    return f"{words} leaves out {count} of {whole} layers{all_of}"
