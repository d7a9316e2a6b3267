"""Jobs are small whatever the data; plans find their data again; failures say whose they are."""

import errno
import pickle
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest
import torch

from layerboard.benchmark.api import execute
from layerboard.benchmark.engines.progress import Message, Reporter
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.jobs import passes
from layerboard.benchmark.jobs.estimate import OVERHEAD, SPEED, image_seconds, multiply_adds
from layerboard.benchmark.jobs.job import Setup
from layerboard.benchmark.jobs.pieces import PassesAndScores
from layerboard.benchmark.jobs.prepare import PlannedRun, Prepared, prepare
from layerboard.benchmark.passes.failures import NO_MEMORY, DiskFullError, Failure, failure
from layerboard.benchmark.plan.location import DataLocation
from layerboard.benchmark.plan.plan import Plan, fewest_passes, make_plan
from layerboard.benchmark.plan.suites import STANDARD_SUITE
from layerboard.tasks.framework.protocols import PAPER
from layerboard.zoo.errors import InputError
from layerboard.zoo.registry.find import find
from layerboard.zoo.view.views import ResizeCrop
from tests.benchmark.conftest import BACKBONES
from tests.benchmark.doubles import SPEC, CountingBackbone
from tests.benchmark.runs import TASKS, Tally, assert_same_records, run


def planned(data: Path, *tasks: str, location: DataLocation | None = None) -> Plan:
    location = location or DataLocation(STANDARD_SUITE.datasets, data)
    return make_plan(find(BACKBONES), tasks, location)


def prepared(plan: Plan, place: Path, **options: object) -> Prepared:
    request = Request(output=place / "out", cache=place / "cache", workers=1, floor=False, **options)  # type: ignore[arg-type]
    return prepare(PlannedRun(request, plan, "standard", (torch.device("cpu"),)))


def test_a_plan_is_sent_as_its_recipe_and_made_again_there(data: Path) -> None:
    plan = planned(data)
    sent = pickle.dumps(plan)
    assert len(sent) < 10_000
    found = pickle.loads(sent)
    assert [one.source.key for one in found.passes] == [one.source.key for one in plan.passes]
    assert [one.source for one in found.passes] == [one.source for one in plan.passes]
    assert [task.key for task in found.tasks.every] == [task.key for task in plan.tasks.every]
    assert pickle.loads(sent) is found  # a process reads the datasets once, however many jobs it is given


def test_jobs_are_small_and_frozen(data: Path, tmp_path: Path) -> None:
    found = prepared(planned(data), tmp_path)
    assert [jobs.setup.spec.name for jobs in found.backbones] == list(BACKBONES)
    assert len(pickle.dumps(PassesAndScores())) < 10_000  # what does them, which is sent, too
    for jobs in found.backbones:
        assert len(pickle.dumps(jobs)) < 20_000
        assert {job.task.entry.name for job in jobs.scores} == set(TASKS) - {"cka"}
        for job in jobs.passes:
            assert job.shards == range(len(job.shards))
            again = pickle.loads(pickle.dumps(job))
            assert (again.setup, again.shards, again.folders) == (job.setup, job.shards, job.folders)
            assert again.pass_.source == job.pass_.source
            assert [task.key for task in again.pass_.tasks] == [task.key for task in job.pass_.tasks]
    ((_, members),) = found.comparisons
    assert [member.setup.spec.name for member in members] == sorted(BACKBONES)


def test_fingerprints_follow_from_what_they_are_made_of(data: Path, tmp_path: Path) -> None:
    plan = planned(data, "knn", "davis")
    setup = prepared(plan, tmp_path).backbones[0].setup
    knn, davis = plan.tasks.every

    def prints(**changes: object) -> list[str]:
        changed = replace(setup, request=replace(setup.request, **changes))  # type: ignore[arg-type]
        return [changed.records_print(task) for task in (knn, davis)]

    usual = prints()
    assert prints() == usual
    assert prints(batch_size=3, workers=2, device="cpu") == prints(batch_size="auto") == usual
    assert prints(poolings="cls")[0] != usual[0]
    assert prints(poolings="cls")[1] == usual[1]  # grids are not pooled
    assert all(a != b for a, b in zip(prints(layers="1"), usual, strict=True))


