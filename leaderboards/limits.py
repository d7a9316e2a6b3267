"""Candidates for a choice, with what they cost, and what limits leave of them."""

from dataclasses import dataclass

import pandas as pd

from leaderboards.facts import fits_licence
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

    ms: float | None = None  # of one image up to the layer
    dim: int | None = None  # channels of a vector
    parameters: int | None = None  # weights up to the layer
    commercial: bool = False  # whether the licence must be known to allow commercial use

    def refused(self, rows: pd.DataFrame) -> dict[str, "pd.Series[bool]"]:
        """For each limit, in the words of the command, which rows it refuses: what is not known, too."""
        ceilings = (("ms", self.ms, "g"), ("dim", self.dim, "g"), ("parameters", self.parameters, ""))
        refused = {
            f"--max-{name} {most:{form}}": ~(rows[name] <= most)
            for name, most, form in ceilings
            if most is not None
        }
        if self.commercial:
            fits = [fits_licence(name, "commercial") for name in rows["licence"]]
            refused["--licence commercial"] = ~pd.Series(fits, rows.index, dtype=bool)
        return refused


def candidates_of(column: Column, costs: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """Blocks of trained and untrained backbones with a score in a column, and what they cost.

    Weights and channels are those that were measured; where nothing was, those of the facts, whose weights
    are of the whole backbone. Costs have the columns `leaderboards.scores.costs.LAYER_COSTS`, facts `FACTS`,
    of all layers of the backbones that are known; what comes back `CANDIDATE`.
    """
    rows = column.candidates
    rows = rows.assign(half=half_widths(rows), layer=rows["layer"].astype(int))
    keys = ["backbone", "input_size", "layer"]
    rows = rows.merge(costs.astype({"layer": int, "input_size": int}), on=keys, how="left")
    known = facts.rename(columns={"dim": "dim_known", "parameters": "parameters_known"})
    rows = rows.merge(known.astype({"layer": int}), on=["backbone", "layer"], how="left")
    for name in ("dim", "parameters"):
        rows[name] = rows[name].astype(float).fillna(rows[f"{name}_known"].astype(float))
    rows[["ms", "gflops"]] = rows[["ms", "gflops"]].astype(float)
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
    sentences = []
    for words, refused in limits.refused(rows).items():
        by_backbone = refused.groupby(rows["backbone"]).all()
        names = sorted(str(name) for name in by_backbone.index[by_backbone])
        more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
        all_of = f", all of {', '.join([*names[:MOST_NAMED], *more])}" if names else ""
        if refused.all() and len(rows):
            sentences.append(f"{words} leaves out all {len(rows)} layers")
        elif refused.any():
            sentences.append(f"{words} leaves out {refused.sum()} of {len(rows)} layers{all_of}")
    return sentences
