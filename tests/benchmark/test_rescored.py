"""Scores, intervals and choices of a run's records are what its items give."""

from collections.abc import Mapping
from dataclasses import replace
from math import nan

import numpy as np

from layerboard.benchmark.records.records import assess_items
from layerboard.leaderboards.board.frames import is_floor
from layerboard.leaderboards.exchange.merge import StoredResult, results_of
from layerboard.leaderboards.records.items import read_items
from layerboard.tasks.framework.assess import score_of
from layerboard.tasks.framework.base import Items
from tests.benchmark.conftest import Whole

CLOSE = 1e-5  # relative tolerance for numbers of one machine whose items are rounded to float32
UNCHOSEN = {"ci_low": nan, "ci_high": nan, "chosen": nan, "held_out": nan, "maybe_best": False}


def test_every_score_of_a_run_follows_from_its_items(whole: Whole) -> None:
    found = {result.name.as_posix(): rescored(result) for result in results_of(whole.place / "out")}
    assert [sentence for _, problems in found.values() for sentence in problems] == []
    assert sum(count > 0 for count, _ in found.values()) >= 10
    assert all(count for name, (count, _) in found.items() if "/knn." in name)


def test_a_score_that_does_not_follow_is_told(whole: Whole) -> None:
    result = next(each for each in results_of(whole.place / "out") if each.name.name.startswith("knn."))
    for column in ("value", "n"):
        changed = replace(result, records=result.records.assign(**{column: result.records[column] + 1}))
        assert f"has {column} " in rescored(changed)[1][0]


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
