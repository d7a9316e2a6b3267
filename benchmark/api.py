"""A whole run, from the request to the pages."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import pandas as pd

from layerboard.benchmark.engines.choose import find_engine
from layerboard.benchmark.engines.log import logged
from layerboard.benchmark.engines.progress import Reporter, over_all
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.jobs.backbone_tasks import measure_costs
from layerboard.benchmark.jobs.near_duplicates import count_near_duplicates
from layerboard.benchmark.jobs.pieces import PassesAndScores, Pieces
from layerboard.benchmark.jobs.prepare import Prepared, plan_of, prepare
from layerboard.benchmark.jobs.scores import compare_all
from layerboard.benchmark.passes.one_pass import PassResult
from layerboard.benchmark.plan.facts import known_trainings, with_seen
from layerboard.benchmark.plan.lock import given_weights, write_run
from layerboard.benchmark.plan.plan import Plan
from layerboard.benchmark.records.records import file_under
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.records.files import VERSION, safe_name, set_aside, steps_of
from layerboard.leaderboards.records.record import folder_records, of_suite, suites_of
from layerboard.leaderboards.records.state import state_of
from layerboard.leaderboards.records.thumbnails import named_thumbnails, remove_thumbnails
from layerboard.leaderboards.writers.current import write_changed
from layerboard.zoo.errors import counted
from layerboard.zoo.spec import Variant


@dataclass(frozen=True)
class RunSummary:
    """Result of a run."""

    output: Path  # folder of records, items and pages
    plan: Plan  # work of the run
    done: PassResult
    seconds: float
    records: pd.DataFrame  # all records of the suite in that folder, including those of earlier runs
    board: Board | None  # the board of these records; None without any
    state: str  # of the output folder when the records were read (`leaderboards.records.state`)
    suites: tuple[str, ...]  # of all records in that folder, sorted
    pages: tuple[Path, ...] = ()  # files of the pages of the suite
    changed: bool = False  # whether they were written; else nothing has changed since they were


def execute(
    request: Request,
    report: Reporter,
    *,
    answer: Callable[[RunSummary], None] | None = None,
    pages: bool = True,
) -> RunSummary:
    """Plan, run, and write the pages; raises InputError for a wrong request before any work.

    ``answer`` is called as soon as all results are there, before the pages are written: the summary that it
    is given names none. Without ``pages`` none are written. The log of the output folder keeps what the
    reporter is told.
    """
    prepared = prepare(plan_of(request, report))
    with logged(report, request.output) as log:
        plan = prepared.run.plan
        counts = counted(len(plan.backbones), "backbones"), counted(len(plan.tasks.every), "tasks")
        log.note(f"layerboard {VERSION}: suite {prepared.run.suite}, {', '.join(counts)}")
        summary = _execute(request, prepared, log)
        for failure in summary.done.failures:
            log.note(f"failed: {failure}")
        if answer:
            answer(summary)
        if summary.board and pages:
            there, changed = write_changed(summary.board, summary.output, summary.state)
            summary = replace(summary, pages=tuple(sorted(there)), changed=changed)
    return summary


def _execute(request: Request, prepared: Prepared, report: Reporter) -> RunSummary:
    """Carry out what was prepared, without pages."""
    write_run(request.output, prepared.run.options, prepared.lock)
    for files in prepared.current:
        file_under(files, prepared.run.suite)
    if prepared.backbones:  # before hours of other work
        report.say(*(f"will fail: {failure}" for failure in prepared.failures))
        report.say(*filter(None, [given_weights(prepared.lock)]))
    report.say(*(_set_aside(prepared) if request.series else ()))
    former = set() if request.examples else named_thumbnails(request.output)

    begin = perf_counter()
    engine = find_engine([jobs.setup.spec for jobs in prepared.backbones], request, prepared.run.devices)
    pieces = Pieces(prepared.backbones)
    with over_all(report, "all backbones", pieces.images, "images") as counting:
        engine.run(PassesAndScores(), pieces, counting)
    done = PassResult.joined([PassResult(failures=prepared.failures), pieces.result])
    seconds = perf_counter() - begin
    compared = compare_all(prepared.comparisons, done, report)
    done = PassResult.joined([done, compared, measure_costs(prepared.costs, report)])  # alone on the machine
    if not request.examples:
        remove_thumbnails(request.output, former)

    output, suite = request.output, prepared.run.suite
    every = folder_records(output / "records")
    suites = suites_of(every) if len(every) else []
    records, board = of_suite(every, suite) if suites else every, None
    if len(records):
        items, arrays = output / "items", output / "arrays"
        again = known_trainings()
        board = Board.of(with_seen(records), suite, items=items, arrays=arrays, trainings=again)
        if request.images:
            count_near_duplicates(prepared.backbones, board, output, report)
    return RunSummary(
        output, prepared.run.plan, done, seconds, records, board, state_of(output), tuple(suites)
    )


def _set_aside(prepared: Prepared) -> Iterator[str]:
    """Move the results of earlier trainings out of the way; says for each training which steps these were.

    A training was begun again under its name if one of its steps has other weights than its records say.
    """
    output, current = prepared.run.request.output, {spec.entry for spec in prepared.run.plan.backbones}
    again: dict[str, None] = {}
    for setup in (jobs.setup for jobs in prepared.backbones):
        training, step = Variant.of(setup.spec.entry).checkpoint
        known = folder_records(output / "records" / safe_name(setup.spec.entry))
        if step >= 0 and len(known) and (known["sha256"] != setup.identity.sha256).any():
            again[str(training)] = None
    for name in again:
        if gone := [each for each in steps_of(output, name).values() if each not in current]:
            yield set_aside(output, gone)
