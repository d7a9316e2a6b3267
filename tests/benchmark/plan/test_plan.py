"""The plan shows each source once to each backbone; limits, folders and records are what they say."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

from layerboard.benchmark.plan.location import DataLocation, require_writable
from layerboard.benchmark.plan.plan import Plan, make_plan, view_for
from layerboard.benchmark.plan.suites import STANDARD_SUITE
from layerboard.benchmark.records.records import (
    ResultFiles,
    assess_items,
    is_current,
    measured_items,
    to_records,
)
from layerboard.leaderboards.records.files import safe_name
from layerboard.tasks.clustering.task import RegionClusterTask
from layerboard.tasks.framework.base import Items, LayerOutcome, Outcome, Score, Statistic
from layerboard.tasks.framework.protocols import PAPER, STANDARD, EvaluationProtocol, find_protocol
from layerboard.zoo.errors import InputError
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import Layer
from tests.benchmark.jobs.test_jobs import prepared


def plan(
    data: Path,
    *tasks: str,
    backbones: tuple[str, ...] = ("mini-fs",),
    limit: int | None = None,
    protocol: EvaluationProtocol = STANDARD,
    further: tuple[EvaluationProtocol, ...] = (),
) -> Plan:
    location = DataLocation(STANDARD_SUITE.datasets, data, (), limit, protocol, further=further)
    return make_plan(find(backbones), tasks, location)


@pytest.mark.parametrize(
    ("tasks", "passes", "images"),
    [
        (("knn",), 2, 18),
        (("cluster-image",), 1, 12),
        (("knn", "cluster-image", "cka"), 2, 18),
        (("retrieval",), 4, 20),
        (("davis", "spair"), 2, 14),
        ((), 10, 67),
    ],
)
def test_tasks_share_the_passes_of_their_sources(
    data: Path, tasks: tuple[str, ...], passes: int, images: int
) -> None:
    found = plan(data, *tasks, backbones=("mini-fs", "mini-dino"))
    assert [(len(found.passes), found.images) for _ in found.backbones] == [(passes, images)] * 2


def test_a_pass_knows_what_it_serves_and_scales_its_view(data: Path) -> None:
    found = plan(data, "knn", "cka", "davis", backbones=("mini-fs", "dino-b16"))
    probe = {one.source.name: one for one in found.passes}["imagenet/train-probe"]
    small, large = (view_for(spec, probe.source.view) for spec in found.backbones)
    assert [task.entry.name for task in probe.measured] == ["cka"]
    assert small != large
    assert [task.entry.name for task in found.tasks.needing("pairs")] == ["cka"]
    assert [task.entry.name for task in found.tasks.needing("passes")] == ["knn", "davis"]


def test_limits_make_everything_smaller_and_partial(data: Path) -> None:
    whole, beyond, limited = plan(data), plan(data, limit=10_000), plan(data, limit=1)
    said, digests = (
        [{task.key: fact(task) for task in found.tasks.every} for found in (whole, beyond, limited)]
        for fact in (lambda task: str(task.coverage), lambda task: task.data_digest)
    )
    assert (said[0], digests[0]) == (said[1], digests[1])  # where nothing is left out, nothing is said
    assert {*digests[0].values()}.isdisjoint(digests[2].values())
    assert limited.images < whole.images
    for task in limited.tasks.every:
        assert task.coverage.partial
        assert "limited to 1" in str(task.coverage)
    counts = {one.source.name: len(one.source.samples) for one in limited.passes}
    landmarks = {f"{name}/{part}" for name in ("roxford5k", "rparis6k") for part in ("database", "queries")}
    assert {counts.pop(name) for name in landmarks if name.endswith("database")} == {8}
    assert {counts.pop(name) for name in landmarks if name.endswith("queries")} == {1}
    assert counts.pop("spair-71k-test") > 0
    expected = {"imagenet/train-probe": 3, "imagenet/val": 3, "davis-2017-val": 4}
    assert counts == expected | {"coco-val2017": 1, "partimagenet": 1}


@pytest.mark.parametrize(("protocol", "parts"), [(STANDARD, 40), (PAPER, 80)])
@pytest.mark.parametrize("limit", [None, 1])
def test_partial_data_fall_into_as_many_clusters_as_the_complete_ones(
    data: Path, protocol: EvaluationProtocol, parts: int, limit: int | None
) -> None:
    found = plan(data, "cluster-object", "cluster-part", limit=limit, protocol=protocol)
    assert all(task.coverage.partial for task in found.tasks.needing("passes"))
    tasks = [task for task in found.tasks.needing("passes") if isinstance(task, RegionClusterTask)]
    assert [task.data.clusters for task in tasks] == [80, parts]


def test_a_layer_without_a_score_has_an_empty_record_with_its_reason(data: Path, tmp_path: Path) -> None:
    found = plan(data, "knn")
    job = prepared(found, tmp_path).backbones[0].scores[0]
    values, statistics = {"top-1": np.array([100.0, 0.0])}, {"top-1": Statistic("top-1")}
    items = Items("images", ("a", "b"), ("a", "b"), ("", ""), values, statistics)
    outcomes = [
        LayerOutcome(Layer(1), "cls", Outcome((Score("top-1", 50.0, 2, "images"),), items)),
        LayerOutcome(Layer(1), "mean", Outcome((), empty="features are not finite")),
    ]
    fields, assessed = job.fields(job.files, 2, 0.0), assess_items(measured_items(outcomes), "top-1")
    first, second = to_records(fields, job.setup.spec, job.task.entry, outcomes, assessed)
    assert (first.value, first.primary, first.reason, first.n) == (50.0, True, "", 2)
    assert np.isnan(second.value)
    assert (second.primary, second.reason) == (False, "features are not finite")
    assert first.partial
    assert first.coverage.endswith("2 unreadable images left out")
    assert first.ci_low < 50 < first.ci_high
    assert first.chosen == 1
    assert first.maybe_best
    assert np.isnan([second.ci_low, second.chosen, second.held_out]).all()
    assert measured_items(outcomes) == {(1, "block", "cls"): items}


def test_names_of_files_and_damaged_ones(tmp_path: Path) -> None:
    assert safe_name("facebook/dinov2-base@main") == "facebook__dinov2-base@main"
    assert safe_name("/abs/path/") == "abs__path"
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1")
    assert not is_current(ResultFiles(tmp_path / "damaged.parquet", "print"))
    assert not is_current(ResultFiles(tmp_path / "absent.parquet", "print"))


def test_several_protocols_in_one_plan(data: Path) -> None:
    """What their tasks look at differs by view, or by which images of a dataset there are."""
    both = plan(data, further=(PAPER,))
    apart = [plan(data), plan(data, protocol=PAPER)]
    keys = {task.key for task in both.tasks.every}
    by_protocol = [{task.key for task in one.tasks.every} for one in apart]
    alone = {task.key for task in apart[1].tasks.every if not task.sources}
    assert keys == by_protocol[0] | by_protocol[1] - alone
    assert len(both.passes) == sum(len(one.passes) for one in apart)
    names = [one.source.name for one in both.passes if one.source.name.startswith(("coco", "partimagenet"))]
    assert len(set(names)) == len(names) == 4


def test_a_protocol_of_one_task_adds_that_task_alone(data: Path) -> None:
    insid3, geoaware, sd_dino = (find_protocol(name) for name in ("insid3", "geoaware", "sd-dino"))
    found = plan(data, "knn", "spair", further=(insid3, geoaware, sd_dino))
    protocols = [task.protocol for task in found.tasks.every if task.entry.name == "spair"]
    assert protocols == ["standard", "insid3", "geoaware", "sd-dino"]
    assert [task.protocol for task in found.tasks.every if task.entry.name == "knn"] == ["standard"]
    assert sum(len(one.measured) for one in found.passes) == 4
    assert len([one for one in found.passes if one.measured]) == 3  # two of them show images alike


@pytest.mark.parametrize("tasks", [("knn",), ("spair", "davis")])
def test_a_task_that_no_protocol_speaks_of(data: Path, tasks: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=f"the protocol insid3 is for spair; --tasks names {tasks[-1]}, too"):
        plan(data, *tasks, protocol=find_protocol("insid3"))


def test_without_named_tasks_a_protocol_brings_its_own(data: Path) -> None:
    found = plan(data, protocol=find_protocol("insid3"))
    assert [task.key for task in found.tasks.every] == ["spair.spair-71k-test.insid3"]
    assert found.tasks.needing("passes")[0].entry.metric == "PCK@0.1 per image"


def test_what_killed_runs_left_is_removed(tmp_path: Path) -> None:
    old = time.time() - 2 * 24 * 3600
    left = tmp_path / "features" / "mini-fs" / ".partial-abc"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    os.utime(left, (old, old))
    require_writable(tmp_path / "out", tmp_path)
    assert not left.exists()
