"""What a run found, again: the command `show`, `benchmark.best` and `benchmark.show`."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from benchmark.commands.command import command, records_of, rows_of, say_json
from benchmark.commands.result import Result
from benchmark.option import OnePath, Option, Plain, Words
from zoo.errors import InputError, require_known

if TYPE_CHECKING:
    from leaderboards.answers import Answer
    from leaderboards.board import Board


@dataclass(frozen=True, kw_only=True)
class ShowRequest:
    """Which answers to show."""

    output: OnePath = Option("results", "Folder of records and tables.", also="-o")
    suite: Plain[str | None] = Option(None, "One of the folder's suites.", usual="all of them")
    tasks: Words = Option((), "Tasks.", also="-t", usual="all")
    json: Plain[bool] = Option(False, "For machines.")


@dataclass(frozen=True, slots=True)
class SuiteAnswers:
    """For each task of a suite the best backbone and layer, and what tables call each backbone."""

    suite: str
    answers: "tuple[Answer, ...]"
    labels: Mapping[str, str]

    def __str__(self) -> str:
        from leaderboards.answers import answer_notes, answer_table

        table = answer_table(self.answers, self.labels)
        return "\n".join([f"suite {self.suite}", "", table, "", *answer_notes(self.answers)]).rstrip()


@command("show", ShowRequest)
def show_command(request: ShowRequest) -> None:
    """Show the best backbone, layer and vectors of each task, how sure that is, and what it costs.

    It is what a run ends with. Needs no backbone and no data: what a run has written is enough.

    Example: `python -m benchmark show --tasks knn davis`
    """
    from leaderboards.answers import answer_frame

    suites = _suites(request)
    if request.json:
        say_json([{"suite": each.suite, "answers": rows_of(answer_frame(each.answers))} for each in suites])
    else:
        typer.echo("\n\n".join(map(str, suites)))


@show_command.python
def show(request: ShowRequest) -> None:
    """It is printed as at the end of a run.

    Example:
        >>> import benchmark
        >>> benchmark.show(output="results")
        suite images-photos-...
        <BLANKLINE>
        task       best backbone    layer    vectors    score ...
        ...
        knn top-1  mini-... ± ...
    """
    sys.stdout.write("\n\n".join(map(str, _suites(request))) + "\n")


@show_command.python
def best(request: ShowRequest) -> Result:
    """``frame`` has one row a task and dataset, with the columns of ``leaderboards.answers.answer_frame``.

    They follow ``suite``: scores in percent with 95 % intervals, the honest score, and what the data cannot
    tell from the best (``rivals``, ``layers``).

    Example:
        >>> import benchmark
        >>> found = benchmark.best(output="results", tasks="knn")
        >>> found.frame[["task", "metric", "depth"]].values.tolist()
        [['knn', 'top-1', 12]]
    """
    return result_of(_suites(request))


def _suites(request: ShowRequest) -> list[SuiteAnswers]:
    from leaderboards.board import Board
    from leaderboards.records.record import suites_of

    records = records_of(request.output)
    suites = suites_of(records)
    chosen = suites if request.suite is None else [request.suite]
    require_known("suite", chosen, suites)
    require_known("task", request.tasks, sorted(set(records["task"])))
    boards = [Board.of(records, suite, items=request.output / "items") for suite in chosen]
    answered = [each for board in boards if (each := answered_by(board, request.tasks)).answers]
    if not answered:
        raise InputError("there is no score of a backbone to answer with; analyses are on pages of their own")
    return answered


def answered_by(board: "Board", tasks: Sequence[str] = ()) -> SuiteAnswers:
    """The answers of one suite, of some tasks or of all."""
    from leaderboards.answers import answers_of
    from tasks.registry import COST

    if tasks:
        board = board.only(board.records[board.records["task"].isin([*tasks, COST])])
    return SuiteAnswers(board.suite, answers_of(board), board.labels)


def result_of(suites: Sequence[SuiteAnswers]) -> Result:
    """The answers of some suites."""
    import pandas as pd

    from leaderboards.answers import answer_cells, answer_frame, answer_notes

    if not suites:
        return Result(title="no scores", frame=answer_frame(()), table=answer_frame(()))
    frames = [answer_frame(each.answers) for each in suites]
    tables = [answer_cells(each.answers, each.labels) for each in suites]
    for each, frame, table in zip(suites, frames, tables, strict=True):
        frame.insert(0, "suite", each.suite)
        if len(suites) > 1:
            table.insert(0, "suite", each.suite)
    return Result(
        title=f"suite {', '.join(each.suite for each in suites)}",
        frame=pd.concat(frames, ignore_index=True),
        table=pd.concat(tables, ignore_index=True).fillna(""),
        notes=tuple(dict.fromkeys(note for each in suites for note in answer_notes(each.answers))),
    )
