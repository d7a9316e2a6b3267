"""The answers of a leaderboard as a table for the screen, and for machines."""

import math
from collections.abc import Iterable, Sequence

import pandas as pd
from tabulate import tabulate

from leaderboards.choices.answers import Answer
from leaderboards.display import fixed, ranges_text, score_text

MOST_NAMED = 3
"""Backbones that are named in a row of the table; of more, their number is said."""

_COLUMNS = (
    *("task", "dataset", "data", "protocol", "metric", "partial", "backbone", "layer", "depth", "pooling"),
    *("score", "ci_low", "ci_high", "honest", "milliseconds", "device", "rivals", "untested", "layers"),
)


def answer_frame(found: Sequence[Answer]) -> pd.DataFrame:
    """One row a column of the leaderboard, in full.

    ``rivals`` are the backbones, and ``layers`` the further blocks of the best one, that the data cannot tell
    from the best; ``untested`` the backbones that could not be compared.
    """
    return pd.DataFrame([_row(one) for one in found], columns=list(_COLUMNS))


def _row(one: Answer) -> dict[str, object]:
    column = one.column
    names = ("task", "dataset", "data", "protocol", "metric", "partial")
    return {name: getattr(column, name) for name in names} | {
        name: getattr(one, name) for name in _COLUMNS if name not in names
    }


def answer_table(found: Sequence[Answer], labels: dict[str, str] | None = None) -> str:
    """A table for a terminal or a file of plain text; columns that no answer fills are left out.

    Args:
        found: The answers.
        labels: For backbones what tables call them, where that is not their name.
    """
    labels = labels or {}
    table = pd.DataFrame(
        {
            "task": one.column.heading,
            "best backbone": labels.get(one.backbone, one.backbone),
            "layer": f"{one.layer}/{one.depth}",
            "vectors": f"{one.pooling}{' ↑' if one.better else ''}",
            "score": score_text(one.score, (one.ci_high - one.ci_low) / 2),
            "honest": score_text(one.honest),
            "ms": fixed(one.milliseconds, 1),
            "may be best, too": _others(one, labels),
        }
        for one in found
    )
    table = table.loc[:, [(table[name] != "").any() for name in table]]
    return tabulate(table.to_dict("list"), headers="keys", tablefmt="simple", disable_numparse=True)


def _others(one: Answer, labels: dict[str, str]) -> str:
    """Rivals and layers in a few words."""
    names = [labels.get(name, name) for name in one.rivals]
    if len(names) > MOST_NAMED:
        names = [f"{len(names)} of {one.compared} others"]
    if one.layers:
        names.append(f"layer {ranges_text(list(one.layers))}")
    if one.untested:
        names.append(f"{len(one.untested)} not compared")
    return "; ".join(names)


def answer_notes(found: Sequence[Answer]) -> list[str]:
    """How to read the table: one sentence for each thing that it shows."""
    notes = []
    if any(one.rivals or one.layers for one in found):
        notes.append("May be best, too: together with the best, these hold the true best with 95 %.")
    if any(not math.isnan(one.honest) for one in found):
        notes.append("Honest: the layer chosen on one half of the data and scored on the other.")
    if devices := _joined(one.device for one in found):
        notes.append(f"ms: one image up to that layer, on {devices}.")
    notes += [
        f"↑ {one.column.heading}: pooling {one.better.pooling} reaches {score_text(one.better.value)} "
        f"(layer {one.better.layer}/{one.better.depth})."
        for one in found
        if one.better
    ]
    if any(one.column.partial for one in found):
        notes.append("†: measured on a part of the official data.")
    return notes


def _joined(words: Iterable[str]) -> str:
    return " and ".join(sorted({word for word in words if word}))
