"""The section on sets of layers: what taking layers together gains over the best single one."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from leaderboards.choices.selection import backbones_of
from leaderboards.choices.sets import SetGain, set_gains, set_rows
from leaderboards.display import score_text
from leaderboards.pages.notation import said
from leaderboards.pages.transforms import NO_ITEMS, difference_text, empty_sentences
from tasks.blocks import Block, Bullets, Heading, Table

NOTE = """\
The same forwards, with layers taken together: the cosine of a set is the mean of its layers' cosines; probes
see the layers' unit vectors side by side. None of these scores stands in another table. `gain` is the set
less the best single layer, in points, with its 95 % interval over the same items. The best layer was chosen
on the items that score it, the blocks of `last4`, `quarters` and `all` were not, so their gains are a little
too low; the best pair was chosen among many more than the best layer, so its gain is too high. The last row
of a backbone is fair: set and layer are both chosen on one half of the data and scored on the other. The
temperature of a vote is the task's own: by a mean with a layer that says little it acts as a higher one."""


def set_blocks(records: pd.DataFrame, items: Path | None) -> list[Block]:
    """The section on sets of layers; nothing where there are none.

    Args:
        records: Columns of `Record`, of one suite.
        items: The items of their run; None where they are not there.
    """
    rows = set_rows(records)
    if rows.empty:
        return []
    found, labels = set_gains(records, items), {one.name: one.label for one in backbones_of(records)}
    blocks: list[Block] = [Heading(2, "What sets of layers gain"), said(NOTE)]
    blocks += [] if items is not None else [said(NO_ITEMS)]
    if found:
        frame = pd.DataFrame([_row(one, labels[one.backbone]) for one in found])
        empty = [name for name in ("transform",) if not frame[name].any()]
        frame = frame.drop(columns=empty)
        head = list(frame.columns).index("set")
        blocks.append(Table(frame, left=head + 2, caption="What sets of layers gain", head=head))
    sentences = tuple(_missing(rows, labels))
    return [*blocks, *([Bullets(sentences)] if sentences else [])]


def _row(one: SetGain, label: str) -> dict[str, str]:
    return {
        "column": one.column.heading,
        "backbone": label,
        "transform": one.transform,
        "set": ", ".join(one.names),
        "blocks": _blocks(one.blocks),
        "score": score_text(one.score),
        "best layer": f"{score_text(one.best.score)} ({one.best.layer}/{one.best.depth})",
        "gain": difference_text(one.gain),
    }


def _blocks(blocks: tuple[int, ...]) -> str:
    """Blocks in short: ``9-12``, ``3, 6, 9, 12``."""
    first, last = blocks[0], blocks[-1]
    if len(blocks) > 2 and blocks == tuple(range(first, last + 1)):
        return f"{first}-{last}"
    return ", ".join(map(str, blocks))


def _missing(rows: pd.DataFrame, labels: dict[str, str]) -> Iterator[str]:
    """A sentence for each backbone, task and reason for which sets have no score."""
    return empty_sentences(rows.assign(transform="sets of layers"), labels, "set")
