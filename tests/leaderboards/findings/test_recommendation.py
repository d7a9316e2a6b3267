"""Recommendations in words: reasons, tables and frames of planted picks."""

import math
from dataclasses import replace

from layerboard.leaderboards.blocks.display import bytes_text, count_text, ms_text
from layerboard.leaderboards.board.costs import pareto_front
from layerboard.leaderboards.findings.recommendation import (
    PICK,
    Compared,
    Pick,
    Recommendation,
    pareto_table,
    pick_table,
    picks_of,
)
from tests.leaderboards.builder import NAN
from tests.leaderboards.findings.test_picks import KNN, SPAIR, compared, shown


def recommendation(*picks: Pick, **possible: Compared) -> Recommendation:
    columns = {"knn": KNN, "spair": SPAIR}
    found = {columns[name]: one for name, one in possible.items()}
    fronts = {column: pareto_front(one.rows) for column, one in found.items()}
    picks = picks or picks_of(found)
    return Recommendation(picks, found, fronts, "", (), tuple("" for _ in picks))


def reasons(found: Recommendation) -> list[str]:
    return [found.reason(pick) for pick in found.picks]


def test_the_reason_names_the_best_and_what_is_lost_and_saved() -> None:
    found = recommendation(knn=shown(("clip-b16", 11, 61.2, 9.8), ("dino-s16", 8, 60.4, 4.13)))
    assert reasons(found) == [
        "loses at most 0.8 points, 0.8 points below clip-b16 layer 11 cls (61.2 ± 1.0), "
        "4.13 ms instead of 9.80",
        "scores best, 61.2 ± 1.0, shown to be the best, 9.80 ms an image",
    ]
    assert pick_table(found)["loses at most"].tolist() == ["0.8", "0.0"]


def test_without_times_weights_are_told_and_without_these_depths() -> None:
    rows = shown(("b", 11, 61, NAN), ("b", 8, 60, NAN), ("a", 3, 60.5, NAN), parameters=2e6).rows
    rows.loc[rows["backbone"] == "a", "parameters"] = 1_600_000
    small, *_ = reasons(recommendation(knn=compared(rows, 2)))
    weights = "about 1.6M parameters instead of about 2M"
    below = "loses at most 0.5 points, 0.5 points below b layer 11 cls (61.0 ± 1.0)"
    assert small == f"{below}, {weights}"
    rows["parameters"] = NAN
    texts = reasons(recommendation(knn=compared(rows, 2)))
    assert texts[0].endswith("layer 3 of 12")
    (text,) = reasons(recommendation(knn=compared(rows[rows["backbone"] == "b"], 2)))
    assert text == "loses at most 1.0 points, 1.0 points below b layer 11 cls (61.0 ± 1.0), layer 8 of 12"


def test_several_tasks_have_a_reason_each() -> None:
    found = recommendation(knn=shown(("a", 9, 61, 9)), spair=shown(("b", 2, 31, 3), ("a", 4, 30, 4)))
    (reason,) = reasons(found)
    assert reason == (
        "knn top-1: scores best, 61.0 ± 1.0, shown to be the best, 9.00 ms an image; "
        "spair PCK@0.1: loses at most 1.0 points, 1.0 points below b layer 2 cls (31.0 ± 1.0), "
        "4.00 ms against 3.00; no single layer is enough for all tasks, use layers 4 cls and 9 cls"
    )
    (row,) = pick_table(found).to_dict("records")
    assert (row["layer"], row["pooling"]) == ("4, 9/12", "cls")
    assert (row["ms"], row["dim"], row["a vector"], row["an image"]) == ("9.00", "96", "384 B", "384 B")
    (summary,) = map(found.summary, found.picks)
    assert summary == (
        "at worst, spair PCK@0.1: loses at most 1.0 points, 1.0 points below b layer 2 cls (31.0 ± 1.0), "
        "4.00 ms against 3.00"
    )
    assert found.frame[["rank", "backbone", "task", "layer", "ms", "bytes", "loss"]].to_numpy().tolist() == [
        [1, "a", "knn", 9, 9.0, 384.0, 0.0],
        [1, "a", "spair", 4, 4.0, 384.0, 1.0],
    ]
    assert list(found.frame.columns) == PICK


