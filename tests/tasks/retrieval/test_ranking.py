import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layerboard.tasks.retrieval.ranking import precision_at, rank, revisited, trapezoid_average_precision


def test_ties_go_to_the_lower_index():
    assert rank(np.array([[0.5], [1.0], [0.5], [1.0]])).ravel().tolist() == [1, 3, 0, 2]


@settings(max_examples=50, deadline=None)
@given(st.sets(st.integers(0, 60), min_size=1, max_size=20))
def test_average_precision_is_the_area_under_its_steps(places):
    positions = np.array(sorted(places))
    relevant = np.isin(np.arange(61), positions)
    precision = np.cumsum(relevant) / np.arange(1, 62)
    before = np.concatenate([[1.0], precision[:-1]])
    assert trapezoid_average_precision(positions) == pytest.approx(
        ((before + precision) / 2)[relevant].mean()
    )
    assert 0 < trapezoid_average_precision(positions) <= 1
    assert trapezoid_average_precision(np.arange(len(places))) == 1
    assert 0 <= precision_at(positions, 5) <= 1


def test_junk_leaves_the_ranking_first():
    ranks = np.array([[3], [0], [2], [1]])
    junk, none = [np.array([0, 3])], [np.array([], np.int64)]
    scores = revisited(ranks, [np.array([2])], none, junk, "easy")
    assert scores["mAP"].tolist() == [1.0]
    assert scores["mP@10"].tolist() == [1.0]


def test_a_query_without_positives_is_left_out():
    none = [np.array([], np.int64)]
    scores = revisited(np.arange(4)[:, None], none, none, none, "medium")
    assert all(np.isnan(values).all() for values in scores.values())
    assert np.isnan(scores["mAP"]).all()
    assert np.isnan(scores["mP@5"]).all()
