"""The options of ``score``: numbers that decide a score belong to the protocols, and a task takes its own."""

from layerboard.benchmark.commands.score import SCORERS, ScoreRequest
from layerboard.benchmark.forms.option import declared

OPTIONS = {option.name: option for option in declared(ScoreRequest)}


def test_no_option_has_a_number_of_its_own() -> None:
    assert {option.default for option in OPTIONS.values()} <= {..., None, (), False}


def test_every_option_is_taken_by_a_task() -> None:
    taken = {name for scorer in SCORERS.values() for name in (*scorer.needs.split(), *scorer.takes.split())}
    assert taken == {*OPTIONS} - {"task", "json", "config"}
