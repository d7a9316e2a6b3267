"""The comparison of two backbones in words, as a table and for machines."""

import math
from collections.abc import Sequence

import pandas as pd

from leaderboards.choices.sides import Side
from leaderboards.choices.versus import LEVEL, Match, Versus
from leaderboards.display import fixed, score_text

OPTIMISTIC = (
    "Each backbone stands at the layer that scores best on the very items that are compared, which is "
    "optimistic"
)
HELD_OUT = (
    "; beside it is the difference when layers are chosen on one half of the items and scored on the other"
)

_COLUMNS = (
    *("task", "dataset", "data", "protocol", "metric", "partial"),
    *("layer", "depth", "pooling", "score", "other_layer", "other_depth", "other_pooling", "other_score"),
    *("difference", "ci_low", "ci_high", "p", "p_corrected", "held_out", "higher"),
)


def match_frame(found: Match) -> pd.DataFrame:
    """One row a comparison: what is compared, both scores, the difference with its interval and p-values.

    ``difference`` is first minus second, in points; ``p_corrected`` is Holm's, for all rows together;
    ``higher`` names the backbone that the data show to score higher, "" where they show none.
    """
    return pd.DataFrame([_row(found, one) for one in found.rows], columns=list(_COLUMNS))


def _row(found: Match, one: Versus) -> dict[str, object]:
    column, first, second = one.column, one.first, one.second
    return {
        "task": column.task,
        "dataset": column.dataset,
        "data": column.data,
        "protocol": column.protocol,
        "metric": column.metric,
        "partial": column.partial,
        **{name: getattr(first, name) for name in ("layer", "depth", "pooling", "score")},
        **{f"other_{name}": getattr(second, name) for name in ("layer", "depth", "pooling", "score")},
        **{name: getattr(one, name) for name in ("difference", "ci_low", "ci_high", "p", "p_corrected")},
        "held_out": one.held_out,
        "higher": _winner(found, one),
    }


def match_table(found: Match) -> pd.DataFrame:
    """The comparisons as text: scores with layers in brackets, differences in points."""
    first, second = found.names
    table = pd.DataFrame(
        {
            "task": one.column.heading,
            first: _score(one.first, one),
            second: _score(one.second, one),
            "difference": _signed(one.difference),
            "95 % interval": _interval(one),
            "p": _p(one.p),
            "p (Holm)": _p(one.p_corrected),
            "held-out difference": _signed(one.held_out),
            "higher": _winner(found, one) or ("too few items" if math.isnan(one.p) else "not shown"),
        }
        for one in found.rows
    )
    empty = (table["held-out difference"] == "").all()
    return table.drop(columns="held-out difference") if empty else table


def conclusion(found: Match) -> str:
    """What the comparisons show, in one sentence, and how the layers were chosen, in another."""
    count = len(found.rows)
    corrected = f", corrected for {count} comparisons," if count > 1 else ""
    shown = f"At {100 * LEVEL:g} %{corrected} {_shown(found)}."
    if found.which == "same":
        return shown
    known = any(not math.isnan(one.held_out) for one in found.rows)
    return f"{shown} {OPTIMISTIC}{HELD_OUT if known else ''}."


def _shown(found: Match) -> str:
    """Which backbone is higher where."""
    groups = {side: [one for one in found.rows if one.higher == side] for side in (1, 2, 0)}
    parts = [
        f"{name} scores higher on {_where(found, groups[side])}"
        for side, name in enumerate(found.names, start=1)
        if groups[side]
    ]
    if groups[0]:
        parts.append(f"no difference shows on {_where(found, groups[0])}")
    return "; ".join(parts)


def _where(found: Match, rows: Sequence[Versus]) -> str:
    """The columns of some comparisons; of many layers, at how many of them."""
    headings = dict.fromkeys(one.column.heading for one in rows)
    if found.which == "best":
        return ", ".join(headings)
    total = {heading: _count(found.rows, heading) for heading in headings}
    return ", ".join(
        f"{heading} at {_count(rows, heading)} of {total[heading]} depths" for heading in headings
    )


def _count(rows: Sequence[Versus], heading: str) -> int:
    return sum(one.column.heading == heading for one in rows)


def _winner(found: Match, one: Versus) -> str:
    return found.names[one.higher - 1] if one.higher else ""


def _score(side: Side, one: Versus) -> str:
    """A score with its layer, and its pooling where the other backbone has another."""
    pooling = f", {side.pooling}" if one.first.pooling != one.second.pooling else ""
    return f"{score_text(side.score)} ({side.layer}/{side.depth}{pooling})"


def _signed(value: float) -> str:
    return "" if math.isnan(value) else f"{value:+.1f}"


def _interval(one: Versus) -> str:
    return "" if math.isnan(one.ci_low) else f"{fixed(one.ci_low, 1)} to {fixed(one.ci_high, 1)}"


def _p(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2g}"
