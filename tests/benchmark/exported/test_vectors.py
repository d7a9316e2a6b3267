"""Scorers of vectors: an archive leads to the task of a run, and its numbers are those of the references.

Tasks are compared with official code, case by case, in `tests.tasks.agreement`.
"""

import pickle
import re

import numpy as np
import pytest

from layerboard.benchmark.commands.score import SCORERS, ScoreRequest
from layerboard.benchmark.forms.option import declared
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from tests.tasks.agreement import golden

KNN = golden.cases("knn")["fewer_than_100_queries"]
POOL = golden.cases("fewshot")["draws_from_a_pool"]
CLUSTERING = golden.cases("clustering")
PARTITIONS = {"purity": "purity", "nmi": "NMI", "ari": "ARI"}
RETRIEVAL = golden.cases("retrieval")
DIFFICULTIES = {"E": "easy", "M": "medium", "H": "hard"}
RELEVANCE = ("easy", "hard", "junk")

RNG = np.random.default_rng(0)
LABELS = np.arange(60) % 3
FEATURES = (np.eye(3)[LABELS] + 1.2 * RNG.standard_normal((60, 3))).astype(np.float32)
CLASSES = dict(zip(("train", "test"), np.split(FEATURES, [40]), strict=True))
CLASSES |= dict(zip(("train_labels", "test_labels"), np.split(LABELS, [40]), strict=True))
NUMBERS = FEATURES[:, :2] + RNG.normal(size=(60, 2))
FOLDS = np.arange(60) % 4


def test_neighbours_agree_with_the_reference(scores, archive):
    ks, count = KNN["params"]["k"], KNN["inputs"]["test"]["shape"][0]
    path = archive(**golden.build(KNN))
    found = scores("knn", "--features", path, "--config", f"k={','.join(map(str, ks))}")
    assert found["n"] == count
    for k in ks:
        pair = [found["scores"][f"top-{top}" if k == ks[0] else f"top-{top} k={k}"] for top in (1, 5)]
        own = KNN["expected"][str(k)]["own_float64"]
        right = (own["top1_correct"], own["top5_correct_without_zero_score_classes"])
        assert pair == pytest.approx([100 * each / count for each in right], abs=1e-6)


@pytest.mark.parametrize("renamed", [lambda y: 1000 - 7 * y, lambda y: (y + 3).astype(np.uint8)])
def test_labels_are_any_whole_numbers_and_strangers_are_never_right(scores, archive, renamed):
    data = golden.build(KNN)
    plain = scores("knn", "--features", archive(**data), "--config", "k=5")
    data |= {name: renamed(data[name]) for name in ("train_labels", "test_labels")}
    again = scores("knn", "--features", archive(**data), "--config", "k=5")
    assert again["scores"] == plain["scores"]
    assert again["details"]["classes"] == 6
    data["test_labels"] = np.concatenate([data["test_labels"][:-3], [99] * 3])
    strange = scores("knn", "--features", archive(**data), "--config", "k=5")
    assert strange["scores"]["top-1"] <= again["scores"]["top-1"]
    assert strange["notes"] == [f"3 of {again['n']} test items have a class that no train item has"]


def test_other_types_of_numbers_and_another_temperature(scores, archive):
    train = np.random.default_rng(0).integers(-9, 9, (30, 4))
    data = {"train": train, "train_labels": np.arange(30) % 3, "test": train[:4].astype(np.float16)}
    path = archive(**data, test_labels=[0, 1, 2, 9])
    found = scores("knn", "--features", path, "--config", "temperature=0.01")["scores"]
    # the neighbours are sure of the class that is right in three cases of four
    assert [found["top-1"], found["top-5"]] == [75, 75]
    assert found["ECE top-1"] == pytest.approx(25, abs=1e-3)


def test_defaults_are_those_of_the_benchmark(scores, archive):
    path, config = archive(**golden.build(KNN)), config_of(STANDARD, "knn")
    found = scores("knn", "--features", path)
    numbers = {"k": config.k, "others": list(config.others), "temperature": config.temperature}
    assert found["parameters"] == {"features": str(path), **numbers}
    assert {"top-1", *(f"top-1 k={k}" for k in config.others)} <= {*found["scores"]}


