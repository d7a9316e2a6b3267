"""A task that remembers one source and is scored on another, in whole runs."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import layerboard
from layerboard.benchmark.engines.base import WorkerSlot
from layerboard.benchmark.jobs import pieces
from layerboard.benchmark.jobs.pieces import Pieces
from layerboard.benchmark.passes.one_pass import PassResult
from layerboard.benchmark.plan.location import DataLocation
from layerboard.benchmark.plan.suites import STANDARD_SUITE
from layerboard.tasks.datasets.reading.masks import read_mask
from layerboard.tasks.segmentation import shown
from tests import fakes
from tests.benchmark.conftest import BACKBONES, Whole
from tests.benchmark.jobs.test_jobs import planned, prepared
from tests.benchmark.runs import QUICK, Tally, assert_same_records, run, run_from_store, shards
from workshop.render.masks import write_mask

VOC = "voc-2012-val"


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """VOC and ADE20k, tiny; not to be changed."""
    root = tmp_path_factory.mktemp("labelled")
    fakes.write_fake_voc(root, train=5, val=3)
    fakes.write_fake_ade(root, train=4, val=2)
    return root


@pytest.fixture(scope="module", autouse=True)
def _small_groups() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shown, "TOGETHER", 2)
        patch.setattr(shown, "GROUPS_PER_SHARD", 1)
        yield


@pytest.fixture(scope="module")
def segmented(labelled: Path, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """A run of two backbones on both datasets; its files are not to be changed."""
    place = tmp_path_factory.mktemp("segmented")
    with Tally().watching() as tally:
        records = run(place, BACKBONES, "segment", data=labelled)
    return Whole(place, tally, records)


def test_every_dataset_is_scored_by_two_passes_and_never_again(segmented: Whole, labelled: Path) -> None:
    found, tally = segmented.records, segmented.tally
    shown = {source: count for (name, source), count in tally.rows.items() if name == "mini-fs"}
    assert shown == {
        "voc-2012-val/memory": 5,
        "voc-2012-val/queries": 3,
        "ade20k-val/memory": 4,
        "ade20k-val/queries": 2,
    }
    assert set(found["dataset"]) == {"voc-2012-val", "ade20k-val"}
    best = found[found["metric"] == "mIoU"]
    assert best["partial"].all()
    assert "5 of 1,464 training images" in best["coverage"].iloc[0] + best["coverage"].iloc[-1]
    again = run_from_store(segmented.place, BACKBONES, "segment", data=labelled)
    assert_same_records(again, found)


@pytest.mark.parametrize("lost", ["memory", "queries"])
def test_a_lost_shard_costs_itself_alone(segmented: Whole, labelled: Path, tmp_path: Path, lost: str) -> None:
    shutil.copytree(segmented.place / "cache", tmp_path / "cache")
    own = [path for path in sorted(shards(tmp_path / "cache")) if "mini-resnet" in path.parts]
    shard = next(path for path in own if lost in path.parent.name)
    shard.unlink()
    with Tally().watching() as tally:
        again = run(tmp_path, BACKBONES, "segment", data=labelled)
    assert 1 <= sum(tally.rows.values()) <= 2
    assert all(name == "mini-resnet" and lost in source for name, source in tally.rows)
    assert_same_records(again, segmented.records)


@pytest.fixture
def voc(labelled: Path, tmp_path: Path) -> Path:
    """A folder with VOC alone, to be changed."""
    return shutil.copytree(labelled / "VOCdevkit", tmp_path / "data" / "VOCdevkit").parent


def test_another_mask_of_the_memory_asks_the_queries_again(voc: Path, tmp_path: Path) -> None:
    first = run(tmp_path, ["mini-resnet"], "segment", data=voc)
    path = voc / "VOCdevkit/VOC2012/SegmentationClass/2007_000001.png"
    write_mask(path, np.where(read_mask(path) == 0, 0, 4).astype(np.uint8))
    os.utime(path, (1, 1))
    with Tally().watching() as tally:
        second = run(tmp_path, ["mini-resnet"], "segment", data=voc)
    assert {source for _, source in tally.rows} == {"voc-2012-val/memory", "voc-2012-val/queries"}
    values = [one[one["metric"] == "mIoU"]["value"].tolist() for one in (first, second)]
    assert values[0] != values[1]


def test_an_unreadable_image_of_the_memory_fails_the_task_once(voc: Path, tmp_path: Path) -> None:
    image = voc / "VOCdevkit/VOC2012/JPEGImages/2007_000002.jpg"
    image.write_bytes(image.read_bytes()[:-200])
    found = run(tmp_path, ["mini-resnet"], "segment", data=voc, fails=True)
    (failure,) = found.attrs["failures"]
    assert "2007_000002.jpg" in str(failure)
    assert not len(found)


def test_queries_wait_for_what_other_workers_remember(
    labelled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "LEAST_SECONDS", 0.0)
    plan = planned(labelled, "segment", location=DataLocation(STANDARD_SUITE.datasets, labelled))
    queue = Pieces(prepared(plan, tmp_path).backbones[:1])
    queue.open([WorkerSlot("", 1)] * 3)
    remembered, shown, out = 0, [], {}
    memories = sum(one.source.shards for one in plan.passes if one.source.name.endswith("memory"))
    while not queue.over:
        for worker in range(3):
            if worker not in out and (found := queue.take(worker)) is not None:
                out[worker] = found
                jobs = found[1].passes
                queries = [job for job in jobs if job.memories]
                # a piece that begins with what is missing of the memory may go on with queries
                own = sum(len(job.shards) for job in jobs if not job.memories)
                assert not queries or remembered + own == memories
        worker = min(out)
        key, piece = out.pop(worker)
        remembered += sum(len(job.shards) for job in piece.passes if not job.memories)
        shown += [(job.pass_.source.name, number) for job in piece.passes for number in job.shards]
        queue.done(key, PassResult(1))
    assert len(shown) == len(set(shown)) == sum(one.source.shards for one in plan.passes)


@pytest.mark.parametrize("protocol", ["hummingbird", "capi"])
def test_other_protocols(tmp_path: Path, protocol: str) -> None:
    data = tmp_path / "data"
    for augmented in (False, True):
        fakes.write_fake_voc(data, train=3, val=2, augmented=augmented)
    with Tally().watching() as tally:
        found = run(tmp_path, ["mini-resnet"], "segment", data=data, protocol=protocol)
    voc, memory = ("voc-2012-aug-val", "memory-augmented") if protocol == "hummingbird" else (VOC, "memory")
    times = 2 if protocol == "hummingbird" else 1  # an image is shown once an epoch
    assert {source: count for (_, source), count in tally.rows.items()} == {
        f"{voc}/{memory}": 3 * times,
        f"{voc}/queries": 2,
    }
    assert set(found["protocol"]) == {protocol}
    with Tally().watching() as tally:
        assert_same_records(run(tmp_path, ["mini-resnet"], "segment", data=data, protocol=protocol), found)
    assert not tally.rows


@pytest.mark.parametrize("protocol", ["standard", "capi"])
def test_the_plan_counts_comparing_with_the_memory(voc: Path, tmp_path: Path, protocol: str) -> None:
    def plan() -> list[tuple[str, str, int]]:
        place = {"data": voc, "output": tmp_path / "out", "cache": tmp_path / "cache"}
        settings = {"protocol": protocol, "floor": False, "layers": QUICK}
        found = layerboard.forecast(["mini-resnet"], "segment", **place, **settings)
        wrong = "Not counted", "fail"
        assert not any(word in note for note in found.notes for word in wrong)
        steps = found.frame[found.frame["source"] != ""]
        assert (steps["seconds"] > 0).all()
        return [*steps[["what", "source", "images"]].itertuples(index=False, name=None)]

    measuring = "measuring segment" + (" (capi)" if protocol == "capi" else "")
    queries = [("pass", f"{VOC}/queries", 3), (measuring, f"{VOC}/queries", 0)]
    assert plan() == [("pass", f"{VOC}/memory", 5), *queries]
    run(tmp_path, ["mini-resnet"], "segment", data=voc, protocol=protocol)
    for path in shards(tmp_path / "cache"):
        if "queries" in path.parent.name:
            path.unlink()
    shutil.rmtree(tmp_path / "out")
    assert plan() == queries
