"""One best: report, page, show, recommend, compare, LaTeX and CSV name the same layer, pooling and score."""

import html
import re
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

import layerboard
from layerboard.benchmark.commands.command import records_of
from layerboard.leaderboards.blocks.csv import read_numbers
from layerboard.leaderboards.blocks.display import fixed, place_text, score_text
from layerboard.leaderboards.board.tidy import TIDY
from layerboard.tasks.analyses.cost import CostTask
from layerboard.zoo.spec import FLOORS
from tests import fakes
from tests.benchmark.runs import run
from tests.benchmark.test_cost import RULE

RANKED = ["value", "primary", "layer"]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output folder of three folders of small images, in all poolings, and with costs."""
    root = tmp_path_factory.mktemp("own")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CostTask, "by", classmethod(lambda cls, protocol, data, row: cls(None, RULE, row=row)))
        return measured(root)


def measured(root: Path) -> Path:
    """The folder of a run in which times are measured once."""
    fakes.write_fake_class_folders(root / "images", classes=3, images=16)
    tasks = ("knn", "fewshot", "instances", "cost")
    options = {"images": [root / "images"], "layers": "1,3", "shots": (10,), "floor": True}
    records = run(root, ["mini-fs", "mini-resnet"], *tasks, pages=True, **options)
    assert {"cls", "mean", "all"} <= {*records["pooling"]}
    return root / "out"


@cache
def report_of(output: Path) -> str:
    """The text of the report of a folder that no test changes."""
    (path,) = layerboard.report(output=output).paths
    return path.read_text()


@cache
def best_of(output: Path) -> pd.DataFrame:
    """The best layer and pooling of each backbone and task, from the records alone."""
    rows = records_of(output)
    entries = layerboard.best(output=output).frame[["task", "dataset", "protocol", "metric"]]
    rows = rows.merge(entries)
    rows = rows[(rows["tap"] == "block") & (rows["layer"] > 0) & rows["value"].notna()]
    rows = rows[~rows["family"].isin(FLOORS) & (rows["transform"] == "")]
    rows = rows.sort_values(RANKED, ascending=[False, False, True], kind="stable")
    return rows.drop_duplicates(["backbone", "task", "dataset"])


def plain(text: str) -> str:
    """HTML, Markdown or LaTeX as words with single spaces."""
    text = html.unescape(re.sub(r"<[^>]+>", " ", text)).replace(r"$\pm$", "±").replace(r"\%", "%")
    return " ".join(re.sub(r"[*|≈]|\\textbf\{|\}", " ", text).split())


def test_every_table_names_the_best_layer_and_pooling_of_each_backbone(own: Path) -> None:
    best = best_of(own)
    assert {"cls", "mean"} <= {*best["pooling"]}
    (page,) = [path for path in (own / "tables").glob("*.md") if path.suffixes == [".md"]]
    latex = "".join(path.read_text() for path in layerboard.export(output=own, form="latex").paths)
    texts = {"page": plain(page.read_text()), "report": plain(report_of(own)), "latex": plain(latex)}
    for row in best.to_dict("records"):
        score = score_text(row["value"], row["ci_low"], row["ci_high"])
        cell = f"{score} ({place_text(row['layer'], row['depth'], row['pooling'])})"
        for name, text in texts.items():
            assert cell in text, (name, row["backbone"], row["task"])


def test_the_csv_marks_it(own: Path) -> None:
    (table,) = [path for path in (own / "tables").glob("*.csv") if path.suffixes == [".csv"]]
    marked = read_numbers(table, TIDY).query("best == 'True'")
    place = ["backbone", "task", "layer", "pooling"]
    expected = best_of(own).astype({"layer": str})
    assert sorted(map(tuple, marked[place].to_numpy())) == sorted(map(tuple, expected[place].to_numpy()))


def test_show_card_and_recommend_name_the_same(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    best = best_of(own)
    listed = report_of(own).partition('<ol class="cards">')[2].partition("</ol>")[0]
    cards = listed.split('<li class="card">')[1:]
    answers = layerboard.best(output=own)
    (table,) = [path for path in (own / "tables").glob("*.csv") if path.suffixes == [".csv"]]
    primary = read_numbers(table, TIDY).query("best != ''")
    scores = primary.set_index(["task", "dataset", "backbone", "layer", "tap", "pooling"])
    layerboard.show(output=own)
    shown = capsys.readouterr().out
    for answer, card in zip(answers.frame.to_dict("records"), cards, strict=True):
        rows = best[(best["task"] == answer["task"]) & (best["dataset"] == answer["dataset"])]
        row = rows[rows["backbone"] == answer["backbone"]].iloc[0]
        assert row["value"] == rows["value"].max()
        assert (answer["layer"], answer["pooling"], answer["score"]) == (
            row["layer"],
            row["pooling"],
            row["value"],
        )
        score = score_text(row["value"], row["ci_low"], row["ci_high"])
        named = rf"{answer['backbone']} +{row['layer']}/{row['depth']} +{row['pooling']} +{re.escape(score)}"
        assert re.search(named, shown)
        words = plain(card)
        assert f"{answer['backbone']} , layer {row['layer']} of {row['depth']}, {row['pooling']}" in words
        number, _, rest = score.partition(" ")
        assert f"{number} % {rest}".strip() in words
        place = [answer["task"], answer["dataset"], answer["backbone"]]
        stored = scores.loc[(*place, str(row["layer"]), "block", row["pooling"])]
        assert stored["loss"] == fixed(answer["loss"], 4)
        if stored["loss"]:
            assert re.search(rf"{re.escape(score)} +{answer['loss']:.1f} ", shown)
        assert bool(answer["thresholds"]) == (answer["task"] == "instances")
        assert answer["thresholds"] in words
        advice = layerboard.recommend(answer["task"], output=own, within="loss=0")
        pick = advice.frame[advice.frame["dataset"] == answer["dataset"]].iloc[0]
        place = [answer["task"], answer["dataset"], pick["backbone"]]
        stored = scores.loc[(*place, str(pick["layer"]), "block", pick["pooling"])]
        assert (stored["value"], stored["loss"]) == (fixed(pick["score"], 4), fixed(pick["loss"], 4))
        assert f'layer={pick["layer"]}, pooling="{pick["pooling"]}"' in advice.code[0]
        assert pick["thresholds"] in advice.code[0]
        if (pick["backbone"], pick["layer"]) == (answer["backbone"], answer["layer"]):
            assert pick["thresholds"] == answer["thresholds"]
            assert pd.isna([pick["ms"], answer["milliseconds"]]).all() or pick["ms"] == answer["milliseconds"]


def test_compare_names_the_same(own: Path) -> None:
    best = best_of(own).set_index(["task", "backbone"])
    found = layerboard.compare("mini-fs", "mini-resnet", output=own).frame
    assert len(found)
    for row in found.to_dict("records"):
        first, second = (best.loc[row["task"], name] for name in ("mini-fs", "mini-resnet"))
        assert (row["layer"], row["pooling"]) == (first["layer"], first["pooling"])
        assert (row["other_layer"], row["other_pooling"]) == (second["layer"], second["pooling"])


def test_failures_are_those_of_the_layer_that_is_shown(own: Path) -> None:
    found = layerboard.best(output=own, failures=True)
    named = {
        f"{row['task']} {row['metric']}, {row['backbone']} layer {row['layer']} {row['pooling']}"
        for row in found.frame.to_dict("records")
    }
    titles = {part.title.partition(":")[0] for part in found.parts}
    assert titles <= named
    assert titles or all(found.frame["score"] == 100)


def test_every_vector_that_is_scored_can_be_loaded(own: Path) -> None:
    rows = records_of(own)
    rows = rows[rows["primary"].astype(bool).groupby(rows["task"]).transform("any") & rows["value"].notna()]
    rows = rows[~rows["family"].isin(FLOORS) & ~rows["analysis"].astype(bool)]
    scored = {*zip(rows["backbone"], rows["pooling"], strict=True)}
    assert scored == {("mini-resnet", "mean"), *(("mini-fs", name) for name in ("cls", "mean", "all"))}
    for backbone, pooling in sorted(scored):
        assert layerboard.load(backbone, layer=1, pooling=pooling, device="cpu").pooling == pooling
