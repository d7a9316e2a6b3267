import numpy as np
import pytest

from layerboard.leaderboards.blocks.blocks import slug
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.inside.evidence import Evidence, deep, evenly
from layerboard.leaderboards.records.arrays import write_arrays
from layerboard.leaderboards.records.files import scored_path
from tests.leaderboards.analyses import distances
from tests.leaderboards.builder import frame


def evidence(folder=None, **changes):
    board = Board.of(frame(distances([[0.1], [0.2]], **changes)), arrays=folder)
    return Evidence(board.groups[0], board.backbones, board.arrays)


@pytest.mark.parametrize(
    ("count", "places"),
    [
        (1, {"first": 0}),
        (2, {"first": 0, "last": 1}),
        (3, {"first": 0, "1/2": 1, "last": 2}),
        (5, {"first": 0, "1/4": 1, "1/2": 2, "3/4": 3, "last": 4}),
        (24, {"first": 0, "1/4": 6, "1/2": 12, "3/4": 17, "last": 23}),
    ],
)
def test_some_blocks_stand_for_a_network_of_any_depth(count, places):
    assert deep(count) == places
    assert list(deep(count).values()) == sorted(places.values())


def test_some_of_many_are_chosen_evenly():
    assert evenly(3, 6) == [0, 1, 2]
    assert evenly(16, 4) == [0, 5, 10, 15]


def test_names_of_files_are_safe_and_differ():
    assert slug("a.b_c-1") == "a.b_c-1"
    names = {slug(text) for text in ("a/b", "a b", "a-b", "../a-b", "ä", "x" * 300, "x" * 301)}
    assert len(names) == 7
    assert all(
        name.isascii() and "/" not in name and not name.startswith(".") and len(name) < 110 for name in names
    )


def test_blocks_are_those_of_the_array_or_counted(tmp_path):
    path = tmp_path / scored_path("attention-distance.mini-imagenet.standard", "mini-dino", ending="npz")
    found = evidence(tmp_path)
    (backbone,) = found.backbones
    assert found.first_block(backbone, 2) == 1
    write_arrays({"block": np.array([3, 6]), "cells": np.array([2, 3])}, path)
    assert found.first_block(backbone, 2) == 3
    assert found.first_block(backbone, 3) == 1
    assert found.grid(backbone, 6) == (2, 3)
    assert found.grid(backbone, 9) == (3, 3)
    assert found.grid(backbone, 5) == (1, 5)
    assert found.array("block", 2, backbone.name) is None
    assert found.array("none", 1, backbone.name) is None


def test_figures_of_the_same_analysis_of_other_images_have_other_names():
    board = Board.of(frame(distances([[0.1]], data="d1"), distances([[0.1]], data="d2")))
    names = {Evidence(group, board.backbones, board.arrays).named("x") for group in board.groups}
    assert len(names) == 2
