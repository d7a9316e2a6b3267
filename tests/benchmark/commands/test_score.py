"""The options of ``score``: numbers that decide a score belong to the protocols, and a task takes its own."""

import subprocess
import sys

import pytest

from layerboard.benchmark.commands.score import SCORERS, ScoreRequest
from layerboard.benchmark.forms.option import declared
from tests.benchmark.runs import command

OPTIONS = {option.name: option for option in declared(ScoreRequest)}


def test_no_option_has_a_number_of_its_own() -> None:
    assert {option.default for option in OPTIONS.values()} <= {..., None, (), False}


def test_its_options_are_known_without_a_heavy_library() -> None:
    heavy = "{'numpy', 'torch'}"
    code = f"import sys, benchmark.commands.score; print({heavy} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_every_option_is_taken_by_a_task() -> None:
    taken = {name for scorer in SCORERS.values() for name in (*scorer.needs.split(), *scorer.takes.split())}
    assert taken == {*OPTIONS} - {"task", "json"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("knn", "score knn needs --features"),
        ("davis --ground-truth a", "score davis needs --predictions"),
        ("regress --features a --k 3", "does not take --k; it takes --features, --protocol"),
        ("davis --features a", "does not take --features; it takes --ground-truth, --predictions"),
        ("knn --features a b", "takes one --features; found 2"),
        ("segment --features a --k 1 2", "takes one --k; found 2"),
        ("segment --features a --k 0", "--k takes a whole number of at least 1; found 0"),
        ("segment --features a --protocol paper", "there is no protocol of the task 'paper'"),
        ("knm --features a", "there is no task 'knm'; did you mean 'knn'?"),
    ],
)
def test_what_a_task_does_not_take_is_said(
    capsys: pytest.CaptureFixture[str], words: str, sentence: str
) -> None:
    said = command(capsys, "score", *words.split())
    assert (said.code, sentence in said.error) == (2, True), said.error
