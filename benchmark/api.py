"""A run, from the request to the pages: the whole line in one place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import pandas as pd

from benchmark.engines.choose import find_engine
from benchmark.engines.progress import Reporter, over_all
from benchmark.extraction.failures import Failure
from benchmark.extraction.one_pass import PassResult
from benchmark.jobs.comparisons import compare_all
from benchmark.jobs.passes import BackboneCache, run_passes
from benchmark.jobs.pieces import Piece, Pieces
from benchmark.jobs.prepare import file_current
from benchmark.jobs.questions import measure_costs, run_questions
from benchmark.jobs.ready import make_ready
from benchmark.jobs.scores import run_scores
from benchmark.plan.facts import with_seen
from benchmark.plan.plan import Plan
from benchmark.request import Request
from leaderboards.choices.ties import ColumnTies, KnownTies, column_ties
from leaderboards.pages.build import write_pages
from leaderboards.records.record import suite_records
from leaderboards.records.thumbnails import named_thumbnails, remove_thumbnails
from tasks.protocols import EvaluationProtocol


@dataclass(frozen=True)
class Done:
    """What was done.

    Attributes:
        images: Images that went through backbones.
        unreadable: Why images were left out.
        failures: What went wrong.
        refusals: By backbone and key of a task, why the one cannot show what the other is fed.
    """

    images: int
    unreadable: tuple[str, ...]
    failures: tuple[Failure, ...]
    refusals: Mapping[tuple[str, str], str] = field(default_factory=dict)


@dataclass(frozen=True)
class RunSummary:
    """What came of a request.

    Attributes:
        suite: Name under which its records are filed.
        output: Folder of records, items and pages.
        plan: What there was to do.
        done: What was done.
        seconds: For how long.
        records: All of the suite's records in that folder, those of earlier runs among them.
        ties: For each column of their leaderboard, which backbones may be its best.
        pages: The suite's pages.
    """

    suite: str
    output: Path
    plan: Plan
    done: Done
    seconds: float
    records: pd.DataFrame
    ties: ColumnTies
    pages: tuple[Path, ...]


def carry_out(request: Request, report: Reporter, steps: Sequence[EvaluationProtocol] = ()) -> RunSummary:
    """Plan, run, and write the pages; raises InputError before any work where the request is wrong.

    Args:
        request: What was asked for.
        report: Hears how far it is.
        steps: Protocols in place of the request's, of whose records no pages are written.
    """
    ready = make_ready(request, report, protocols=steps)
    name, devices, plan, prepared = ready.suite, ready.devices, ready.plan, ready.prepared
    file_current(prepared, name)
    former = set() if request.examples else named_thumbnails(request.output)

    begin = perf_counter()
    engine = find_engine([one.setup.spec for one in prepared.backbones], request, devices)
    pieces = Pieces(plan, prepared.backbones)
    with over_all(report, "all backbones", pieces.images, "images") as counting:
        engine.carry_out(PassesAndScores(plan), pieces, counting)
    done = _together(pieces)
    seconds = perf_counter() - begin
    failures = (*prepared.failures, *done.failures)
    failures += compare_all(plan, prepared.comparisons, failures, done.refusals, report)
    failures += measure_costs(plan, prepared.costs, report)  # alone on the machine
    if not request.examples:
        remove_thumbnails(request.output, former)

    records = suite_records(request.output / "records", name)
    ties = column_ties(records, request.output / "items") if len(records) else {}
    pages = _pages(records, ties, request.output) if len(records) and not steps else []
    done = Done(done.images, done.unreadable, failures)
    return RunSummary(name, request.output, plan, done, seconds, records, ties, tuple(pages))


def _pages(records: pd.DataFrame, ties: ColumnTies, output: Path) -> list[Path]:
    """The pages of a run, from its records and what is kept beside them."""
    tested = KnownTies(output / "items", ties)
    return write_pages(with_seen(records), output / "tables", tested, arrays=output / "arrays")


class PassesAndScores:
    """What a worker does, in whichever process: each image once, then every layer's scores.

    It keeps the backbone of the piece before, which the next one may need, too.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._loaded: BackboneCache | None = None

    def __call__(self, piece: Piece, report: Reporter) -> PassResult:
        """Carry out a piece."""
        plan, jobs = self._plan, piece.jobs
        if self._loaded is None or self._loaded.setup != jobs.setup:
            self._loaded = BackboneCache(jobs.setup)
        passed = run_passes(plan, jobs.passes, self._loaded, report)
        asked = run_questions(plan, jobs.questions, self._loaded, report)
        failures = run_scores(plan, jobs.scores, PassResult.joined([piece.before, passed]), report)
        return PassResult.joined([passed, asked, PassResult(failures=failures)])


def _together(pieces: Pieces) -> Done:
    """What all backbones did; an image that none could read is named once."""
    every = pieces.found
    unreadable = dict.fromkeys(line for _, one in every for line in one.unreadable)
    failures = tuple(each for _, one in every for each in one.failures)
    refusals = {(setup.spec.name, key): why for setup, one in every for key, why in one.refusals.items()}
    return Done(sum(one.images for _, one in every), tuple(unreadable), failures, refusals)
