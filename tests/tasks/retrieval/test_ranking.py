import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layerboard.tasks.retrieval.ranking import precision_at, rank, trapezoid_average_precision


def test_ties_go_to_the_lower_index():
    assert rank(np.array([[0.5], [1.0], [0.5], [1.0]])).ravel().tolist() == [1, 3, 0, 2]


@settings(max_examples=50, deadline=None)
@given(st.sets(st.integers(0, 60), min_size=1, max_size=20))
def test_average_precision_is_the_area_under_its_steps(places):
    positions = np.array(sorted(places))
    relevant = np.isin(np.arange(61), positions)
    precision = np.cumsum(relevant) / np.arange(1, 62)
    before = np.concatenate([[1.0], precision[:-1]])
    expected = ((before + precision) / 2)[relevant].mean()
    assert trapezoid_average_precision(positions) == pytest.approx(expected)
    assert 0 < trapezoid_average_precision(positions) <= 1
    assert trapezoid_average_precision(np.arange(len(places))) == 1
    assert 0 <= precision_at(positions, 5) <= 1
