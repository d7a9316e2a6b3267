"""Recommendations in words: reasons, tables and frames of planted choices."""

import math
from collections.abc import Sequence
from dataclasses import replace

from layerboard.leaderboards.answer.answer import Answer
from layerboard.leaderboards.answer.choice import (
    PARETO,
    RECOMMENDED,
    Choice,
    explain,
    pareto_of,
    price,
    recommended_frame,
    recommended_table,
    safe_choices,
)
from layerboard.leaderboards.blocks.display import bytes_text, count_text, loss_text, ms_text
from tests.leaderboards.answer.test_candidates import KNN, SPAIR, changed, shown
from tests.leaderboards.builder import NAN


def reasons(*answers: Answer, short: bool = False) -> list[str]:
    return [explain(each, answers, 50, short=short) for each in safe_choices(answers, 50)]


def rows(answers: Sequence[Answer]) -> list[dict[str, object]]:
    return recommended_table(safe_choices(answers, 50), answers).to_dict("records")  # type: ignore[return-value]


def test_the_reason_names_the_best_and_what_is_lost_and_saved() -> None:
    found = shown(("clip-b16", 11, 61.2, 9.8), ("dino-s16", 8, 60.4, 4.13))
    assert reasons(found) == [
        "loses at most 0.8 points against the true best, "
        "scores 0.8 points below clip-b16 layer 11 cls (61.2 ± 1.0), 4.13 ms instead of 9.80",
        "scores best, 61.2 ± 1.0, shown to be the best, 9.80 ms an image",
    ]
    assert [row["loses at most"] for row in rows([found])] == ["0.8", "0.0"]


def test_without_times_weights_are_told_and_without_these_depths() -> None:
    found = shown(("b", 11, 61, NAN), ("b", 8, 60, NAN), ("a", 3, 60.5, NAN), parameters=2e6)
    found = changed(found, parameters=[2e6, 1.6e6, 2e6])
    small, *_ = reasons(found)
    below = (
        "loses at most 0.5 points against the true best, scores 0.5 points below b layer 11 cls (61.0 ± 1.0)"
    )
    assert small == f"{below}, about 1.6M parameters instead of about 2M"
    unknown = changed(found, parameters=[NAN] * 3)
    assert reasons(unknown)[0].endswith("layer 3 of 12")
    (text,) = reasons(unknown.only("b"))
    below = "loses at most 1.0 points against the true best, scores 1.0 points below b layer 11 cls"
    assert text == f"{below} (61.0 ± 1.0), layer 8 of 12"


def test_several_tasks_have_a_reason_and_a_row_each() -> None:
    found = [shown(("a", 9, 61, 9)), shown(("b", 2, 31, 3), ("a", 4, 30, 4), column=SPAIR)]
    best = "knn top-1: scores best, 61.0 ± 1.0, shown to be the best, 9.00 ms an image"
    below = "scores 1.0 points below b layer 2 cls (31.0 ± 1.0), 4.00 ms against 3.00"
    assert reasons(*found) == [
        f"{best}; spair PCK@0.1: loses at most 1.0 points against the true best, {below}"
    ]
    most = "it may lose most in spair PCK@0.1: up to 1.0 points below the true best (95 %)"
    assert reasons(*found, short=True) == [f"{most}; there it {below}"]
    assert [(row["layer"], row["ms"], row["a vector"], row["an image"]) for row in rows(found)] == [
        ("9/12", "9.00", "384 B", "384 B"),
        ("4/12", "4.00", "384 B", "384 B"),
    ]
    (choice,) = safe_choices(found, 50)
    assert (choice.costs["ms"], choice.deepest.dim) == (9, 96)
    frame = recommended_frame([choice], ["why"])
    assert frame[["rank", "backbone", "task", "layer", "ms", "bytes", "loss"]].to_numpy().tolist() == [
        [1, "a", "knn", 9, 9.0, 384.0, 0.0],
        [1, "a", "spair", 4, 4.0, 384.0, 1.0],
    ]
    assert list(frame.columns) == RECOMMENDED


def test_tasks_that_show_other_sizes_take_a_pass_each() -> None:
    """The slower of two layers at one size provides both; a disturbed time is marked where it is said."""
    grid = {"column": SPAIR, "pooling": "grid", "tokens": 256.0}
    wide = shown(("a", 4, 30, 14), timed_at="128 x 128", disturbed=True, **grid)
    found = [shown(("a", 9, 61, 9), timed_at="64 x 64"), wide]
    (reason,), table = reasons(*found), rows(found)
    assert "shown to be the best, 9.00 ms an image at 64 x 64; spair" in reason
    assert reason.endswith(
        "shown to be the best, 14.0 ms an image at 128 x 128 (other work disturbed the timing)"
    )
    assert [row["ms"] for row in table] == ["9.00", "14.0 (disturbed)"]
    assert [row["at, px"] for row in table] == ["64 x 64", "128 x 128"]
    assert [row["an image"] for row in table] == ["384 B", "98.3 kB"]
    (choice,) = safe_choices(found, 50)
    assert choice.costs["ms"] == 23
    assert recommended_frame([choice], [""])["image_bytes"].tolist() == [384, 384 * 256]
    best = "in knn top-1 it scores best, 61.0 ± 1.0, 9.00 ms an image at 64 x 64"
    assert reasons(*found, short=True) == [f"it is shown to be the best in each of the tasks; {best}"]
    assert price(choice) == (
        "23.0 ms an image for all tasks together, at 2 image sizes (other work disturbed the timing)"
    )
    (alike,) = safe_choices([found[0], shown(("a", 4, 30, 4), timed_at="64 x 64", **grid)], 50)
    assert alike.costs["ms"] == 9


