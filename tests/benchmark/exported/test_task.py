"""Tasks of a run on archives: own ones by their Python name."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.benchmark.exported.conftest import Says, Scores

LABELS = np.arange(60) % 3
FEATURES = (np.eye(3)[LABELS] + 1.2 * np.random.default_rng(0).standard_normal((60, 3))).astype(np.float32)
CLASSES = dict(zip(("train", "test"), np.split(FEATURES, [40]), strict=True))
CLASSES |= dict(zip(("train_labels", "test_labels"), np.split(LABELS, [40]), strict=True))

Archive = Callable[..., Path]


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
    assert "found no features and no targets among" in says("regress", "--features", archive(**CLASSES)).error
    alone = archive(train=FEATURES, train_labels=LABELS)
    assert "cannot be scored: attribute error: " in says("my_tasks:NEAREST_MEAN", "--features", alone).error
