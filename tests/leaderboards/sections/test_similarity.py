from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import backbones_of, pair_rows
from layerboard.leaderboards.sections.similarity import CkaTable, cka_tables, most_similar_blocks
from tests.leaderboards.builder import frame, pair

CLS = CkaTable("cka", "mini-imagenet", "standard", pooling="cls")
DINO, CLIP, MAE = "mini-dino", "mini-clip", "mini-mae"


def test_there_is_one_comparison_a_pooling_in_the_order_of_the_page():
    records = frame([pair(DINO, 3, CLIP, 3, 0.5, pooling=name) for name in ("patch", "mean", "cls")])
    assert [one.pooling for one in cka_tables(Board.of(records))] == ["cls", "mean", "patch"]


def test_the_most_similar_blocks_of_each_two_backbones():
    records = frame(
        [
            pair(DINO, 2, DINO, 3, 0.99),
            pair(CLIP, 3, CLIP, 3, 1.0),
            pair(MAE, 3, MAE, 3, 1.0),
            pair(DINO, 1, CLIP, 2, 0.5),
            pair(DINO, 2, CLIP, 1, 0.5),
            pair(DINO, 3, CLIP, 3, 0.4),
            pair(DINO, 0, CLIP, 0, 1.0),
            pair(MAE, 3, DINO, 2, 0.8),
            pair(MAE, 1, "random", 1, 0.95),
            pair("random", 1, "random", 1, 1.0, family="random", trained=False),
        ]
    )
    assert most_similar_blocks(Board.of(records), CLS).to_numpy().tolist() == [
        [DINO, "2/3", MAE, "3/3", "0.800"],
        [CLIP, "1/3", DINO, "2/3", "0.500"],
    ]


def test_comparisons_are_turned_the_same_way_whatever_the_run_wrote():
    one = frame([pair(DINO, 1, CLIP, 2, 0.5), pair(DINO, 3, DINO, 1, 0.1)])
    other = frame([pair(CLIP, 2, DINO, 1, 0.5), pair(DINO, 1, DINO, 3, 0.1)])
    columns = ["backbone", "layer", "other", "other_layer", "value"]
    turned = [pair_rows(records, backbones_of(frame_all(one, other))) for records in (one, other)]
    assert turned[0][columns].to_numpy().tolist() == turned[1][columns].to_numpy().tolist()
    assert turned[0][columns].to_numpy().tolist() == [[CLIP, 2, DINO, 1, 0.5], [DINO, 1, DINO, 3, 0.1]]


def frame_all(*frames):
    return frames[0].merge(frames[1], how="outer")
