import re

import numpy as np
import pytest

from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from tests.tasks.agreement import golden

CASES = golden.cases("knn")


def test_agrees_with_the_reference(scores, archive):
    case = CASES["fewer_than_100_queries"]
    ks, count = case["params"]["k"], case["inputs"]["test"]["shape"][0]
    found = scores(
        "knn", "--features", archive(**golden.build(case)), "--config", f"k={','.join(map(str, ks))}"
    )
    assert found["n"] == count
    for k in ks:
        pair = [found["scores"][f"top-{top}" if k == ks[0] else f"top-{top} k={k}"] for top in (1, 5)]
        own = case["expected"][str(k)]["own_float64"]
        right = (own["top1_correct"], own["top5_correct_without_zero_score_classes"])
        assert pair == pytest.approx([100 * each / count for each in right], abs=1e-6)


@pytest.mark.parametrize("renamed", [lambda y: 1000 - 7 * y, lambda y: (y + 3).astype(np.uint8)])
def test_labels_may_be_any_whole_numbers(scores, archive, renamed):
    data = golden.build(CASES["fewer_than_100_queries"])
    plain = scores("knn", "--features", archive(**data), "--config", "k=5")
    data |= {name: renamed(data[name]) for name in ("train_labels", "test_labels")}
    again = scores("knn", "--features", archive(**data), "--config", "k=5")
    assert again["scores"] == plain["scores"]
    assert again["details"]["classes"] == 6


def test_default_k_other_types_and_strangers(scores, archive):
    rng = np.random.default_rng(0)
    train = rng.integers(-9, 9, (30, 4))
    labels = np.arange(30) % 3
    found = scores(
        "knn",
        "--features",
        archive(
            train=train, train_labels=labels, test=train[:4].astype(np.float16), test_labels=[0, 1, 2, 9]
        ),
        "--config",
        "temperature=0.01",
    )
    # the neighbours are sure of the class that is right in three cases of four
    surely = pytest.approx(25, abs=1e-3)
    assert [found["scores"][name] for name in ("top-1", "top-5", "ECE top-1")] == [75, 75, surely]
    assert found["parameters"]["k"] == 20
    assert found["notes"] == ["1 of 4 test items have a class that no train item has"]


def test_defaults_are_those_of_the_benchmark(scores, archive):
    found = scores("knn", "--features", archive(**golden.build(CASES["fewer_than_100_queries"])))
    config = config_of(STANDARD, "knn")
    assert found["parameters"] | {"features": ""} == {
        "features": "",
        "k": config.k,
        "others": list(config.others),
        "temperature": config.temperature,
    }
    assert {"top-1", *(f"top-1 k={k}" for k in config.others)} <= {*found["scores"]}


def test_the_table_has_margins_of_error(says, archive):
    path = archive(**golden.build(CASES["fewer_than_100_queries"]))
    lines = says("knn", "--features", path, "--config", "k=5").out.splitlines()
    assert lines[0].split() == ["metric", "score"]
    assert lines[2].startswith("top-1")
    assert re.search(r"\d (± \d|\(\S+ to \S+\)$)", lines[2])
    assert any("of the 95 % interval." in line for line in lines)


def good():
    rng = np.random.default_rng(1)
    labels = np.arange(8) % 2
    features = rng.standard_normal((8, 3)).astype(np.float32)
    return {"train": features, "train_labels": labels, "test": features[:5], "test_labels": labels[:5]}


def spoilt(array, value):
    copy = array.copy()
    copy[2, 1] = value
    return copy


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"test_labels": None}, "found no test_labels among train, train_labels, test"),
        ({"groups": np.arange(8)}, "expected no groups in {path}, since it has test items"),
        ({"train": np.ones((8, 3, 1))}, "train of {path} to have the shape [n dim], found [8 3 1]"),
        ({"test": np.ones((5, 4), np.float32)}, "of one width in {path}, found 3 and 4"),
        ({"train": np.array([[object()] * 3] * 8)}, "array train of {path}, found Python objects"),
        (
            {"train": spoilt(good()["train"], np.nan)},
            "found NaN, infinite or larger values in 1 of 8 rows, first in row 2",
        ),
        ({"train": spoilt(good()["train"].astype(np.float64), 1e300)}, "values in 1 of 8 rows"),
        ({"train": np.ones((8, 3), np.float32)}, "features are the same for all items"),
        ({"test": np.zeros((5, 3), np.float32)}, "as test of {path}, but the features are all zero"),
        (
            {"train": np.empty((0, 3), np.float32)},
            "at least one number in train of {path}, found the shape [0 3]",
        ),
        ({"train": good()["train"].astype("V4")}, "export float32"),
        (
            {"train_labels": good()["train_labels"][:7]},
            "each of 8 rows of features as train_labels of {path}",
        ),
        ({"test_labels": np.array([0.5] * 5)}, "whole numbers as test_labels of {path}, found 0.5"),
        ({"test_labels": np.array(["a"] * 5)}, "whole numbers as test_labels of {path}, found the type <U1"),
    ],
)
def test_wrong_arrays(says, archive, change, words):
    arrays = {name: value for name, value in (good() | change).items() if value is not None}
    path = archive(**arrays)
    assert words.replace("{path}", str(path)) in says("knn", "--features", path, "--config", "k=2").error


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--config", "k=9"], "k of 1 to 8, the number of train items, found 9"),
        (["--config", "k=3,0"], "found 0"),
        (["--config", "k=3,3"], "every k once"),
    ],
)
def test_wrong_options(says, archive, options, words):
    assert words in says("knn", "--features", archive(**good()), *options).error