def test_a_card_is_asked_for_its_batch_once_a_backbone(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def best_batch(backbone: object, _: object) -> int:
        asked.append(backbone)
        return 256

    card, cpu = (CountingBackbone(device=torch.device(name)) for name in ("cuda", "cpu"))
    monkeypatch.setattr(passes, "best_batch", best_batch)
    plan = planned(data, "knn")
    for backbone, given, size in (
        (card, "auto", 256),
        (cpu, "auto", 32),
        (card, None, 64),
        (cpu, None, 32),
        (cpu, 7, 7),
    ):
        setup = prepared(plan, tmp_path, batch_size=given).backbones[0].setup
        monkeypatch.setattr(passes, "load_backbone", lambda *_, backbone=backbone, **__: backbone)
        cache = passes.BackboneCache(setup)
        assert [cache.batch_size, cache.batch_size] == [size, size]
    assert asked == [card]


def test_a_worker_keeps_views_that_another_backbone_is_shown(data: Path, tmp_path: Path) -> None:
    found = prepared(planned(data, "knn", "davis"), tmp_path)
    assert {job.pass_.source.name: job.shared for jobs in found.backbones for job in jobs.passes} == {
        "imagenet/train-probe": True,
        "imagenet/val": True,
        "davis-2017-val": False,  # sides are multiples of 8 for one backbone, of 32 for the other
    }
    first, second = (jobs.setup for jobs in found.backbones)
    cache = passes.BackboneCache(first)
    assert passes.BackboneCache(second, cache.views).views is cache.views
    assert passes.BackboneCache(second).views is not cache.views


def test_one_name_in_two_views_is_two_passes(data: Path) -> None:
    clean = planned(data, "knn", "cluster-image")
    quirky = planned(data, "knn", location=DataLocation(STANDARD_SUITE.datasets, data, protocol=PAPER))
    assert len(clean.passes) == 2
    both = fewest_passes([*clean.tasks.every, *quirky.tasks.every])
    names = [one.source.name for one in both]
    assert sorted(names) == sorted(["imagenet/train-probe", "imagenet/val"] * 2)
    assert len({one.source.key for one in both}) == 4


def test_other_images_under_one_name_and_view_are_refused(data: Path) -> None:
    knn = planned(data, "knn").tasks.every
    limited = planned(data, "knn", location=DataLocation(STANDARD_SUITE.datasets, data, limit=1)).tasks.every
    with pytest.raises(ValueError, match="different images by the source 'imagenet"):
        fewest_passes([*knn, *limited])


def test_failures_are_values_that_say_whose_they_are(data: Path) -> None:
    knn, cka = planned(data, "knn", "cka").tasks.every
    assert str(failure(InputError("no such file"), "mini-fs", knn)) == "mini-fs, knn: no such file"
    assert str(failure(InputError("no weights"), "mini-fs")) == "mini-fs: no weights"
    bug = failure(ZeroDivisionError("division by zero"), "", cka)
    assert bug == Failure("", "cka", "zero division error: division by zero", False, "cka.imagenet.standard")
    assert str(bug) == "cka: zero division error: division by zero"
    with pytest.raises(DiskFullError, match="no space is left"):
        failure(OSError(errno.ENOSPC, "No space left on device"), "mini-fs")


@pytest.mark.parametrize(
    "error",
    [MemoryError(), MemoryError("Unable to allocate 74.5 GiB"), torch.OutOfMemoryError("CUDA out of memory")],
)
def test_running_out_of_memory_is_one_sentence_with_advice(error: Exception) -> None:
    found = failure(error, "mini-fs")
    assert (found.message, found.bad_input) == (NO_MEMORY, True)
    assert "\n" not in NO_MEMORY


def test_attention_maps_that_do_not_fit_beside_whole_groups_have_a_forward_of_their_own(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(name: str, *tasks: str) -> tuple[Tally, pd.DataFrame]:
        with Tally().watching() as tally:
            found = run(tmp_path / name, BACKBONES, *tasks, data=data, layers="1")
        return tally, found

    tasks = "cka", "attention-distance", "locality"
    together, records = shown("together", *tasks)
    monkeypatch.setattr(passes, "ATTENTION_BYTES", 5 * 4 * 3 * 65**2)  # five images of three heads
    apart, same = shown("apart", *tasks)
    assert set(together.images.values()) == {1}
    for backbone, times in (("mini-fs", 2), ("mini-resnet", 1)):
        assert {count for (name, *_), count in apart.images.items() if name == backbone} == {times}
    assert "locality" in set(records["task"])
    assert_same_records(same, records)


@pytest.mark.usefixtures("no_pages")
def test_progress_over_all_counts_each_image_once(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images that have two forwards, and images of which a backbone has nothing to show, too."""
    monkeypatch.setattr(passes, "ATTENTION_BYTES", 5 * 4 * 3 * 65**2)
    stages: dict[tuple[int, int], list[Any]] = {}

    def take(message: Message) -> None:
        kind, stage, content = message
        if kind == "start":
            stages[stage] = [*content, 0]
        elif kind == "advance":
            stages[stage][-1] += content

    folders = {"output": tmp_path / "out", "cache": tmp_path / "cache"}
    tasks = "cka", "attention-distance", "saliency"
    execute(
        Request(BACKBONES, tasks, data=data, layers="1", floor=False, workers=1, **folders), Reporter(take)
    )
    done = {title: (total, amount) for title, total, _, amount in stages.values()}
    total, amount = done["all backbones"]
    assert amount == total > 0
    assert "images once more" in {unit for _, _, unit, _ in stages.values()}


VIEW = ResizeCrop(256, 224)


PUBLISHED = (("dino-b16", 17.5e9), ("dino-s16", 4.6e9), ("dino-resnet50", 3.8e9))
"""Of 224 px: Liu et al., ICCV 2021, table 1 (DeiT-B, DeiT-S); He et al., CVPR 2016, table 1 (ResNet-50)."""


@pytest.mark.parametrize(("name", "published"), PUBLISHED)
def test_multiply_adds_are_near_those_that_are_published(name: str, published: float) -> None:
    (spec,) = find([name])
    assert multiply_adds(spec, 224 * 224) == pytest.approx(published, rel=0.25)


def test_a_convnet_is_expected_to_take_longer_than_baselines_without_a_network() -> None:
    resnet, pixels, random = find(["mini-resnet", "mini-pixels", "mini-random"])
    assert (
        multiply_adds(resnet, 64 * 64) > 0 == multiply_adds(pixels, 64 * 64) == multiply_adds(random, 64 * 64)
    )


def test_seconds_of_an_image_are_those_of_its_pixels_and_of_what_is_not_the_forward_pass() -> None:
    here = cast("Setup", SimpleNamespace(spec=SPEC, device=torch.device("cpu")))
    adds = multiply_adds(SPEC, 32 * 32)
    assert image_seconds(here, VIEW) == pytest.approx(adds / SPEED["cpu"] + OVERHEAD["cpu"])
