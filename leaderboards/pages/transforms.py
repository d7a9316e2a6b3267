"""The section on transformed features: what each transform gains, beside the layers as they are."""

import math
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from leaderboards.choices.gains import Difference, Gain, gains_of, transformed_rows
from leaderboards.choices.selection import backbones_of
from leaderboards.choices.sides import Side
from leaderboards.display import fixed, score_text, signed_text
from leaderboards.pages.notation import said
from tasks.blocks import Block, Bullets, Heading, Table

NOTE = """\
The same forwards, with something done to the features before they were scored: `debias:K` removes from tokens
K directions in which they show their position, as a black image shows it; `whiten` and `zscore` fit vectors
to the spread of those of other images, without labels. None of these scores stands in another table.
`gain` is the best layer with the transform less the best one without it, in points, with its 95 % interval
over the same items; the interval is of that gain alone, so of twenty about one lies off 0 by chance. Both
layers were chosen on the items that score them. `at the plain layer` keeps the layer that is best as it is;
`held-out gain` is of layers that were chosen on other data than they are scored on."""

NO_ITEMS = """\
No gain has an interval: the measurements of single images were not there when this page was written."""


def transform_blocks(records: pd.DataFrame, items: Path | None) -> list[Block]:
    """The section on transformed features; nothing where there are none.

    Args:
        records: Columns of `Record`, of one suite.
        items: The items of their run; None where they are not there.
    """
    changed = transformed_rows(records)
    if changed.empty:
        return []
    found, labels = gains_of(records, items), {one.name: one.label for one in backbones_of(records)}
    blocks: list[Block] = [Heading(2, "What transforms of the features gain"), said(NOTE)]
    blocks += [] if items is not None else [said(NO_ITEMS)]
    if found:
        frame = pd.DataFrame([_row(one, labels[one.backbone]) for one in found])
        empty = [name for name in ("held-out gain",) if not frame[name].any()]
        blocks.append(Table(frame.drop(columns=empty), left=3, caption="What transforms gain", head=2))
    sentences = tuple(empty_sentences(changed, labels))
    return [*blocks, *([Bullets(sentences)] if sentences else [])]


def _row(one: Gain, label: str) -> dict[str, str]:
    return {
        "column": one.column.heading,
        "transform": one.transform,
        "backbone": label,
        "best as it is": _score(one.plain),
        "best transformed": _score(one.best),
        "gain": difference_text(one.gain),
        "at the plain layer": "" if one.same_layer is None else difference_text(one.same_layer),
        "held-out gain": signed_text(one.honest),
    }


def _score(side: Side) -> str:
    """A score with its layer."""
    return f"{score_text(side.score)} ({side.layer}/{side.depth})"


def difference_text(one: Difference) -> str:
    """A difference with its interval: ``+1.2 (0.3 to 2.1)``."""
    around = "" if math.isnan(one.low) else f" ({fixed(one.low, 1)} to {fixed(one.high, 1)})"
    return f"{signed_text(one.value)}{around}"


def empty_sentences(rows: pd.DataFrame, labels: dict[str, str], unit: str = "layer") -> Iterator[str]:
    """A sentence for each backbone, task, transform and reason for which layers, or units, have no score."""
    missing = rows[rows["value"].isna() & rows["primary"].astype(bool)]
    keys = ["backbone", "task", "dataset", "protocol", "transform", "reason"]
    for key, own in missing.groupby(keys, sort=True):
        name, task, dataset, protocol, transform, reason = map(str, key)
        count = len(own)
        layers = f"{count} {unit}{'' if count == 1 else 's'}"
        yield f"{labels[name]}: {task} on {dataset} ({protocol}) with {transform}, {layers}: {reason}."
