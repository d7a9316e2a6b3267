"""The command `claims` and `layerboard.claims`."""

import json
from pathlib import Path

import pytest

import layerboard
from layerboard.leaderboards.records.checksum import write_checked
from layerboard.leaderboards.records.record import to_frame
from tests.benchmark.runs import command
from tests.leaderboards.builder import record
from tests.leaderboards.claims.test_verdicts import similarities

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for first, second in (("mini-fs", "mini-fs"), ("mini-resnet", "mini-resnet"), ("mini-fs", "mini-resnet")):
        frame = to_frame(similarities(0.8, 0.3))
        frame = frame[(frame["backbone"] == first) & (frame["other"] == second)]
        path = tmp_path / "records" / f"{first}--{second}" / "cka.mini-imagenet.standard.parquet"
        path.parent.mkdir(parents=True)
        write_checked(frame, path)
    return tmp_path


def test_python_and_the_command_say_the_same(run: Path, capsys: Capture) -> None:
    found = layerboard.claims([21, 26], output=run)
    assert found.frame["verdict"].tolist() == ["holds", "not measured"]
    said = command(capsys, "claims", "21", "26", "-o", run)
    assert said.code == 0
    assert said.out.rstrip().endswith("2 claims: 1 holds, 1 not measured.")
    rows = json.loads(command(capsys, "claims", "21", "26", "-o", run, "--json").out)["claims"]
    assert [row["verdict"] for row in rows] == ["holds", "not measured"]
    assert rows[0]["estimate"] == pytest.approx(found.frame["estimate"][0])
    assert rows[1]["estimate"] is None


def test_a_run_that_measured_no_claim_says_what_is_needed(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "records" / "mini-dino" / "knn.mini-imagenet.standard.parquet"
    path.parent.mkdir(parents=True)
    write_checked(to_frame([record()]), path)
    for numbers in ([], ["26"]):
        said = command(capsys, "claims", *numbers, "-o", tmp_path)
        assert (said.code, said.err) == (0, "")
        assert "Not measured, needs" in said.out
        assert said.out.rstrip().endswith("not measured.")


def test_every_claim_is_listed(run: Path) -> None:
    assert len(layerboard.claims(output=run).frame) >= 30


def test_an_unknown_number_is_an_error(run: Path, capsys: Capture) -> None:
    said = command(capsys, "claims", "99", "-o", run)
    assert said.code == 2
    assert "expected numbers of claims, 1 to 33, found 99" in said.error
