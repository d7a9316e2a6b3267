"""Which examples are told: lost with depth first, then found, failed and held."""

import numpy as np

from layerboard.leaderboards.report.gallery.drawing import stories


def test_each_kind_is_told_of_the_examples_that_show_it_most() -> None:
    quality = np.array(
        [  # lost a little, held, lost, failed, found, lost most, found and failing, level
            [90.0, 100.0, 10.0, 0.0, 10.0, 50.0, 5.0, 60.0],
            [80.0, 90.0, 80.0, 10.0, 50.0, 100.0, 10.0, 60.0],
            [70.0, 95.0, 20.0, 5.0, 90.0, 0.0, 35.0, 60.0],
        ]
    )
    assert stories(quality) == [
        (5, "lost"),
        (2, "lost"),
        (4, "found"),
        (6, "found"),
        (3, "failed"),
        (6, "failed"),
        (1, "held"),
    ]


def test_of_each_kind_only_a_few_are_told_in_their_order() -> None:
    told = stories(np.array([[100.0] * 9, [0.0] * 9]))
    assert told == [(0, "lost"), (1, "lost")]


def test_where_nothing_stands_out_nothing_is_told() -> None:
    assert stories(np.full((3, 4), 60.0)) == []


def test_what_the_best_backbone_misses_comes_first() -> None:
    missed = np.array([np.nan, 60.0, 100.0, np.nan])
    assert stories(np.full((3, 4), 60.0), missed) == [(2, "missed"), (1, "missed")]
