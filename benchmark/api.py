"""A run, from the request to the pages: the whole line in one place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter

import pandas as pd

from benchmark.engines.choose import choose_engine
from benchmark.engines.progress import Reporter, over_all
from benchmark.jobs.comparisons import compare_all
from benchmark.jobs.costs import measure_costs
from benchmark.jobs.failures import Failure
from benchmark.jobs.job import BackboneJobs
from benchmark.jobs.passes import Loaded, images_left, run_passes
from benchmark.jobs.prepare import file_current
from benchmark.jobs.questions import run_questions
from benchmark.jobs.ready import make_ready
from benchmark.jobs.scores import run_scores
from benchmark.plan.plan import Plan
from benchmark.request import Request
from leaderboards.pages.build import write_pages
from leaderboards.records.record import suite_records
from leaderboards.records.thumbnails import remove_unneeded


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
        pages: The suite's pages.
    """

    suite: str
    output: Path
    plan: Plan
    done: Done
    seconds: float
    records: pd.DataFrame
    pages: tuple[Path, ...]


def carry_out(request: Request, report: Reporter) -> RunSummary:
    """Plan, run, and write the pages; raises InputError before any work where the request is wrong."""
    ready = make_ready(request, report)
    name, device, plan, prepared = ready.suite, ready.device, ready.plan, ready.prepared
    file_current(prepared, name)

    begin = perf_counter()
    engine = choose_engine([one.setup.spec for one in prepared.backbones], request.workers, device)
    left = sum(images_left(plan, jobs.passes) for jobs in prepared.backbones)
    with over_all(report, "all backbones", left, "images") as counting:
        done = _together(engine.map(partial(passes_and_scores, plan), prepared.backbones, counting))
    seconds = perf_counter() - begin
    failures = (*prepared.failures, *done.failures)
    failures += compare_all(plan, prepared.comparisons, failures, done.refusals, report)
    failures += measure_costs(plan, prepared.costs, report)  # alone on the machine
    if not request.examples:
        remove_unneeded(request.output)

    records = suite_records(request.output / "records", name)
    pages = _pages(records, request.output) if len(records) else []
    done = Done(done.images, done.unreadable, failures)
    return RunSummary(name, request.output, plan, done, seconds, records, tuple(pages))


def _pages(records: pd.DataFrame, output: Path) -> list[Path]:
    """The pages of a run, from its records and what is kept beside them."""
    return write_pages(records, output / "tables", output / "items", arrays=output / "arrays")


def passes_and_scores(plan: Plan, jobs: BackboneJobs, report: Reporter) -> Done:
    """What one backbone has to do, in whichever process: each image once, then every layer's scores."""
    loaded = Loaded(jobs.setup)
    passed = run_passes(plan, jobs.passes, loaded, report)
    asked = run_questions(plan, jobs.questions, loaded, report)
    failures = (*passed.failures, *asked.failures, *run_scores(plan, jobs.scores, passed, report))
    refusals = {(jobs.setup.spec.name, key): reason for key, reason in passed.refusals.items()}
    unreadable = (*passed.unreadable, *asked.unreadable)
    return Done(passed.images + asked.images, unreadable, failures, refusals)


def _together(every: Sequence[Done]) -> Done:
    """What all backbones did; an image that none could read is named once."""
    unreadable = dict.fromkeys(line for one in every for line in one.unreadable)
    failures = tuple(each for one in every for each in one.failures)
    refusals = {key: reason for one in every for key, reason in one.refusals.items()}
    return Done(sum(one.images for one in every), tuple(unreadable), failures, refusals)
