import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.metrics.ranking import average_precision, precision_at, rank, revisited
from tests.tasks.metrics import golden

CASES = golden.cases("retrieval")
NAMES = {"E": "easy", "M": "medium", "H": "hard"}


def truth(case, data):
    if "relevance" in data:
        return [[np.flatnonzero(column == kind) for column in data["relevance"].T] for kind in (1, 2, 3)]
    queries = case["recipe"].get("queries")
    if queries is None:
        queries = json.loads((golden.FOLDER / case["recipe"]["gnd_file"]).read_text())["queries"]
    return [[np.array(query[kind], np.int64) for query in queries] for kind in ("easy", "hard", "junk")]


def similarities(data):
    if "scores" in data:
        return data["scores"]
    unit = [data[key] / np.linalg.norm(data[key], axis=1, keepdims=True) for key in ("database", "queries")]
    return unit[0] @ unit[1].T


@pytest.mark.parametrize("split", NAMES)
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_revisitop(name, split):
    case = CASES[name]
    data = golden.build(case)
    scores = revisited(rank(similarities(data)), *truth(case, data), NAMES[split])
    expected = case["expected"][split]
    ap = np.array([np.nan if value is None else value for value in expected["AP_per_query"]])
    np.testing.assert_allclose(scores.ap, ap, rtol=0, atol=1e-12)
    assert scores.mean_ap == pytest.approx(expected["mAP"], abs=1e-12)
    assert scores.counted == expected.get("queries_counted", np.isfinite(ap).sum())
    for k, value in expected["mP"].items():
        assert scores.mean_precision(int(k)) == pytest.approx(value, abs=1e-12)


def test_ties_go_to_the_lower_index():
    assert rank(np.array([[0.5], [1.0], [0.5], [1.0]])).ravel().tolist() == [1, 3, 0, 2]


@settings(max_examples=50, deadline=None)
@given(st.sets(st.integers(0, 60), min_size=1, max_size=20))
def test_average_precision_is_the_area_under_its_steps(places):
    positions = np.array(sorted(places))
    relevant = np.isin(np.arange(61), positions)
    precision = np.cumsum(relevant) / np.arange(1, 62)
    before = np.concatenate([[1.0], precision[:-1]])
    assert average_precision(positions) == pytest.approx(((before + precision) / 2)[relevant].mean())
    assert 0 < average_precision(positions) <= 1
    assert average_precision(np.arange(len(places))) == 1
    assert 0 <= precision_at(positions, 5) <= 1


def test_junk_leaves_the_ranking_first():
    ranks = np.array([[3], [0], [2], [1]])
    junk, none = [np.array([0, 3])], [np.array([], np.int64)]
    scores = revisited(ranks, [np.array([2])], none, junk, "easy")
    assert scores.ap.tolist() == [1.0]
    assert scores.precision[10].tolist() == [1.0]


def test_a_query_without_positives_is_left_out():
    none = [np.array([], np.int64)]
    scores = revisited(np.arange(4)[:, None], none, none, none, "medium")
    assert np.isnan(scores.ap).all()
    assert np.isnan(scores.mean_ap)
    assert np.isnan(scores.mean_precision(5))
    assert scores.counted == 0


def test_refuses_wrong_input():
    ranks, one, none = np.arange(4)[:, None], [np.array([1])], [np.array([], np.int64)]
    for arguments, word in [
        ((ranks, one, none, [], "easy"), "three lists"),
        ((ranks, one, one, one, "medium"), "positive and ignored"),
        ((ranks, [np.array([4])], none, none, "easy"), "outside the database"),
        ((np.zeros((4, 1), np.int64), one, none, none, "easy"), "permutation"),
        ((ranks, one, none, none, "simple"), "difficulty"),
    ]:
        with pytest.raises(ValueError, match=word):
            revisited(*arguments)
    with pytest.raises(ValueError, match="NaN"):
        rank(np.array([[np.nan]]))
    with pytest.raises(ValueError, match="similarities"):
        rank(np.zeros(3))
    with pytest.raises(ValueError, match="positions"):
        average_precision(np.array([1, 1]))
    with pytest.raises(ValueError, match="cut-off"):
        precision_at(np.array([1]), 0)
