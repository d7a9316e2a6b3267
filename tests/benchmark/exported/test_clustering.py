import numpy as np
import pytest

from tests.tasks.agreement import golden

CASES = golden.cases("clustering")
KEYS = {"purity": "purity", "nmi": "NMI", "ari": "ARI"}


def test_assignments_agree_with_the_reference(scores, archive):
    case = CASES["gaps_in_labels"]
    data, expected = golden.build(case), case["expected"]["official"]
    path = archive(clusters=data["clusters"], labels=data["classes"])
    found = scores("clustering", "--predictions", path)
    for key, metric in KEYS.items():
        assert found["scores"][metric] == pytest.approx(100 * expected[key], abs=1e-6)
    assert found["n"] == len(data["classes"])
    assert found["details"]["classes"] == len(set(data["classes"].tolist()))
    named = archive(
        clusters=data["clusters"].astype(str), labels=np.char.add("class ", data["classes"].astype(str))
    )
    assert scores("clustering", "--predictions", named)["scores"] == pytest.approx(found["scores"], abs=1e-9)


def test_mixed_features_lie_in_the_range_over_seeds(scores, archive):
    case = CASES["kmeans_600x32"]
    data, spans = golden.build(case), case["expected"]["range_over_random_state_0_to_19_n_init_10"]
    path = archive(features=data["features"], labels=data["classes"])
    clusters = case["params"]["n_clusters"]
    for seed in (0, 3):
        found = scores("clustering", "--features", path, "--config", f"k={clusters}", f"seed={seed}")
        for key, metric in KEYS.items():
            low, high = spans[key]
            assert 99 * low <= found["scores"][metric] <= 101 * high
    single = scores("clustering", "--features", path, "--config", "k=5", "n_init=1")
    assert (single["details"]["classes"], single["details"]["clusters"]) == (10, 5)
    for metric, (low, high) in single["details"]["intervals"].items():
        assert low < single["scores"][metric] < high


def test_few_different_features_give_fewer_clusters(scores, archive):
    features = np.repeat(np.eye(2, 4), 3, axis=0)
    found = scores("clustering", "--features", archive(features=features, labels=list("aabbcc")))
    assert (found["details"]["classes"], found["details"]["clusters"]) == (3, 2)


@pytest.mark.parametrize(
    ("arrays", "options", "words"),
    [
        ({"features": np.eye(4)}, [], "found no labels among features"),
        ({"features": np.eye(4), "labels": np.ones((4, 1), int)}, [], "found [4 1]"),
        ({"features": np.eye(4), "labels": np.ones(4) / 2}, [], "whole numbers as labels"),
        ({"features": np.ones((4, 4)), "labels": list("aabb")}, [], "the same for all items"),
        (
            {"features": np.eye(4), "labels": list("aabb")},
            ["--config", "k=5"],
            "k of 1 to 4, the number of items",
        ),
        (
            {"features": np.eye(4), "labels": list("aabb")},
            ["--predictions", "x"],
            "or --predictions, found both",
        ),
    ],
)
def test_wrong_features(says, archive, arrays, options, words):
    assert words in says("clustering", "--features", archive(**arrays), *options).error


def test_wrong_assignments(says, archive):
    for arrays, words in [
        ({"clusters": [0, 1]}, "found no labels among clusters"),
        ({"clusters": [0, 1], "labels": [0, 1, 1]}, "each of 3 rows"),
        ({"clusters": [0.0, 1.0], "labels": [0, 1]}, "clusters of"),
        ({"clusters": np.zeros(0, int), "labels": np.zeros(0, int)}, "at least one item"),
    ]:
        assert words in says("clustering", "--predictions", archive(**arrays)).error
    assert "found neither" in says("clustering").error


def test_seeds_beyond_those_of_the_generator(says, archive):
    path = archive(features=np.eye(4), labels=[0, 0, 1, 1])
    error = says("clustering", "--features", path, "--config", f"seed={2**32}").error
    assert "expected seed of 0 to 4,294,967,295, found" in error
    assert says("clustering", "--features", path, "--config", f"seed={2**32 - 1}").code == 0
