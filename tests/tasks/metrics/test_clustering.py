import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.metrics.clustering import ari, kmeans, nmi, purity
from tests.tasks.metrics import golden

CASES = golden.cases("clustering")
LABELS = [name for name, case in CASES.items() if case["builder"] == "labelings"]
labels = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30)


@pytest.mark.parametrize("name", LABELS)
def test_agrees_with_the_reference(name):
    data, expected = golden.build(CASES[name]), CASES[name]["expected"]["official"]
    before = data["classes"].copy()
    for measure, key in ((purity, "purity"), (nmi, "nmi"), (ari, "ari")):
        assert measure(data["classes"], data["clusters"]) == pytest.approx(expected[key], abs=1e-12)
    assert (data["classes"] == before).all()


def test_kmeans_lies_in_the_range_over_seeds():
    case = CASES["kmeans_600x32"]
    data, spans = golden.build(case), case["expected"]["range_over_random_state_0_to_19_n_init_10"]
    found = kmeans(data["features"], 10)
    centres = np.stack([data["features"][found == k].mean(axis=0) for k in range(10)])
    inertia = ((data["features"] - centres[found]) ** 2).sum()
    values = {
        "inertia": inertia,
        "purity": purity(data["classes"], found),
        "nmi": nmi(data["classes"], found),
    }
    for key, value in values.items():
        low, high = spans[key]
        assert low * 0.99 <= value <= high * 1.01, key
    assert (kmeans(data["features"], 10) == found).all()


def test_kmeans_finds_separated_clusters():
    case = CASES["kmeans_separated_400x16"]
    data, expected = golden.build(case), case["expected"]["official_n_init_10"]
    found = kmeans(data["features"], 7)
    for measure, key in ((purity, "purity"), (nmi, "nmi"), (ari, "ari")):
        assert measure(data["classes"], found) == pytest.approx(expected[key], abs=1e-12)
    sizes = case["expected"]["official_n_init_10_cluster_sizes_sorted"]
    assert sorted(np.bincount(found).tolist()) == sizes


@pytest.mark.parametrize("distinct", [1, 3])
def test_kmeans_of_few_different_samples_has_as_many_clusters(distinct):
    features = np.repeat(np.arange(distinct, dtype=np.float32), 4)[:, None] * np.ones((1, 5), np.float32)
    assert len(set(kmeans(features, 4).tolist())) == distinct


@settings(max_examples=40, deadline=None)
@given(labels)
def test_purity_equals_a_count_by_hand(pairs):
    classes, clusters = (np.array(column) for column in zip(*pairs, strict=True))
    hits = 0
    for _, members in itertools.groupby(sorted(pairs, key=lambda pair: pair[1]), key=lambda pair: pair[1]):
        names = [name for name, _ in members]
        hits += max(names.count(name) for name in names)
    assert purity(classes, clusters) == pytest.approx(hits / len(pairs))


@settings(max_examples=40, deadline=None)
@given(labels, st.permutations(range(5)))
def test_names_of_clusters_do_not_matter(pairs, names):
    classes, clusters = (np.array(column) for column in zip(*pairs, strict=True))
    renamed = np.array(names)[clusters]
    for measure in (purity, nmi, ari):
        assert measure(classes, renamed) == pytest.approx(measure(classes, clusters), abs=1e-9)
        assert measure(classes, classes) == pytest.approx(1)


def test_refuses_wrong_input():
    features, one = np.ones((3, 2), np.float32), np.zeros(3, np.int64)
    for arguments, word in [
        ((features[0], 1), "n dim"),
        ((features, 4), "4 clusters among 3 samples"),
        ((features, 0), "0 clusters"),
        ((features * np.nan, 1), "NaN"),
    ]:
        with pytest.raises(ValueError, match=word):
            kmeans(*arguments)
    for measure in (purity, nmi, ari):
        for classes in (one[:2], one[:0], one.astype(float)):
            with pytest.raises(ValueError, match="expected"):
                measure(classes, one[: len(classes)] if len(classes) != 2 else one)
