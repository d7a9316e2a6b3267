"""Scores that are committed or published are those of a run.

Every backbone that comes with the package is run from rendering the datasets over the packaged weights to
numbers, at an early, a middle and a late layer: a transformer and a ConvNet on every task, the others on
tasks of few images. ``layerboard run`` and ``leaderboard --tables leaderboards/tables`` write the numbers.
"""

import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import layerboard
from layerboard.benchmark.plan.suites import MINI_INTERVENTIONS, MINI_SUITE
from layerboard.leaderboards.blocks.csv import read_numbers
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.tidy import TIDY, tidy_frame
from layerboard.leaderboards.exchange.check import table_differences
from layerboard.leaderboards.findings.reproduce import reproduce
from layerboard.leaderboards.published.literature import all_published
from layerboard.leaderboards.records.key import Tolerance
from layerboard.leaderboards.writers.build import tables_folder
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec.origin import PACKAGED

LAYERS = "2,7,11"

COMPLETE = ("mini-fs", "mini-resnet")
"""Backbones that run every task."""

TOLERANCES = {
    "knn": 0.7,  # four of 576 images
    "retrieval": 0.5,
    "davis": 0.5,
    "spair": 0.5,
    "cluster-image": 3.0,  # k-means may stop elsewhere where sums are rounded otherwise
    "cluster-object": 4.0,
    "cluster-part": 4.0,
}
"""Points by which a score may differ on another machine."""


PACKAGED = tuple(spec.name for spec in find(["mini-*"]) if spec.origin == PACKAGED)


def tasks_of(name: str, suite: str) -> set[str]:
    """What a backbone is run on."""
    if suite == MINI_INTERVENTIONS.name:
        return {"retrieval", "spair"}
    return set(TOLERANCES) if name in COMPLETE else {"retrieval", "davis", "spair"}


def committed(suite: str) -> pd.DataFrame:
    """Rows of the committed table at those layers, as text."""
    frame = read_numbers(tables_folder() / f"{suite}.csv", TIDY)
    return frame[frame["layer"].isin(LAYERS.split(",")) & (frame["tap"] == "block") & (frame["other"] == "")]


@pytest.mark.slow
@pytest.mark.usefixtures("no_pages")
@pytest.mark.parametrize("name", PACKAGED)
def test_scores_are_the_committed_ones(name: str, tmp_path: Path) -> None:
    suite = MINI_SUITE if name in MINI_SUITE.backbones else MINI_INTERVENTIONS
    tasks = tasks_of(name, suite.name)
    options: dict[str, Any] = {"suite": suite.name, "layers": LAYERS, "floor": False, "workers": 1}
    records = layerboard.run([name], sorted(tasks), output=tmp_path / "out", **options)
    rows = committed(suite.name)
    own = rows[(rows["backbone"] == name) & rows["task"].isin(tasks)]
    found = tidy_frame(Board.of(records.frame, suite.name))
    assert set(own["task"]) == tasks
    for task, points in TOLERANCES.items():
        rows = found[found["task"] == task]
        assert table_differences(own[own["task"] == task], rows, Tolerance(score=points)) == []


TOLERANCE = {"knn": 0.5, "davis": 1.5}
"""Points of a score that other decoders, resizers and interpolations of position embeddings may make."""

PROTOCOL = {"knn": "standard", "davis": "dino"}

NAMES = ("dino-s16", "dino-s8", "dino-b16", "dino-b8", "dinov2-s14", "dinov2-b14")


@pytest.mark.network
@pytest.mark.skipif(
    os.environ.get("LAYERBOARD_NETWORK_TESTS") != "1" or "LAYERBOARD_DATA" not in os.environ,
    reason="LAYERBOARD_NETWORK_TESTS=1 HF_HUB_OFFLINE=0 LAYERBOARD_DATA=DIR: checkpoints and real datasets",
)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("task", sorted(TOLERANCE))
def test_a_real_checkpoint_gives_its_published_numbers(name: str, task: str, tmp_path: Path) -> None:
    wanted = [
        one
        for one in all_published()
        if (one.backbone, one.task, one.protocol) == (name, task, PROTOCOL[task]) and one.rule == "final"
    ]
    if not wanted:
        pytest.skip(f"no comparable number of {name} on {task} is published")
    records = layerboard.run(
        [name],
        [task],
        data=os.environ["LAYERBOARD_DATA"],
        output=tmp_path,
        layers="final",
        floor=False,
        protocol=PROTOCOL[task],
    )
    compared = reproduce(records.frame, wanted)
    assert compared["measured"].notna().all(), compared["reason"].tolist()
    assert (compared["difference"].abs() <= TOLERANCE[task]).all(), compared.to_string()
