"""What each depth of a backbone costs: as it was measured, or as far as it follows from its facts."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from leaderboards.board import Board
from leaderboards.report.frames import UNKNOWN, Facts
from leaderboards.scores.costs import find_device
from zoo.spec import entry_name

COST = ("backbone", "layer", "ms", "parameters", "dim", "bytes")
BYTES = 4  # size of a number of a vector as it is stored, float32

# costs that scores are drawn over, in the order of preference, and their names
AXES: tuple[tuple[str, str], ...] = (
    ("ms", "latency of one image, ms"),
    ("parameters", "parameters up to the layer, millions"),
    ("dim", "numbers in a vector"),
)


@dataclass(frozen=True, slots=True)
class BackboneCosts:
    """Costs of the backbones of a page, under their labels."""

    # columns `COST`: latency of one image in ms and weights up to each block, length and bytes of a vector;
    # NaN where one is not known
    layers: pd.DataFrame
    measured: bool  # whether anything was; else weights and lengths follow from facts, latencies are NaN

    @property
    def axes(self) -> tuple[tuple[str, str], ...]:
        """The axes for which there are numbers."""
        return tuple((name, title) for name, title in AXES if self.layers[name].notna().any())


def costs_of(board: Board, facts: Mapping[str, Facts]) -> BackboneCosts:
    """What the backbones of a board cost, on the device that was measured last; facts are by name."""
    backbones = [backbone for backbone in board.backbones if not backbone.floor]
    labels = {backbone.name: backbone.label for backbone in backbones}
    rows = board.costs.records
    rows = rows[rows["value"].notna() & rows["backbone"].isin(labels)]
    rows = rows[rows["dataset"] == find_device(board.costs.records)]
    rows = rows.assign(backbone=rows["backbone"].map(labels))
    inner = rows[(rows["tap"] == "block") & (rows["layer"] >= 1) & rows["metric"].isin(COST[2:])]
    wide = inner.pivot_table(index=["backbone", "layer"], columns="metric", values="value", aggfunc="last")
    measured = wide.reindex(columns=COST[2:]).reset_index().reindex(columns=[*COST])
    guessed = [
        row
        for backbone in backbones
        if backbone.label not in set(measured["backbone"])
        for row in _from_facts(backbone.label, backbone.depth, facts.get(entry_name(backbone.name), UNKNOWN))
    ]
    parts = [part for part in (measured, pd.DataFrame(guessed, columns=[*COST])) if len(part)]
    layers = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*COST], dtype=float)
    return BackboneCosts(layers, bool(len(measured)))


def _from_facts(label: str, depth: int, facts: Facts) -> list[tuple[object, ...]]:
    """What follows of every block: a share of the weights, and the length of a vector."""
    widths = facts.widths if len(facts.widths) == depth else (np.nan,) * depth
    weights = np.nan if facts.parameters is None else facts.parameters / depth
    return [
        (label, layer, np.nan, weights * layer, width, width * BYTES)
        for layer, width in enumerate(widths, start=1)
    ]
