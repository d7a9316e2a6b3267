"""Series of files: found where they are, and not by chance."""

import numpy as np

from layerboard.tasks.audit.series import named_alike, near_next, runs
from layerboard.tasks.metrics.neighbours import nearest


def test_files_of_one_folder_class_and_pattern_stand_in_the_order_of_their_numbers() -> None:
    keys = ["a/IMG_10.jpg", "a/IMG_9.jpg", "b/IMG_1.jpg", "a/copy_9.jpg", "a/IMG_11.jpg"]
    assert [unit.tolist() for unit in named_alike(keys, ["x", "x", "x", "x", "y"])] == [[1, 0], [2], [3], [4]]


def test_series_are_runs_of_near_files() -> None:
    units = [np.arange(20), np.arange(20, 40)]
    near = [np.ones(19, bool), np.zeros(19, bool)]
    near[0][11] = False
    near[1][4] = True  # by chance
    assert [run.tolist() for run in runs(units, near)] == [[*range(12)], [*range(12, 20)]]


def test_short_series_of_many_units_are_found_together() -> None:
    units = [np.arange(start, start + 12) for start in range(0, 240, 12)]
    near = [np.arange(11) % 4 != 3 for _ in units]  # four images of each thing
    assert {len(run) for run in runs(units, near)} == {4}


def test_a_random_order_has_no_series() -> None:
    for seed in range(20):
        vectors = np.random.default_rng(seed).normal(size=(200, 8)).astype(np.float32)
        units = named_alike([f"{row % 5}/{row}.jpg" for row in range(200)], [""] * 200)
        unit_of, following = np.zeros(200, np.int64), np.arange(200)
        for number, unit in enumerate(units):
            unit_of[unit], following[unit[:-1]] = number, unit[1:]
        near = near_next(nearest(vectors, vectors, 64), unit_of, following)
        assert not runs(units, [near[unit[:-1]] for unit in units])


def test_frames_of_a_video_are_near() -> None:
    angle = np.linspace(0, 1, 30)
    vectors = np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)
    following = np.minimum(np.arange(1, 31), 29)
    near = near_next(nearest(vectors, vectors, 10), np.zeros(30, np.int64), following)
    assert near[:-1].all()
    assert not near[-1]


def test_few_files_have_no_series() -> None:
    assert runs([np.arange(3)], [np.ones(2, bool)]) == []
