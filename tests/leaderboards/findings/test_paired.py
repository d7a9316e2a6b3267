"""Two backbones against each other: the numbers, what is refused, and what is said of them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Side
from layerboard.leaderboards.findings.paired import (
    Match,
    blocks_at_equal_depth,
    conclusion,
    match_backbones,
    match_frame,
    match_table,
)
from layerboard.leaderboards.records.files import scored_path, task_key
from layerboard.leaderboards.records.items import read_items, write_items
from layerboard.leaderboards.records.record import Record
from layerboard.tasks.framework.assess import group_difference
from layerboard.zoo.errors import InputError
from tests.leaderboards.builder import KNN, floor, frame, layers, measured, record, scored, write_layers

NAMES = ("mini-dino", "mini-clip")
DATA = {"data": "d1"}
COLUMNS = {
    "knn": {"task": "knn", "dataset": "mini-imagenet", "metric": "top-1", "pooling": "cls"},
    "spair": {"task": "spair", "dataset": "mini-spair", "metric": "PCK@0.1", "pooling": "grid"},
}
HITS = 100.0 * (np.arange(80) % 2)
"""Half of 80 images are right."""


def hits(wrong: int = 0, right: int = 0) -> np.ndarray:
    """The same with so many images made wrong and right."""
    values = HITS.copy()
    values[np.flatnonzero(HITS)[:wrong]] = 0
    values[np.flatnonzero(HITS == 0)[:right]] = 100
    return values


def measured_by(folder: Path, backbone: str, task: str, *by_layer: np.ndarray, **changes) -> list[Record]:
    """Records of a backbone, layer by layer, and their items in a folder."""
    facts = COLUMNS[task] | DATA | changes
    return scored(folder, backbone, by_layer, "other " if facts["data"] == "d2" else "image ", **facts)


@pytest.fixture
def two(tmp_path) -> pd.DataFrame:
    """DINO better on k-NN at both layers; nearly equal on SPair."""
    return frame(
        measured_by(tmp_path, "mini-dino", "knn", hits(right=10), hits(right=30)),
        measured_by(tmp_path, "mini-clip", "knn", hits(), hits(wrong=10)),
        measured_by(tmp_path, "mini-dino", "spair", hits(), hits(right=1)),
        measured_by(tmp_path, "mini-clip", "spair", hits(), hits(wrong=1)),
    )


def test_the_best_layers_are_paired_item_by_item(two, tmp_path):
    found = match_backbones(Board.of(two, items=tmp_path), NAMES, "best")
    knn, spair = found.rows
    assert (knn.first, knn.second) == (
        Side("mini-dino", 2, 2, "cls", 87.5),
        Side("mini-clip", 1, 2, "cls", 50.0),
    )
    assert knn.difference == pytest.approx(37.5)
    dino, clip = (hits(right=30), hits(right=10)), (hits(), hits(wrong=10))  # the highest first
    groups = group_difference(
        *([measured(list(each)) for each in values] for values in (dino, clip)), "top-1"
    )
    assert groups is not None
    assert (knn.difference, knn.ci_low, knn.ci_high, knn.p) == pytest.approx(groups)
    # 30 of 80 pairs differ by 100, the others by 0: the interval of their mean, which the choice widens
    error = 100 * np.sqrt(30 / 80 * 50 / 80 / 80)
    assert 37.5 - 2.5 * error < knn.ci_low < 37.5 - 2 * error
    assert 37.5 + 2 * error < knn.ci_high < 37.5 + 2.5 * error
    assert knn.p < 0.001
    assert knn.p_corrected == pytest.approx(2 * knn.p)
    assert (spair.difference, spair.higher) == (pytest.approx(1.25), "")
    assert spair.p_corrected == spair.p > 0.05
    assert [one.higher for one in found.rows] == [NAMES[0], ""]
    assert conclusion(found).startswith(
        "At 5 %, corrected for 2 comparisons, mini-dino scores higher on knn top-1; no difference shows on "
        "spair PCK@0.1. Each backbone is shown at its highest layer; intervals and p are of the difference "
        "of their true best layers"
    )
    assert "held out" not in " ".join(match_table(found))


def test_each_side_is_compared_in_the_pooling_of_its_best_score(two, tmp_path):
    better = layers([90.0, 95.0], **COLUMNS["knn"] | DATA | {"pooling": "mean", "primary": False})
    path = tmp_path / scored_path(KNN, NAMES[0])
    places = read_items(path) | {
        (layer, "block", "mean"): measured(list(hits(right=right))) for layer, right in ((1, 32), (2, 36))
    }
    write_items(places, path)
    every = pd.concat([two, frame(better)], ignore_index=True)
    found = match_backbones(Board.of(every, items=tmp_path), NAMES, "best", ["knn"])
    assert [(one.first.pooling, one.second.pooling) for one in found.rows] == [("mean", "cls")]
    assert match_table(found)[NAMES[0]].tolist() == ["95.0 (2/2 mean)"]


def test_the_other_way_round_the_signs_turn(two, tmp_path):
    knn, _ = match_backbones(Board.of(two, items=tmp_path), NAMES[::-1], "best").rows
    assert (knn.difference, knn.higher) == (pytest.approx(-37.5), NAMES[0])


def test_the_same_layers_are_compared_one_by_one(two, tmp_path):
    found = match_backbones(Board.of(two, items=tmp_path), NAMES, "same", ["knn"])
    assert [(one.first.layer, one.second.layer) for one in found.rows] == [(1, 1), (2, 2)]
    assert [one.difference for one in found.rows] == pytest.approx([12.5, 50.0])
    assert conclusion(found) == (
        "At 5 %, corrected for 2 comparisons, mini-dino scores higher on knn top-1 at 2 of 2 depths."
    )


def test_a_backbone_does_not_win_by_having_many_layers_to_choose_from(tmp_path):
    """The highest of many equal layers is higher by chance, in whichever pooling it is."""
    clip = measured_by(tmp_path, "mini-clip", "knn", hits())
    random = np.random.default_rng(0)

    def against(layers_of_dino):
        dino = measured_by(tmp_path, "mini-dino", "knn", *layers_of_dino)
        (row,) = match_backbones(Board.of(frame(dino, clip), items=tmp_path), NAMES, "best", ["knn"]).rows
        return row

    noise = [random.permutation(HITS) for _ in range(23)]
    best = hits(right=13, wrong=2)
    alone, among = against([best]), against([*noise, best])
    assert alone.difference == among.difference == pytest.approx(13.75)
    assert (alone.higher, among.higher) == (NAMES[0], "")
    assert alone.p < 0.01 < 0.05 < among.p
    assert among.ci_low < 0 < alone.ci_low
    # of the same vectors in another pooling as well: they are compared, too
    places = {(1, "cls"): best} | {(row, "mean"): each for row, each in enumerate(noise, start=1)}
    write_layers(tmp_path, "mini-dino", places)
    facts = COLUMNS["knn"] | DATA
    mean = layers([50.0] * 23, **facts | {"pooling": "mean", "primary": False})
    records = frame(layers([63.75], **facts | {"depth": 23}), mean, clip)
    (row,) = match_backbones(Board.of(records, items=tmp_path), NAMES, "best", ["knn"]).rows
    assert (row.first.pooling, row.higher) == ("cls", "")
    assert row.p == pytest.approx(among.p, rel=0.2)


def test_the_best_are_compared_only_with_the_measurements_of_all_their_layers(two, tmp_path):
    write_layers(tmp_path, "mini-dino", {2: hits(right=30)})
    with pytest.raises(InputError, match=r"expected measurements of every layer in .*; delete the file"):
        match_backbones(Board.of(two, items=tmp_path), NAMES, "best", ["knn"])


def side(layer: int, depth: int) -> Side:
    return Side("net", layer, depth, "cls", 1.0)


def test_layers_of_unequal_depths_meet_at_equal_shares():
    shallow, deep = [side(k, 2) for k in (1, 2)], [side(k, 5) for k in range(1, 6)]
    pairs = [(first.layer, second.layer) for first, second in blocks_at_equal_depth(shallow, deep)]
    assert pairs == [(1, 3), (2, 5)]  # a half is as near to 2/5 as to 3/5
    assert [(a.layer, b.layer) for a, b in blocks_at_equal_depth(deep, shallow)] == [(3, 1), (5, 2)]
    assert [(a.layer, b.layer) for a, b in blocks_at_equal_depth(shallow, deep[4:])] == [(2, 5)]
    with pytest.raises(InputError, match="at the same relative depth"):
        blocks_at_equal_depth(shallow[:1], deep[4:])


def test_only_scores_of_the_same_data_are_compared(two, tmp_path):
    mixed = two[(two["backbone"] == "mini-dino") | (two["task"] == "spair")]
    mixed = frame(
        [record(**one) for one in mixed.to_dict("records")],
        measured_by(tmp_path, "mini-clip", "knn", hits(), hits(), data="d2"),
    )
    found = match_backbones(Board.of(mixed, items=tmp_path), NAMES, "best")
    assert [one.column.task for one in found.rows] == ["spair"]
    assert all("scored on different images or ground truth" in line for line in found.left_out)
    with pytest.raises(InputError, match=r"cannot be compared: .*different images or ground truth"):
        match_backbones(Board.of(mixed, items=tmp_path), NAMES, "best", ["knn"])


def test_what_cannot_be_compared_is_a_sentence(two, tmp_path):
    alone = two[(two["backbone"] == "mini-dino") | (two["task"] == "spair")]
    with pytest.raises(InputError, match=r"mini-dino and mini-clip cannot be compared: .*has no score"):
        match_backbones(Board.of(alone, items=tmp_path), NAMES, "best", ["knn"])


def test_items_that_are_gone_or_of_other_images_leave_a_task_out(two, tmp_path):
    measured_by(tmp_path, "mini-clip", "knn", hits(), hits(), data="d2")
    (tmp_path / scored_path(task_key("spair", "mini-spair", "standard"), "mini-dino")).unlink()
    with pytest.raises(InputError, match=r"scored on different items.*cannot read them"):
        match_backbones(Board.of(two, items=tmp_path), NAMES, "best")


@pytest.mark.parametrize(
    ("names", "tasks", "words"),
    [
        (
            ("mini-dino", "mini-clpi"),
            (),
            "there is no scored backbone 'mini-clpi'; did you mean 'mini-clip'?",
        ),
        (("mini-dino", "mini-dino"), (), "two different backbones, found mini-dino twice"),
        (("random", "mini-dino"), (), "an untrained baseline"),
        (NAMES, ("knm",), "there is no scored task 'knm'; did you mean 'knn'?"),
    ],
)
def test_wrong_names_are_a_sentence(two, tmp_path, names, tasks, words):
    records = frame([record(**one) for one in two.to_dict("records")], floor([1.0, 2.0], **DATA))
    with pytest.raises(InputError) as caught:
        match_backbones(Board.of(records, items=tmp_path), names, "best", tasks)
    assert words in str(caught.value)


def test_a_table_says_pooling_where_they_differ_and_too_few_items(tmp_path):
    records = frame(
        measured_by(tmp_path, "mini-dino", "knn", np.array([100.0])),
        measured_by(tmp_path, "mini-clip", "knn", np.array([0.0]), pooling="mean"),
    )
    found: Match = match_backbones(Board.of(records, items=tmp_path), NAMES, "best")
    (row,) = match_table(found).to_dict("records")
    assert row["mini-clip"] == "0.0 (1/1 mean)"
    assert (row["p"], row["higher"]) == ("", "too few items")
    assert "scores higher" not in conclusion(found)
    (numbers,) = match_frame(found).to_dict("records")
    assert (numbers["score"], numbers["other_score"], numbers["higher"]) == (100.0, 0.0, "")