def test_the_table_has_margins_of_error(says, archive):
    lines = says("knn", "--features", archive(**golden.build(KNN)), "--config", "k=5").out.splitlines()
    assert lines[0].split() == ["metric", "score"]
    assert re.search(r"^top-1.*\d (± \d|\(\S+ to \S+\)$)", lines[2])
    assert any("of the 95 % interval." in line for line in lines)


def test_few_shots_agree_with_the_reference(scores, archive):
    path, expected = archive(**golden.build(POOL)), POOL["expected"]["own_top1_mean_of_draws"]
    found = scores("fewshot", "--features", path, "--config", "penalty=1024", "shots=1,5,10,25")
    for shots in (1, 5, 10, 25):
        accuracy = pytest.approx(100 * expected[f"{shots}_shot"], abs=1e-6)
        assert found["scores"][f"top1-{shots}shot"] == accuracy
    assert (found["parameters"]["penalties"], found["parameters"]["penalty"]) == ([], 1024)
    assert found["n"] == 200
    keys = ["command", "schema", "protocol", "parameters", "n", "unit", "scale", "scores", "details", "notes"]
    assert [*found] == keys
    assert {"penalties", "penalty", "shots", "seeds", "held_out", "features"} <= {*found["parameters"]}


def test_few_shots_by_default_and_by_the_paper(scores, archive):
    given = ("fewshot", "--features", archive(**golden.build(POOL)))
    found = scores(*given)
    metrics = [f"top1-{shots}shot" for shots in (10, 1, 5, 25)]
    assert list(found["scores"]) == [*metrics, "ECE top1-10shot"]
    assert found["parameters"]["penalties"]
    paper, fixed = scores(*given, "--protocol", "paper"), scores(*given, "--config", "penalty=1024")
    assert (paper["protocol"], paper["scores"]) == ("paper", fixed["scores"])


def test_shots_that_a_class_lacks_have_no_score_but_a_reason(scores, archive):
    data = golden.build(POOL)
    kept = np.concatenate([np.flatnonzero(data["train_labels"] == label)[:12] for label in range(6)])
    few = {name: data[name][kept] for name in ("train", "train_labels")}
    found = scores("fewshot", "--features", archive(**data | few))
    assert found["scores"]["top1-25shot"] is None
    assert found["scores"]["top1-10shot"] > 0
    assert found["reason"].startswith("top1-25shot: 25 shots need 25")


def test_a_linear_layer_is_trained_as_long_as_is_asked(scores, archive):
    labels = np.arange(80) % 4
    train = (3 * np.eye(4)[labels] + 0.1 * np.random.default_rng(0).standard_normal((80, 4))).astype(
        np.float32
    )
    data = {"train": train, "train_labels": labels, "test": train[:40], "test_labels": labels[:40]}
    found = scores("linear", "--features", archive(**data))
    assert [found["scores"][each] for each in ("top1", "top1-bn", "top1-ridge")] == [100, 100, 100]
    # few steps leave a probe far from sure of what it has right
    assert 0 < found["scores"]["ECE top1"] < found["scores"]["ECE top1-bn"] < 75
    short = scores("linear", "--features", archive(**data), "--config", "epochs=1")
    assert (found["parameters"]["epochs"], short["parameters"]["epochs"]) == (20, 1)


@pytest.mark.parametrize(
    ("task", "options"), [("knn", ()), ("fewshot", ("--config", "shots=5")), ("linear", ())]
)
def test_without_test_items_every_item_is_tested_outside_its_group(scores, archive, task, options):
    generator = np.random.default_rng(3)
    labels, groups = generator.permutation(np.arange(60) % 3), np.repeat(np.arange(15), 4)
    copies = np.repeat(generator.standard_normal((15, 5)), 4, axis=0)  # fifteen items of random classes
    copies = (copies + 1e-4 * generator.standard_normal((60, 5))).astype(np.float32)
    planted = (np.eye(3)[labels] + 0.01 * generator.standard_normal((60, 3))).astype(np.float32)
    path = archive(train=copies, train_labels=labels, groups=groups)
    assert next(iter(scores(task, "--features", path, *options)["scores"].values())) < 70
    found = scores(task, "--features", archive(train=planted, train_labels=labels), *options)
    assert next(iter(found["scores"].values())) == 100
    assert found["n"] == 60


