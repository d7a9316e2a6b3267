"""What a run would take: what is counted, that nothing is kept, and how steps add up; never how fast."""

import json
from pathlib import Path

import pandas as pd
import pytest

import benchmark
from benchmark.exchange.planning import as_size, as_time
from benchmark.jobs.forecast import _together
from benchmark.request import Request, RunCommand
from tests import fakes
from tests.benchmark.runs import command
from zoo.errors import InputError


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return fakes.write_fake_class_folders(tmp_path / "photos", classes=3, images=5)


def planned(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict:
    result = command(capsys, "run", *words, "--plan", "--json")
    assert result.code == 0, result.err
    return json.loads(result.out)


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def test_a_plan_counts_and_keeps_nothing_and_what_is_stored_is_not_counted(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache, output = tmp_path / "cache", tmp_path / "output"
    words = ["-b", "mini-dino", "-t", "knn", "cka", "--images", str(photos), "--no-floor", "--layers", "1,12"]
    words += ["--cache", str(cache), "--output", str(output), "--workers", "1"]
    before = files(tmp_path)
    found = planned(words, capsys)
    assert files(tmp_path) == before
    assert not output.exists()
    assert found["images"] == found["forwards"] == 15
    assert found["seconds"] > 0
    assert found["memory"] > 1e7
    steps = pd.DataFrame(found["steps"])
    assert set(steps["what"]) == {
        *("load", "pass", "vectors", "measuring cka", "scoring knn", "comparing cka", "start and pages"),
    }
    assert (steps["seconds"] >= 0).all()
    assert steps["seconds"].sum() == pytest.approx(found["seconds"])

    assert command(capsys, "run", *words).code == 0
    stored = sum(path.stat().st_size for path in cache.rglob("*.safetensors"))
    assert found["disk"] == pytest.approx(stored, rel=0.3)  # files have headings
    again = planned(words, capsys)
    assert again["forwards"] == again["disk"] == 0
    assert {step["what"] for step in again["steps"]} == {"start and pages"}


def test_the_python_call_gives_the_same_as_a_table(photos: Path, tmp_path: Path) -> None:
    found = benchmark.forecast(
        "mini-dino", "knn", images=photos, floor=False, cache=tmp_path / "cache", output=tmp_path / "output"
    )
    assert found.frame["images"].sum() == 15
    assert "15 images each; 15 forwards of 1 backbone" in str(found)
    assert "nothing was kept" in str(found)


def test_jobs_are_shared_by_workers() -> None:
    assert _together([3.0, 1.0, 1.0], 1) == 5
    assert _together([3.0, 1.0, 1.0], 2) == 3
    assert _together([1.0, 1.0, 3.0], 2) == 4
    assert _together([], 2) == 0


def test_words_for_times_and_sizes() -> None:
    assert [as_time(one) for one in (59, 119, 150, 3 * 3600, 3 * 86400)] == [
        *("59 s", "119 s", "2.5 minutes", "3.0 hours", "3.0 days"),
    ]
    assert [as_size(one) for one in (2e3, 2.5e6, 3e9, 4e12)] == ["2 kB", "2.5 MB", "3.0 GB", "4.0 TB"]


def test_json_goes_with_plan() -> None:
    with pytest.raises(InputError, match="--json goes with --plan"):
        RunCommand(json=True)
    assert RunCommand("a", plan=True, json=True).request == Request("a")
