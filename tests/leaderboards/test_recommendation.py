"""Recommendations in words: reasons, tables and frames of planted picks."""

import math

from leaderboards.display import count_text, ms_text
from leaderboards.recommendation import (
    PARETO,
    PICK,
    Pick,
    Possible,
    Recommendation,
    pareto_table,
    pick_table,
    picks_of,
)
from leaderboards.scores.costs import pareto_front
from tests.leaderboards.builder import NAN
from tests.leaderboards.scores.test_picks import KNN, SPAIR, candidates


def recommendation(*picks: Pick, **possible: Possible) -> Recommendation:
    columns = {"knn": KNN, "spair": SPAIR}
    found = {columns[name]: one for name, one in possible.items()}
    fronts = {column: pareto_front(one.rows) for column, one in found.items()}
    picks = picks or picks_of(found)
    return Recommendation(picks, found, fronts, "", (), tuple("" for _ in picks))


def reasons(found: Recommendation) -> list[str]:
    return [found.reason(pick) for pick in found.picks]


def test_the_reason_names_the_best_and_what_is_saved() -> None:
    rows = candidates(("clip-b16", 11, 61.2, 9.8), ("dino-s16", 8, 60.4, 4.13))
    assert reasons(recommendation(knn=Possible(rows))) == [
        "cannot be told from clip-b16 layer 11 (61.2 ± 1.0), takes 4.13 ms instead of 9.80",
        "scores best, 61.2 ± 1.0",
    ]


def test_without_times_weights_are_told_and_without_these_depths() -> None:
    rows = candidates(("a", 11, 61, NAN), ("a", 8, 60, NAN), ("b", 3, 60, NAN), parameters=2e6)
    rows.loc[2, "parameters"] = 86_600_000
    small, large = reasons(recommendation(knn=Possible(rows)))
    assert small == "cannot be told from a layer 11 (61.0 ± 1.0), ends at layer 8 instead of 11"
    assert large == "cannot be told from a layer 11 (61.0 ± 1.0), has 86.6M weights instead of 2M"
    rows["parameters"] = NAN
    assert "ends at layer 3 of 12" in reasons(recommendation(knn=Possible(rows)))[0]


def test_several_tasks_have_a_reason_each() -> None:
    found = recommendation(
        knn=Possible(candidates(("a", 9, 61, 9))),
        spair=Possible(candidates(("b", 2, 31, 3), ("a", 4, 30, 4))),
    )
    (reason,) = reasons(found)
    assert reason == (
        "knn top-1: scores best, 61.0 ± 1.0; spair PCK@0.1: cannot be told from b layer 2 (31.0 ± 1.0), "
        "takes 4.00 ms against 3.00; no one of its layers will do for all, take layers 4 and 9"
    )
    (row,) = pick_table(found).to_dict("records")
    assert row["layer"] == "4, 9/12"
    assert (row["ms"], row["dim"], row["GB a million"]) == ("9.00", "96", "0.38")
    assert found.frame[["rank", "backbone", "task", "layer", "ms", "bytes"]].to_numpy().tolist() == [
        [1, "a", "knn", 9, 9.0, 384.0],
        [1, "a", "spair", 4, 4.0, 384.0],
    ]
    assert list(found.frame.columns) == PICK


def test_a_compromise_says_that_it_is_one() -> None:
    rows = candidates(("a", 9, 61, 9))
    found = recommendation(Pick("a", {KNN: rows.iloc[0]}, loss=3.14), knn=Possible(rows))
    assert reasons(found) == [
        "no backbone may be the best in every task; it loses least: at most 3.1 points below the best"
    ]
    assert found.frame["loss"].tolist() == [3.14]


def test_the_front_marks_what_may_be_the_best() -> None:
    rows = candidates(("a", 9, 61, 9), ("a", 8, 60, 8))
    fronts = {KNN: candidates(("b", 1, 20, 1), ("a", 8, 60, 8), ("a", 9, 61, 9))}
    found = Recommendation((), {KNN: Possible(rows)}, fronts, "", (), ())
    assert pareto_table(found, KNN)["knn top-1"].tolist() == ["20.0 ± 1.0", "60.0 ± 1.0 ≈", "61.0 ± 1.0 ≈"]
    assert found.pareto["may_be_best"].tolist() == [False, True, True]
    assert list(found.pareto.columns) == PARETO
    assert Recommendation((), {}, {}, "", (), ()).pareto.empty


def test_numbers_as_text() -> None:
    assert [ms_text(value) for value in (0.128, 4.0, 10.04, math.nan)] == ["0.13", "4.00", "10.0", ""]
    assert [count_text(value) for value in (12, 1500, 1_367_136, 7e9, math.nan)] == [
        *("12", "1.5K", "1.37M", "7G", "")
    ]
