import pytest

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import backbones_of, floor_draws
from layerboard.leaderboards.sections.tables import floor_sentence, main_table
from layerboard.zoo.spec import FAMILIES, FLOORS
from tests.leaderboards.builder import NAN, floor, frame, layers, record
from tests.leaderboards.shown import shown

CLIP = {"backbone": "mini-clip", "family": "CLIP"}
OTHERS = {"mean": [3.0, 7.0], "all": [7.0, 3.0]}


def test_neither_the_final_norm_nor_the_input_of_block_1_can_be_best():
    records = frame(layers([1.0, 2.0], 9.0), [record(layer=0, value=8.0, depth=2)])
    assert Board.of(records).best["layer"].tolist() == [2]


@pytest.mark.parametrize(
    ("mean", "shown"),
    [([9.0, 5.0], ("mean", 1, 9.0)), ([2.0, 1.0], ("cls", 2, 2.0)), ([NAN] * 2, ("cls", 2, 2.0))],
)
def test_the_pooling_of_the_best_score_is_shown_of_equal_ones_the_primary_one(mean, shown):
    other = layers(mean, pooling="mean", primary=False)
    metric = layers([99.0, 99.0], metric="top-5", primary=False)
    found = Board.of(frame(layers([1.0, 2.0]), other, metric)).best
    assert found[["metric", "pooling", "layer", "value"]].to_numpy().tolist() == [["top-1", *shown]]


def test_of_equal_scores_in_other_poolings_that_of_the_lower_layer_is_shown():
    poolings = [layers(values, pooling=name, primary=False) for name, values in OTHERS.items()]
    (column,) = Board.of(frame(layers([1.0, 2.0]), *poolings)).columns
    assert column.best[["pooling", "layer"]].to_numpy().tolist() == [["all", 1]]
    assert column.other_poolings == ("cls", "mean")
    assert column.in_pooling("mean")["value"].tolist() == [3.0, 7.0]
    assert column.in_pooling("all").empty  # it is shown


def test_rows_follow_the_families_then_the_names():
    names = [("b", family) for family in reversed(FAMILIES)] + [("a", "DINO")]
    records = frame(
        *(layers([1.0], backbone=f"{a}-{f}", family=f, trained=f not in FLOORS) for a, f in names)
    )
    table = shown(main_table(Board.of(records)))
    assert table["family"].tolist() == [*FAMILIES[:3], "DINO", *FAMILIES[3:-2], "", ""]
    assert table["backbone"].tolist()[2:4] == ["a-DINO", "b-DINO"]
    assert table["backbone"].tolist()[-2:] == ["random floor", "raw pixels"]


def test_an_unknown_family_stands_with_the_others():
    records = frame(layers([1.0], backbone="x", family="new"), floor([1.0]), layers([1.0]))
    assert [one.name for one in backbones_of(records)] == ["mini-dino", "x", "random"]


def test_the_random_floor_is_last_with_its_spread_and_never_bold():
    records = frame(floor([98.0, 99.0, 100.0]), layers([5.0]))
    assert shown(main_table(Board.of(records)))["knn top-1"].tolist() == ["**5.0 (1/1 cls)**", "99.0 ± 1.0"]
    assert shown(main_table(Board.of(records)))["backbone"].tolist() == ["mini-dino", "random floor"]


def test_the_floor_counts_the_draws_that_have_a_value():
    found = floor_draws(
        Board.of(frame(floor([1.0, NAN, 3.0]), [record(family="random", layer=0, value=50.0)])).scores
    )
    assert found["mean"].tolist() == [2.0]
    assert found["deviation"].tolist() == pytest.approx([2**0.5])
    assert found["draws"].tolist() == [2]
    records = frame(floor([1.0, 3.0]))
    assert floor_sentence(Board.of(records).columns[0]) == "Random floor: 2.0 ± 1.4 (2 draws)."


def test_columns_name_the_dataset_or_protocol_only_where_there_are_several():
    retrieval = {"task": "retrieval", "metric": "mAP medium"}
    records = frame(
        layers([1.0], **retrieval, dataset="rparis6k", partial=True),
        layers([1.0], **retrieval, dataset="roxford5k"),
        layers([1.0], task="zebra", metric="stripes"),
        layers([1.0], protocol="paper"),
        layers([1.0]),
    )
    assert [column.heading for column in Board.of(records).columns] == [
        "knn top-1 (standard)",
        "knn top-1 (paper)",
        "retrieval mAP medium, roxford5k",
        "retrieval mAP medium, rparis6k †",
        "zebra stripes",
    ]
