from collections.abc import Sequence

import numpy as np
import pytest

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.differences import Ties, column_ties
from layerboard.leaderboards.records.files import scored_path, task_key
from layerboard.leaderboards.records.items import write_items
from layerboard.tasks.framework.base import Items
from tests.leaderboards.builder import NAN, floor, frame, layers, measured, unsure
from tests.leaderboards.goldens import write_knn

CLIP = {"backbone": "mini-clip", "family": "CLIP"}
MAE = {"backbone": "mini-mae", "family": "MAE"}
KNN = ("knn", "mini-imagenet", "standard", "top-1")


def near(rivals: Sequence[Sequence[Items]], metric: str) -> list[bool | None]:
    """A test by which scores within one point of the first are tied, and which needs two images."""
    scores = [max(float(one.values[metric].mean()) for one in layers) for layers in rivals]
    alike = [layers[0].keys == rivals[0][0].keys and len(layers[0].keys) > 1 for layers in rivals]
    return [abs(score - scores[0]) <= 1 if same else None for score, same in zip(scores, alike, strict=True)]


def ties(records, folder) -> Ties:
    return column_ties(Board.of(records).columns, folder, near)[KNN]


@pytest.fixture
def three():
    """Best layers 2 of CLIP, 2 of DINO and 1 of MAE, from the best to the worst."""
    return frame(layers([20.0, 51.0], **CLIP), layers([45.0, 50.0]), layers([30.0, 10.0], **MAE))


@pytest.fixture
def items(tmp_path):
    """Items of those layers."""
    for backbone, values, layer in (("mini-clip", 51, 2), ("mini-dino", 50.5, 2), ("mini-mae", 30, 1)):
        write_knn(tmp_path, backbone, [values, values], layer)
    return tmp_path


def test_a_backbone_is_tied_with_the_best_or_apart(three, items):
    assert ties(three, items) == Ties(tied=frozenset({"mini-dino"}), apart=frozenset({"mini-mae"}))


def test_ties_do_not_depend_on_the_order_of_the_records(three, items):
    assert ties(three.sample(frac=1, random_state=4), items) == ties(three, items)


def test_measurements_that_are_missing_damaged_or_of_other_images_leave_a_backbone_untested(three, items):
    write_knn(items, "mini-mae", [30.0, 30.0], 1, prefix="another ")
    assert ties(three, items).untested == {"mini-mae"}
    (items / scored_path(task_key(*KNN[:3]), "mini-mae")).unlink()
    (items / scored_path(task_key(*KNN[:3]), "mini-dino")).write_text("no parquet")
    assert ties(three, items) == Ties(untested=frozenset({"mini-mae", "mini-dino"}))


def test_measurements_of_another_layer_do_not_stand_in(three, items):
    write_knn(items, "mini-mae", [30.0, 30.0], 2)
    assert ties(three, items).untested == {"mini-mae"}


def test_too_few_items_to_tell_are_untested_not_apart(three, items):
    for backbone, value in (("mini-clip", 51.0), ("mini-dino", 50.5)):
        write_knn(items, backbone, [value])
    assert ties(three, items).untested == {"mini-dino", "mini-mae"}


def test_without_items_of_the_best_nothing_is_tested(three, items):
    (items / scored_path(task_key(*KNN[:3]), "mini-clip")).unlink()
    assert ties(three, items) == Ties(untested=frozenset({"mini-dino", "mini-mae"}))


def test_a_backbone_takes_part_with_its_best_layer_and_those_tied_with_it(tmp_path):
    records = frame(
        unsure(layers([49.0, 51.0, 30.0, 50.0], **CLIP), tied=[1, 4]), layers([30.0, 10.0], **MAE)
    )
    values = {1: np.full(2, 49.0), 2: np.full(2, 51.0), 3: np.full(2, 30.0), 4: np.full(2, 50.0)}
    path = tmp_path / scored_path(task_key(*KNN[:3]), "mini-clip")
    write_items({(layer, "block", "cls"): measured(value) for layer, value in values.items()}, path)
    write_knn(tmp_path, "mini-mae", [30.0, 30.0], 1)
    seen = []

    def test(rivals, metric):
        seen.extend([float(one.values[metric].mean()) for one in layers] for layers in rivals)
        return [True] * len(rivals)

    assert column_ties(Board.of(records).columns, tmp_path, test)[KNN] == Ties(tied=frozenset({"mini-mae"}))
    assert seen == [[51, 49, 50], [30]]


def test_backbones_that_share_the_best_score_and_the_floor_are_not_tested(tmp_path):
    records = frame(layers([5.0]), layers([5.0], **CLIP), layers([NAN], **MAE), floor([1.0, 9.0]))
    assert ties(records, tmp_path) == Ties()


def test_each_column_has_ties_of_its_own(three, items):
    other = layers([1.0, 2.0], dataset="other")
    found = column_ties(
        Board.of(frame(other, layers([1.0, 3.0], dataset="other", **CLIP))).columns, items, near
    )
    assert found == {("knn", "other", "standard", "top-1"): Ties(untested=frozenset({"mini-dino"}))}


def test_items_of_a_backbone_with_slashes_in_its_name_are_found(tmp_path):
    records = frame(layers([1.0, 50.0], backbone="a/b"), layers([1.0, 50.5]))
    write_knn(tmp_path, "a/b", [50.0, 50.0])
    write_knn(tmp_path, "mini-dino", [50.5, 50.5])
    assert (tmp_path / "a__b" / "knn.mini-imagenet.standard.parquet").is_file()
    assert ties(records, tmp_path).tied == {"a/b"}
