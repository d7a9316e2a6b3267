"""Retrieval of images of the same thing, on vectors that are planted."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from layerboard.benchmark.exported.vectors import score_task
from layerboard.tasks.datasets.base import Coverage, FileSample
from layerboard.tasks.datasets.copies import COPIES
from layerboard.tasks.datasets.instances import Instance, Instances, Part, instances
from layerboard.tasks.framework.assess import score_of
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.retrieval.instances import InstancesTask
from layerboard.zoo.errors import InputError
from tests.tasks.passes import by_metric

Vectors = dict[str, NDArray[np.float32]]


def planted(things: int, each: int, parts: tuple[Part, ...] = (), distractors: int = 0) -> Instances:
    """So many images of each thing, in the parts in turn, and images of none."""
    parts = parts or ("",) * each
    images = [
        Instance(FileSample(f"{thing:02d}/{number}", ""), f"{thing:02d}", parts[number])
        for thing in range(things)
        for number in range(each)
    ]
    images += [Instance(FileSample(f"none/{number}", ""), "", "database") for number in range(distractors)]
    return instances("planted", images, "here", Coverage(()))


def task_of(data: Instances) -> InstancesTask:
    return InstancesTask(data, config_of(STANDARD, "instances"))


def drawn(task: InstancesTask, noise: float, seed: int = 0) -> Vectors:
    """Vectors of all images: those of a thing are alike but for noise."""
    rng = np.random.default_rng(seed)
    names = sorted({image.thing for image in task.data.images})
    means = dict(zip(names, rng.standard_normal((len(names), 16)), strict=True))
    vectors = {}
    for source in task.vector_sources:
        rows = [means[sample.key.rpartition("/")[0].replace("none", "")] for sample in source.samples]
        vectors[source.name] = (rows + noise * rng.standard_normal((len(rows), 16))).astype(np.float32)
    return vectors


def test_pairs_are_counted_and_a_rate_of_too_few_has_a_reason() -> None:
    task = task_of(planted(15, 4))
    result = task.score(drawn(task, 0.0))
    pairs = 60 * 59 // 2
    assert {score.n for score in result.scores if score.unit == "pairs"} == {pairs}
    reason = f"TAR at FAR 0.001 needs 10,000 pairs of different things, of which there are {pairs - 15 * 6:,}"
    assert result.missing == {"TAR at FAR 0.001": reason}


def test_queries_look_in_the_database_alone() -> None:
    task = task_of(planted(12, 3, ("query", "database", "database"), distractors=5))
    assert [len(source.samples) for source in task.vector_sources] == [29, 12]
    assert [source.name for source in task.fitted_on] == ["planted/database"]
    vectors = drawn(task, 0.3)
    result = task.score(vectors)
    assert {score.n for score in result.scores if score.unit == "queries"} == {12}
    assert {score.n for score in result.scores if score.unit == "pairs"} == {12 * 29}
    vectors["planted/queries"][3] = np.nan
    vectors["planted/database"][:2] = np.nan  # both images that the first query looks for
    assert {score.n for score in task.score(vectors).scores if score.unit == "queries"} == {10}


def test_images_of_a_group_do_not_look_for_each_other() -> None:
    images = [
        Instance(FileSample(f"{thing:02d}/{number}", ""), f"{thing:02d}", group=f"{thing}-{number // 2}")
        for thing in range(6)
        for number in range(4 if thing else 2)  # the first thing has one group
    ]
    task = task_of(instances("series", images, "here", Coverage(())))
    assert task.data.coverage.remarks == ("2 images alone of its thing, not asked for (00/0, 00/1)",)
    vectors = drawn(task, 0.0)["series/database"]
    series = np.array([image.group for image in task.data.images])
    vectors += np.random.default_rng(0).standard_normal((11, 16))[np.unique(series, return_inverse=True)[1]]
    result = task.score({"series/database": vectors})
    assert by_metric(result)["recall@1"] < 100  # the other image of the series, of the same vector, is no hit
    assert {score.n for score in result.scores if score.unit == "queries"} == {20}
    assert {score.n for score in result.scores if score.unit == "pairs"} == {
        22 * 21 // 2 - 11
    }  # without the pairs of a series
    exported = task.exported({"series/database": vectors})
    assert exported["series"].tolist() == series.tolist()
    assert "series" not in task_of(planted(3, 2)).exported(drawn(task_of(planted(3, 2)), 0.1))


def test_each_kind_of_copy_has_metrics() -> None:
    images = [
        Instance(FileSample(f"{thing:02d}/{kind}", ""), f"{thing:02d}", "", kind)
        for thing in range(8)
        for kind in ("", *COPIES)
    ]
    task = task_of(instances("planted", images, "here", Coverage(())))
    vectors = drawn(task, 0.0)
    mirrored = [image.kind == "mirrored" for image in task.data.images]
    vectors["planted/database"][mirrored] = np.random.default_rng(1).standard_normal((8, 16))
    result = task.score(vectors)
    values = by_metric(result)
    assert {f"{name} {kind}" for name in ("recall@1", "mAP") for kind in COPIES} <= {*values}
    assert values["recall@1 mirrored"] < 50
    assert {values[f"recall@1 {kind}"] for kind in COPIES if kind != "mirrored"} == {100}
    assert {score.n for score in result.scores if score.metric == "mAP caption"} == {8}
    assert result.items is not None
    assert score_of(result.items, "mAP mirrored") == pytest.approx(values["mAP mirrored"])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"roles": np.array(["qury"] * 6)}, "expected query, database, distractor or nothing as roles"),
        ({"groups": np.arange(6)}, "no query has another image of its thing"),
        ({"groups": np.arange(5)}, "one label for each of 6 rows"),
    ],
)
def test_wrong_archives_are_refused(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    arrays = {"features": np.random.default_rng(0).standard_normal((6, 3)), "groups": np.arange(6) // 2}
    np.savez(tmp_path / "F.npz", **{**arrays, **changed})
    with pytest.raises(InputError, match=message):
        score_task("instances", tmp_path / "F.npz", "standard")
