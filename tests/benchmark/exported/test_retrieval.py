import pickle

import numpy as np
import pytest

from tests.tasks.agreement import golden

CASES = golden.cases("retrieval")
NAMES = {"E": "easy", "M": "medium", "H": "hard"}


def truth(case, data):
    """Easy, hard and junk indices of a case's queries."""
    if "relevance" in data:
        return [[np.flatnonzero(column == kind) for column in data["relevance"].T] for kind in (1, 2, 3)]
    queries = case["recipe"]["queries"]
    return [[np.array(query[kind], np.int64) for query in queries] for kind in ("easy", "hard", "junk")]


def write_truth(path, easy, hard, junk, images):
    """A ground truth of revisited Oxford or Paris, as its authors pickle it."""
    truths = [
        {"bbx": [0.0, 0.0, 9.0, 9.0], "easy": a.tolist(), "hard": b.tolist(), "junk": c}
        for a, b, c in zip(easy, hard, junk, strict=True)
    ]
    names = [f"database_{i}" for i in range(images)], [f"query_{i}" for i in range(len(truths))]
    content = {"gnd": truths, "imlist": names[0], "qimlist": names[1]}
    path.write_bytes(pickle.dumps(content, protocol=2))
    return path


@pytest.mark.parametrize("name", ["tiny_edge_cases", "features_200x32"])
def test_agrees_with_revisitop(scores, archive, tmp_path, name):
    case = CASES[name]
    data = golden.build(case)
    images = len(data["scores"] if "scores" in data else data["database"])
    path = write_truth(tmp_path / "gnd.pkl", *truth(case, data), images)
    if "scores" in data:
        np.save(tmp_path / "scores.npy", data["scores"])
        given = ("--predictions", tmp_path / "scores.npy")
    else:
        given = ("--features", archive(database=data["database"], queries=data["queries"]))
    found = scores("retrieval", *given, "--ground-truth", path)
    for split, difficulty in NAMES.items():
        expected = case["expected"][split]
        assert found["scores"][f"mAP {difficulty}"] == pytest.approx(100 * expected["mAP"], abs=1e-6)
        for k, value in expected["mP"].items():
            assert found["scores"][f"mP@{k} {difficulty}"] == pytest.approx(100 * value, abs=1e-6)
        single = found["details"]["AP"][difficulty]
        for ap, value in zip(single, expected["AP_per_query"], strict=True):
            assert ap == (None if value is None else pytest.approx(100 * value, abs=1e-6))
        counted = sum(value is not None for value in expected["AP_per_query"])
        assert sum(ap is not None for ap in single) == expected.get("queries_counted", counted)


def small(tmp_path, **lists):
    """Four images, two queries."""
    given = {"easy": [[0], [1]], "hard": [[1], [2]], "junk": [[2], [3]]} | lists
    arrays = {kind: [np.array(one, np.int64) for one in lists] for kind, lists in given.items()}
    return write_truth(tmp_path / "gnd.pkl", **arrays, images=4)


def test_a_difficulty_without_positives_is_null_and_says_why(scores, archive, tmp_path):
    path = small(tmp_path, hard=[[], []])
    found = scores(
        "retrieval", "--features", archive(database=np.eye(4), queries=np.eye(4)[:2]), "--ground-truth", path
    )
    assert found["scores"]["mAP hard"] is None
    assert found["scores"]["mAP easy"] == 100
    assert found["reason"].endswith("mP@5 hard: no query has a hard positive")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"database": np.eye(3, 4)}, "expected 4 database images and 2 queries in {path}"),
        ({"queries": np.eye(3, 4)}, "found 4 and 3"),
        ({"database": np.ones((4, 4))}, "the same for all items"),
    ],
)
def test_wrong_features(says, archive, tmp_path, change, words):
    given = {"database": np.eye(4), "queries": np.eye(2, 4)} | change
    path = archive(**given)
    said = says("retrieval", "--features", path, "--ground-truth", small(tmp_path))
    assert words.replace("{path}", str(path)) in said.error


@pytest.mark.parametrize(
    ("similarity", "words"),
    [
        (np.eye(2, 4), "found 2 and 4; keep the order of imlist and qimlist"),
        (np.ones((4, 2)), "all the same"),
        (np.ones(4), "the shape [database queries], found [4]"),
    ],
)
def test_wrong_similarities(says, tmp_path, similarity, words):
    np.save(tmp_path / "s.npy", similarity)
    said = says("retrieval", "--predictions", tmp_path / "s.npy", "--ground-truth", small(tmp_path))
    assert words in said.error


def test_wrong_ground_truths(says, archive, tmp_path):
    path = archive(database=np.eye(4), queries=np.eye(2, 4))
    for lists, words in [
        ({"junk": [[1], [3]]}, "in one of easy, hard, junk of query query_0, found several of 1"),
        ({"easy": [[4], [1]]}, "indices below 4 (the database)"),
    ]:
        said = says("retrieval", "--features", path, "--ground-truth", small(tmp_path, **lists))
        assert words in said.error
    (tmp_path / "gnd.pkl").write_bytes(pickle.dumps(print))
    assert (
        "which was not executed"
        in says("retrieval", "--features", path, "--ground-truth", tmp_path / "gnd.pkl").error
    )
    said = says("retrieval", "--features", path, "--ground-truth", tmp_path / "none.pkl")
    assert "none.pkl, which cannot be read" in said.error
    assert "found neither" in says("retrieval", "--ground-truth", small(tmp_path)).error
