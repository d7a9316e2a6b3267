import pandas as pd
import pytest

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import backbones_of, floor_draws
from layerboard.leaderboards.sections.tables import floor_sentence, layer_table, main_table, metrics_table
from layerboard.zoo.spec import FAMILIES, FLOORS
from tests.leaderboards.builder import NAN, floor, frame, layers, record, unsure
from tests.leaderboards.shown import bounded, shown

CLIP = {"backbone": "mini-clip", "family": "CLIP"}
OTHERS = {"mean": [3.0, 7.0], "all": [7.0, 3.0]}


def cell(records, backbone, column):
    table = shown(main_table(Board.of(records))).set_index("backbone")
    return table.loc[backbone, column]


def test_the_best_layer_keeps_value_layer_depth_and_count():
    found = Board.of(frame(layers([10.0, 30.0, 20.0]))).best
    assert found.loc[0, ["value", "layer", "depth", "n"]].tolist() == [30.0, 2, 3, 400]


def test_ties_go_to_the_lower_layer():
    assert Board.of(frame(layers([1.0, 7.0, 7.0]))).best["layer"].tolist() == [2]


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


def test_a_missing_score_is_an_empty_cell_and_has_no_best_layer():
    records = frame(layers([NAN, NAN]), layers([NAN, 2.0], **CLIP))
    assert Board.of(records).best["backbone"].tolist() == ["mini-clip"]
    assert cell(records, "mini-dino", "knn top-1") == ""
    assert cell(records, "mini-clip", "knn top-1") == "**2.0 (2/2 cls)**"


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


def test_the_best_of_a_column_is_bold_and_equal_ones_share_it():
    records = frame(layers([5.0]), layers([5.0], **CLIP), layers([4.0], backbone="mini-fs", family="FS"))
    assert shown(main_table(Board.of(records)))["knn top-1"].tolist() == [
        "4.0 (1/1 cls)",
        "**5.0 (1/1 cls)**",
        "**5.0 (1/1 cls)**",
    ]


def test_the_random_floor_is_last_with_its_spread_and_never_bold():
    records = frame(floor([98.0, 99.0, 100.0]), layers([5.0]))
    assert shown(main_table(Board.of(records)))["knn top-1"].tolist() == ["**5.0 (1/1 cls)**", "99.0 ± 1.0"]
    assert shown(main_table(Board.of(records)))["backbone"].tolist() == ["mini-dino", "random floor"]


def test_the_floor_of_one_draw_has_no_spread():
    assert shown(main_table(Board.of(frame(floor([3.0])))))["knn top-1"].tolist() == ["3.0"]


def test_the_floor_counts_the_draws_that_have_a_value():
    found = floor_draws(
        Board.of(frame(floor([1.0, NAN, 3.0]), [record(family="random", layer=0, value=50.0)])).scores
    )
    assert found["mean"].tolist() == [2.0]
    assert found["deviation"].tolist() == pytest.approx([2**0.5])
    assert found["draws"].tolist() == [2]
    records = frame(floor([1.0, 3.0]))
    assert floor_sentence(Board.of(records).columns[0]) == "Random floor: 2.0 ± 1.4 (2 draws)."


def test_untrained_backbones_say_so():
    assert shown(main_table(Board.of(frame(layers([5.0], trained=False)))))["backbone"].tolist() == [
        "mini-dino (untrained)"
    ]


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


def test_a_cell_has_half_the_width_of_its_interval_where_there_is_one():
    records = frame(unsure(layers([5.0, 6.0]), half=0.83), layers([4.0, 3.0], **CLIP))
    assert shown(main_table(Board.of(records)))["knn top-1"].tolist() == [
        "4.0 (1/2 cls)",
        "**6.0 ± 0.8 (2/2 cls)**",
    ]
    sure = frame(unsure(layers([5.0]), half=0.0))
    assert shown(main_table(Board.of(sure)))["knn top-1"].tolist() == ["**5.0 ± 0.0 (1/1 cls)**"]


