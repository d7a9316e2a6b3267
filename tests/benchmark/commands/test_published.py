"""Published numbers: what `reproduce` compares a run with, and `--literature` without a run."""

import csv
import io
import json
import re
from pathlib import Path

import pandas as pd
import pytest

import layerboard
from layerboard.leaderboards.findings.reproduce import COLUMNS
from layerboard.leaderboards.published.literature import all_published
from layerboard.leaderboards.records.checksum import write_checked
from layerboard.leaderboards.records.record import to_frame
from tests.benchmark.runs import Cli
from tests.leaderboards.builder import layers, record

ALL = len(all_published())
NOT_COMPARABLE = sum(not one.comparable for one in all_published())
README = {"dataset": "imagenet", "input_size": 224, "depth": 12, "layer": 12, "tap": "final"}
PAPER = {"backbone": "dino-b16", "dataset": "imagenet", "input_size": 224, "protocol": "paper"}


def results(folder: Path, *, off: bool) -> Path:
    """Records of three backbones, one of which may be off."""
    high = 76.0 if off else 77.0
    rows = [
        record(**README, backbone="dino-b16", value=75.5, ci_low=75.0, ci_high=high),
        record(**README, backbone="dino-s16", value=20.0, partial=True, coverage="9 of 10 images"),
        record(**README, backbone="dino-s8", value=70.0, trained=False),
        *layers([60.0 + layer for layer in range(12)], **PAPER),
    ]
    write_checked(to_frame(rows), folder / "records" / "any" / "knn.imagenet.standard.parquet")
    return folder


def cells(table: str) -> list[list[str]]:
    """The cells of a table of the screen, whose second line shows where each column begins and ends."""
    lines = table.splitlines()
    columns = [found.span() for found in re.finditer("-+", lines[1])]
    return [[line[start:end].strip() for start, end in columns] for line in lines]


def test_the_table_shows_what_was_run_and_counts_the_rest(cli: Cli, tmp_path: Path) -> None:
    said = cli("reproduce", "-o", results(tmp_path, off=False))
    assert said.code == 0
    table, summary = said.out.rstrip("\n").split("\n\n")
    head, _, paper, top5, small, base = cells(table)
    assert head[3:8] == ["published", "measured", "95 % interval", "difference", "verdict"]
    assert paper == [
        *("dino-b16", "knn top-1, imagenet (paper)", "teaching-matters, Table 5"),
        *("76.06 (12)", "71.00 (12)", "", "-5.06", "no interval", "no interval was computed"),
    ]
    assert top5[4:] == ["", "", "", "no score", "no top-5 was computed"]
    assert base[3:8] == ["76.1 (final)", "75.50 (final)", "75.00 to 77.00", "-0.60", "agrees"]
    assert small[6:] == ["-54.50", "partial data", "9 of 10 images; no interval was computed"]
    assert summary == (
        f"{ALL} published numbers: 1 agrees, 1 no interval, 1 partial data, 1 no score, "
        f"{ALL - NOT_COMPARABLE - 4} not run, {NOT_COMPARABLE} not comparable"
    )


def test_a_number_that_is_off_is_an_exit_code(cli: Cli, tmp_path: Path) -> None:
    folder = results(tmp_path, off=True)
    said = cli("reproduce", "-o", folder)
    assert said.code == 1
    assert cells(said.out.partition("\n\n")[0])[-1][7] == "off"
    assert cli("reproduce", "-o", folder, "--format", "json").code == 1
    assert cli("reproduce", "-o", folder, "-b", "dino-s16").code == 0


def test_all_shows_everything(cli: Cli, tmp_path: Path) -> None:
    said = cli("reproduce", "-o", results(tmp_path, off=False), "--all")
    lines = said.out.partition("\n\n")[0].splitlines()
    assert len(lines) == ALL + 2
    assert any("(second hand)" in line and "not comparable" in line for line in lines)
    assert any("; how it was measured: memory 1024 x 10^3; " in line for line in lines)
    assert any("radio-v2.5-b" in line and "not in the registry" in line for line in lines)
    assert "nan" not in said.out.lower()


def test_without_records_nothing_was_run(cli: Cli, tmp_path: Path) -> None:
    said = cli("reproduce", "-o", tmp_path)
    assert said.code == 0
    assert said.out.splitlines() == [
        "No published number matches the run; --all lists them.",
        f"{ALL} published numbers: {ALL - NOT_COMPARABLE} not run, {NOT_COMPARABLE} not comparable",
    ]


def test_an_output_that_is_not_there_is_named(cli: Cli, tmp_path: Path) -> None:
    assert f"{tmp_path / 'none'}, which does not exist" in cli("reproduce", "-o", tmp_path / "none").error
    listed = cli("reproduce", "-o", tmp_path / "none", "--all", "-t", "retrieval", "-b", "dinov3-7b16")
    assert listed.code == 0  # what is published needs no run
    assert "dinov3-card" in listed.out
    assert not (tmp_path / "none").exists()


