"""Copies by hashes and vectors, against loops over all pairs."""

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.metrics.near_duplicates import (
    clusters_of,
    difference_hashes,
    distances,
    near_pairs,
    pairs_by_hash,
    usual_distance,
)
from layerboard.tasks.metrics.neighbours import nearest, unit_vectors


def pictures(count: int) -> NDArray[np.uint8]:
    return np.random.default_rng(1).integers(0, 256, (count, 8, 9), dtype=np.uint8)


def test_a_hash_says_which_cell_is_brighter_than_its_left_neighbour() -> None:
    grey = pictures(3)
    plain, mirrored = difference_hashes(grey)
    assert plain.shape == (3, 64)
    assert plain[2, 9] == (grey[2, 1, 2] > grey[2, 1, 1])
    assert (mirrored == difference_hashes(grey[:, :, ::-1].copy())[0]).all()


def test_pairs_are_those_of_a_loop() -> None:
    grey = pictures(60)
    grey[[10, 20]] = grey[30]  # copies
    grey[40] = grey[50][:, ::-1]
    grey[41] = grey[51]
    grey[41, 0, :2] = grey[51, 0, 1::-1]  # one bit or two
    plain, mirrored = difference_hashes(grey)
    found = {(first, second) for first, second in pairs_by_hash(plain, mirrored).tolist()}
    looped = set()
    for first in range(60):
        for second in range(first + 1, 60):
            bits = min((plain[first] != other[second]).sum() for other in (plain, mirrored))
            looped |= {(first, second)} if bits <= 8 else set()
    assert found | {(20, 30)} == looped  # of three of one hash the first is in every pair
    assert (10, 30) in found
    assert {(40, 50), (41, 51)} <= found


def test_flat_pictures_are_no_copies() -> None:
    """Where random pictures hardly differ, a few bits say nothing."""
    grey = np.full((40, 8, 9), 200, np.uint8)
    grey[np.arange(40), np.arange(40) % 8, 4] = 250
    grey[np.arange(40), np.arange(40) // 8, 6] = 250
    assert not len(pairs_by_hash(*difference_hashes(grey)))


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
