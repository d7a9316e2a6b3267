"""Whether a test can rank at all: raw pixels, random features and untrained networks against the best."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from layerboard.leaderboards.board.column import Column, Side
from layerboard.leaderboards.board.differences import best_side, differences_of, sides_of
from layerboard.leaderboards.board.frames import RANDOM, candidates, is_floor


def equal_baselines(column: Column, items: Path | None) -> tuple[str, ...]:
    """Baselines that are not shown to score lower than the best trained backbone, by their labels, in order.

    Without items, or with too few, scores alone are compared. Empty without a trained backbone.
    """
    trained = column.best[column.best["trained"].astype(bool)]
    if trained.empty:
        return ()
    top = trained.sort_values("value", ascending=False, kind="stable")
    best = best_side(trained, str(top["backbone"].iloc[0]))
    labels = {backbone.name: backbone.label for backbone in column.backbones}
    sides = {side.backbone: side for side in _baselines(column)}
    return tuple(
        label for name, label in labels.items() if name in sides and _equal(column, sides[name], best, items)
    )


def _baselines(column: Column) -> Iterable[Side]:
    """The best layer of each untrained network and of raw pixels; of random draws, the one in the middle."""
    for name in column.best.loc[~column.best["trained"].astype(bool), "backbone"]:
        yield best_side(column.best, str(name))
    rows = column.in_pooling()
    floors = candidates(rows[(rows["metric"] == column.metric) & is_floor(rows)])
    for name, own in floors.groupby("backbone"):
        draws = sorted(sides_of(own, str(name)), key=lambda side: side.score)
        yield draws[len(draws) // 2 if own["family"].iloc[0] == RANDOM else -1]


def _equal(column: Column, side: Side, best: Side, items: Path | None) -> bool:
    (difference,) = differences_of(column, [side], best, items)
    return not (difference.value if pd.isna(difference.high) else difference.high) < 0


def cannot_rank(baselines: Sequence[str]) -> str:
    """Baselines, at least one, that are not shown to be worse, as a sentence without its full stop."""
    *names, last = baselines
    several = "are" if names or last.startswith("raw pixels") else "is"
    which = f"{', '.join(names)}{' and ' * bool(names)}{last} {several}"
    return f"{which} not shown to be worse than the best: this test cannot rank"
