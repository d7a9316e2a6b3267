"""Published numbers without a run: ``leaderboard --literature`` and ``recommend --literature``."""

import csv
import json
from pathlib import Path

import pytest

import layerboard
from layerboard.leaderboards.published.literature import all_published
from layerboard.leaderboards.records.checksum import write_checked
from layerboard.leaderboards.records.record import to_frame
from tests.benchmark.runs import command
from tests.leaderboards.builder import layers

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without any run."""
    monkeypatch.chdir(tmp_path)


def test_all_numbers_are_written_without_a_run(capsys: Capture, tmp_path: Path) -> None:
    said = command(capsys, "leaderboard", "--literature")
    assert (said.code, said.err) == (0, "")
    assert said.out.split() == ["results/tables/literature.html", "results/tables/literature.csv"]
    with Path("results/tables/literature.csv").open(encoding="utf-8", newline="") as file:
        assert len([*csv.DictReader(file)]) == len(all_published())


def test_records_may_beat_a_last_layer(capsys: Capture) -> None:
    records = layers([70.0, 76.0, 74.5], backbone="dino-b16", dataset="imagenet")
    write_checked(to_frame(records), Path("out/records/dino-b16/knn.parquet"))
    words = ("--literature", "-o", "out", "--tables", "to")
    assert command(capsys, "leaderboard", *words).code == 0
    page = Path("to/literature.html").read_text(encoding="utf-8")
    assert "this run, standard" in page


def test_an_answer_for_keypoints_has_layers_and_sources(capsys: Capture) -> None:
    said = command(capsys, "recommend", "--literature", "--task", "spair")
    assert said.code == 0
    first = next(line for line in said.out.splitlines() if "beit-l16" in line)
    assert first.split("  ")[-1].strip() == "teaching-matters, Table 5"
    assert all(text in first for text in ("spair 1 ", "1 of 20", "15 of 24", "37.52 PCK@0.1"))
    assert "arXiv:2212.03862" in said.out
    assert "Only numbers of one group may be ranked" in said.out


def test_some_backbones_keep_their_ranks_among_all(capsys: Capture) -> None:
    words = ("--task", "spair", "-b", "dino-*", "--json")
    found = json.loads(command(capsys, "recommend", "--literature", *words).out)
    assert {row["backbone"] for row in found["published"]} == {"dino-b8", "dino-s8-300ep", "dino-b16"}
    assert found["published"][0]["rank"] == 4


def test_python_gives_the_same_rows(capsys: Capture) -> None:
    found = layerboard.recommend("spair", literature=True, details=True)
    assert {"PCK@0.1", "PCK@0.05", "PCK@0.01"} < set(found.frame["metric"])
    short = layerboard.recommend("spair", literature=True)
    assert len(short.frame) == 9
    printed = json.loads(command(capsys, "recommend", "--literature", "-t", "spair", "--json").out)
    assert [row["value"] for row in printed["published"]] == short.frame["value"].tolist()


def test_a_licence_leaves_others_out() -> None:
    free = layerboard.recommend("knn", literature=True, licence="commercial", details=True).frame
    assert {"dinov2-g14", "dino-b16"} <= set(free["backbone"])
    assert not {"mae-b16", "dinov3-l16", "deit3-b16-384"} & set(free["backbone"])
