"""Scores of one backbone's tasks as files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter

from benchmark.engines.progress import Reporter
from benchmark.extraction.failures import Failure, failure
from benchmark.extraction.one_pass import PassResult
from benchmark.extraction.reader import MeasuredLayers, VectorReader
from benchmark.extraction.shards import Shards
from benchmark.jobs.examples import keep_examples
from benchmark.jobs.fingerprints import measured_layers
from benchmark.jobs.job import ScoreJob
from benchmark.plan.bound import AnalysisTask, BoundTask, FedTask, MeasuredTask, VectorsTask, VectorTask
from benchmark.plan.plan import Plan, patch_tokens
from benchmark.scores.assess import assess_outcomes, measured_items
from benchmark.scores.layers import (
    describe_vectors,
    find,
    score_measurements,
    score_sets_of_vectors,
    score_vectors,
)
from benchmark.scores.records import Scored, to_records
from leaderboards.records.arrays import write_arrays
from leaderboards.records.items import write_items
from leaderboards.records.record import to_frame, write_frame
from tasks.base import Findings, LayerOutcome, Outcome
from tasks.checks import nothing_read
from zoo.spec import Layer


def run_scores(
    plan: Plan, jobs: Sequence[ScoreJob], passed: PassResult, report: Reporter
) -> tuple[Failure, ...]:
    """Carry out the jobs of one backbone, of whose tasks some failed in its passes; gives what fails now."""
    lost = {one.key for one in passed.failures}
    todo = {job.task: job for job in jobs if job.task not in lost}
    if not todo:
        return ()
    vector = [task for task in plan.tasks.vector if task.key in todo]
    described = [task for task in plan.tasks.described if task.key in todo]
    measured = [task for task in plan.tasks.measured if task.key in todo]
    analyses = [task for task in plan.tasks.analyses if task.key in todo]
    steps: list[tuple[BoundTask, Callable[[], None]]] = [
        *((task, partial(_score_vectors, plan, task, todo[task.key])) for task in vector),
        *((task, partial(_describe_vectors, plan, task, todo[task.key])) for task in described),
        *((task, partial(_score_measured, task, todo[task.key], passed.refusals)) for task in measured),
        *((task, partial(_find, task, todo[task.key], passed.refusals)) for task in analyses),
    ]
    failures: list[Failure] = []
    name = jobs[0].setup.spec.name
    with report.bar(f"{name}  scoring", len(steps), "tasks") as advance:
        for task, step in steps:
            try:
                step()
            except Exception as error:
                failures.append(failure(error, name, task.subject.entry.name, task.key))
            advance(1)
    return tuple(failures)


def _score_vectors(plan: Plan, task: VectorTask, job: ScoreJob) -> None:
    """Score a task on stored vectors, every layer and pooling."""
    begin = perf_counter()
    readers = readers_of(plan, job)
    workers, setup = job.setup.request.workers, job.setup
    view, spec = task.vector_sources[0].view, setup.spec
    patches = {layer: patch_tokens(spec, view, layer) for layer in setup.layers} if task.all_tokens else None
    if task.subject.sets:
        sets = task.subject.scored(setup.layers, spec)
        outcomes = score_sets_of_vectors(task.problem, readers, sets, setup.device)
    else:
        outcomes = score_vectors(task.problem, readers, setup.layers, workers, setup.device, patches)
    unreadable = sum(int((~reader.shown).sum()) for reader in readers.values())
    _keep(task, job, outcomes, unreadable, begin)


def _describe_vectors(plan: Plan, task: VectorsTask, job: ScoreJob) -> None:
    """Describe stored vectors, every layer and pooling beside the last block."""
    begin = perf_counter()
    readers, setup = readers_of(plan, job), job.setup
    end = Layer(setup.spec.depth)
    last = end if end in setup.kept else None
    outcomes = describe_vectors(
        task.problem, readers, setup.layers, last, setup.request.workers, setup.device
    )
    unreadable = sum(int((~reader.shown).sum()) for reader in readers.values()) // len(readers)
    _keep(task, job, outcomes, unreadable, begin)


def _score_measured(task: MeasuredTask, job: ScoreJob, refusals: Mapping[str, str]) -> None:
    """Score a task on what its groups left behind, every layer."""
    begin = perf_counter()
    outcomes = _refused(task, job, refusals)
    if not outcomes:
        measured = _measured(task, job)
        outcomes = score_measurements(task.problem, measured, task.pooling, job.setup.request.workers)
    _keep(task, job, outcomes, 0, begin)


def _find(task: AnalysisTask, job: ScoreJob, refusals: Mapping[str, str]) -> None:
    """Say what an analysis finds in what its groups left behind, all layers together."""
    begin = perf_counter()
    refused = _refused(task, job, refusals)
    found = Findings(tuple(refused)) if refused else find(task.problem, _measured(task, job), task.pooling)
    if transform := task.subject.transform:  # pages show what an analysis looks at by what it is called
        named = (replace(one, pooling=f"{one.pooling}, {transform}") for one in found.outcomes)
        found = replace(found, outcomes=tuple(named))
    keep_findings(task, job, found, 0, begin)


def _refused(task: FedTask, job: ScoreJob, refusals: Mapping[str, str]) -> list[LayerOutcome]:
    """An empty outcome of every layer of a backbone that cannot show what a task is fed; else none."""
    if task.key not in refusals:
        return []
    empty = Outcome((), empty=refusals[task.key])
    return [LayerOutcome(layer, task.pooling, empty) for layer in measured_layers(job.setup, task)]


def _measured(task: FedTask, job: ScoreJob) -> MeasuredLayers:
    """What the groups of a task left behind."""
    assert job.measured is not None
    source = task.problem.source
    store = Shards.open(job.measured, source.shards)
    return MeasuredLayers(source, store, measured_layers(job.setup, task))


def readers_of(plan: Plan, job: ScoreJob) -> dict[str, VectorReader]:
    """Readers of the vectors that a task takes, by name of the source.

    Raises:
        UnreadableImageError: None of a source's images could be read.
    """
    readers = {}
    for key, folder in job.vectors.items():
        source = plan.pass_over(key).source
        reader = VectorReader(source, Shards.open(folder, source.shards))
        if not reader.shown.any():
            raise nothing_read(source)
        readers[source.name] = reader
    return readers


def keep_findings(task: BoundTask, job: ScoreJob, found: Findings, unreadable: int, begin: float) -> None:
    """Write the arrays, the items and the records of an analysis.

    Args:
        task: The analysis.
        job: Where its files are.
        found: What it found.
        unreadable: Images that were left out.
        begin: When it began, by `perf_counter`.
    """
    if found.arrays:
        write_arrays(found.arrays, job.kept.beside["arrays"])
    _keep(task, job, found.outcomes, unreadable, begin)


def _keep(
    task: BoundTask, job: ScoreJob, outcomes: Sequence[LayerOutcome], unreadable: int, begin: float
) -> None:
    """Write what belongs to the records of a task, then these, which name it."""
    setup, entry, kept = job.setup, task.subject.entry, job.kept
    # the layers of a floor are draws, whose spread is the uncertainty; an analysis chooses no layer
    primary = None if entry.analysis else entry.metric
    assessed = {} if setup.spec.is_floor else assess_outcomes(outcomes, primary)
    scored = Scored(task.subject, job.fingerprint, job.data, unreadable, perf_counter() - begin)
    frame = to_frame(to_records(setup.context, scored, outcomes, assessed))
    write_items(measured_items(outcomes), kept.beside["items"])
    keep_examples(task, job, outcomes)
    write_frame(frame, kept.records, kept.companions())
