"""Made output folders: records with the items that they were assessed from, and pages."""

from pathlib import Path

import numpy as np
import pandas as pd

from layerboard.benchmark.records.records import assess_items
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.records.checksum import file_digest, write_checked
from layerboard.leaderboards.records.items import Place, write_items
from layerboard.leaderboards.records.record import subjects_of
from layerboard.leaderboards.writers.build import write_board
from layerboard.tasks.framework.base import Items
from layerboard.zoo.spec import stands_for_set
from tests.leaderboards.builder import frame, layers, measured, record
from tests.leaderboards.goldens import DAVIS

# How many of 150 images each layer gets right, by backbone and vectors; a tap that is a set comes last.
HITS: dict[tuple[str, str], tuple[int, ...]] = {
    ("mini-clip", "cls"): (68, 105, 99),
    ("mini-clip", "mean"): (66, 90, 89),
    ("mini-dino", "cls"): (45, 102, 101),
    ("mini-mae", "cls"): (30, 32, 29),
    ("random", "cls"): (14, 15, 16),
    ("pixels", "cls"): (28, 31, 30),
}
J_AND_F = {"mini-dino": (20.0, 41.0, 60.0), "mini-clip": (52.0, 58.0, 30.0)}  # means over 12 objects
FACTS: dict[str, dict[str, object]] = {
    "mini-clip": {"family": "CLIP"},
    "mini-dino": {"family": "DINO"},
    "mini-mae": {"family": "MAE"},
    "random": {"family": "random", "trained": False},
    "pixels": {"family": "pixels", "trained": False},
}
TIMED = {"task": "cost", "metric": "ms", "dataset": "a processor", "analysis": True, "primary": False}

Measured = dict[tuple[str, str], dict[Place, Items]]  # items by backbone and task


def measured_items() -> Measured:
    """Items of two tasks: hits of k-NN of single layers and of a set, and J&F of two backbones."""
    drawn = np.random.default_rng(0)
    every: Measured = {}
    for (backbone, pooling), counts in HITS.items():
        order = drawn.permutation(150) if backbone in ("random", "pixels") else np.arange(150)
        places = {(n, "block", pooling): count for n, count in enumerate(counts, 1)}
        places |= {(3, "1+3", pooling): 107} if backbone == "mini-clip" and pooling == "cls" else {}
        for place, count in places.items():
            every.setdefault((backbone, "knn"), {})[place] = measured(100.0 * (order < count))
    for backbone, means in J_AND_F.items():
        values = [np.clip(mean + drawn.normal(0, 9, 12), 0, 100) for mean in means]
        places = {(n, "block", "grid"): measured(row, "J&F") for n, row in enumerate(values, 1)}
        every[backbone, "davis"] = places
    return every


def records_of(every: Measured) -> pd.DataFrame:
    """The records of items, as a run assesses them, and what each layer costs."""
    rows = []
    for (backbone, task), items in every.items():
        metric = "J&F" if task == "davis" else "top-1"
        sets = {place for place in items if stands_for_set(place[1])}  # a run scores them separately
        parts = (
            {place: items[place] for place in items.keys() - sets},
            {place: items[place] for place in sets},
        )
        for (place, _), fields in [pair for part in parts for pair in assess_items(part, metric).items()]:
            (values,) = items[place].values.values()
            facts = FACTS[backbone] | (DAVIS if task == "davis" else {}) | fields
            facts |= dict(zip(("layer", "tap", "pooling"), place, strict=True))
            facts |= {"n": len(values), "value": values.mean(), "primary": place[2] != "mean"}
            rows.append(record(**facts | {"backbone": backbone}))
    for backbone, facts in [*FACTS.items()][:3]:
        rows += layers([1.0, 2.0, 3.0], backbone=backbone, **facts | TIMED | {"pooling": "image"})
    return frame(rows)


def write_output(records: pd.DataFrame, every: Measured, output: Path) -> None:
    """An output folder as a run leaves it: records, each with its items, and pages."""
    keys = records["tap"].map(stands_for_set), records["backbone"], records["task"]
    for (is_set, backbone, task), rows in records.groupby([*keys]):
        (subject,) = subjects_of(rows)
        items = {
            at: of for at, of in every.get((backbone, task), {}).items() if stands_for_set(at[1]) == is_set
        }
        if items:
            write_items(items, output / "items" / subject.path)
        digests = {"items": file_digest(output / "items" / subject.path)} if items else {}
        write_checked(rows.reset_index(drop=True), output / "records" / subject.path, digests)
    for suite in sorted({name for names in records["suite"] for name in names.split("\n")}):
        write_board(Board.of(records, suite, items=output / "items"), output / "tables")
