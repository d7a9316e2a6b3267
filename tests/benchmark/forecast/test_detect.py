"""How many units a planned run needs: from earlier results, or from those of mini, and it says which."""

import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import layerboard
from layerboard.benchmark.forecast.detect import ALIKE, MINI, detections
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.records.record import read_records
from layerboard.tasks.framework.registry import TASKS
from layerboard.zoo.errors import InputError
from tests import fakes
from tests.benchmark.runs import command


def test_earlier_results_tell_the_errors_and_else_those_of_mini_are_assumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos = fakes.write_fake_class_folders(tmp_path / "photos", classes=3, images=12)
    places = {"images": photos, "output": tmp_path / "out", "cache": tmp_path / "cache"}
    asked = {"floor": False, "layers": "1,6,12", **places}
    before = layerboard.forecast("mini-dino", ["knn", "fewshot", "cka"], detect=2.0, **asked)
    lines = [note for note in before.notes if note.startswith("- ")]
    assert [line.split()[1] for line in lines] == ["knn", "fewshot"]  # CKA ranks nothing
    units, shown = MINI["knn"]
    about = float(f"{units * (shown / 2) ** 2:.2g}")
    assert (
        f"about {about:,.0f} images (assumed, as in the mini suite: {units} images show {shown}" in lines[0]
    )
    assert "assumed, as in knn of the mini suite" in lines[1]

    layerboard.run(["mini-dino", "mini-fs"], "knn", **asked)
    board = Board.of(read_records([tmp_path / "out" / "records"]), items=tmp_path / "out" / "items")
    (standing,) = board.standings.values()
    words = ["-b", "mini-dino", "-t", "knn", "--images", str(photos), "--no-floor", "--plan", "--detect", "2"]
    words += ["--output", str(tmp_path / "out"), "--cache", str(tmp_path / "cache")]
    said = command(capsys, "run", *words)
    assert said.code == 0
    needed = float(f"{36 * (standing.smallest / 2) ** 2:.2g}")
    assert "To show layers that are 2 points below the best, in 80 % of cases" in said.out
    assert f"about {needed:,.0f} images (earlier results on photos-" in said.out
    assert f"36 images show {standing.smallest:.1f} points)" in said.out


def test_what_nothing_is_known_of_is_unknown(tmp_path: Path) -> None:
    class Planned:
        entry = next(each for each in TASKS if each.name == "anomaly")
        dataset, protocol, needs = "mvtec", "standard", "passes"

    (found,) = detections([Planned()], tmp_path, 1.0)  # type: ignore[list-item]
    assert asdict(found) == {
        "task": "anomaly",
        "dataset": "mvtec",
        "protocol": "standard",
        "needed": None,
        "unit": "images",
        "known": "no earlier results, and none of this task in the mini suite",
    }


def test_it_is_for_a_plan_and_a_number_that_scores_can_differ_by(capsys: pytest.CaptureFixture[str]) -> None:
    said = command(capsys, "run", "--detect", "1")
    assert (said.code, "--detect needs --plan" in said.error) == (2, True)
    with pytest.raises(InputError, match="detect= takes a number above 0"):
        layerboard.forecast("mini-fs", "knn", detect=0)
    with pytest.raises(InputError, match="at most 99; found 100"):
        layerboard.forecast("mini-fs", "knn", detect=100)


def test_the_assumed_errors_are_those_of_the_mini_page() -> None:
    """The page's sentences, as far as it has them, say the numbers that are assumed."""
    assert {*MINI, *ALIKE} <= {task.name for task in TASKS}
    assert {*ALIKE.values()} <= {*MINI}
    page = (Path(layerboard.__file__).parent / "leaderboards" / "tables" / "mini.md").read_text()
    said = r"### ([a-z-]+) on [^\n]*\n\nThese ([\d,]+) \w+ tell layers apart from the best that are ([\d.]+) "
    for task, units, shown in re.findall(said, page):
        assert MINI[task][0] == int(units.replace(",", "")), task
        assert MINI[task][1] == pytest.approx(float(shown), rel=0.15), task
    assert all(np.isfinite(shown) and 0 < shown < 100 for _, shown in MINI.values())
