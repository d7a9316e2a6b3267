"""What a run would take: what is counted, that nothing is kept, and how steps add up; never how fast."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import layerboard
from layerboard.benchmark.commands.run import RunForm, as_time
from layerboard.benchmark.forecast import forecast
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.jobs import passes
from layerboard.benchmark.jobs.job import Job
from layerboard.benchmark.passes.failures import Failure
from layerboard.benchmark.passes.one_pass import PassResult
from layerboard.zoo.errors import InputError
from tests import fakes
from tests.benchmark.runs import Cli


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return fakes.write_fake_class_folders(tmp_path / "photos", classes=3, images=5)


def planned(words: list[str], cli: Cli) -> dict:
    result = cli("run", *words, "--plan", "--json")
    assert result.code == 0, result.err
    return json.loads(result.out)


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def test_a_plan_counts_and_keeps_nothing_and_what_is_stored_is_not_counted(
    photos: Path, tmp_path: Path, cli: Cli
) -> None:
    cache, output = tmp_path / "cache", tmp_path / "output"
    words = ["-b", "mini-dino", "-t", "knn", "cka", "--images", str(photos), "--no-floor", "--layers", "1,12"]
    words += ["--cache", str(cache), "--output", str(output), "--workers", "1"]
    before = files(tmp_path)
    found = planned(words, cli)
    assert {path.parent.name for path in files(tmp_path) - before} == {"facts"}  # digests of pixels
    assert not output.exists()
    assert found["images"] == found["forwards"] == 15
    assert found["seconds"] > 0
    assert found["memory"] > 1e7
    steps = pd.DataFrame(found["steps"])
    assert set(steps["what"]) == {*("load", "pass", "scoring knn", "comparing cka", "start and pages")}
    assert (steps["seconds"] >= 0).all()
    assert steps["seconds"].sum() == pytest.approx(found["seconds"])

    assert cli("run", *words).code == 0
    stored = sum(path.stat().st_size for path in cache.rglob("*.safetensors"))
    assert found["disk"] == pytest.approx(stored, rel=0.3)  # files have headings
    again = planned(words, cli)
    assert again["forwards"] == again["disk"] == 0
    assert {step["what"] for step in again["steps"]} == {"start and pages"}


def test_memory_counts_the_images_that_are_shown_together(tmp_path: Path, cli: Cli) -> None:
    photos = fakes.write_fake_class_folders(tmp_path / "photos", classes=3, images=80)
    words = ["-b", "mini-resnet", "--images", str(photos), "--no-floor", "--workers", "1"]
    words += ["--batch-size", "4", "--cache", str(tmp_path / "cache"), "--output", str(tmp_path / "output")]
    # the peak of the process never falls, so the plan with larger batches comes first
    together, apart = (planned([*words, "-t", task], cli)["memory"] for task in ("cka", "knn"))
    assert together - apart > 5e7


def test_the_python_call_gives_the_same_as_a_table(photos: Path, tmp_path: Path) -> None:
    found = layerboard.forecast(
        "mini-dino", "knn", images=photos, floor=False, cache=tmp_path / "cache", output=tmp_path / "output"
    )
    assert found.frame["images"].sum() == 15
    assert "15 images each; 15 forwards of 1 backbone" in str(found)
    assert "no results were stored" in str(found)


def test_batches_are_timed_where_the_cache_is_not_there_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []

    def run_job(*args: Any) -> PassResult:
        shown.append(passes.run_job(*args))
        return shown[-1]

    monkeypatch.setattr(forecast, "run_job", run_job)
    place = {"limit": 1, "floor": False, "cache": tmp_path / "new", "output": tmp_path / "output"}
    found = layerboard.forecast("mini-dino", "knn", **place)
    assert shown
    assert all(result.images >= forecast.LEAST and not result.failures for result in shown)
    assert not (tmp_path / "new").exists()
    assert "Would fail" not in str(found)


def test_a_pass_that_fails_while_it_is_timed_is_named(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = PassResult(failures=(Failure("mini-dino", "knn", "the forward fails", bad_input=True),))
    monkeypatch.setattr(forecast, "run_job", lambda *_: failed)
    place = {"images": photos, "floor": False, "cache": tmp_path, "output": tmp_path / "output"}
    assert "Would fail: mini-dino: the forward fails" in str(layerboard.forecast("mini-dino", "knn", **place))


def test_a_plan_times_the_first_images_of_a_video_and_of_a_category(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecast, "BATCH_SECONDS", 0.0)
    place = {"floor": False, "cache": tmp_path, "output": tmp_path / "output"}
    assert "Would fail" not in str(layerboard.forecast("mini-fs64", ["davis", "spair"], **place))


def test_timing_ends_with_its_share_of_what_is_expected(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = []

    def time(timings: object, job: Job, loaded: object) -> None:
        timed.append(job.setup.spec.name)

    monkeypatch.setattr(forecast._Timings, "_time", time)
    place = {"images": photos, "floor": False, "cache": tmp_path, "output": tmp_path / "output"}
    names = ["mini-dino", "mini-mae", "mini-resnet"]
    layerboard.forecast(names, "knn", **place)
    assert {*timed} == {*names}
    timed.clear()
    monkeypatch.setattr(forecast, "SHARE", 0.0)
    monkeypatch.setattr(forecast, "FLOOR", 0.0)
    found = layerboard.forecast(names, "knn", **place)
    assert len(timed) == 1
    assert (found.frame.loc[found.frame["what"] == "pass", "seconds"] > 0).all()
    assert found.frame.loc[found.frame["what"] == "pass", "disk"].min() > 0


def test_passes_that_are_not_timed_are_scaled_like_those_that_are(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecast, "SHARE", 0.0)
    monkeypatch.setattr(forecast, "FLOOR", 0.0)
    monkeypatch.setattr(forecast._Timings, "_second", lambda *_: 1.0)
    monkeypatch.setattr(forecast.estimate, "image_seconds", lambda *_: 0.01)
    place = {"images": photos, "floor": False, "cache": tmp_path, "output": tmp_path / "output"}
    frame = layerboard.forecast(["mini-dino", "mini-mae"], "knn", **place).frame
    assert frame.loc[frame["what"] == "pass", "seconds"].tolist() == pytest.approx([15.0, 15.0])


def test_words_for_times_and_sizes() -> None:
    assert [as_time(one) for one in (59, 119, 150, 3 * 3600, 3 * 86400)] == [
        *("59 s", "119 s", "2.5 minutes", "3.0 hours", "3.0 days")
    ]


def test_json_goes_with_plan() -> None:
    with pytest.raises(InputError, match="--json needs --plan"):
        RunForm(json=True)
    assert Request.of(RunForm("mini-fs", plan=True, json=True)) == Request("mini-fs")
