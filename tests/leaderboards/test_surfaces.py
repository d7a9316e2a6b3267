"""Every surface of an output folder tells the same: show, recommend, compare, report, pages and files."""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import layerboard
from layerboard.leaderboards.blocks.csv import read_numbers
from layerboard.leaderboards.blocks.display import fixed, loss_text, place_text, score_text
from layerboard.leaderboards.board.tidy import TIDY
from tests.benchmark.runs import command, leave_drawing_out
from tests.leaderboards.outputs import measured_items, records_of, write_output

FOLDERS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "several backbones, poolings, a set": lambda records: records,
    "one backbone": lambda records: records[records["backbone"].isin(["mini-clip"])],
    "two suites": lambda records: records.assign(suite="mini\nother"),
    "a limited run": lambda records: records.assign(partial=True),
    "one pooling": lambda records: records[records["pooling"] != "mean"],
}


@pytest.fixture(scope="module", params=FOLDERS.values(), ids=FOLDERS)
def output(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output folder with records, items, pages and the report of its suite."""
    folder, every = tmp_path_factory.mktemp("surfaces"), measured_items()
    with pytest.MonkeyPatch.context() as patch:
        leave_drawing_out(patch)
        write_output(request.param(records_of(every)), every, folder)
        layerboard.report(output=folder, suite="mini")
    return folder


@pytest.fixture(scope="module")
def answers(output: Path) -> list[dict[str, Any]]:
    """What Python says of each column of each suite."""
    return layerboard.best(output=output).frame.to_dict("records")


def plain(text: str) -> str:
    """HTML, Markdown or LaTeX as words with single spaces and without marks."""
    text = re.sub(r"<[^>]+>", " ", text).replace(r"$\pm$", "±").replace(r"\%", "%")
    return " ".join(re.sub(r"[*|≈]|\\textbf\{|\}|\$\^\{\\approx\$", " ", text).split())


def cell(answer: dict[str, Any]) -> str:
    """The best of a column as tables of a page show it."""
    score = score_text(answer["score"], answer["ci_low"], answer["ci_high"])
    return f"{score} ({place_text(answer['layer'], answer['depth'], answer['pooling'])})"


def test_pages_and_latex_show_the_best(output: Path, answers: list[dict[str, Any]]) -> None:
    latex = plain("".join(path.read_text() for path in layerboard.export("latex", output=output).paths))
    report = plain((output / "report" / "mini.html").read_text())
    for answer in answers:
        page = plain((output / "tables" / f"{answer['suite']}.md").read_text())
        assert all(cell(answer) in text for text in (page, report, latex))
        if answer["loss"]:
            assert f"loses at most {loss_text(answer['loss'])} points" in report


def test_the_advice_is_one_on_the_screen_in_a_ticket_and_on_the_page(
    output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    advice = layerboard.recommend(output=output)
    first = advice.frame[advice.frame["rank"] == 1].to_dict("records")
    (backbone,) = {row["backbone"] for row in first}
    report = plain((output / "report" / "mini.html").read_text())
    ticket = command(capsys, "recommend", "-o", output, "--markdown").out
    screen = command(capsys, "recommend", "-o", output).out
    assert f"One backbone for all {len(first)} tasks: {backbone}" in report
    places = [f"layer {row['layer']} {row['pooling']} ({row['task']})" for row in first]
    assert f"**Take {backbone}: {', '.join(places)}**" in ticket
    assert "it scores best in every task" in ticket  # no compromise
    for row in first:
        score = score_text(row["score"], row["ci_low"], row["ci_high"])
        mark = " †" if row["partial"] else ""
        assert f"{row['task']} {row['metric']}{mark} {score} (" in ticket
        cells = [backbone, f"{row['layer']}/{row['depth']}", row["pooling"], score, loss_text(row["loss"])]
        assert " ".join(cells) in " ".join(screen.split())
        assert f'"{backbone}", layer={row["layer"]}, pooling="{row["pooling"]}"' in ticket


def test_show_prints_what_python_and_json_say(
    output: Path, answers: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    suites = json.loads(command(capsys, "show", "-o", output, "--json").out)
    told = [{"suite": each["suite"], **answer} for each in suites for answer in each["answers"]]
    shown = command(capsys, "show", "-o", output).out
    for answer, other in zip(answers, told, strict=True):
        for name in ("suite", "task", "backbone", "layer", "pooling", "score"):
            assert other[name] == answer[name]
        for name in ("loss", "held_out", "milliseconds"):
            assert other[name] == pytest.approx(answer[name]) or (
                other[name] is None and pd.isna(answer[name])
            )
        assert [*other["rivals"]] == [*answer["rivals"]]
        assert [*other["baselines"]] == [*answer["baselines"]]
        row = [f"{answer['layer']}/{answer['depth']}", answer["pooling"], cell(answer).partition(" (")[0]]
        row += [loss_text(answer["loss"]), fixed(answer["milliseconds"], 2)]
        assert " ".join(row) in " ".join(shown.split())


def test_the_csv_says_the_same_of_the_best(output: Path, answers: list[dict[str, Any]]) -> None:
    for answer in answers:
        rows = read_numbers(output / "tables" / f"{answer['suite']}.csv", TIDY)
        for name in ("task", "dataset", "protocol", "metric", "backbone"):
            rows = rows[rows[name] == answer[name]]
        (best,) = rows[rows["best"] == "True"].to_dict("records")
        assert (best["layer"], best["pooling"]) == (str(answer["layer"]), answer["pooling"])
        numbers = {"value": "score", "ci_low": "ci_low", "loss": "loss", "held_out": "held_out"}
        assert [best[name] for name in numbers] == [fixed(answer[name], 4) for name in numbers.values()]
        may = rows[(rows["maybe_best"] == "True") & (rows["pooling"] == answer["pooling"])]
        if best["loss"]:
            assert {*may["layer"].astype(int)} == {answer["layer"], *answer["layers"]}


def test_recommend_and_compare_choose_from_the_same(output: Path, answers: list[dict[str, Any]]) -> None:
    compare = cache(lambda *backbones: layerboard.compare(*backbones, output=output).frame)  # of all tasks
    for answer in answers:
        if answer["suite"] != answers[0]["suite"]:
            continue
        advice = layerboard.recommend(answer["task"], output=output, within="loss=0").frame
        pick = advice.iloc[0]
        if (pick["backbone"], pick["layer"], pick["pooling"]) == tuple(
            answer[name] for name in ("backbone", "layer", "pooling")
        ):
            assert fixed(pick["score"], 4) == fixed(answer["score"], 4)
            assert fixed(pick["loss"], 4) == fixed(answer["loss"], 4)
        for rival in answer["rivals"]:
            compared = compare(answer["backbone"], rival)
            (row,) = compared[compared["task"] == answer["task"]].to_dict("records")
            assert (row["layer"], row["pooling"]) == (answer["layer"], answer["pooling"])
            assert row["score"] == pytest.approx(answer["score"])
            assert not row["higher"]  # the other one may be the best itself
