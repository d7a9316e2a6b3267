"""What the layers of a column may lose to its best: from items in a folder, in all poolings together."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.differences import Bounds, bounds_of
from layerboard.leaderboards.records.files import scored_path, task_key
from layerboard.leaderboards.records.items import write_items
from layerboard.leaderboards.records.record import Record
from layerboard.tasks.framework.assess import below_best
from tests.leaderboards.builder import NAN, floor, frame, hits, layers, measured, scored, write_layers

KNN = ("knn", "mini-imagenet", "standard", "top-1")
FAMILIES = {"mini-clip": "CLIP", "mini-dino": "DINO", "mini-mae": "MAE"}
COUNT = 200


def path_of(folder: Path, backbone: str, dataset: str = "mini-imagenet") -> Path:
    return folder / scored_path(task_key("knn", dataset, "standard"), backbone)


def right(folder: Path, backbone: str, counts: Mapping[str, Sequence[int]], **changes: Any) -> list[Record]:
    """Records of a backbone with so many images right by pooling, layer by layer; and their items."""
    number = changes.pop("count", COUNT)
    every = {pooling: [hits(count, number) for count in own] for pooling, own in counts.items()}
    return scored(folder, backbone, every, **{"family": FAMILIES.get(backbone, "other")} | changes)


@pytest.fixture
def three(tmp_path: Path) -> pd.DataFrame:
    """CLIP best at layer 2, DINO two images behind it, MAE far below."""
    return frame(
        right(tmp_path, "mini-clip", {"cls": [100, 140]}),
        right(tmp_path, "mini-dino", {"cls": [138, 90]}),
        right(tmp_path, "mini-mae", {"cls": [60, 50]}),
    )


def bounds(records: pd.DataFrame, folder: Path | None) -> Bounds:
    return Board.of(records, items=folder).bounds[KNN]


def groups(found: Bounds) -> dict[str, set[str]]:
    """The groups that are not empty, without the highest."""
    every = {"maybe": found.maybe, "worse": found.worse, "untested": found.untested}
    assert found.highest | found.maybe | found.worse | found.untested == {*found.rows["backbone"]}
    return {name: set(group) for name, group in every.items() if group}


def by_place(found: Bounds) -> dict[tuple[object, ...], tuple[float, bool]]:
    fields = found.rows[["backbone", "layer", "pooling", "loss", "maybe"]].itertuples(index=False, name=None)
    return {tuple(place): (loss, maybe) for *place, loss, maybe in fields}


def test_a_backbone_may_be_the_best_or_is_worse(three: pd.DataFrame, tmp_path: Path) -> None:
    found = bounds(three, tmp_path)
    assert found.highest == {"mini-clip"}
    assert groups(found) == {"maybe": {"mini-dino"}, "worse": {"mini-mae"}}
    losses = by_place(found)
    assert losses["mini-clip", 2, "cls"][1]
    assert 0 < losses["mini-clip", 2, "cls"][0] < 3  # it may be below layer 1 of DINO
    assert 1 < losses["mini-dino", 1, "cls"][0] < 6
    assert 40 < losses["mini-mae", 1, "cls"][0] < 60


def test_losses_are_those_of_all_layers_compared_at_once(three: pd.DataFrame, tmp_path: Path) -> None:
    order = {("mini-clip", 2): 140, ("mini-dino", 1): 138, ("mini-clip", 1): 100, ("mini-dino", 2): 90}
    order |= {("mini-mae", 1): 60, ("mini-mae", 2): 50}  # the highest first
    expected = below_best([measured(list(hits(each, COUNT))) for each in order.values()], "top-1")
    found = by_place(bounds(three, tmp_path))
    assert len(found) == len(order)
    for (backbone, layer), one in zip(order, expected, strict=True):
        assert one is not None
        assert found[backbone, layer, "cls"] == (pytest.approx(one.loss), one.maybe)


def test_measurements_that_are_missing_damaged_or_of_other_images_leave_a_backbone_untested(
    three: pd.DataFrame, tmp_path: Path
) -> None:
    right(tmp_path, "mini-mae", {"cls": [60, 50]}, prefix="another ")
    assert groups(bounds(three, tmp_path)) == {"maybe": {"mini-dino"}, "untested": {"mini-mae"}}
    path_of(tmp_path, "mini-mae").unlink()
    path_of(tmp_path, "mini-dino").write_text("no parquet")
    found = bounds(three, tmp_path)
    assert groups(found) == {"untested": {"mini-mae", "mini-dino"}}
    losses = by_place(found)
    assert math.isnan(losses["mini-dino", 1, "cls"][0])
    assert losses["mini-clip", 2, "cls"] == (0.0, True)  # of those that were compared


def test_a_few_images_that_are_not_shared_do_not_prevent_a_comparison(
    three: pd.DataFrame, tmp_path: Path
) -> None:
    for missing, group in ((10, "worse"), (11, "untested")):  # a twentieth of 200 images
        items = measured(list(hits(60, COUNT)))
        fewer = items.only(range(missing, COUNT))
        write_items({(layer, "block", "cls"): fewer for layer in (1, 2)}, path_of(tmp_path, "mini-mae"))
        assert groups(bounds(three, tmp_path)) == {"maybe": {"mini-dino"}, group: {"mini-mae"}}


def test_measurements_of_another_layer_do_not_stand_in(three: pd.DataFrame, tmp_path: Path) -> None:
    """What was not compared is not shown to be worse."""
    for layer in (1, 2):
        write_layers(tmp_path, "mini-mae", {layer: hits(50, COUNT)})
        found = bounds(three, tmp_path)
        assert groups(found) == {"maybe": {"mini-dino"}, "untested": {"mini-mae"}}
        assert by_place(found)["mini-mae", layer, "cls"][0] > 40
        assert math.isnan(by_place(found)["mini-mae", 3 - layer, "cls"][0])


def test_too_few_items_to_tell_are_untested_not_worse(tmp_path: Path) -> None:
    counts = {"mini-clip": [1], "mini-dino": [0]}
    records = frame(*(right(tmp_path, name, {"cls": each}, count=1) for name, each in counts.items()))
    assert groups(bounds(records, tmp_path)) == {"untested": {"mini-dino"}}


def test_without_items_of_the_best_nothing_is_tested(three: pd.DataFrame, tmp_path: Path) -> None:
    path_of(tmp_path, "mini-clip").unlink()
    found = bounds(three, tmp_path)
    assert groups(found) == {"untested": {"mini-dino", "mini-mae"}}
    assert found.rows["loss"].isna().all()
    assert not found.rows["maybe"].any()
    assert not Board.of(three, items=tmp_path).compared


def test_layers_in_other_poolings_take_part(tmp_path: Path) -> None:
    """A backbone may be the best in any pooling, and the layers of all widen what each may lose."""
    alone = frame(
        right(tmp_path, "mini-clip", {"cls": [100, 140]}), right(tmp_path, "mini-mae", {"cls": [60, 50]})
    )
    assert groups(bounds(alone, tmp_path)) == {"worse": {"mini-mae"}}
    both = frame(
        right(tmp_path, "mini-clip", {"cls": [100, 140], "mean": [137, 20]}),
        right(tmp_path, "mini-mae", {"cls": [60, 50], "mean": [70, 138]}),
    )
    found = bounds(both, tmp_path)
    assert groups(found) == {"maybe": {"mini-mae"}}
    losses = by_place(found)
    assert len(losses) == 8
    assert {place for place, (_, maybe) in losses.items() if maybe} == {
        ("mini-clip", 2, "cls"),
        ("mini-clip", 1, "mean"),
        ("mini-mae", 2, "mean"),
    }
    # the other pooling of the best one, too, may be the true best
    own = bounds(both[both["backbone"] == "mini-clip"], tmp_path)
    assert by_place(own)["mini-clip", 2, "cls"][0] > 0
    assert (own.highest, groups(own)) == ({"mini-clip"}, {})


def test_backbones_that_share_the_best_score_are_all_the_highest(tmp_path: Path) -> None:
    records = frame(
        layers([5.0]),
        layers([5.0], backbone="mini-clip", family="CLIP"),
        layers([NAN], backbone="mini-mae", family="MAE"),
        floor([1.0, 9.0]),
    )
    found = bounds(records, tmp_path)
    assert found.highest == {"mini-dino", "mini-clip"}
    assert groups(found) == {}
    assert {*found.rows["backbone"]} == {"mini-dino", "mini-clip"}  # neither the floor nor what has no score


def test_each_column_has_bounds_of_its_own(three: pd.DataFrame, tmp_path: Path) -> None:
    other = frame(
        right(tmp_path, "mini-mae", {"cls": [150, 20]}, dataset="other"),
        right(tmp_path, "mini-dino", {"cls": [30, 20]}, dataset="other"),
    )
    found = Board.of(pd.concat([three, other]), items=tmp_path).bounds
    assert {key[1]: groups(each) for key, each in found.items()} == {
        "mini-imagenet": {"maybe": {"mini-dino"}, "worse": {"mini-mae"}},
        "other": {"worse": {"mini-dino"}},
    }


def test_candidates_with_a_transform_have_items_of_their_own(three: pd.DataFrame, tmp_path: Path) -> None:
    """The rows may be any; here those of a compression stand beside the vectors as they are."""
    (column,) = Board.of(three).columns
    small = [
        replace(one, transform="int8", value=value)
        for one, value in zip(right(tmp_path / "own", "mini-clip", {"cls": [20, 30]}), (10, 15), strict=True)
    ]
    key = task_key("knn", "mini-imagenet", "standard", "int8")
    path_of(tmp_path / "own", "mini-clip").rename(tmp_path / scored_path(key, "mini-clip"))
    rows = pd.concat([column.family, frame(small)], ignore_index=True)
    found = bounds_of(column, rows, tmp_path).rows.set_index(["backbone", "transform", "layer"])["loss"]
    assert found["mini-clip", "", 2] < 5
    assert found["mini-clip", "int8", 2] > 50  # 140 and 30 of 200
    assert found.notna().all()
