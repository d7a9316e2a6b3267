import numpy as np
import pytest

from tests.tasks.agreement import golden

CASES = golden.cases("fewshot")
FIVE = ("--config", "shots=5")


def pool(**changes):
    return golden.build(CASES["draws_from_a_pool"]) | changes


def test_few_shots_agree_with_the_reference(scores, archive):
    found = scores("fewshot", "--features", archive(**pool()), "--config", "penalty=1024", "shots=1,5,10,25")
    expected = CASES["draws_from_a_pool"]["expected"]["own_top1_mean_of_draws"]
    for shots in (1, 5, 10, 25):
        assert found["scores"][f"top1-{shots}shot"] == pytest.approx(
            100 * expected[f"{shots}_shot"], abs=1e-6
        )
    assert (found["parameters"]["penalties"], found["parameters"]["penalty"]) == ([], 1024)
    assert found["n"] == 200
    keys = ["command", "schema", "protocol", "parameters", "n", "unit", "scale", "scores", "details", "notes"]
    assert [*found] == keys
    assert {"penalties", "penalty", "shots", "seeds", "held_out", "features"} <= {*found["parameters"]}


def test_few_shots_by_default(scores, archive):
    found = scores("fewshot", "--features", archive(**pool()))
    metrics = [f"top1-{shots}shot" for shots in (10, 1, 5, 25)]
    assert list(found["scores"]) == [*metrics, "ECE top1-10shot"]
    assert found["parameters"]["penalties"]
    assert found["details"]["classes"] == 6
    given = ("fewshot", "--features", archive(**pool()), "--protocol", "paper")
    paper, fixed = scores(*given), scores(*given[:3], "--config", "penalty=1024")
    assert (paper["protocol"], paper["scores"]) == ("paper", fixed["scores"])


def test_labels_may_have_gaps_and_strangers_are_never_right(scores, archive):
    data = pool()
    plain = scores("fewshot", "--features", archive(**data), "--config", "shots=5")
    renamed = {name: 3 * data[name] - 7 for name in ("train_labels", "test_labels")}
    again = scores("fewshot", "--features", archive(**data | renamed), "--config", "shots=5")
    assert again["scores"] == plain["scores"]
    renamed["test_labels"] = np.where(np.arange(200) < 100, -100, renamed["test_labels"])
    strange = scores("fewshot", "--features", archive(**data | renamed), "--config", "shots=5")
    assert strange["scores"]["top1-5shot"] < plain["scores"]["top1-5shot"]
    assert strange["notes"] == ["100 of 200 test items have a class that no train item has"]


def test_shots_that_a_class_lacks_have_no_score_but_a_reason(scores, archive):
    kept = np.concatenate([np.flatnonzero(pool()["train_labels"] == label)[:12] for label in range(6)])
    data = pool(train=pool()["train"][kept], train_labels=pool()["train_labels"][kept])
    found = scores("fewshot", "--features", archive(**data))
    assert found["scores"]["top1-25shot"] is None
    assert found["scores"]["top1-10shot"] > 0
    assert found["reason"].startswith("top1-25shot: 25 shots need 25")


def test_a_linear_layer_is_trained(scores, archive):
    generator = np.random.default_rng(0)
    labels = np.arange(80) % 4
    train = (3 * np.eye(4)[labels] + 0.1 * generator.standard_normal((80, 4))).astype(np.float32)
    data = {"train": train, "train_labels": labels, "test": train[:40], "test_labels": labels[:40]}
    found = scores("linear", "--features", archive(**data))
    assert found["scores"]["top1"] == found["scores"]["top1-bn"] == 100
    # few steps leave a probe far from sure of what it has right
    assert 0 < found["scores"]["ECE top1"] < found["scores"]["ECE top1-bn"] < 75
    assert found["parameters"]["epochs"] == 20
    assert (
        scores("linear", "--features", archive(**data), "--config", "epochs=1")["parameters"]["epochs"] == 1
    )


@pytest.mark.parametrize(
    ("command", "options", "words"),
    [
        ("fewshot", ["--config", "shots=0"], "1 to 32, the items of the smallest train class, found 0"),
        ("fewshot", ["--config", "shots=33"], "shots of 1 to 32"),
        ("fewshot", ["--config", "shots=2,2"], "every shots once"),
    ],
)
def test_wrong_options(says, archive, command, options, words):
    assert words in says(command, "--features", archive(**pool()), *options).error


@pytest.mark.parametrize("command", ["fewshot", "linear"])
def test_wrong_arrays(says, archive, command):
    one = archive(**pool(train_labels=np.zeros(260, np.int64)))
    assert (
        "cannot be scored: a probe needs training images of two classes"
        in says(command, "--features", one).error
    )


@pytest.mark.parametrize(("command", "options"), [("knn", ()), ("fewshot", FIVE), ("linear", ())])
def test_without_test_items_every_item_is_tested_outside_its_group(scores, archive, command, options):
    generator = np.random.default_rng(3)
    labels, groups = generator.permutation(np.arange(60) % 3), np.repeat(np.arange(15), 4)
    copies = np.repeat(generator.standard_normal((15, 5)), 4, axis=0)  # fifteen items of random classes
    copies = (copies + 1e-4 * generator.standard_normal((60, 5))).astype(np.float32)
    planted = (np.eye(3)[labels] + 0.01 * generator.standard_normal((60, 3))).astype(np.float32)
    path = archive(train=copies, train_labels=labels, groups=groups)
    assert next(iter(scores(command, "--features", path, *options)["scores"].values())) < 70
    found = scores(command, "--features", archive(train=planted, train_labels=labels), *options)
    assert next(iter(found["scores"].values())) == 100
    assert found["n"] == 60
