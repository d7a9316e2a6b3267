"""Trainings of one network: planted CKA, and their part of the page."""

import numpy as np
import pytest

from layerboard.leaderboards.blocks.blocks import Heading, Plot, Table
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.sections.trainings import (
    parting_table,
    partition_of,
    same_blocks,
    training_blocks,
    trainings_of,
)
from tests.leaderboards.builder import NAN, frame, pair, unsure

FULL, SEED, NOSKIP, RAW = "full", "full-seed1", "full-noskip2", "full-untrained"


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


def test_a_checkpoint_is_the_same_as_itself():
    same = same_blocks(frame(pairs(FULL, FULL, np.ones((3, 3)))), FULL, FULL)
    assert {block: cka for block, (cka, *_) in same.items()} == {1: 1, 2: 1, 3: 1}


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


def test_a_block_without_skips_parts_its_network():
    records = frame(planted())
    assert np.subtract(*partition_of(records, NOSKIP, 2)) == 1
    assert np.subtract(*partition_of(records, FULL, 2)) == 0
    (row,) = parting_table(records, FULL, [SEED, NOSKIP]).to_dict("records")
    assert (row["backbone"], row["more by"]) == (NOSKIP, "1.000")
    assert parting_table(frame(pairs(FULL, FULL, np.ones((3, 3)))), FULL, [NOSKIP]).empty


def test_the_section_has_the_ceiling_first_and_the_floor_last():
    blocks = training_blocks(Board.of(frame(planted())))
    heading = next(one.text for one in blocks if isinstance(one, Heading))
    assert heading.startswith("Same blocks of full: all patch tokens")
    same, parted = (one.frame for one in blocks if isinstance(one, Table))
    assert same["training"].tolist() == [
        "full-seed1 (another seed)",
        "full-noskip2 (block 2 without skips)",
        "full-untrained (untrained)",
    ]
    assert same["2"].tolist() == ["0.800", "0.400", "0.100"]
    assert parted[["block", "within", "across", "difference", "more by"]].to_numpy().tolist() == [
        ["2", "1.000", "0.000", "1.000", "1.000"]
    ]
    (figure,) = (one for one in blocks if isinstance(one, Plot))
    assert len(figure.frame) == 9


def test_other_poolings_are_tables_and_what_was_not_compared_is_not_said():
    records = frame(pairs(FULL, SEED, np.eye(3)))
    cls = training_blocks(Board.of(records.assign(pooling="cls")))
    assert [type(one) for one in cls].count(Table) == 1
    assert not any(isinstance(one, Plot) for one in cls)
    assert training_blocks(Board.of(frame(pairs(FULL, "other", np.eye(3))))) == []


def test_trainings_belong_together_by_their_names():
    names = {
        *(FULL, SEED, NOSKIP, RAW),
        "full-10pct",
        "full-mean",
        "full-large",
        "fuller-seed1",
        "other-untrained",
    }
    assert trainings_of({*names, "other"}) == {
        FULL: {
            SEED: "another seed",
            "full-10pct": "a tenth of the data",
            "full-mean": "class read from the mean of the patches",
            NOSKIP: "block 2 without skips",
            RAW: "untrained",
        }
    }


def test_an_untrained_network_alone_has_no_section():
    assert training_blocks(Board.of(frame(pairs(FULL, RAW, np.eye(3))))) == []
