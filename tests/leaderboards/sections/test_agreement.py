"""The section on which tasks rank backbones alike."""

import numpy as np

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.records.files import task_key
from layerboard.leaderboards.sections.ranks import AGREEMENT, agreement_blocks, task_correlations
from tests.leaderboards.builder import KNN, frame, layers, write_layers
from tests.leaderboards.shown import render_blocks

COUNT = 400
OTHER = task_key("knn", "other", "standard")


def plant(folder, shares, others):
    """A board of backbones with these shares of hits in one layer on two datasets."""
    found = []
    for number, both in enumerate(zip(shares, others, strict=True)):
        name = f"own{number}"
        for share, key, dataset in zip(both, (KNN, OTHER), ("mini-imagenet", "other"), strict=True):
            hits = np.random.default_rng((number, len(dataset))).permutation(COUNT) < share * COUNT
            write_layers(folder, name, [100.0 * hits], key)
            found += layers([100.0 * hits.mean()], n=COUNT, backbone=name, dataset=dataset)
    return Board.of(frame(found), "mini", items=folder)


def test_tasks_that_rank_alike_and_apart(tmp_path):
    shares = np.linspace(0.2, 0.9, 8)
    (alike,) = task_correlations(plant(tmp_path / "alike", shares, shares**2)).values()
    assert alike.low > 0.8
    (apart,) = task_correlations(plant(tmp_path / "apart", shares, shares[::-1])).values()
    assert apart.high < -0.8
    text = render_blocks(agreement_blocks(plant(tmp_path / "again", shares, shares**2)))
    assert f"## {AGREEMENT}" in text
    assert f"{alike.value:.2f} ({alike.low:.2f} to 1.00)" in text
    turned = render_blocks(agreement_blocks(plant(tmp_path / "turned", shares, shares[::-1])))
    assert ["rank backbones much alike" in each for each in (text, turned)] == [True, False]


def test_five_backbones_and_equal_ones_say_nothing(tmp_path):
    assert (
        agreement_blocks(plant(tmp_path / "few", [0.1, 0.3, 0.5, 0.7, 0.9], [0.2, 0.4, 0.6, 0.8, 0.9])) == []
    )
    assert agreement_blocks(plant(tmp_path / "equal", [0.5] * 8, np.linspace(0.2, 0.9, 8))) == []
