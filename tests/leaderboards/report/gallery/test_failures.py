"""What the best backbone fails at, as tables, from planted predictions."""

from pathlib import Path

import pandas as pd
import pytest

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.report.gallery.section import failure_frames
from tests.leaderboards.builder import frame, layers
from tests.leaderboards.report.kept import CLASSES, LAYERS, keep, keep_knn, read


def test_classes_confusions_and_what_another_gets_right(tmp_path: Path) -> None:
    dino = [[False, False, True], [True, False, False], [False, False, False]]
    clip = [[False, False, True], [True, True, False], [False, False, False]]
    keep_knn(tmp_path, "mini-dino", [50, 90, 40], dino, more=CLASSES | {"class_right": [[3, 2, 0]] * 3})
    keep_knn(tmp_path, "mini-clip", [50, 80, 40], clip, more=CLASSES | {"class_right": [[2, 4, 0]] * 3})
    tables = dict(failure_frames(Board.of(read(tmp_path)), tmp_path))
    who = "knn top-1, mini-dino layer 2 cls"
    assert [*tables] == [
        f"{who}: accuracy by class, percent",
        f"{who}: commonest confusions",
        f"{who}: missed, and another backbone does well",
    ]
    accuracy, confusions, missed = tables.values()
    assert accuracy.values.tolist() == [["dog", 5, pytest.approx(40)], ["cat", 4, pytest.approx(75)]]
    assert confusions.values.tolist() == [["dog", "cat", 3], ["cat", "dog", 1]]
    assert missed.to_dict("records") == [
        {"query": "val/dog/1.png", "class": "dog", "answer": "cat", "others": "mini-clip: dog"}
    ]


def test_of_other_tasks_what_is_missed_alone_the_most_first(tmp_path: Path) -> None:
    task = {"task": "retrieval", "metric": "mAP medium", "dataset": "mini-oxford"}
    for backbone, top, precisions in (("mini-dino", 60, [20.0, 10.0, 5.0]), ("mini-clip", 50, [80, 90, 50])):
        ranking = {
            "query": ["a", "b", "c"],
            "positives": [7, 7, 7],
            "neighbour": [[["x"]] * 3] * 3,
            "kind": [[["wrong"]] * 3] * 3,
            "average_precision": [precisions] * 3,
        }
        keep(tmp_path, layers([10, top, 30], backbone=backbone, **task), ranking, ["a", "b", "c", "x"])
    ((title, missed),) = failure_frames(Board.of(read(tmp_path)), tmp_path)
    assert title.endswith("mini-dino layer 2 cls: missed, and another backbone does well")
    assert missed.values.tolist() == [["b", "AP 10", "mini-clip: AP 90"], ["a", "AP 20", "mini-clip: AP 80"]]


def test_failures_are_of_the_pooling_that_is_shown_also_where_another_was_drawn(tmp_path: Path) -> None:
    """A file of an earlier version, which drew the class token whatever scored best."""
    right = [[False, True]] * LAYERS + [[True, False]] * LAYERS
    places = {"layer": [*range(1, LAYERS + 1)] * 2, "pooling": ["cls"] * LAYERS + ["mean"] * LAYERS}
    places |= {"tap": ["block"] * 2 * LAYERS, "drawn": [True] * LAYERS + [False] * LAYERS}
    keep_knn(tmp_path, "mini-dino", [50, 60, 40], right, more=places)
    better = frame(layers([10, 20, 90], pooling="mean", primary=False))
    records = pd.concat([read(tmp_path), better], ignore_index=True)
    keep_knn(tmp_path, "mini-clip", [50, 50, 40], [[False, True]] * LAYERS)
    records = pd.concat([records, read(tmp_path).query("backbone == 'mini-clip'")], ignore_index=True)
    ((title, missed),) = failure_frames(Board.of(records), tmp_path)
    assert title == "knn top-1, mini-dino layer 3 mean: missed, and another backbone does well"
    assert missed["query"].tolist() == ["val/dog/1.png"]


def test_nothing_where_no_examples_are_kept(tmp_path: Path) -> None:
    keep_knn(tmp_path, "mini-dino", [50, 90, 40], [[True], [False], [True]])
    for path in (tmp_path / "examples").rglob("*.npz"):
        path.unlink()
    assert [*failure_frames(Board.of(read(tmp_path)), tmp_path)] == []
