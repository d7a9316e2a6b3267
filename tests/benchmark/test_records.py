"""What records say follows from the run: rules, scores from items, and one results version on a page."""

from collections.abc import Mapping
from dataclasses import replace
from math import nan
from pathlib import Path

import numpy as np
import pytest

import layerboard
from layerboard.benchmark.records.records import assess_items, interpolation_of
from layerboard.leaderboards.board.frames import is_floor
from layerboard.leaderboards.exchange.merge import StoredResult, results_of
from layerboard.leaderboards.records.checksum import results_version
from layerboard.leaderboards.records.items import read_items
from layerboard.leaderboards.records.record import read_records
from layerboard.tasks.framework.assess import score_of
from layerboard.tasks.framework.base import Items
from layerboard.zoo.errors import InputError
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec.origin import OBJECT
from tests.benchmark.conftest import Whole, copy_results
from tests.benchmark.runs import run

RULES = {"dinov2-b14": "dino", "fs-b16": "timm", "openclip-b16": "timm", "resnet50": "", "random": ""}
RULES |= dict.fromkeys(("deit-b16", "mini-dino"), "huggingface")


@pytest.mark.parametrize(("name", "rule"), RULES.items())
def test_records_say_the_rule(name: str, rule: str) -> None:
    (spec,) = find([name])
    assert interpolation_of(spec) == rule
    assert interpolation_of(replace(spec, origin=OBJECT)) == ""


CLOSE = 1e-5  # relative tolerance for numbers of one machine whose items are rounded to float32
UNCHOSEN = {"ci_low": nan, "ci_high": nan, "chosen": nan, "held_out": nan, "maybe_best": False}


def test_every_score_of_a_run_follows_from_its_items(whole: Whole) -> None:
    found = {result.name.as_posix(): rescored(result) for result in results_of(whole.place / "out")}
    assert [sentence for _, problems in found.values() for sentence in problems] == []
    assert sum(count > 0 for count, _ in found.values()) >= 10
    assert all(count for name, (count, _) in found.items() if "/knn." in name)


def rescored(result: StoredResult) -> tuple[int, list[str]]:
    """The number of records of a result that follow from its items, and a sentence for each contradiction.

    Comparisons, costs and some analyses have no items; all other scores of the leaderboard need them.
    """
    rows = result.records
    metrics = sorted({*rows.loc[rows["primary"] & ~rows["analysis"], "metric"]})
    items = read_items(result.companion("items")) if "items" in result.companions else {}
    assessed = {} if is_floor(rows).any() else assess_items(items, metrics[0] if metrics else None)
    count, problems = 0, []
    for row in rows.to_dict("records"):
        layer = row["layer"], row["tap"], row["pooling"]
        statistic = row["metric"] if row["head"] < 0 else f"{row['metric']} of head {row['head']}"
        where = f"{result.name}: {row['metric']} of layer {row['layer']} {row['tap']} ({row['pooling']})"
        measured = items.get(layer)
        if measured is None or statistic not in measured.statistics:
            if row["metric"] in metrics and not row["other"] and not np.isnan(row["value"]):
                problems.append(f"{where} has a score without items")
            continue
        count += 1
        again = {**UNCHOSEN, **_number(measured, statistic), **assessed.get((layer, statistic), {})}
        problems += [
            f"{where} has {name} {row[name]:.6g}, its items give {number:.6g}"
            for name, number in again.items()
            if not np.isclose(float(row[name]), float(number), rtol=CLOSE, atol=CLOSE / 10, equal_nan=True)
        ]
    return count, problems


def _number(items: Items, statistic: str) -> Mapping[str, float]:
    """The value of a metric, and its number of units."""
    column, over = items.statistics[statistic].column, items.statistics[statistic].over
    there = ~np.isnan(items.values[column]) if column in items.values else np.ones(len(items.keys), bool)
    units = {name for name, known in zip(items.clusters, there, strict=True) if known}
    return {"value": score_of(items, statistic), "n": len(units) if over == "clusters" else int(there.sum())}


MODULES = ("leaderboards.records.checksum", "benchmark.jobs.prepare")
OLD = "has results version 1, this layerboard 2"


@pytest.fixture
def old(whole: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An output folder of two backbones' k-NN, and a package whose results version is one higher."""
    copy_results(whole, tmp_path / "old" / "out", "knn")
    for module in MODULES:
        monkeypatch.setattr(f"layerboard.{module}.RESULTS_VERSION", 2)
    return tmp_path / "old"


@pytest.fixture
def new(old: Path, data: Path) -> Path:
    """What the newer package measured."""
    place = old.parent / "new"
    run(place, ["mini-fs"], "knn", data=data, examples=False)
    return place


def versions(output: Path) -> set[int]:
    return {results_version(path.read_bytes()) for path in (output / "records").rglob("*.parquet")}


def test_a_run_measures_them_again(old: Path, data: Path) -> None:
    assert versions(old / "out") == {1}
    run(old, ["mini-fs", "mini-resnet"], "knn", data=data, examples=False)
    assert versions(old / "out") == {2}


def test_a_run_that_would_leave_some_is_refused_before_it_measures(old: Path, data: Path) -> None:
    with pytest.raises(InputError, match=f"mini-resnet.*{OLD}, and this run does not measure it again"):
        run(old, ["mini-fs"], "knn", data=data, examples=False)
    assert versions(old / "out") == {1}


def test_they_are_not_merged_in_any_order(old: Path, new: Path, tmp_path: Path) -> None:
    for folders in ([old, new], [new, old]):
        with pytest.raises(InputError, match="its numbers have results version 1, those of today 2"):
            layerboard.merge([each / "out" for each in folders], output=tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_nothing_is_merged_into_a_folder_that_keeps_some(old: Path, new: Path) -> None:
    before = {path: path.read_bytes() for path in old.rglob("*.*")}
    with pytest.raises(InputError, match="its numbers have results version 1, those of today 2"):
        layerboard.merge([new / "out", new / "out"], output=old / "out")
    assert {path: path.read_bytes() for path in old.rglob("*.*")} == before


def test_they_are_neither_compared_nor_shown(old: Path) -> None:
    for read in (
        lambda: layerboard.compare("mini-fs", "mini-resnet", output=old / "out"),
        lambda: layerboard.report(output=old / "out"),
        lambda: read_records([old / "out" / "records"]),
    ):
        with pytest.raises(InputError, match="its numbers have results version 1, those of today 2"):
            read()
