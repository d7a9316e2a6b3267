"""Means over datasets: of which scores, over which datasets."""

import math

import pytest

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.sections.means import dataset_means, mean_blocks, table_with_means
from layerboard.leaderboards.sections.tables import main_table
from tests.leaderboards.builder import NAN, floor, frame, layers

RESNET = {"backbone": "mini-resnet", "family": "ResNet", "pooling": "mean"}


def on(dataset: str, values: list[float], **changes):  # type: ignore[no-untyped-def]
    return layers(values, dataset=dataset, **changes)


def test_a_mean_is_of_each_datasets_own_best_layer() -> None:
    records = frame(on("a", [10, 50, 30]), on("b", [70, 20, 10]), on("c", [1, 2, 6]), floor([2.0, 4.0]))
    (mean,) = dataset_means(Board.of(records))
    assert mean.heading == "knn top-1, mean of 3 datasets"
    assert mean.scores["mini-dino"][0] == pytest.approx((50 + 70 + 6) / 3)
    assert math.isnan(mean.scores["mini-dino"][1])
    assert not mean.floors  # the floor is on another dataset
    assert [column.dataset for column in mean.columns] == ["a", "b", "c"]


def test_its_spread_is_that_of_independent_datasets() -> None:
    unsure = {"ci_low": 47.0, "ci_high": 53.0}
    (mean,) = dataset_means(
        Board.of(frame(on("a", [50.0], **unsure), on("b", [60.0], ci_low=56.0, ci_high=64.0)))
    )
    half = math.sqrt(3**2 + 4**2) / 2
    assert mean.scores["mini-dino"] == pytest.approx((55.0, 55.0 - half, 55.0 + half))


def test_the_interval_of_a_mean_ends_at_100() -> None:
    sure = {"ci_low": 92.0, "ci_high": 100.0}
    (mean,) = dataset_means(Board.of(frame(on("a", [100.0], **sure), on("b", [100.0], **sure))))
    assert mean.scores["mini-dino"] == pytest.approx((100.0, 100.0 - math.sqrt(2 * 8**2) / 2, 100.0))


def test_only_datasets_count_on_which_all_have_a_number() -> None:
    records = frame(
        on("a", [50.0]),
        on("b", [60.0]),
        on("c", [90.0]),
        on("a", [10.0], **RESNET),
        on("b", [30.0], **RESNET),
        on("c", [NAN], **RESNET),
    )
    (mean,) = dataset_means(Board.of(records))
    assert {name: value for name, (value, *_) in mean.scores.items()} == {
        "mini-dino": 55.0,
        "mini-resnet": 20.0,
    }
    ((column, lacking),) = mean.left_out.items()
    assert (column.dataset, lacking) == ("c", ("mini-resnet",))
    table = table_with_means(Board.of(records))
    assert [*table.columns][-4:] == [
        "knn top-1, a",
        "knn top-1, b",
        "knn top-1, c",
        "knn top-1, mean of 2 datasets",
    ]
    assert [cell.text for cell in table.iloc[:, -1]] == ["55.0", "20.0"]
    assert {cell.mark for cell in table.iloc[:, -1]} == {"none"}
    (_, bullets) = mean_blocks(Board.of(records))
    assert bullets.items == (  # type: ignore[attr-defined]
        "knn top-1 (standard): a, b; left out: c (no score of mini-resnet)",
    )


def test_fewer_than_two_datasets_have_no_mean() -> None:
    assert dataset_means(Board.of(frame(on("a", [50.0])))) == ()
    assert mean_blocks(Board.of(frame(on("a", [50.0])))) == []
    records = frame(on("a", [50.0]), on("b", [60.0]), on("a", [10.0], **RESNET))
    (mean,) = dataset_means(Board.of(records))
    assert not mean.scores
    assert len(table_with_means(Board.of(records)).columns) == len(main_table(Board.of(records)).columns)
    (_, bullets) = mean_blocks(Board.of(records))
    assert bullets.items == (  # type: ignore[attr-defined]
        "knn top-1 (standard): no mean; left out: b (no score of mini-resnet)",
    )


def test_the_floor_has_a_mean_of_its_draws_and_the_mark_of_partial_data() -> None:
    records = frame(
        on("a", [50.0]), on("b", [60.0], partial=True), floor([2, 4], dataset="a"), floor([4, 8], dataset="b")
    )
    (mean,) = dataset_means(Board.of(records))
    assert mean.heading.endswith("mean of 2 datasets †")
    ((value, low, high),) = mean.floors.values()
    assert value == 4.5
    assert [value - low, high - value] == pytest.approx([math.sqrt(2 + 8) / 2] * 2)
