"""A run: every image once, every layer to every task, nothing twice."""

import errno
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from layerboard.leaderboards.records.record import folder_records, of_suite
from layerboard.leaderboards.records.state import SHOWN
from layerboard.tasks.datasets.base import FileSample
from tests.benchmark.conftest import BACKBONES, Whole, copy_results
from tests.benchmark.runs import (
    QUICK,
    TASKS,
    Cli,
    Tally,
    assert_same_records,
    files,
    run,
    run_from_store,
    shards,
)

FILES = ["examples", "items", "records", "run.log", "run.yaml", "tables", "thumbnails"]
LAYERS = {"mini-fs": {(1, "block"), (12, "final")}, "mini-resnet": {(1, "block")}}


def test_every_image_goes_through_each_backbone_once(whole: Whole, data: Path) -> None:
    images = whole.tally.images
    assert whole.tally.loads == list(BACKBONES)
    assert set(images.values()) == {1}
    for name in BACKBONES:
        shown = {(source, key) for backbone, source, key in images if backbone == name}
        per_source = {source: sum(s == source for s, _ in shown) for source, _ in shown}
        assert per_source == {
            "imagenet/train-probe": 12,
            "imagenet/val": 6,
            "roxford5k/database": 8,
            "roxford5k/queries": 2,
            "rparis6k/database": 8,
            "rparis6k/queries": 2,
            "davis-2017-val": 8,
            "spair-71k-test": 6,
            "coco-val2017": 3,
            "partimagenet": 12,
        }
        for source, count in per_source.items():
            tiles = source in ("coco-val2017", "partimagenet")
            assert whole.tally.rows[name, source] >= count
            assert tiles or whole.tally.rows[name, source] == count


