"""What the README's mini suite promises holds in the committed numbers."""

import pandas as pd
import pytest

from tests.leaderboards.shown import committed

GLOBAL = ("knn", "retrieval", "cluster-image")
LOCAL = ("davis", "spair", "cluster-part")
OWN_SHAPE = ("mini-clip", "mini-beit", "mini-resnet")
"""Backbones of another shape than the plain ViTs, whose untrained network is FS's."""


def best_rows() -> pd.DataFrame:
    """Rows of the best layers, as text, by backbone and task."""
    frame = pd.concat([committed("mini"), committed("mini-interventions")], ignore_index=True)
    frame = frame[(frame["best"] == "True") & (frame["backbone"] != "mini-random")]
    # What stands on both pages is the same.
    frame = frame.drop_duplicates(["backbone", "task", "value", "ci_low", "ci_high", "layer"])
    assert not frame.duplicated(["backbone", "task"]).any()
    return frame.set_index(["backbone", "task"]).sort_index()


@pytest.fixture(scope="module")
def best() -> pd.DataFrame:
    """The best layers of both committed tables, by backbone and task."""
    rows = best_rows()
    numbers = rows[["value", "ci_low", "ci_high"]].apply(pd.to_numeric)
    return numbers.assign(layer=rows["layer"].astype(int))


def _pair(best: pd.DataFrame, name: str, task: str) -> tuple[pd.Series, pd.Series]:
    shape = name if name in OWN_SHAPE else "mini-fs"
    return best.loc[name, task], best.loc[f"{shape}-untrained", task]


@pytest.mark.parametrize("task", GLOBAL)
@pytest.mark.parametrize("name", ["mini-fs", "mini-clip", "mini-dino", "mini-moco", "mini-resnet"])
def test_learning_shows_far_outside_the_intervals(best: pd.DataFrame, name: str, task: str) -> None:
    trained, untrained = _pair(best, name, task)
    # Queries of 12 landmarks leave wide intervals: DINO's meet those of the untrained network.
    meets = name == "mini-dino" and task != "knn"
    assert trained["ci_low"] > untrained["value" if meets else "ci_high"]


@pytest.mark.parametrize("task", LOCAL)
@pytest.mark.parametrize("name", ["mini-mae", "mini-beit"])
def test_reconstruction_shows_on_local_tasks(best: pd.DataFrame, name: str, task: str) -> None:
    trained, untrained = _pair(best, name, task)
    # Parts and videos are few, and their intervals wide.
    assert trained["ci_low" if task == "spair" else "value"] > untrained["value"]


def test_without_skips_the_class_stays_and_places_are_lost() -> None:
    frame = committed("mini-interventions")
    frame = frame[(frame["backbone"] == "mini-fs64-noskip6") & (frame["tap"] == "block")]
    frame = frame[frame["best"] != ""]  # of the primary metrics
    rows = frame[frame["pooling"].isin(["cls", "grid"])]
    values = dict(zip(zip(rows["task"], rows["layer"], strict=True), map(float, rows["value"]), strict=True))
    assert values["knn", "6"] > 1.1 * values["knn", "5"]
    for task in ("davis", "spair"):
        assert values[task, "6"] < values[task, "5"] / 2


def test_no_task_is_saturated_or_at_the_floor(best: pd.DataFrame) -> None:
    frame = committed("mini")
    floors = frame[(frame["backbone"] == "mini-random") & (frame["tap"] == "block") & (frame["best"] != "")]
    for task in (*GLOBAL, *LOCAL, "cluster-object"):
        top = float(best.xs(task, level="task")["value"].max())
        noise = pd.to_numeric(floors[floors["task"] == task]["value"])
        assert noise.max() * 1.2 < top < 97
