import numpy as np
import pytest

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(50, 8)).astype(np.float32)
NUMBERS = FEATURES[:, :2] + RNG.normal(size=(50, 2))
FOLDS = np.arange(50) % 4


def test_names_groups_and_five_folds_without_any(scores, archive):
    path = archive(features=FEATURES, targets=NUMBERS, names=["x", "y"], groups=np.arange(50) // 5)
    found = scores("regress", "--features", path)
    assert {"R2", "R2 x", "rho y"} <= {*found["scores"]}
    assert found["scores"]["MAE"] is None
    assert found["reason"] == "MAE: each number has an error in its own unit"
    assert found["details"]["folds"] == 5


@pytest.mark.parametrize(
    ("task", "change", "words"),
    [
        ("regress", {"targets": NUMBERS[:9]}, "a row of targets for each of 50 items"),
        ("regress", {"targets": np.ones(50)}, "target 1 is the same for all images"),
        ("regress", {"targets": ["a"] * 50}, "expected numbers as targets"),
        ("regress", {"targets": NUMBERS, "names": ["x"]}, "one label for each of 2 rows"),
        (
            "regress",
            {"targets": NUMBERS, "folds": FOLDS - 1, "groups": np.where(FOLDS < 2, 0, np.arange(50))},
            "items of every group of",
        ),
        (
            "multilabel",
            {"targets": NUMBERS > 0, "folds": FOLDS, "groups": ["a", "b"] * 25},
            "in one of its folds, found a, b in several",
        ),
        ("multilabel", {"targets": NUMBERS}, "expected targets of 0 and 1"),
        ("multilabel", {}, "found no targets"),
    ],
)
def test_what_cannot_be_scored_is_one_sentence(says, archive, task, change, words):
    said = says(task, "--features", archive(features=FEATURES, **change))
    assert said.code == 2
    assert words in said.err
