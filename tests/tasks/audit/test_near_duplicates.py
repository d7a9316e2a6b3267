"""Copies by small pictures and by vectors, against loops over all pairs."""

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.audit.near_duplicates import (
    clusters_of,
    copied_pictures,
    distances,
    near_pairs,
    usual_distance,
)
from layerboard.tasks.metrics.neighbours import nearest, unit_vectors


def pictures(count: int) -> NDArray[np.uint8]:
    return np.random.default_rng(1).integers(0, 256, (count, 8, 9), dtype=np.uint8)


def test_pairs_are_those_of_a_loop() -> None:
    grey = pictures(60)
    grey[[10, 20]] = grey[30]  # copies
    grey[40] = grey[50][:, ::-1]
    grey[41] = np.clip(0.6 * grey[51].astype(float) + 30, 0, 255)
    grey[42] = np.where(np.arange(9) < 8, 30 * np.arange(9), 255)  # both rise to the right, and differ
    grey[43] = np.where(np.arange(9) < 1, 0, 240 + np.arange(9))
    found = {(first, second) for first, second in copied_pictures(grey).tolist()}
    looped, hashed = set(), set()
    for first in range(60):
        for second in range(first + 1, 60):
            for other in (grey[second], grey[second][:, ::-1]):
                hashes = [np.diff(each.astype(int), axis=1) > 0 for each in (grey[first], other)]
                if (hashes[0] != hashes[1]).sum() <= 8:
                    hashed.add((first, second))
                    if np.corrcoef(grey[first].ravel(), other.ravel())[0, 1] >= 0.95:
                        looped.add((first, second))
    assert found | {(20, 30)} == looped  # of three of one hash the first is in every pair
    assert looped == {(10, 20), (10, 30), (20, 30), (40, 50), (41, 51)}
    assert (42, 43) in hashed


def test_flat_pictures_are_no_copies() -> None:
    """Where random pictures hardly differ, a few bits say nothing."""
    grey = np.full((40, 8, 9), 200, np.uint8)
    grey[np.arange(40), np.arange(40) % 8, 4] = 250
    grey[np.arange(40), np.arange(40) // 8, 6] = 250
    assert not len(copied_pictures(grey))


def test_near_pairs_are_far_nearer_than_usual() -> None:
    random = np.random.default_rng(0)
    unit = unit_vectors(random.normal(size=(50, 32)).astype(np.float32))
    unit[7] = unit_vectors(unit[[3]] + 0.01 * random.normal(size=(1, 32)).astype(np.float32))[0]
    found = nearest(unit, unit, 20)
    usual = usual_distance(found)
    whole = np.sort(1 - unit.astype(np.float64) @ unit.T, axis=1)
    assert abs(usual - np.median(whole[:, 2])) < 1e-6
    pairs = near_pairs(found, usual)
    assert pairs.tolist() == [[3, 7]]
    assert abs(distances(unit, pairs)[0] - (1 - unit[3].astype(np.float64) @ unit[7])) < 1e-9


def test_pairs_of_any_kind_keep_items_together() -> None:
    pairs = [np.array([[0, 1], [1, 2]]), np.array([[4, 5]])]
    numbers = clusters_of(6, pairs)
    assert numbers[0] == numbers[2] != numbers[3]
    assert numbers[4] == numbers[5] != numbers[3]
    assert len(set(clusters_of(3, []).tolist())) == 3