def test_both_ends_of_a_lopsided_interval_are_given():
    assert cell(frame([record(ci_low=48.0, ci_high=51.0, depth=1)]), "mini-dino", "knn top-1") == (
        "**50.0 (48.0 to 51.0) (1/1 cls)**"
    )


def test_backbones_that_are_not_shown_to_be_worse_are_marked():
    records = frame(layers([5.0]), layers([4.0], **CLIP), layers([3.0], backbone="mini-fs", family="FS"))
    losses = {"mini-dino": (0.5, True), "mini-clip": (2.0, True), "mini-fs": (3.0, False)}
    board = bounded(Board.of(records), {"knn top-1": losses})
    assert shown(main_table(board))["knn top-1"].tolist() == [
        "3.0 (1/1 cls)",
        "4.0 (1/1 cls) ≈",
        "**5.0 (1/1 cls)**",
    ]


def test_layers_that_are_not_shown_to_be_worse_are_marked():
    records = frame(unsure(layers([4.5, 5.0, 1.0], 5.5), half=1.25, maybe=[1]))
    assert shown(layer_table(Board.of(records).columns[0])).to_numpy().tolist() == [
        ["mini-dino", "4.5 ± 1.2 ≈", "**5.0 ± 1.2**", "1.0 ± 1.2", "5.5 ± 1.2"]
    ]


def test_all_metrics_have_intervals():
    records = frame(
        unsure(layers([4.0, 5.0]), half=0.5),
        unsure(layers([8.0, 7.0], metric="top-5", primary=False), half=0.25),
        floor([1.0, 2.0]),
    )
    table = shown(metrics_table(Board.of(records).columns[0]))
    assert table["top-1"].tolist() == ["**5.0 ± 0.5 (2/2 cls)**", "1.5 ± 0.7"]
    assert table["top-5"].tolist() == ["**8.0 ± 0.2 (1/2 cls)**", ""]


def test_every_layer_is_shown_and_the_best_block_is_bold():
    records = frame(layers([1.0, 3.0, 2.0], 9.0), layers([4.0, NAN], **CLIP))
    table = shown(layer_table(Board.of(records).columns[0]))
    assert list(table.columns) == ["backbone", "1", "2", "3", "final"]
    assert table.to_numpy().tolist() == [
        ["mini-clip", "**4.0**", "", "", ""],
        ["mini-dino", "1.0", "**3.0**", "2.0", "9.0"],
    ]


def test_a_table_of_several_poolings_names_them_and_the_next_holds_the_rest():
    records = frame(
        layers([2.5]),
        layers([2.0], pooling="mean", primary=False),
        layers([3.0], backbone="mini-resnet", family="ResNet", pooling="mean"),
    )
    column = Board.of(records).columns[0]
    assert shown(layer_table(column))["backbone"].tolist() == ["mini-dino, cls", "mini-resnet, mean"]
    rest = shown(layer_table(column, "mean"))
    assert rest[["backbone", "1"]].to_numpy().tolist() == [["mini-dino", "2.0"]]


def test_the_newest_of_two_records_of_one_score_counts():
    old, new = record(value=9.0, date="2026-01-01"), record(value=5.0, date="2026-02-01")
    for order in ([old, new], [new, old]):
        assert Board.of(frame(order)).scores["value"].tolist() == [5.0]


def test_tables_do_not_depend_on_the_order_of_the_records():
    records = frame(layers([1.0, 3.0, 3.0]), layers([4.0, NAN], **CLIP), floor([1.0, 2.0]))
    shuffled = records.sample(frac=1, random_state=3)
    pd.testing.assert_frame_equal(main_table(Board.of(shuffled)), main_table(Board.of(records)))
    pd.testing.assert_frame_equal(Board.of(shuffled).best, Board.of(records).best)
