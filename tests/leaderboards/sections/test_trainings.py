"""Trainings of one network: planted CKA, and their part of the page."""

import numpy as np
import pytest

from layerboard.benchmark.plan.facts import known_trainings
from layerboard.leaderboards.blocks.blocks import Heading, HeatMap, Plot, Table
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.sections.trainings import (
    parting_table,
    partition,
    partition_of,
    same_blocks,
    training_blocks,
    trainings_of,
)
from layerboard.zoo.registry.find import all_specs
from layerboard.zoo.spec import UNTRAINED, Retraining
from tests.leaderboards.builder import NAN, frame, layers, pair, unsure

FULL, SEED, NOSKIP, RAW = "full", "again", "no-skips", "raw"
RETRAINED = {
    SEED: Retraining(FULL, "another seed"),
    NOSKIP: Retraining(FULL, "block 2 without skips", 2),
    RAW: Retraining(FULL, UNTRAINED),
}


def board(*records, trainings=RETRAINED):  # type: ignore[no-untyped-def]
    return Board.of(frame(*records), trainings=trainings)


def pairs(one: str, other: str, table, **changes):  # type: ignore[no-untyped-def]
    """Records of CKA of the layers 1, 2, ... of two backbones."""
    return [
        pair(one, row, other, column, float(value), pooling="patch", **changes)
        for row, values in enumerate(np.asarray(table, float), start=1)
        for column, value in enumerate(values, start=1)
    ]


def planted():  # type: ignore[no-untyped-def]
    parted = [[1, 0, 0], [0, 1, 1], [0, 1, 1]]
    return [
        *pairs(FULL, FULL, np.ones((3, 3))),
        *pairs(NOSKIP, NOSKIP, parted),
        *pairs(FULL, SEED, np.diag([0.9, 0.8, 0.7])),
        *pairs(FULL, NOSKIP, np.diag([0.5, 0.4, 0.3])),
        *pairs(FULL, RAW, np.diag([0.2, 0.1, 0.0])),
    ]


def test_same_layers_are_the_diagonal_whichever_backbone_stands_first():
    table = np.arange(9).reshape(3, 3) / 10
    records = frame(unsure(pairs(SEED, FULL, table), half=0.02))
    for name, other in ((SEED, FULL), (FULL, SEED)):
        same = same_blocks(records, name, other)
        assert list(same) == [1, 2, 3]
        assert [cka for cka, *_ in same.values()] == pytest.approx([0, 0.4, 0.8])
        assert [high - low for _, low, high in same.values()] == pytest.approx([0.04] * 3)


def test_backbones_of_other_depths_share_their_first_blocks():
    table = [[0.9, 0.1, 0.2, NAN], [0.1, 0.2, 0.8, NAN], [NAN, NAN, NAN, NAN]]
    deeper = same_blocks(frame(pairs("short", "long", table)), "long", "short")
    assert list(deeper) == [1, 2, 3, 4]
    assert [cka for cka, *_ in deeper.values()][:2] == [0.9, 0.2]
    assert np.isnan(deeper[4][0])
    assert same_blocks(frame(planted()), FULL, "unknown") == {}


def two_parts(block: int) -> np.ndarray:  # type: ignore[type-arg]
    """CKA of layers 0 to 6: 1 among those before a block and among the others, 0 across."""
    before = np.arange(7) < block
    return (before[:, None] == before).astype(np.float64)


SUMS = np.add.outer(np.arange(0, 16, 4), np.arange(4)) + np.add.outer(np.arange(4), np.arange(0, 16, 4))
HOLED = np.where((np.arange(7) == 2) | (np.arange(7) == 2)[:, None], np.nan, two_parts(3))


@pytest.mark.parametrize(
    ("cka", "first", "block", "expected"),
    [
        *((two_parts(block), 0, block, (1, 0)) for block in (1, 3, 6)),
        (np.ones((7, 7)), 0, 3, (1, 1)),
        (SUMS + 1000 * np.eye(4), 0, 1, (20, 10)),  # pairs are counted once and without the diagonal
        (two_parts(3)[1:, 1:], 1, 3, (1, 0)),  # layers have their own numbers
        (two_parts(3)[1:, 1:], 1, 2, (6 / 10, 1 / 5)),
        (two_parts(3)[1:, 1:], 1, 1, (7 / 15, NAN)),  # nothing is before it
        (HOLED, 0, 3, (1, 0)),
        (np.full((7, 7), NAN), 0, 3, (NAN, NAN)),
    ],
)
def test_cka_within_and_across_the_parts_of_a_network(cka, first, block, expected):
    layers = np.arange(first, first + len(cka))
    assert partition(cka, layers, block) == pytest.approx(expected, nan_ok=True)


