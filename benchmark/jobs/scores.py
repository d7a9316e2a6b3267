"""Scores of one backbone's tasks as files."""

from collections.abc import Sequence
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
from benchmark.plan.plan import patch_tokens
from benchmark.scores.records import Scored, assess_outcomes, measured_items, to_records
from leaderboards.records.arrays import write_arrays
from leaderboards.records.checksum import write_checked
from leaderboards.records.items import write_items
from leaderboards.records.record import to_frame
from tasks.base import Findings, Source
from tasks.checks import nothing_read
from tasks.stored import StoredBackbone
from zoo.spec import Layer


def run_scores(jobs: Sequence[ScoreJob], passed: PassResult, report: Reporter) -> tuple[Failure, ...]:
    """Carry out the jobs of one backbone, of whose tasks some failed in its passes; gives what fails now."""
    lost = {each.key for each in passed.failures}
    todo = [job for job in jobs if job.task.key not in lost]
    if not todo:
        return ()
    failures: list[Failure] = []
    name = jobs[0].setup.spec.name
    with report.bar(f"{name}  scoring", len(todo), "tasks") as advance:
        for job in todo:
            try:
                _score(job, passed.refusals.get((name, job.task.key), ""))
            except Exception as error:
                failures.append(failure(error, name, job.task.entry.name, job.task.key))
            advance(1)
    return tuple(failures)


def _score(job: ScoreJob, refusal: str) -> None:
    """Write what a task says of what the passes stored."""
    begin, stored = perf_counter(), stored_backbone(job, refusal)
    keep(job, job.task.results(stored), _unreadable(job.task.vector_sources, stored), begin)


def stored_backbone(job: ScoreJob, refusal: str) -> StoredBackbone:
    """What the passes of a backbone stored for a task.

    Args:
        job: The task, and where its files are.
        refusal: Why the backbone cannot show what it is fed; "" if it can.

    Raises:
        UnreadableImageError: None of a source's images could be read.
    """
    setup, task, end = job.setup, job.task, Layer(job.setup.spec.depth)
    layers = measured_layers(setup, task)
    measured: MeasuredLayers | None = None
    if job.measured is not None and not refusal:
        source = task.measured[-1].source
        measured = MeasuredLayers(source, Shards.open(job.measured, source.shards), layers)
    return StoredBackbone(
        spec=setup.spec,
        layers=setup.layers,
        last=end if end in setup.kept else None,
        vectors=readers_of(job),
        fed_layers=layers,
        measured=measured,
        refusal=refusal,
        workers=setup.request.workers,
        device=None if setup.device.type == "cpu" else setup.device,
        patch_tokens=partial(patch_tokens, setup.spec),
    )


def _unreadable(sources: Sequence[Source], stored: StoredBackbone) -> int:
    """How many different images of sources could not be read."""
    keys: set[str] = set()
    for source in sources:
        readable = stored.vectors[source.name].shown
        if not readable.all():
            keys |= {sample.key for sample, read in zip(source.samples, readable, strict=True) if not read}
    return len(keys)


def readers_of(job: ScoreJob) -> dict[str, VectorReader]:
    """Readers of the vectors that a task takes, by name of the source.

    Raises:
        UnreadableImageError: None of a source's images could be read.
    """
    readers = {}
    for source in job.task.vector_sources:
        reader = VectorReader(source, Shards.open(job.vectors[source.name], source.shards))
        if not reader.shown.any():
            raise nothing_read(source)
        readers[source.name] = reader
    return readers


def keep(job: ScoreJob, findings: Findings, unreadable: int, begin: float) -> None:
    """Write what belongs to the records of a task, then these, which name it.

    Args:
        job: The task, and where its files are.
        findings: What it says of a backbone.
        unreadable: Images that were left out.
        begin: When it began, by `perf_counter`.
    """
    setup, entry, files, outcomes = job.setup, job.task.entry, job.kept, findings.outcomes
    if findings.arrays:
        write_arrays(findings.arrays, files.beside["arrays"])
    # the layers of a floor are draws, whose spread is the uncertainty; an analysis chooses no layer
    primary = None if entry.analysis else entry.metric
    assessed = {} if setup.spec.is_floor else assess_outcomes(outcomes, primary)
    scored = Scored(job.task, job.fingerprint, job.data, unreadable, perf_counter() - begin)
    frame = to_frame(to_records(setup.context, scored, outcomes, assessed))
    write_items(measured_items(outcomes), files.beside["items"])
    keep_examples(job, outcomes)
    write_checked(frame, files.records, files.companions())