def test_backbones_of_one_view_share_decoded_images(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: Counter[str] = Counter()
    opening = FileSample.open

    def counting(sample: FileSample) -> Image.Image:
        opened[sample.key] += 1
        return opening(sample)

    monkeypatch.setattr(FileSample, "open", counting)
    options = {"data": data, "layers": "1", "examples": False}
    together = run(tmp_path / "both", ["mini-fs", "mini-mae"], "knn", **options)
    # the size at which the task shows images is that of the first one, whose header is read before
    (first,) = (key for key, times in opened.items() if times == 2)
    assert {times for key, times in opened.items() if key != first} == {1}
    alone = [run(tmp_path / name, [name], "knn", **options) for name in ("mini-fs", "mini-mae")]
    assert {times for key, times in opened.items() if key != first} == {3}
    assert_same_records(together, pd.concat(alone))


def test_every_layer_reaches_every_task(whole: Whole) -> None:
    records = whole.records
    assert set(records["task"]) == set(TASKS)
    for (backbone, task), rows in records.groupby(["backbone", "task"]):
        layers = set(zip(rows["layer"], rows["tap"], strict=True))
        assert layers == LAYERS[str(backbone)], task
    pairs = records[records["task"] == "cka"]
    assert set(zip(pairs["backbone"], pairs["other"], strict=True)) == {
        ("mini-fs", "mini-fs"),
        ("mini-fs", "mini-resnet"),
        ("mini-resnet", "mini-resnet"),
    }


def test_every_number_is_there_or_says_why_not(whole: Whole) -> None:
    records = whole.records
    assert records["partial"].all()
    assert records["coverage"].str.contains(" of ").all()
    scores = records[records["task"] != "cka"]
    assert scores["value"].dropna().between(-100, 100 + 1e-9).all()  # ARI may be negative
    regions = scores["task"].isin(["cluster-object", "cluster-part"])
    assert scores[scores["primary"] & ~regions]["value"].notna().all()
    assert set(scores[regions]["reason"]) == {
        "6 objects are fewer than 80 clusters",
        "24 parts are fewer than 40 clusters",
    }
    cka = records[records["task"] == "cka"]
    same = cka[(cka["backbone"] == cka["other"]) & (cka["layer"] == cka["other_layer"])]
    same = same[same["tap"] == same["other_tap"]]
    np.testing.assert_allclose(same["value"].dropna(), 1, atol=1e-5)


def test_items_and_pages_are_written_and_nothing_else(whole: Whole) -> None:
    out = whole.place / "out"
    scored = {(row.backbone, row.task, row.dataset) for row in whole.records.itertuples() if not row.other}
    for backbone, task, dataset in scored:
        for kind in ("records", "items"):
            assert (out / kind / backbone / f"{task}.{dataset}.standard.parquet").is_file()
    assert (out / "records" / "mini-fs--mini-resnet" / "cka.imagenet.standard.parquet").is_file()
    pages = sorted(path.name for path in (out / "tables").glob("[!.]*") if path.is_file())
    assert pages == ["standard.cka.csv", "standard.cka.md", "standard.csv", "standard.md"]
    page = (out / "tables" / "standard.md").read_text()
    assert all(name in page for name in (*BACKBONES, *TASKS))
    assert sorted(path.name for path in out.iterdir()) == FILES
    assert [path.name for path in (whole.place / "cache").iterdir()] == ["features"]
    assert [*whole.place.rglob(".*")] == [out / "tables" / ".standard.json"]


def test_a_second_run_computes_and_writes_nothing(again: Path, data: Path, whole: Whole, cli: Cli) -> None:
    kept = again / "out", again / "cache"
    before = files(*kept)
    names = "--backbones", *BACKBONES, "--layers", QUICK, "--no-floor", "--data", data
    with Tally().watching() as tally:
        said = cli("run", *names, "--output", kept[0], "--cache", kept[1])
    assert tally.loads == []
    assert "no image went through a backbone: all features were there" in said.err
    after = files(*kept)
    assert after.pop(kept[0] / SHOWN)  # what it printed: the run before was by Python, and printed nothing
    assert after == before
    assert_same_records(of_suite(folder_records(kept[0] / "records"), "standard"), whole.records)
    tables, endings = kept[0] / "tables", ("cka.csv", "cka.md", "csv", "md")
    assert said.lines("unchanged: ") == [f"unchanged: {tables / 'standard'}.{ending}" for ending in endings]
    assert not said.lines("wrote")
    assert f"Read on: {tables / 'standard.md'} has every layer" in said.out


def test_a_cache_that_is_only_read_serves_a_run_that_lacks_nothing_of_it(
    again: Path, data: Path, whole: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = again / "cache"
    before = files(cache)
    monkeypatch.setattr("layerboard.benchmark.plan.location.TemporaryFile", _refusing(cache))
    tasks = ["knn", "davis"]
    found = run(tmp_path, BACKBONES, *tasks, data=data, cache=cache)
    assert_same_records(found, whole.records.query("task in @tasks"))
    lacking = run(tmp_path, ["mini-mae"], "knn", data=data, cache=cache, fails=True)
    assert [str(each) for each in lacking.attrs["failures"]] == [
        f"mini-mae, knn: --cache {cache} cannot be written to: Read-only file system"
    ]
    assert files(cache) == before


def _refusing(folder: Path) -> Callable[..., object]:
    """A function that makes temporary files, but not in that folder: tests may run as root."""

    def make(**options: Path) -> object:
        if options["dir"] == folder:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(folder))
        return tempfile.TemporaryFile(**options)

    return make


def test_what_another_suite_has_run_stands_on_both_pages(tmp_path: Path, data: Path, whole: Whole) -> None:
    out, expected = copy_results(whole, tmp_path / "out", "knn"), whole.records.query("task == 'knn'")
    options = {"data": data, "cache": whole.place / "cache", "pages": True}
    records = run_from_store(tmp_path, BACKBONES, "knn", suite="paper", protocol="standard", **options)
    assert set(records["suite"]) == {"paper"}
    assert_same_records(records.assign(suite="standard"), expected)
    before = files(out / "records")
    run(tmp_path, BACKBONES, "knn", suite="paper", protocol="standard", **options)
    assert files(out / "records") == before
    assert_same_records(run(tmp_path, BACKBONES, "knn", **options), expected)
    pages = out / "tables"
    assert (pages / "paper.csv").read_bytes() == (pages / "standard.csv").read_bytes()


def test_a_new_backbone_costs_its_own_passes_and_pairs(again: Path, data: Path) -> None:
    records, cache = again / "out" / "records", again / "cache"
    before = files(records, cache)
    with Tally().watching() as tally:
        frame = run(again, [*BACKBONES, "mini-random"], "knn", "davis", "cka", data=data)
    assert tally.loads == ["mini-random"]
    after = files(records, cache)
    assert {path: after[path] for path in before} == before
    added = {
        path.relative_to(records).parts[0] for path in set(after) - set(before) if records in path.parents
    }
    assert added == {
        "mini-random",
        "mini-fs--mini-random",
        "mini-random--mini-random",
        "mini-random--mini-resnet",
    }
    assert set(frame["backbone"]) == {*BACKBONES, "mini-random"}


def test_other_layers_show_only_the_dense_sources_again(again: Path, data: Path) -> None:
    with Tally().watching() as tally:
        records = run(again, ["mini-fs"], "knn", "cluster-image", "davis", data=data, layers="0,2,final")
    assert {source for _, source in tally.rows} == {"davis-2017-val"}
    primary = (
        records[records["primary"] & (records["backbone"] == "mini-fs")].groupby("task")["layer"].agg(set)
    )
    assert primary[["cluster-image", "knn"]].tolist() == [{0, 2, 12}] * 2


def test_a_damaged_shard_is_found_and_redone(again: Path, data: Path, whole: Whole) -> None:
    davis = sorted((again / "cache" / "features" / "mini-fs").glob("davis-2017-val.davis.*/*"))
    assert len(davis) == 2
    payload = bytearray(davis[0].read_bytes())
    payload[len(payload) // 2] ^= 1
    davis[0].write_bytes(payload)
    shutil.rmtree(again / "out" / "records" / "mini-fs")
    with Tally().watching() as tally:
        records = run(again, BACKBONES, "davis", data=data)
    assert tally.rows == {("mini-fs", "davis-2017-val"): 4}
    assert_same_records(*(frame[frame["task"] == "davis"] for frame in (records, whole.records)))
    assert {path.relative_to(again) for path in shards(again / "cache")} == {
        path.relative_to(whole.place) for path in shards(whole.place / "cache")
    }


def test_a_changed_image_is_a_new_source(again: Path, own_data: Path) -> None:
    image = next((own_data / "DAVIS" / "JPEGImages" / "480p" / "sequence-0").iterdir())
    image.write_bytes(image.read_bytes() + b"\0")
    with Tally().watching() as tally:
        run(again, ["mini-resnet"], "knn", "spair", "davis", data=own_data)
    assert {source for _, source in tally.rows} == {"davis-2017-val"}


def test_a_bug_in_a_task_leaves_the_rest_done(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    names = ("knn", "cka", "spair", "davis", "cluster-image")
    with monkeypatch.context() as patch:
        patch.setattr("layerboard.tasks.classification.knn.KnnTask.score_together", bug)
        patch.setattr("layerboard.tasks.similarity.cka._GramMeasurer.update", bug)
        patch.setattr("layerboard.tasks.keypoints.task.KeypointTask.measure", bug)
        records = run(tmp_path, ["mini-random"], *names, data=data, layers="1", fails=True)
    assert set(records["task"]) == {"davis", "cluster-image"}
    assert sorted(records.attrs["failures"]) == [
        f"mini-random, {task}: zero division error: division by zero" for task in ("cka", "knn", "spair")
    ]
    with Tally().watching() as tally:
        records = run(tmp_path, ["mini-random"], *names, data=data, layers="1")
    assert {source for _, source in tally.rows} == {"imagenet/train-probe", "spair-71k-test"}
    assert set(records["task"]) == {*names}


def test_vectors_that_cannot_be_kept_fail_the_tasks_that_score_them(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(*_: object) -> None:
        raise RuntimeError("shapes differ")

    monkeypatch.setattr("layerboard.benchmark.passes.collectors.VectorCollector.see", bug)
    names = ("knn", "cluster-image", "cka", "retrieval", "davis", "cluster-object")
    records = run(tmp_path, ["mini-random"], *names, data=data, layers="1", fails=True)
    assert set(records["task"]) == {"davis", "cluster-object"}
    failed = [sentence.removeprefix("mini-random, ") for sentence in records.attrs["failures"]]
    assert set(failed) == {
        f"{task}: runtime error: shapes differ" for task in ("knn", "cluster-image", "cka", "retrieval")
    }
