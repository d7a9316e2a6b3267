"""The section of failures and successes: for each task the examples that show what changes over depth."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from itertools import islice
from pathlib import Path

import pandas as pd

from leaderboards.board import Board
from leaderboards.report.gallery.clusters import clusters
from leaderboards.report.gallery.drawing import drawn
from leaderboards.report.gallery.kept import Kept, read_kept
from leaderboards.report.gallery.markup import Pictures
from leaderboards.report.gallery.masks import MASKS
from leaderboards.report.gallery.nearest import KNN, RETRIEVAL
from leaderboards.report.gallery.points import POINTS
from leaderboards.report.section import Section
from leaderboards.scores.column import Column

DRAWINGS: Mapping[str, Callable[[Sequence[Kept], Pictures], str]] = {
    "knn": partial(drawn, KNN),
    "retrieval": partial(drawn, RETRIEVAL),
    "davis": partial(drawn, MASKS),
    "spair": partial(drawn, POINTS),
    "cluster-image": clusters,
}
"""By name of the task, what draws the examples of some backbones, the best first, as markup."""

BACKBONES = 8
"""Backbones of a column whose examples are read, the best first."""

INTRO = (
    "<p>What the best backbone of each task makes of a few images, layer by layer: examples that it loses "
    "with depth, that it finds with depth, that it never gets right, and one that it always does. Open one "
    "to see it; hover over a picture for its name.</p>"
)


def example_sections(records: pd.DataFrame, output: Path) -> list[Section]:
    """The section of failures and successes; none where the run kept no examples (``--no-examples``).

    Args:
        records: Of one suite, columns of `Record`.
        output: Output folder that they are of: ``examples`` and ``thumbnails`` lie in it.
    """
    pictures, parts = Pictures(), []
    for column in Board.of(records).columns:
        kept = _kept(column, output) if column.task in DRAWINGS else []
        if kept:
            parts.append(_headed(column, kept[0]) + DRAWINGS[column.task](kept, pictures))
    if not parts:
        return []
    html = f'<div class="examples">{pictures.definitions}{INTRO}{"".join(parts)}</div>'
    return [Section("examples", "Failures and successes", html)]


def example_style() -> str:
    """The style sheet of the section, whose selectors all begin with ``.examples``."""
    return (Path(__file__).parent / "assets" / "examples.css").read_text(encoding="utf-8")


def _kept(column: Column, output: Path) -> list[Kept]:
    """What was kept of the backbones of a column, the best first."""
    rows = column.best.sort_values(["value", "backbone"], ascending=[False, True])
    places = zip(rows["backbone"], rows["layer"], rows["value"], strict=True)
    found = (read_kept(output, column, str(name), int(layer), float(value)) for name, layer, value in places)
    return list(islice((one for one in found if one is not None), BACKBONES))


def _headed(column: Column, kept: Kept) -> str:
    """The heading of a task's examples, and whose they are."""
    return (
        f"<h3>{escape(column.heading)}: {escape(kept.backbone)}</h3>"
        f"<p>{escape(column.metric)} {kept.value:.1f} at layer {kept.layer}, its best.</p>"
    )