def test_a_block_without_skips_parts_its_network():
    records = frame(planted())
    assert np.subtract(*partition_of(records, NOSKIP, 2)) == 1
    assert np.subtract(*partition_of(records, FULL, 2)) == 0
    (row,) = parting_table(records, FULL, RETRAINED).to_dict("records")
    assert (row["backbone"], row["more by"]) == (NOSKIP, "1.000")
    assert parting_table(frame(pairs(FULL, FULL, np.ones((3, 3)))), FULL, RETRAINED).empty


def test_the_section_has_the_ceiling_first_and_the_floor_last():
    blocks = training_blocks(board(planted()))
    heading = next(one.text for one in blocks if isinstance(one, Heading))
    assert heading.startswith("Same blocks of full: all patch tokens")
    same, parted = (one.frame for one in blocks if isinstance(one, Table))
    assert same["training"].tolist() == [
        "again (another seed)",
        "no-skips (block 2 without skips)",
        "raw (untrained)",
    ]
    assert same["2"].tolist() == ["0.800", "0.400", "0.100"]
    assert parted[["block", "within", "across", "difference", "more by"]].to_numpy().tolist() == [
        ["2", "1.000", "0.000", "1.000", "1.000"]
    ]
    (figure,) = (one for one in blocks if isinstance(one, Plot))
    assert len(figure.frame) == 9
    (maps,) = (one for one in blocks if isinstance(one, HeatMap))
    assert [panel.title for panel in maps.panels] == [FULL, NOSKIP]
    assert maps.panels[1].values.tolist() == [[1, 0, 0], [0, 1, 1], [0, 1, 1]]
    assert maps.panels[1].first == (1, 1)


def test_the_cost_in_accuracy_is_beside_the_map_and_the_curve():
    scores = [
        *layers([20.0, 50.0, 40.0], backbone=FULL),
        *layers([10.0, 20.0, 44.0], backbone=NOSKIP),
        *layers([10.0, 51.5, 44.0], backbone=SEED),
    ]
    blocks = training_blocks(board(planted(), scores))
    (maps,) = (one for one in blocks if isinstance(one, HeatMap))
    assert [panel.title for panel in maps.panels] == [f"{FULL}\n50.0", f"{NOSKIP}\n44.0 (-6.0)"]
    same = next(one.frame for one in blocks if isinstance(one, Table))
    assert same.iloc[:, 1].tolist() == ["51.5 (+1.5)", "44.0 (-6.0)", ""]


def test_continued_trainings_are_compared_at_each_size():
    tuned = [
        *pairs("beit-b16@448px", "beit-b16-ft22k-ft1k@448px", np.eye(2)),
        *pairs("beit-b16", "beit-b16-ft22k-ft1k", np.eye(2)),
    ]
    found = trainings_of(board(tuned, trainings=known_trainings()))
    assert {name: [*others] for name, others in found.items()} == {
        "beit-b16@448px": ["beit-b16-ft22k-ft1k@448px"],
        "beit-b16": ["beit-b16-ft22k-ft1k"],
    }


def test_other_poolings_are_tables_and_what_was_not_compared_is_not_said():
    records = frame(pairs(FULL, SEED, np.eye(3)))
    cls = training_blocks(Board.of(records.assign(pooling="cls"), trainings=RETRAINED))
    assert [type(one) for one in cls].count(Table) == 1
    assert not any(isinstance(one, Plot) for one in cls)
    assert training_blocks(board(pairs(FULL, "other", np.eye(3)))) == []


def test_every_reference_of_the_registry_is_a_backbone_of_the_same_depth():
    specs, again = {spec.name: spec for spec in all_specs()}, known_trainings()
    assert {"mini-fs64-10pct", "mini-fs64-noskip6", "beit-b16-ft22k-ft1k", "hiera-b-ft1k"} <= {*again}
    for name, training in again.items():
        reference = specs[training.reference]
        assert specs.get(name, reference).stages == reference.stages
        assert training.change
        assert 0 <= training.without_skips <= reference.depth


def test_a_training_on_little_data_stands_beside_that_on_much():
    names = "vit-l16-in21k", "timm:deit3_large_patch16_224.fb_in1k"
    ((much, little),) = trainings_of(board(pairs(*names, np.eye(2)), trainings=known_trainings())).items()
    assert (much, {name: each.change for name, each in little.items()}) == (
        names[0],
        {names[1]: "on ImageNet-1k alone, by another recipe"},
    )


def test_an_untrained_network_alone_has_no_section():
    assert training_blocks(board(pairs(FULL, RAW, np.eye(3)))) == []
