"""CKA of blocks at the same depth of every two backbones: planted CKA, and the figure on the page."""

import numpy as np

from layerboard.leaderboards.blocks.blocks import Heading, Plot, Text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.sections.order import section_blocks
from layerboard.leaderboards.sections.similarity import FEWER, MOST, SAME_DEPTH, same_depth_blocks
from tests.leaderboards.builder import frame
from tests.leaderboards.sections.test_trainings import pairs

TABLE = np.arange(8).reshape(4, 2) / 10  # of four blocks with two


def figures(*groups, **changes):  # type: ignore[no-untyped-def]
    blocks = same_depth_blocks(Board.of(frame(*groups).assign(**changes)))
    return [block for block in blocks if isinstance(block, Plot)]


def line(figure, panel, series):  # type: ignore[no-untyped-def]
    rows = figure.frame[(figure.frame["panel"] == panel) & (figure.frame["series"] == series)]
    return dict(zip(rows["x"], rows["y"], strict=True))


def test_every_two_backbones_are_compared_at_the_nearest_relative_depth():
    same = np.diag([0.9, 0.8, 0.7, 0.6])
    tables = {"a": np.ones((4, 4)), "b": same, "c": TABLE}
    groups = [pairs("a", name, table, depth=4) for name, table in tables.items()]
    (figure,) = figures(*groups)
    assert line(figure, "a", "b") == line(figure, "b", "a") == {0.25: 0.9, 0.5: 0.8, 0.75: 0.7, 1: 0.6}
    # blocks 1 to 4 of a beside 1, 1, 2 and 2 of c; blocks 1 and 2 of c beside 2 and 4 of a
    assert line(figure, "a", "c") == {0.25: 0.0, 0.5: 0.2, 0.75: 0.5, 1: 0.7}
    assert line(figure, "c", "a") == {0.5: 0.2, 1: 0.7}
    assert line(figure, "a", "a") == {}
    assert figure.order == ("a", "b", "c")
    board = Board.of(frame(*groups))
    assert same_depth_blocks(board)[0] == Heading(2, SAME_DEPTH)
    whole, tables = (section_blocks(board, beyond=beyond) for beyond in (None, False))
    assert Heading(2, SAME_DEPTH) in whole
    assert Heading(2, SAME_DEPTH) not in tables


def test_patch_tokens_are_drawn_if_there_are_any():
    both = [pair for share in (1, 0.5) for pair in pairs("a", "b", share * np.eye(2), depth=2)]
    records = frame(both)
    records.loc[4:, "pooling"] = "cls"
    (figure,) = (one for one in same_depth_blocks(Board.of(records)) if isinstance(one, Plot))
    assert line(figure, "a", "b") == {0.5: 1, 1: 1}
    (cls,) = figures(pairs("a", "b", np.eye(2), depth=2), pooling="cls")
    assert "class token" in cls.title


def test_of_many_backbones_the_first_are_drawn_and_one_alone_has_no_section():
    names = [f"net{number:02}" for number in range(MOST + 2)]
    records = frame(*(pairs(names[0], name, np.eye(1), depth=1) for name in names))
    blocks = same_depth_blocks(Board.of(records))
    (figure,) = (one for one in blocks if isinstance(one, Plot))
    assert set(figure.frame["series"]) == set(names[:MOST])
    said = "".join(str(piece) for block in blocks if isinstance(block, Text) for piece in block.pieces)
    assert FEWER.format(count=MOST + 2, most=MOST) in said
    assert figures(pairs("a", "a", np.ones((2, 2)))) == []
