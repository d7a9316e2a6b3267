"""Tasks of a run on archives: own ones by their Python name, and what `features` writes of a backbone."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.benchmark.exported.conftest import Says, Scores
from tests.benchmark.runs import Said, command, run

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "own_tasks.md"
LABELS = np.arange(60) % 3
FEATURES = (np.eye(3)[LABELS] + 1.2 * np.random.default_rng(0).standard_normal((60, 3))).astype(np.float32)
CLASSES = dict(zip(("train", "test"), np.split(FEATURES, [40]), strict=True))
CLASSES |= dict(zip(("train_labels", "test_labels"), np.split(LABELS, [40]), strict=True))

Archive = Callable[..., Path]


@pytest.fixture
def my_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example of the page on own tasks as a module of the current directory."""
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    (tmp_path / "my_tasks.py").write_text(example, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("my_tasks", None)


@pytest.mark.usefixtures("my_tasks")
def test_a_task_of_ones_own_is_scored_with_intervals(scores: Scores, says: Says, archive: Archive) -> None:
    found = scores("my_tasks:NEAREST_MEAN", "--features", archive(**CLASSES))
    means = np.stack([FEATURES[:40][LABELS[:40] == label].mean(axis=0) for label in range(3)])
    cosines = FEATURES[40:] @ (means / np.linalg.norm(means, axis=1, keepdims=True)).T
    assert found["scores"] == {"top-1": pytest.approx(100 * np.mean(cosines.argmax(axis=1) == LABELS[40:]))}
    low, high = found["details"]["intervals"]["top-1"]
    assert low < found["scores"]["top-1"] < high
    assert (found["n"], found["unit"], found["scale"]) == (20, "images", "own")
    refused = says("my_tasks:LOOKING_BACK", "--features", archive(**CLASSES))
    assert "expected a task that scores vectors" in refused.error
    alone = archive(train=FEATURES, train_labels=LABELS)
    assert "cannot be scored: attribute error: " in says("my_tasks:NEAREST_MEAN", "--features", alone).error


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (["cluster-object"], "expected a task that scores vectors of classification"),
        (["knnn"], "knnn"),
        (["nowhere:TASK"], "there is no module nowhere"),
        (["retrieval"], "retrieval needs --ground-truth"),
        (["regress"], "found no features and no targets among"),
        (["knn", "--protocol", "paperr"], "paperr"),
    ],
)
def test_what_is_no_task_on_vectors(says: Says, archive: Archive, call: list[str], words: str) -> None:
    said: Said = says(*call, "--features", archive(**CLASSES))
    assert said.code == 2
    assert words in said.err
    assert "Traceback" not in said.err


def test_vectors_of_a_backbone_score_as_in_its_run(
    data: Path, tmp_path: Path, scores: Scores, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = {"knn": "knn", "cluster-image": "clustering"}
    records = run(tmp_path, ["mini-fs"], *tasks, data=data, layers="final")
    places = ("--cache", tmp_path / "cache", "--output", tmp_path / "vectors", "--layers", "final")
    done = command(capsys, "features", "--backbones", "mini-fs", "--tasks", *tasks, "--data", data, *places)
    assert done.code == 0, done.err
    for task, scorer in tasks.items():
        (path,) = (tmp_path / "vectors").rglob(f"{task}.*/*.cls.npz")
        found = scores(scorer, "--features", path)
        rows = records[(records["task"] == task) & (records["pooling"] == "cls")].set_index("metric")
        assert found["scores"] == pytest.approx(rows["value"].to_dict(), abs=1e-4)
        for metric, ends in found["details"]["intervals"].items():
            assert ends == pytest.approx(rows.loc[metric, ["ci_low", "ci_high"]].tolist(), abs=1e-4)
    assert json.dumps(found)