def test_a_better_layer_that_limits_leave_out_is_said() -> None:
    found = shown(("z", 7, 64.5, 20), ("b", 9, 61, 9), ("a", 4, 60, 4)).only("ab")
    out = "points below z layer 7 cls (64.5 ± 1.0), which the limits leave out"
    assert reasons(found) == [
        f"loses at most 4.5 points against the true best, scores 4.5 {out}, 4.00 ms instead of 20.0",
        f"loses at most 3.5 points against the true best, scores 3.5 {out}, 9.00 ms instead of 20.0",
    ]


def compromise(*losses: float) -> tuple[Choice, Answer]:
    found = shown(("b", 9, 61, 9), ("a", 9, 57.86, 9))
    found = changed(found, loss=losses)
    return Choice({KNN: found.candidates[1]}, compromise=True), found


def test_a_compromise_says_that_it_is_one() -> None:
    below = "scores 3.1 points below b layer 9 cls (61.0 ± 1.0), layer 9 of 12"
    choice, found = compromise(0, NAN)
    unknown = "by scores where it is not known how much may be lost"
    assert explain(choice, [found], 2.5) == f"{unknown}; {below}"
    choice, found = compromise(0, 4.6)
    highest = "no layer is proven to lose at most 2.5 points, so the highest is taken"
    assert (
        explain(choice, [found], 2.5) == f"{highest}; loses at most 4.6 points against the true best, {below}"
    )
    both = replace(choice, candidates=dict.fromkeys((KNN, SPAIR), choice.deepest))
    text = explain(both, [found, replace(found, column=SPAIR, baselines=("raw pixels",))], 2.5, short=True)
    assert text.startswith(
        "a compromise, since no backbone is proven to lose at most 2.5 points in every task"
    )
    which = "of the tasks in which the best beats the baselines, it may lose most in knn top-1"
    assert f"; {which}: up to 4.6 points below the true best (95 %); there it {below}" in text


def test_only_what_was_compared_is_shown_to_be_the_best() -> None:
    found = shown(("b", 9, 61, 9), ("a", 9, 57.86, 9))
    found = changed(found, loss=[0.0, math.nan])
    (whole,), (part,) = reasons(found), reasons(replace(found, untested=("a",)))
    assert "shown to be the best," in whole
    assert "shown to be the best of those compared" in part


def test_the_front_says_what_each_layer_loses() -> None:
    answer = shown(("b", 1, 20, 1), ("a", 8, 60, 8), ("a", 9, 61, 9))
    front, table = pareto_of(answer), recommended_table(pareto_of(answer), [answer])
    assert table["score"].tolist() == ["20.0 ± 1.0", "60.0 ± 1.0", "61.0 ± 1.0"]
    assert table["loses at most"].tolist() == ["41.0", "1.0", "0.0"]
    assert recommended_frame(front)["loss"].tolist() == [41, 1, 0]
    assert [*recommended_frame(front)] == [*recommended_frame([])] == PARETO


def test_numbers_as_text() -> None:
    assert [bytes_text(value) for value in (64, 999, 1024, 24_576, 3.2e6, 5e9, math.nan)] == [
        *("64 B", "999 B", "1.02 kB", "24.6 kB", "3.2 MB", "5 GB", "")
    ]
    assert [ms_text(value) for value in (0.128, 4.0, 10.04, 1040.4, math.nan)] == [
        *("0.13", "4.00", "10.0", "1040", "")
    ]
    assert [bytes_text(value) for value in (0, 999.7e6)] == ["0 B", "1000 MB"]
    assert [count_text(value) for value in (12, 1500, 1_367_136, 7e9, math.nan, None)] == [
        *("12", "1.5K", "1.37M", "7G", "", "")
    ]
    assert count_text(999.7e6) == "1000M"  # not 1e+03M


def test_what_is_lost_at_most_is_rounded_up() -> None:
    losses = {
        0.0: "0.0",
        0.004: "0.1",
        2.0: "2.0",
        2.0 + 1e-12: "2.0",
        2.01: "2.1",
        100.0: "100.0",
        math.inf: "inf",
        math.nan: "",
    }
    assert [loss_text(loss) for loss in losses] == [*losses.values()]