@pytest.mark.usefixtures("my_tasks")
def test_a_task_of_ones_own_is_scored_with_intervals(scores, archive):
    found = scores("my_tasks:NEAREST_MEAN", "--features", archive(**CLASSES))
    means = np.stack([FEATURES[:40][LABELS[:40] == label].mean(axis=0) for label in range(3)])
    cosines = FEATURES[40:] @ (means / np.linalg.norm(means, axis=1, keepdims=True)).T
    assert found["scores"] == {"top-1": pytest.approx(100 * np.mean(cosines.argmax(axis=1) == LABELS[40:]))}
    low, high = found["details"]["intervals"]["top-1"]
    assert low < found["scores"]["top-1"] < high
    assert (found["n"], found["unit"], found["scale"]) == (20, "images", "own")


def test_targets_have_names_groups_and_five_folds_without_any(scores, archive):
    path = archive(features=FEATURES, targets=NUMBERS, names=["x", "y"], groups=np.arange(60) // 5)
    found = scores("regress", "--features", path)
    assert {"R2", "R2 x", "rho y"} <= {*found["scores"]}
    assert found["scores"]["MAE"] is None
    assert found["reason"] == "MAE: each number has an error in its own unit"
    assert found["details"]["folds"] == 5


def test_clusters_agree_with_the_reference(scores, archive):
    case = CLUSTERING["gaps_in_labels"]
    data, expected = golden.build(case), case["expected"]["official"]
    clusters, labels = data["clusters"], data["classes"]
    found = scores("clustering", "--predictions", archive(clusters=clusters, labels=labels))
    for key, metric in PARTITIONS.items():
        assert found["scores"][metric] == pytest.approx(100 * expected[key], abs=1e-6)
    assert (found["n"], found["details"]["classes"]) == (len(labels), len({*labels.tolist()}))
    named = archive(clusters=clusters.astype(str), labels=np.char.add("class ", labels.astype(str)))
    assert scores("clustering", "--predictions", named)["scores"] == pytest.approx(found["scores"], abs=1e-9)


def test_clusters_of_features_lie_in_the_range_over_seeds(scores, archive):
    case = CLUSTERING["kmeans_600x32"]
    data, spans = golden.build(case), case["expected"]["range_over_random_state_0_to_19_n_init_10"]
    given = (
        "clustering",
        "--features",
        archive(features=data["features"], labels=data["classes"]),
        "--config",
    )
    for seed in (0, 3, 2**32 - 1):
        found = scores(*given, f"k={case['params']['n_clusters']}", f"seed={seed}")
        for key, metric in PARTITIONS.items():
            low, high = spans[key]
            assert 99 * low <= found["scores"][metric] <= 101 * high
    single = scores(*given, "k=5", "n_init=1")
    assert (single["details"]["classes"], single["details"]["clusters"]) == (10, 5)
    for metric, (low, high) in single["details"]["intervals"].items():
        assert low < single["scores"][metric] < high


def write_truth(path, lists, images):
    """A ground truth of revisited Oxford or Paris, as its authors pickle it."""
    truths = [
        {
            "bbx": [0.0, 0.0, 9.0, 9.0],
            "easy": list(map(int, easy)),
            "hard": list(map(int, hard)),
            "junk": junk,
        }
        for easy, hard, junk in zip(*lists, strict=True)
    ]
    names = [f"database_{i}" for i in range(images)], [f"query_{i}" for i in range(len(truths))]
    content = {"gnd": truths, "imlist": names[0], "qimlist": names[1]}
    path.write_bytes(pickle.dumps(content, protocol=2))
    return path


@pytest.mark.parametrize("name", ["tiny_edge_cases", "features_200x32"])
def test_rankings_agree_with_revisitop(scores, archive, tmp_path, name):
    case = RETRIEVAL[name]
    data = golden.build(case)
    if "relevance" in data:
        lists = [[np.flatnonzero(column == kind) for column in data["relevance"].T] for kind in (1, 2, 3)]
    else:
        queries = case["recipe"]["queries"]
        lists = [[np.array(each[kind], np.int64) for each in queries] for kind in RELEVANCE]
    images = len(data["scores"] if "scores" in data else data["database"])
    if "scores" in data:
        np.save(tmp_path / "scores.npy", data["scores"])
        given = ("--predictions", tmp_path / "scores.npy")
    else:
        given = ("--features", archive(database=data["database"], queries=data["queries"]))
    found = scores("retrieval", *given, "--ground-truth", write_truth(tmp_path / "gnd.pkl", lists, images))
    for split, difficulty in DIFFICULTIES.items():
        expected = case["expected"][split]
        assert found["scores"][f"mAP {difficulty}"] == pytest.approx(100 * expected["mAP"], abs=1e-6)
        for k, value in expected["mP"].items():
            assert found["scores"][f"mP@{k} {difficulty}"] == pytest.approx(100 * value, abs=1e-6)
        for ap, value in zip(found["details"]["AP"][difficulty], expected["AP_per_query"], strict=True):
            assert ap == (None if value is None else pytest.approx(100 * value, abs=1e-6))


def small(tmp_path, **lists):
    """A ground truth of four images and two queries."""
    given = {"easy": [[0], [1]], "hard": [[1], [2]], "junk": [[2], [3]]} | lists
    arrays = [[np.array(one, np.int64) for one in given[kind]] for kind in RELEVANCE]
    return write_truth(tmp_path / "gnd.pkl", arrays, images=4)


def test_a_difficulty_without_positives_is_null_and_says_why(scores, archive, tmp_path):
    path = archive(database=np.eye(4), queries=np.eye(4)[:2])
    found = scores("retrieval", "--features", path, "--ground-truth", small(tmp_path, hard=[[], []]))
    assert (found["scores"]["mAP hard"], found["scores"]["mAP easy"]) == (None, 100)
    assert found["reason"].endswith("mP@5 hard: no query has a hard positive")


def spoilt(value, dtype=np.float32):
    """Features of train items, one of which has a number that is none."""
    copy = CLASSES["train"].astype(dtype)
    copy[2, 1] = value
    return copy


EYE = {"features": np.eye(4), "labels": list("aabb")}
ITEMS = {"features": FEATURES}
POSITIVE = ITEMS | {"targets": NUMBERS > 0}
VIEWS = {"database": np.eye(4), "queries": np.eye(2, 4)}

REFUSED = (
    # of classes: what is not there, shapes, types, numbers
    ("knn", CLASSES | {"test_labels": None}, (), "found no test_labels among"),
    ("knn", CLASSES | {"groups": np.arange(40)}, (), "expected no groups in {path}, since it has test items"),
    ("knn", CLASSES | {"train": np.ones((40, 3, 1))}, (), "to have the shape [n dim], found [40 3 1]"),
    ("knn", CLASSES | {"test": np.ones((20, 4), np.float32)}, (), "of one width in {path}, found 3 and 4"),
    ("knn", CLASSES | {"train": np.array([[object()]])}, (), "array train of {path}, found Python objects"),
    ("knn", CLASSES | {"train": spoilt(np.nan)}, (), "or larger values in 1 of 40 rows, first in row 2"),
    ("knn", CLASSES | {"train": spoilt(1e300, np.float64)}, (), "values in 1 of 40 rows"),
    ("knn", CLASSES | {"train": np.ones((40, 3))}, (), "features are the same for all items"),
    ("knn", CLASSES | {"test": np.zeros((20, 3))}, (), "as test of {path}, but the features are all zero"),
    ("knn", CLASSES | {"train": np.empty((0, 3))}, (), "in train of {path}, found the shape [0 3]"),
    ("knn", CLASSES | {"train": CLASSES["train"].astype("V4")}, (), "export float32"),
    (
        "knn",
        CLASSES | {"train_labels": LABELS[:7]},
        (),
        "each of 40 rows of features as train_labels of {path}",
    ),
    ("knn", CLASSES | {"test_labels": [0.5] * 20}, (), "whole numbers as test_labels of {path}, found 0.5"),
    ("knn", CLASSES | {"test_labels": ["a"] * 20}, (), "as test_labels of {path}, found the type <U1"),
    ("knn", CLASSES, ("k=41",), "k of 1 to 40, the number of train items, found 41"),
    ("knn", CLASSES, ("k=3,0",), "found 0"),
    ("knn", CLASSES, ("k=3,3",), "every k once"),
    ("fewshot", CLASSES, ("shots=0",), "1 to 13, the items of the smallest train class, found 0"),
    (
        "fewshot",
        CLASSES | {"train_labels": [0] * 40},
        (),
        "cannot be scored: a probe needs training images of",
    ),
    (
        "linear",
        CLASSES | {"train_labels": [0] * 40},
        (),
        "cannot be scored: a probe needs training images of",
    ),
    # of clusters
    ("clustering", {"features": np.eye(4)}, (), "found no labels among features"),
    ("clustering", EYE | {"labels": np.ones((4, 1), int)}, (), "found [4 1]"),
    ("clustering", EYE, ("k=5",), "k of 1 to 4, the number of items"),
    ("clustering", EYE, (f"seed={2**32}",), "expected seed of 0 to 4,294,967,295, found"),
    ("clustering --predictions", {"clusters": [0, 1]}, (), "found no labels among clusters"),
    ("clustering --predictions", {"clusters": [0, 1], "labels": [0, 1, 1]}, (), "each of 3 rows"),
    ("clustering --predictions", {"clusters": [0.0, 1.0], "labels": [0, 1]}, (), "clusters of"),
    ("clustering --predictions", {"clusters": np.zeros(0, int), "labels": []}, (), "at least one item"),
    ("clustering --predictions", {}, ("--features", "x"), "or --predictions, found both"),
    # of targets
    ("regress", CLASSES, (), "found no features and no targets among"),
    ("regress", ITEMS | {"targets": NUMBERS[:9]}, (), "a row of targets for each of 60 items"),
    ("regress", ITEMS | {"targets": np.ones(60)}, (), "target 1 is the same for all images"),
    ("regress", ITEMS | {"targets": ["a"] * 60}, (), "expected numbers as targets"),
    ("regress", ITEMS | {"targets": NUMBERS, "names": ["x"]}, (), "one label for each of 2 rows"),
    (
        "regress",
        ITEMS | {"targets": NUMBERS, "folds": FOLDS - 1, "groups": np.where(FOLDS < 2, 0, np.arange(60))},
        (),
        "items of every group of",
    ),
    (
        "multilabel",
        POSITIVE | {"folds": FOLDS, "groups": ["a", "b"] * 30},
        (),
        "folds, found a, b in several",
    ),
    ("multilabel", ITEMS | {"targets": NUMBERS}, (), "expected targets of 0 and 1"),
    ("multilabel", ITEMS, (), "found no targets"),
    # of landmarks
    (
        "retrieval",
        VIEWS | {"database": np.eye(3, 4)},
        (),
        "expected 4 database images and 2 queries in {path}",
    ),
    ("retrieval", VIEWS | {"database": np.ones((4, 4))}, (), "the same for all items"),
    # of tasks of one's own
    ("my_tasks:LOOKING_BACK", CLASSES, (), "expected a task that scores vectors"),
    (
        "my_tasks:NEAREST_MEAN",
        {"train": FEATURES, "train_labels": LABELS},
        (),
        "cannot be scored: attribute err",
    ),
)


@pytest.mark.usefixtures("my_tasks")
@pytest.mark.parametrize(("task", "arrays", "options", "words"), REFUSED)
def test_what_cannot_be_scored_is_one_sentence(says, archive, tmp_path, task, arrays, options, words):
    name, _, flag = task.partition(" ")
    path = archive(**{name: value for name, value in arrays.items() if value is not None})
    more = ("--config", *options) if options and "=" in options[0] else options
    truth = ("--ground-truth", small(tmp_path)) if name == "retrieval" else ()
    assert words.replace("{path}", str(path)) in says(name, flag or "--features", path, *more, *truth).error


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
    given = ("retrieval", "--features", archive(**VIEWS), "--ground-truth")
    for lists, words in [
        ({"junk": [[1], [3]]}, "in one of easy, hard, junk of query query_0, found several of 1"),
        ({"easy": [[4], [1]]}, "indices below 4 (the database)"),
    ]:
        assert words in says(*given, small(tmp_path, **lists)).error
    (tmp_path / "gnd.pkl").write_bytes(pickle.dumps(print))
    assert "which was not executed" in says(*given, tmp_path / "gnd.pkl").error
    assert "none.pkl, which cannot be read" in says(*given, tmp_path / "none.pkl").error
    assert "found neither" in says("retrieval", "--ground-truth", small(tmp_path)).error


OPTIONS = {option.name: option for option in declared(ScoreRequest)}


def test_no_option_has_a_number_of_its_own() -> None:
    assert {option.default for option in OPTIONS.values()} <= {..., None, (), False}


def test_every_option_is_taken_by_a_task() -> None:
    taken = {name for scorer in SCORERS.values() for name in (*scorer.needs.split(), *scorer.takes.split())}
    assert taken == {*OPTIONS} - {"task", "json", "config"}
