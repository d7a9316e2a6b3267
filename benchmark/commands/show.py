"""The best of each task in an output folder: the command `show`, `layerboard.best`, `layerboard.show`."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from layerboard.benchmark.commands.command import (
    boards_of,
    command,
    drawn,
    records_of,
    require_run,
    rows_of,
    say,
    say_json,
)
from layerboard.benchmark.commands.result import SCREEN, Result, screen
from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import Option, Plain, Words
from layerboard.benchmark.forms.request import JsonOption, ResultsOptions
from layerboard.zoo.errors import InputError

if TYPE_CHECKING:
    from layerboard.benchmark.api import RunSummary
    from layerboard.leaderboards.board.board import Board


ELSEWHERE = "; what analyses found is on pages of their own, in the folder tables"
NO_FAILURES = "No failures to show: the folder has none, or keeps no examples of these tasks."
WORST = 5  # rows shown of each table of failures
MOST_BEYOND = 12  # rows shown of each table of what other sizes, formats, poolings, sets, steps, ... change
# backbones of all tasks together up to which these are shown: for more, they take up to half a minute
MOST_COMPARED = 24


class Failures(Result):
    """What the best backbone of a task gets wrong."""


class ShowRequest(JsonOption, ResultsOptions):
    """Options of `show`: the suites and tasks."""

    suite: Plain[str | None] = Option(None, "One of the suites in the folder.", usual="all of them")
    tasks: Words = Option((), "Tasks to show.", parsers.run_tasks, also="-t", usual="all")
    failures: Plain[bool] = Option(
        False, "Also show the classes, confusions and images that the best backbone gets wrong."
    )


@command("show", ShowRequest)
def show_command(request: ShowRequest) -> None:
    """Show the best backbone and layer of each task.

    It also shows how sure that is, and what it costs. This is the table that a run ends with, read from its
    output folder; neither backbones nor data are needed. While a run goes on, it shows what is finished.

    With `--failures`, it also shows, for tasks with saved examples, the classes of lowest accuracy, the most
    frequent confusions, and the files that the best backbone gets wrong and another gets right; `--json` has
    all of them.

    Example: `layerboard show --tasks knn davis`
    """
    if not request.json:
        say(_text(request))
        return
    suites = _answered(request)
    content: list[dict[str, object]] = []
    for name, answers in suites.items():
        beyond, failures = list[object](), list[object]()
        for part in answers.parts:
            rows = {"title": part.title, "rows": rows_of(part.frame)}
            (failures if isinstance(part, Failures) else beyond).append(rows)
        content.append(
            {
                "suite": name,
                "answers": rows_of(answers.frame.drop(columns="suite")),
                "notes": [*answers.notes],
                "beyond": beyond,
            }
        )
        if request.failures:
            content[-1]["failures"] = failures
    say_json(content)


@show_command.python
def show(request: ShowRequest) -> None:
    """Prints the table as at the end of a run.

    Example:
        >>> import layerboard
        >>> layerboard.show(output="results")
        suite images-photos-...
        <BLANKLINE>
        task       best backbone    layer    vectors    score ...
        ...
        knn top-1  mini-...
    """
    sys.stdout.write(f"{_text(request)}\n")


@show_command.python
def best(request: ShowRequest) -> Result:
    """``frame`` has one row per task and dataset, as ``leaderboards.answer.answer.answer_frame`` makes it.

    After ``suite`` come scores in percent with 95 % intervals, the maximum ``loss`` against the true best,
    the held-out score, and what may be the best (``rivals``, ``layers``). What variants, poolings,
    sets and checkpoints change, and failures, are ``parts``, whose frames have all rows.

    Example:
        >>> import layerboard
        >>> found = layerboard.best(output="results", tasks="knn")
        >>> found.frame[["task", "metric", "depth"]].values.tolist()
        [['knn', 'top-1', 12]]
    """
    import pandas as pd

    suites = _answered(request)
    if len(suites) == 1:
        return next(iter(suites.values()))
    tables = {name: each.table for name, each in suites.items() if each.table is not None}
    return Result(
        title=f"suite {', '.join(suites)}",
        frame=pd.concat([each.frame for each in suites.values()], ignore_index=True),
        table=pd.concat(tables, names=["suite"]).reset_index("suite").fillna(""),
        notes=tuple(dict.fromkeys(note for each in suites.values() for note in each.notes)),
        parts=tuple(part for each in suites.values() for part in each.parts),
        draw=lambda: (
            replace(chart, name=f"{name}/{chart.name}")
            for name, each in suites.items()
            for chart in each.draw()
        ),
    )


def _text(request: ShowRequest) -> str:
    """The answers of all suites as text: that of the call before where nothing has changed since."""
    from layerboard.benchmark.engines.log import run_state
    from layerboard.leaderboards.records.state import keep_shown, read_shown, state_of

    output, state = request.output, ""
    if not (request.suite or request.tasks or request.failures or run_state(output)):
        state = state_of(output)
        if texts := read_shown(output, state, screen()):
            return "\n\n".join(texts.values())
    texts = {name: each.text() for name, each in _answered(request).items()}
    if state:
        keep_shown(output, state, screen(), texts)
    return "\n\n".join(texts.values())


def text_to(summary: "RunSummary") -> tuple[str, bool]:
    """The answers of a run as text, those shown before if nothing has changed since, or why there are none.

    Also whether there are answers.
    """
    from layerboard.leaderboards.records.state import keep_shown, read_shown

    board, output, state = summary.board, summary.output, summary.state
    if board and (text := read_shown(output, state, screen()).get(board.suite)):
        return text, True
    answers = answers_to(board)
    if board is None or not len(answers.frame):
        return "\n".join(answers.notes), False
    text = answers.text()
    if summary.suites == (board.suite,):  # `show` prints all suites
        (output / "tables").mkdir(exist_ok=True)  # the pages follow
        keep_shown(output, state, screen(), {board.suite: text})
    return text, True


def _answered(request: ShowRequest) -> dict[str, Result]:
    """The best of each task by suite, and whether a run goes on; raises InputError if there is none."""
    from layerboard.benchmark.engines.log import run_state

    state = run_state(request.output)
    if state and records_of(request.output, empty=True).empty:
        raise InputError(f"{state} No task has its scores yet")
    try:
        answered = _finished(request)
    except InputError as error:
        raise InputError(f"{state} So far: {error}" if state else str(error)) from None
    notes = (state,) if state else ()
    return {name: replace(each, notes=(*notes, *each.notes)) for name, each in answered.items()}


def _finished(request: ShowRequest) -> dict[str, Result]:
    """The best of each task by suite, of what has its scores."""
    records = records_of(request.output)
    boards = boards_of(records, request.output, request.suite)
    require_run("task", request.tasks, sorted(set(records["task"])), request.output)
    answered = {board.suite: answers_to(board, request.tasks) for board in boards}
    reasons = [note for each in answered.values() for note in each.notes]
    if request.failures:
        answered = {board.suite: _with_failures(answered[board.suite], board, request) for board in boards}
    answered = {name: each for name, each in answered.items() if len(each.frame)}
    answered = {name: each for name, each in answered.items() if "task" in each.frame} or answered
    if not answered:
        analyses = "no backbone has a score; analyses have pages of their own, in the folder tables"
        raise InputError(" ".join(reasons).removesuffix(".") or analyses)
    return answered


def _with_failures(answers: Result, board: "Board", request: ShowRequest) -> Result:
    """Answers with the failures of the best backbone of each task; frames have all rows, tables the first."""
    from layerboard.leaderboards.report.gallery.section import failure_frames

    if request.tasks:
        board = board.only(board.records[board.records["task"].isin(request.tasks)])
    parts = []
    for title, frame in failure_frames(board, request.output):
        table = frame.head(WORST).map(lambda cell: f"{cell:.0f}" if isinstance(cell, float) else str(cell))
        more = len(frame) - len(table)
        notes = (f"{more} more rows: --json and .frame have them.",) if more else ()
        parts.append(Failures(title=title, frame=frame, table=table, notes=notes))
    none = () if parts else (NO_FAILURES,)
    return replace(answers, notes=(*answers.notes, *none), parts=(*answers.parts, *parts))


def answers_to(board: "Board | None", tasks: Sequence[str] = ()) -> Result:
    """The best backbone and layer for each task of a suite, or for the given tasks; no rows without scores.

    If only costs were measured or asked for, it has the cost of each whole backbone instead.
    """
    from layerboard.leaderboards.answer.answer import answer_frame, answers_of, unscored
    from layerboard.leaderboards.answer.phrases import answer_table, notes
    from layerboard.leaderboards.board.costs import disturbed_notes, find_measured_device
    from layerboard.leaderboards.sections.cost import whole_table
    from layerboard.tasks.framework.registry import COST

    if board and tasks:
        board = board.only(board.records[board.records["task"].isin([*tasks, COST])])
    nothing = answer_frame(())
    if board is None:
        return Result(title="no scores", frame=nothing, table=nothing)
    answers, costs = answers_of(board), board.costs.records
    device = find_measured_device(costs)
    costs = costs[(costs["dataset"] == device) & costs["value"].notna()]
    if answers:
        title, frame = f"suite {board.suite}", answer_frame(answers)
        table = answer_table(answers)
        costs = costs[costs["backbone"].isin(frame["backbone"])]
    elif len(costs) and (not tasks or COST in tasks):
        frame = costs[costs["layer"] == -1].pivot_table("value", "backbone", "metric").reset_index()
        title, table = f"suite {board.suite}, on {device}", whole_table(costs)
    else:
        found_by_analyses = ELSEWHERE if board.analyses.records["value"].notna().any() else ""
        title, why = f"no scores{found_by_analyses}", unscored(board)
        return Result(title=title, frame=nothing, table=nothing, notes=why, draw=drawn(board, []))
    frame.insert(0, "suite", board.suite)
    below = (*board.warnings, *notes(answers), *unscored(board), *disturbed_notes(costs, device))
    draw = drawn(board, ["layers", "*-layers", "cost-*"])
    return Result(
        title=title,
        frame=frame,
        table=table,
        notes=below,
        parts=tuple(_beyond(board)),
        draw=draw,
        width=SCREEN if answers else Result.width,
    )


def _beyond(board: "Board") -> Iterator[Result]:
    """The first table of each section on what is asked beside single layers of backbones as they are.

    None of a board with many backbones and tasks: its page has them.
    """
    from layerboard.leaderboards.blocks.blocks import Heading, Table
    from layerboard.leaderboards.sections.order import BEYOND

    compared = sum(not backbone.floor for column in board.columns for backbone in column.backbones)
    for section in BEYOND if compared <= MOST_COMPARED else ():
        title = ""
        for block in section(board):
            if isinstance(block, Heading):
                title = block.text
            if isinstance(block, Table):
                frame = block.frame.map(str)
                more = len(frame) - MOST_BEYOND
                note = "Differences are in points, with 95 % intervals; the page says how to read them"
                note += f", and has {more} more rows." if more > 0 else "."
                yield Result(title=title, frame=frame, table=frame[:MOST_BEYOND], notes=(note,))
                break