def test_csv_holds_every_number(cli: Cli, tmp_path: Path) -> None:
    said = cli("reproduce", "-o", results(tmp_path, off=False), "--format", "csv")
    frame = pd.read_csv(io.StringIO(said.out), dtype=str, keep_default_na=False)
    assert tuple(frame.columns) == COLUMNS
    assert len(frame) == ALL
    (row,) = frame[frame["verdict"] == "agrees"].to_dict("records")
    assert (row["measured"], row["ci_low"], row["measured_layer"]) == ("75.5", "75.0", "12")
    assert set(frame[frame["verdict"] == "not run"]["measured"]) == {""}
    assert "nan" not in said.out.lower()
    assert said.err.startswith(f"{ALL} published numbers: 1 agrees, ")


def test_json_holds_every_number_and_the_counts(cli: Cli, tmp_path: Path) -> None:
    said = cli("reproduce", "-o", results(tmp_path, off=False), "--format", "json")
    found = json.loads(said.out, parse_constant=pytest.fail)
    assert found["counts"]["agrees"] == 1
    assert sum(found["counts"].values()) == len(found["numbers"]) == ALL
    assert tuple(found["numbers"][0]) == COLUMNS
    absent = [row for row in found["numbers"] if row["measured"] is None]
    assert len(absent) == ALL - 3
    assert all(row["reason"] for row in absent)


def test_numbers_can_be_chosen(cli: Cli, tmp_path: Path) -> None:
    def chosen(*options: object) -> list[dict[str, str]]:
        said = cli("reproduce", "-o", tmp_path, "--format", "json", *options)
        return json.loads(said.out)["numbers"]

    assert {row["backbone"] for row in chosen("-b", "moco-*", "mae-b16")} == {
        "moco-s16",
        "moco-b16",
        "mae-b16",
    }
    assert {row["task"] for row in chosen("--tasks", "knn", "davis")} == {"knn", "davis"}
    assert {row["backbone"] for row in chosen("-b", "dino-b16", "-t", "knn")} == {"dino-b16"}


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without any run."""
    monkeypatch.chdir(tmp_path)


def test_all_numbers_are_written_without_a_run(cli: Cli, tmp_path: Path) -> None:
    said = cli("leaderboard", "--literature")
    assert (said.code, said.err) == (0, "")
    assert said.out.split() == ["results/tables/literature.html", "results/tables/literature.csv"]
    with Path("results/tables/literature.csv").open(encoding="utf-8", newline="") as file:
        assert len([*csv.DictReader(file)]) == len(all_published())


def test_records_may_beat_a_last_layer(cli: Cli) -> None:
    records = layers([70.0, 76.0, 74.5], backbone="dino-b16", dataset="imagenet")
    write_checked(to_frame(records), Path("out/records/dino-b16/knn.parquet"))
    words = ("--literature", "-o", "out", "--tables", "to")
    assert cli("leaderboard", *words).code == 0
    page = Path("to/literature.html").read_text(encoding="utf-8")
    assert "this run, standard" in page


def test_an_answer_for_keypoints_has_layers_and_sources(cli: Cli) -> None:
    said = cli("recommend", "--literature", "--task", "spair")
    assert said.code == 0
    first = next(line for line in said.out.splitlines() if "beit-l16" in line)
    assert first.split("  ")[-1].strip() == "teaching-matters, Table 5"
    assert all(text in first for text in ("spair 1 ", "1 of 20", "15 of 24", "37.52 PCK@0.1"))
    assert "arXiv:2212.03862" in said.out
    assert "Only numbers of one group may be ranked" in said.out


def test_some_backbones_keep_their_ranks_among_all(cli: Cli) -> None:
    words = ("--task", "spair", "-b", "dino-*", "--json")
    found = json.loads(cli("recommend", "--literature", *words).out)
    assert {row["backbone"] for row in found["published"]} == {"dino-b8", "dino-s8-300ep", "dino-b16"}
    assert found["published"][0]["rank"] == 4


def test_python_gives_the_same_rows(cli: Cli) -> None:
    found = layerboard.recommend("spair", literature=True, details=True)
    assert {"PCK@0.1", "PCK@0.05", "PCK@0.01"} < set(found.frame["metric"])
    short = layerboard.recommend("spair", literature=True)
    assert len(short.frame) == 9
    printed = json.loads(cli("recommend", "--literature", "-t", "spair", "--json").out)
    assert [row["value"] for row in printed["published"]] == short.frame["value"].tolist()


def test_a_licence_leaves_others_out() -> None:
    free = layerboard.recommend("knn", literature=True, licence="commercial", details=True).frame
    assert {"dinov2-g14", "dino-b16"} <= set(free["backbone"])
    assert not {"mae-b16", "dinov3-l16", "deit3-b16-384"} & set(free["backbone"])
