"""Candidates for a choice, with what they cost, and what limits leave of them."""

from collections.abc import Mapping
from math import nan

import pandas as pd

from leaderboards.facts import UNKNOWN, Facts, fits_licence
from leaderboards.scores.column import Column
from leaderboards.scores.frames import half_widths
from zoo.spec import entry_name

CANDIDATE = [
    *("backbone", "layer", "depth", "pooling", "tap", "input_size", "protocol", "value", "half"),
    *("ms", "parameters", "gflops", "dim", "licence"),
]
MOST_NAMED = 5  # backbones that a sentence names one by one


def candidates_of(column: Column, costs: pd.DataFrame, facts: Mapping[str, Facts]) -> pd.DataFrame:
    """Blocks of trained and untrained backbones with a score in a column, and what they cost.

    Weights and channels are those that were measured; where nothing was, those of the facts, whose weights
    are of the whole backbone. Costs have the columns `leaderboards.scores.costs.LAYER_COSTS`, facts are by
    name of the entry; what comes back has the columns `CANDIDATE`.
    """
    rows = column.candidates
    rows = rows.assign(half=half_widths(rows), layer=rows["layer"].astype(int))
    keys = ["backbone", "input_size", "layer"]
    rows = rows.merge(costs.astype({"layer": int, "input_size": int}), on=keys, how="left")
    known = [facts.get(entry_name(name), UNKNOWN) for name in rows["backbone"]]
    places = zip(known, rows["layer"], strict=True)
    widths = [dict(enumerate(each.widths, start=1)).get(layer, nan) for each, layer in places]
    for name, values in (("dim", widths), ("parameters", [each.parameters for each in known])):
        rows[name] = rows[name].astype(float).fillna(pd.Series(values, rows.index, dtype=float))
    rows[["ms", "gflops"]] = rows[["ms", "gflops"]].astype(float)
    return rows.assign(licence=[each.licence or "unknown" for each in known])[CANDIDATE]


def within(
    rows: pd.DataFrame, ceilings: Mapping[str, float | None], *, commercial: bool = False
) -> tuple[pd.DataFrame, list[str]]:
    """The candidates that no limit refuses, and what each limit alone leaves out, in a sentence each.

    Ceilings are by column, None is no limit; what is not known is beyond each. A licence must be known to
    allow commercial use where that is asked for.
    """
    refused = {
        f"--max-{name} {most:{'' if name == 'parameters' else 'g'}}": ~(rows[name] <= most)
        for name, most in ceilings.items()
        if most is not None
    }
    if commercial:
        fits = [fits_licence(name, "commercial") for name in rows["licence"]]
        refused["--licence commercial"] = ~pd.Series(fits, rows.index, dtype=bool)
    keep, sentences = pd.Series(data=True, index=rows.index), []
    for words, beyond in refused.items():
        keep &= ~beyond
        by_backbone = beyond.groupby(rows["backbone"]).all()
        names = sorted(str(name) for name in by_backbone.index[by_backbone])
        more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
        all_of = f", all of {', '.join([*names[:MOST_NAMED], *more])}" if names else ""
        if beyond.all() and len(rows):
            sentences.append(f"{words} leaves out all {len(rows)} layers")
        elif beyond.any():
            sentences.append(f"{words} leaves out {beyond.sum()} of {len(rows)} layers{all_of}")
    return rows[keep].reset_index(drop=True), sentences
