"""Whole runs by a campaign file, the file that they leave, and runs that are killed ten times."""

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import layerboard
from layerboard.benchmark.forms.campaign import RUN_FILE
from layerboard.leaderboards.records.record import read_records
from tests.benchmark.conftest import BACKBONES
from tests.benchmark.runs import QUICK, Tally, assert_same_records, command, environment, run
from tests.zoo.load.test_infer import save

KILLS = 10
pytestmark = pytest.mark.usefixtures("no_pages")


def campaign(path: Path, **options: object) -> Path:
    path.write_text(yaml.safe_dump(options), encoding="utf-8")
    return path


def test_an_output_runs_again_by_the_file_that_it_carries(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder with networks, data and a campaign is moved, and its run goes on from elsewhere."""
    (first := tmp_path / "first").mkdir()
    shutil.copytree(data / "imagenet", first / "data" / "imagenet")
    save(first / "nets" / "mine", "ViTModel")
    options = {"backbones": ["nets/mine", "mini-fs"], "tasks": "knn", "layers": "1"}
    options |= {"floor": False, "workers": 1}
    file = campaign(first / "lab.yaml", data="data", output="out", cache="cache", **options)
    records = layerboard.run(campaign=file).frame
    assert {*records["backbone"]} == {"mine", "mini-fs"}
    kept = yaml.safe_load((first / "out" / RUN_FILE).read_text())
    assert (kept["suite"], kept["protocol"], kept["layers"]) == ("standard", ["standard"], "1")

    first.rename(second := tmp_path / "second")
    monkeypatch.chdir(second)
    by_hand = layerboard.run(campaign="lab.yaml", output="by-hand", workers=1).frame
    carried = yaml.safe_load((second / "by-hand" / RUN_FILE).read_text())
    assert [carried[key] for key in ("backbones", "data", "cache")] == [
        ["../nets/mine", "mini-fs"],
        "../data",
        "../cache",
    ]
    monkeypatch.chdir(tmp_path)
    with Tally().watching() as tally:
        again = layerboard.run(campaign="second/by-hand/run.yaml", output="again", workers=1).frame
        assert layerboard.run(campaign="second/by-hand").frame.equals(by_hand)
    assert tally.rows.total() == 0  # all vectors are in the cache that the file names
    for frame in (by_hand, again):
        assert_same_records(frame, records)


def test_the_file_says_what_truly_ran(
    capsys: pytest.CaptureFixture[str], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ['backbones = "mini-fs"', 'tasks = ["spair"]', 'layers = "2"', 'dtype = "auto"']
    lines += ['cache = "cache"']
    (tmp_path / "c.toml").write_text("\n".join(lines), encoding="utf-8")
    words = ("run", "--campaign", "c.toml", "--tasks", "knn", "--layers", "1", "--no-floor", "-o", "out")
    said = command(capsys, *words, "--data", str(data))
    assert said.code == 0
    assert "tasks is ['knn'], in place of ['spair'] in c.toml" in said.err
    assert "layers is '1', in place of '2' in c.toml" in said.err
    kept = yaml.safe_load(Path("out", RUN_FILE).read_text())
    ran = {"backbones": ["mini-fs"], "tasks": ["knn"], "layers": "1", "dtype": ["float32"], "floor": False}
    assert {key: kept[key] for key in ran} == ran
    planned = command(capsys, "run", "--campaign", "out", "--plan", "--json", "--data", str(data))
    assert (planned.code, json.loads(planned.out)["forwards"]) == (0, 0)


@pytest.mark.slow
def test_a_campaign_that_is_killed_ten_times_ends_as_one_that_nothing_disturbed(
    data: Path, tmp_path: Path
) -> None:
    """A kill comes before any of the next four files, so that all kinds of work are cut."""
    tasks, options = ("knn", "davis", "spair"), {"layers": QUICK, "examples": False}
    whole = run(tmp_path / "whole", BACKBONES, *tasks, data=data, **options)
    options |= {"backbones": [*BACKBONES], "tasks": [*tasks], "floor": False, "workers": 1}
    file = campaign(tmp_path / "lab.yaml", output="out", cache="cache", **options)
    draw, shown = random.Random(0), str(tmp_path / "shown")
    of = ["--data", str(data), "--campaign"]
    jobs = [[(["run", *of, str(file)], draw.randint(1, 4), shown)] for _ in range(KILLS)]
    jobs.append([(["run", *of, str(tmp_path / "out"), "--cache", str(tmp_path / "cache")], 0, shown)])
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    ended = subprocess.run(
        [sys.executable, "-m", "tests.benchmark.driver", str(tmp_path / "jobs.json")],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout.splitlines()[-1]) == [*([-9] for _ in range(KILLS)), [0]], ended.stderr
    assert_same_records(read_records([tmp_path / "out" / "records"]), whole)
    with Tally().watching() as tally:
        run(tmp_path, BACKBONES, *tasks, data=data, layers=QUICK, examples=False)
    assert tally.rows.total() == 0  # the whole of it was done
