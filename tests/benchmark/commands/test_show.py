"""The answer on the screen: at the end of a run, and again."""

import json
import shutil
from pathlib import Path

import pytest

from layerboard.benchmark.commands import show
from layerboard.benchmark.engines.log import LOG
from layerboard.leaderboards.records.state import SHOWN
from tests.benchmark.conftest import BACKBONES, Whole, copy_results
from tests.benchmark.runs import Cli


def test_a_run_ends_with_what_show_says_again(cli: Cli, whole: Whole, of_knn: Path, data: Path) -> None:
    place = ("-o", of_knn)
    options = ("-b", *BACKBONES, "-t", "knn", "--layers", "1,final", "--workers", "1", "--no-floor")
    ended = cli("run", "--data", data, *options, *place, "--cache", whole.place / "cache")
    assert ended.code == 0
    shown = cli("show", *place)
    assert shown.code == 0
    answer = ended.out.partition("\nsuite ")[2]
    assert f"suite {answer.rpartition('Read on')[0]}".strip() == shown.out.strip()
    assert "tables/standard.md has every layer" in answer
    assert [line.split("  ")[0] for line in shown.out.splitlines() if line.startswith("knn")] == [
        "knn top-1 †"
    ]


def test_what_was_shown_is_shown_again_until_something_changes(
    cli: Cli, of_knn: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, kept = ("-o", of_knn), of_knn / SHOWN
    kept.parent.mkdir(exist_ok=True)
    first = cli("show", *place).out
    with monkeypatch.context() as patch:
        patch.setattr(show, "answers_to", None)  # is not called
        assert cli("show", *place).out == first
        with pytest.raises(TypeError, match="not callable"):
            cli("show", *place, "-t", "knn")
    kept.write_text(kept.read_text().replace("oses at most", "ost at most"))
    assert cli("show", *place).out == first.replace("oses at most", "ost at most") != first
    monkeypatch.setattr(show, "screen", lambda: 10**6)  # another terminal
    assert cli("show", *place).out == first
    received = of_knn.with_name("received")  # with all times, and an answer of somebody else
    shutil.copytree(of_knn, received)
    assert cli("show", "-o", received).out == first
    for change in (
        lambda: kept.write_text("[]"),
        next((of_knn / "items").rglob("*.parquet")).unlink,
        lambda: kept.write_text('{"state": '),
    ):
        change()
        assert "ost at most" not in cli("show", *place).out
        kept.write_text(kept.read_text().replace("oses at most", "ost at most"))
    next((of_knn / "records").rglob("*.parquet")).unlink()
    assert "ost at most" not in cli("show", *place).out


def test_for_machines(cli: Cli, whole: Whole, tmp_path: Path) -> None:
    out = copy_results(whole, tmp_path / "out", "knn", "retrieval")
    (suite,) = json.loads(cli("show", "-o", out, "--json").out)
    assert suite["suite"] == "standard"
    tasks = [one["task"] for one in suite["answers"]]
    assert tasks[0] == "knn"
    assert tasks.count("retrieval") == 2
    scores = whole.records.query("task == 'knn' and primary and tap == 'block'")["value"]
    assert suite["answers"][0]["score"] == scores.max()
    one = cli("show", "-o", out, "-t", "knn", "--suite", "standard", "--json").out
    assert json.loads(one)[0]["answers"] == suite["answers"][:1]


def test_what_goes_on_and_what_variants_change_is_said_to_people_and_machines(
    cli: Cli, of_knn: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("layerboard.leaderboards.writers.build.write_board", lambda *_: [])
    place = ("-o", of_knn)
    options = ("-b", "mini-fs", "-t", "knn", "--layers", "1,12", "--no-floor", "--compress", "pca:8,int8")
    places = ("--data", data, "--cache", of_knn.parent / "cache", *place)
    said = cli("run", *options, "--poolings", "cls,mean,gem", *places).out
    assert said.index("What other taps and poolings gain") < said.index("What variants of a backbone change")
    (of_knn / LOG).write_text(f"{(of_knn / LOG).read_text()}2026-01-02 03:04:05  begins again\n")
    (suite,) = json.loads(cli("show", *place, "--json").out)
    shown = " ".join(cli("show", *place).out.split())
    assert "was killed after 2026-01-02 03:04:05" in suite["notes"][0]
    assert suite["notes"][0] in shown
    poolings, variants = suite["beyond"]
    assert [row["features"] for row in poolings["rows"]] == ["pooling cls", "pooling mean", "pooling gem"]
    rows = {row["variant"]: row["knn top-1 †"] for row in variants["rows"]}
    assert {*rows} == {"pca:8", "int8"}
    assert all(change in shown for change in rows.values())
    monkeypatch.setattr(show, "MOST_COMPARED", 0)
    assert json.loads(cli("show", *place, "--json").out)[0]["beyond"] == []


def test_failures_stand_below_the_answers(cli: Cli, of_knn: Path, tmp_path: Path) -> None:
    place = ("-o", of_knn, "-t", "knn")
    plain = cli("show", *place).out
    told = cli("show", *place, "--failures").out
    assert told.startswith(plain.strip())
    assert "accuracy by class, percent" in told
    (suite,) = json.loads(cli("show", *place, "--failures", "--json").out)
    titles = {each["title"].partition(": ")[2]: each["rows"] for each in suite["failures"]}
    shares = [row["accuracy"] for row in titles["accuracy by class, percent"]]
    assert shares == sorted(shares)
    assert all(f"{each['title']}\n" in told for each in suite["failures"])
    shutil.copytree(of_knn / "records", tmp_path / "records")
    assert "No failures to show" in cli("show", "-o", tmp_path, "--failures").out
