"""The answers that an output folder holds: for each task the best backbone and layer."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from benchmark.exchange.comparison import records_of
from benchmark.request.pages import ShowRequest
from leaderboards.choices.answers import Answer, answers
from leaderboards.choices.selection import backbones_of
from leaderboards.choices.ties import Compared
from leaderboards.records.record import of_suite, suites_of
from tasks.registry import COST
from zoo.errors import InputError, unknown


@dataclass(frozen=True, slots=True)
class Answered:
    """The answers of one suite.

    Attributes:
        suite: Its name.
        answers: One a column of its leaderboard.
        labels: What tables call each backbone.
    """

    suite: str
    answers: tuple[Answer, ...]
    labels: dict[str, str]


def answered(request: ShowRequest) -> list[Answered]:
    """The answers that were asked for, suite by suite.

    Raises:
        InputError: There are no records, or none of a suite or task that was named.
    """
    records = records_of(request.output)
    suites = suites_of(records)
    if request.suite is not None and request.suite not in suites:
        raise unknown("suite", request.suite, suites)
    known = sorted(set(records["task"]))
    for task in request.tasks:
        if task not in known:
            raise unknown("task", task, known)
    chosen = [request.suite] if request.suite is not None else suites
    found = [answers_of(records, suite, request.output / "items", request.tasks) for suite in chosen]
    if not any(one.answers for one in found):
        raise InputError("there is no score of a backbone to answer with; analyses are on pages of their own")
    return [one for one in found if one.answers]


def answers_of(records: pd.DataFrame, suite: str, compared: Compared, tasks: Sequence[str] = ()) -> Answered:
    """The answers of one suite, of some tasks or of all, from records and what backbones are compared by."""
    own = of_suite(records, suite)
    if tasks:
        own = own[own["task"].isin([*tasks, COST])]
    labels = {backbone.name: backbone.label for backbone in backbones_of(own)}
    return Answered(suite, tuple(answers(own, compared)), labels)
