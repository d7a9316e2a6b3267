"""Whole runs by a campaign file, and the file that they leave."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

import layerboard
from layerboard.benchmark.forms.campaign import RUN_FILE
from tests.benchmark.runs import Tally, assert_same_records, command
from tests.zoo.load.test_infer import save

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
