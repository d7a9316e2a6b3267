"""The best of a real run with costs: the records alone say which it is, and all that answers names it.

That all surfaces of an output folder tell the same is in `tests.leaderboards.test_surfaces`.
"""

import html
import re
from pathlib import Path

import pandas as pd
import pytest

import layerboard
from layerboard.benchmark.commands.command import records_of
from layerboard.leaderboards.blocks.display import pooling_name, score_text
from layerboard.tasks.analyses.cost import CostTask
from layerboard.zoo.spec import FLOORS
from tests import fakes
from tests.benchmark.runs import run
from tests.benchmark.test_cost import RULE


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output folder of small images in class folders, in all poolings, and with times measured once."""
    root = tmp_path_factory.mktemp("own")
    fakes.write_fake_class_folders(root / "images", classes=3, images=16)
    tasks = ("knn", "fewshot", "instances", "cost")
    options = {"images": [root / "images"], "layers": "1,3", "shots": (10,), "floor": True}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CostTask, "by", classmethod(lambda cls, protocol, data, row: cls(None, RULE, row=row)))
        records = run(root, ["mini-fs", "mini-resnet"], *tasks, pages=True, **options)
    assert {"cls", "mean", "all"} <= {*records["pooling"]}
    return root / "out"


@pytest.fixture(scope="module")
def best(own: Path) -> pd.DataFrame:
    """The best layer and pooling of each backbone and task, from the records alone."""
    entries = layerboard.best(output=own).frame[["task", "dataset", "protocol", "metric"]]
    rows = records_of(own).merge(entries)
    rows = rows[(rows["tap"] == "block") & (rows["layer"] > 0) & rows["value"].notna()]
    rows = rows[~rows["family"].isin(FLOORS) & (rows["transform"] == "")]
    rows = rows.sort_values(["value", "primary", "layer"], ascending=[False, False, True], kind="stable")
    rows = rows.drop_duplicates(["backbone", "task", "dataset"])
    assert {"cls", "mean"} <= {*rows["pooling"]}
    return rows


def test_the_answer_is_the_best_of_the_records_also_on_its_card(own: Path, best: pd.DataFrame) -> None:
    (path,) = layerboard.report(output=own).paths
    listed = path.read_text().partition('<ol class="cards">')[2].partition("</ol>")[0]
    cards = listed.split('<li class="card">')[1:]
    for answer, card in zip(layerboard.best(output=own).frame.to_dict("records"), cards, strict=True):
        rows = best[(best["task"] == answer["task"]) & (best["dataset"] == answer["dataset"])]
        row = rows[rows["backbone"] == answer["backbone"]].iloc[0]
        found = answer["layer"], answer["pooling"], answer["score"]
        assert found == (row["layer"], row["pooling"], row["value"])
        assert row["value"] == rows["value"].max()
        words = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", card)).split())
        vectors = pooling_name(row["pooling"])
        assert f"{answer['backbone']} , layer {row['layer']} of {row['depth']}, {vectors}" in words
        assert f"{score_text(row['value'], row['ci_low'], row['ci_high'])} %" in words
        assert bool(answer["thresholds"]) == (answer["task"] == "instances")
        assert answer["thresholds"] in words


def test_recommend_has_the_thresholds_and_the_times_of_the_best(own: Path) -> None:
    for answer in layerboard.best(output=own).frame.to_dict("records"):
        advice = layerboard.recommend(answer["task"], output=own, within="loss=0")
        pick = advice.frame[advice.frame["dataset"] == answer["dataset"]].iloc[0]
        assert f'layer={pick["layer"]}, pooling="{pick["pooling"]}"' in advice.code[0]
        assert pick["thresholds"] in advice.code[0]
        if (pick["backbone"], pick["layer"]) == (answer["backbone"], answer["layer"]):
            assert pick["thresholds"] == answer["thresholds"]
            assert pd.isna([pick["ms"], answer["milliseconds"]]).all() or pick["ms"] == answer["milliseconds"]


def test_compare_names_the_best_of_each(own: Path, best: pd.DataFrame) -> None:
    rows = best.set_index(["task", "backbone"])
    found = layerboard.compare("mini-fs", "mini-resnet", output=own).frame
    assert len(found)
    for row in found.to_dict("records"):
        first, second = (rows.loc[row["task"], name] for name in ("mini-fs", "mini-resnet"))
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
