from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from layerboard.tasks.propagation.j_and_f import (
    both,
    boundary_f,
    compare_boundaries,
    jaccard,
    score_video,
    statistics,
    tolerance,
)
from tests.tasks.propagation.official_davis import border


def random_mask(rng, height, width):
    field = ndimage.gaussian_filter(rng.standard_normal((height, width)), rng.uniform(0.3, 3))
    return field > rng.normal(0, 0.3) * field.std()


def official_counts(prediction, truth, radius):
    """Boundaries by shifted copies and the distance to the nearest boundary pixel of the other mask."""
    edges = [border(mask) for mask in (prediction, truth)]
    near = [ndimage.distance_transform_edt(~edge) <= radius if edge.any() else edge for edge in edges]
    one, two = edges
    return tuple(int(array.sum()) for array in (one, two, one & near[1], two & near[0]))


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 70),
    st.integers(1, 70),
    st.integers(0, 80),
    st.sampled_from(["blobs", "dots", "empty", "full", "frame", "corner"]),
)
def test_boundaries_of_all_kinds_and_sizes(seed, height, width, radius, kind):
    rng = np.random.default_rng(seed)
    one, two = random_mask(rng, height, width), np.zeros((height, width), bool)
    if kind == "blobs":
        two = random_mask(rng, height, width)
    elif kind == "dots":
        two.flat[rng.integers(0, height * width, 1 + height * width // 50)] = True
    elif kind == "full":
        two[:] = True
    elif kind == "frame":
        two[:, 0] = two[:, -1] = two[0] = two[-1] = True
    elif kind == "corner":
        two[-1, -1] = two[0, 0] = True
    assert compare_boundaries(both(one, two), radius) == official_counts(one, two, radius)
    assert compare_boundaries(both(two, one), radius) == official_counts(two, one, radius)


@pytest.mark.parametrize("size", [(480, 854), (481, 1153)])
def test_boundaries_of_frames_as_large_as_those_of_davis(size):
    rng = np.random.default_rng(size[1])
    coarse = [rng.random((9, 16)) < 0.4 for _ in range(2)]
    one, two = (ndimage.zoom(m.astype(float), (size[0] / 9, size[1] / 16), order=1) > 0.5 for m in coarse)
    radius = tolerance(size)
    assert compare_boundaries(both(one, two), radius) == official_counts(one, two, radius)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_masks_in_their_boxes_score_as_whole_frames(seed):
    rng = np.random.default_rng(seed)
    first = np.zeros((30, 41), np.uint8)
    first[0, :3] = 1, 2, 3
    frames = [ndimage.label(random_mask(rng, 30, 41))[0] % 4 for _ in range(3)]
    truth, prediction = frames[0].astype(np.uint8), frames[1].astype(np.uint8)
    scores = score_video([first, prediction, first], [first, truth, first])
    for row in range(3):
        pair = prediction == row + 1, truth == row + 1
        assert scores.j[row, 0] == jaccard(both(*pair))
        assert scores.f[row, 0] == boundary_f(both(*pair), tolerance((30, 41)))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_measures_are_symmetric_bounded_and_perfect_on_equal_masks(seed):
    rng = np.random.default_rng(seed)
    one, two = random_mask(rng, 20, 25), random_mask(rng, 20, 25)
    for measure in (jaccard, partial(boundary_f, radius=1)):
        assert measure(both(one, two)) == measure(both(two, one))
        assert 0 <= measure(both(one, two)) <= 1
        assert measure(both(one, one)) == 1


def test_tolerance_of_the_davis_frame_sizes():
    assert [tolerance(size) for size in ((480, 854), (480, 910), (480, 1152))] == [8, 9, 10]


def test_an_object_that_is_nowhere_scores_one():
    first = np.zeros((9, 9), np.uint8)
    first[0, 0], empty = 2, np.zeros((9, 9), np.uint8)
    scores = score_video([first, empty, first], [first, empty, first])
    assert scores.j.tolist() == scores.f.tolist() == [[1.0], [1.0]]


def test_void_and_later_ids_are_background():
    first = np.full((9, 9), 255, np.uint8)
    first[:3, :3] = 1
    later = np.where(first == 255, np.uint8(7), first)
    scores = score_video([first, np.where(first == 1, first, 0), first], [first, later, first])
    assert scores.j.tolist() == [[1.0]]


def test_one_scored_frame_has_no_decay():
    assert statistics(np.array([0.5])) == statistics(np.array([0.5]))
    assert statistics(np.array([0.75])).decay == 0
    assert statistics(np.array([0.5, 0.75])).recall == 0.5


def test_long_videos_keep_their_last_quarter():
    assert statistics(np.repeat([1.0, 0.5, 0.5, 0.0], 250)).decay == pytest.approx(1, abs=0.01)


def test_refuses_wrong_input():
    mask = np.zeros((4, 4), np.uint8)
    first = mask.copy()
    first[0, 0] = 1
    for predictions, truths, word in [
        ([first] * 2, [first] * 3, "as many predictions"),
        ([first] * 2, [first] * 2, "at least 3"),
        ([mask] * 3, [mask] * 3, "at least one object"),
        ([first, first[:3], first], [first] * 3, "expected masks of"),
    ]:
        with pytest.raises(ValueError, match=word):
            score_video(predictions, truths)