def test_tasks_that_show_other_sizes_take_a_pass_each() -> None:
    """The slower of two layers at one size provides both; a disturbed time is marked where it is said."""
    rows = {
        "knn": shown(("a", 9, 61, 9), timed_at="64 x 64"),
        "spair": shown(("a", 4, 30, 14), timed_at="128 x 128", disturbed=True, pooling="grid", tokens=256.0),
    }
    found = recommendation(**rows)
    (reason,), (row,) = reasons(found), pick_table(found).to_dict("records")
    assert "shown to be the best, 9.00 ms an image at 64 x 64; spair" in reason
    assert "shown to be the best, 14.0 ms an image at 128 x 128 (disturbed); " in reason
    assert (row["ms"], row["at, px"]) == ("23.0 (disturbed)", "2 sizes")
    assert (row["a vector"], row["an image"]) == ("384 B", "384 B, 98.3 kB")
    assert found.frame["image_bytes"].tolist() == [384, 384 * 256]
    (summary,) = map(found.summary, found.picks)
    best = "scores best, 61.0 ± 1.0, shown to be the best"
    assert summary == f"at worst, knn top-1: {best}, 9.00 ms an image at 64 x 64"
    alike = recommendation(**rows | {"spair": shown(("a", 4, 30, 4), timed_at="64 x 64")})
    (row,) = pick_table(alike).to_dict("records")
    assert (row["ms"], row["at, px"]) == ("9.00", "64 x 64")


def test_a_better_layer_that_limits_leave_out_is_said() -> None:
    found = shown(("z", 7, 64.5, 20), ("b", 9, 61, 9), ("a", 4, 60, 4))
    left = replace(found, rows=found.rows[1:].reset_index(drop=True))
    assert reasons(recommendation(knn=left)) == [
        "loses at most 4.5 points, 4.5 points below z layer 7 cls (64.5 ± 1.0), which the limits leave out, "
        "4.00 ms instead of 20.0",
        "loses at most 3.5 points, 3.5 points below z layer 7 cls (64.5 ± 1.0), which the limits leave out, "
        "9.00 ms instead of 20.0",
    ]


def test_a_compromise_says_that_it_is_one() -> None:
    rows = shown(("b", 9, 61, 9), ("a", 9, 57.86, 9)).rows.assign(loss=[0, math.nan])
    found = recommendation(Pick("a", {KNN: rows.iloc[1]}, compromise=True), knn=compared(rows, 2.5))
    assert reasons(found) == [
        "by scores alone: how much may be lost is not known; is 3.1 points below b layer 9 cls (61.0 ± 1.0), "
        "layer 9 of 12"
    ]
    rows = rows.assign(loss=[0, 4.6])
    found = recommendation(Pick("a", {KNN: rows.iloc[1]}, compromise=True), knn=compared(rows, 2.5))
    assert reasons(found) == [
        "nothing is shown to lose at most 2.5 points in every task; of this one the maximum loss is "
        "smallest; loses at most 4.6 points, 3.1 points below b layer 9 cls (61.0 ± 1.0), layer 9 of 12"
    ]


def test_only_what_was_compared_is_shown_to_be_the_best() -> None:
    rows = shown(("b", 9, 61, 9), ("a", 9, 57.86, 9)).rows.assign(loss=[0.0, math.nan])
    best = Pick("b", {KNN: rows.iloc[0]})
    (whole,) = reasons(recommendation(best, knn=compared(rows, 2.5)))
    (part,) = reasons(recommendation(best, knn=replace(compared(rows, 2.5), untested=("a",))))
    assert "shown to be the best," in f"{whole},"
    assert "shown to be the best of those compared" in part


def test_the_front_says_what_each_layer_loses() -> None:
    found = recommendation(knn=shown(("b", 1, 20, 1), ("a", 8, 60, 8), ("a", 9, 61, 9)))
    assert pareto_table(found, KNN)["knn top-1"].tolist() == ["20.0 ± 1.0", "60.0 ± 1.0", "61.0 ± 1.0"]
    assert pareto_table(found, KNN)["loses at most"].tolist() == ["41.0", "1.0", "0.0"]
    assert found.pareto["loss"].tolist() == [41, 1, 0]
    keys = ["task", "dataset", "protocol", "metric", "backbone", "layer", "depth", "pooling"]
    assert [*found.pareto] == [
        *keys,
        "score",
        "ci_low",
        "ci_high",
        "difference",
        "loss",
        "ms",
        "parameters",
        "dim",
    ]
    assert Recommendation((), {}, {}, "", (), ()).pareto.empty


def test_numbers_as_text() -> None:
    assert [bytes_text(value) for value in (64, 999, 1024, 24_576, 3.2e6, 5e9, math.nan)] == [
        *("64 B", "999 B", "1.02 kB", "24.6 kB", "3.2 MB", "5 GB", "")
    ]
    assert [ms_text(value) for value in (0.128, 4.0, 10.04, 1040.4, math.nan)] == [
        *("0.13", "4.00", "10.0", "1040", "")
    ]
    assert [count_text(value) for value in (12, 1500, 1_367_136, 7e9, math.nan, None)] == [
        *("12", "1.5K", "1.37M", "7G", "", "")
    ]
