"""Scores of one backbone's tasks as files."""

from collections.abc import Sequence
from functools import partial
from time import perf_counter

from benchmark.engines.progress import Reporter
from benchmark.extraction.failures import Failure, noting
from benchmark.extraction.one_pass import PassResult
from benchmark.extraction.reader import MeasuredLayers, VectorReader
from benchmark.extraction.shards import Shards
from benchmark.jobs.examples import keep_examples
from benchmark.jobs.fingerprints import measured_layers
from benchmark.jobs.job import ScoreJob
from benchmark.plan.plan import patch_tokens
from benchmark.scores.records import assess_outcomes, measured_items, to_records
from leaderboards.records.arrays import write_arrays
from leaderboards.records.checksum import write_checked
from leaderboards.records.items import write_items
from leaderboards.records.record import to_frame
from tasks.base import Findings
from tasks.checks import nothing_read
from tasks.stored import StoredBackbone
from zoo.spec import Layer


def run_scores(jobs: Sequence[ScoreJob], passed: PassResult, report: Reporter) -> list[Failure]:
    """Carry out the jobs of one backbone, of whose tasks some failed in its passes; gives what fails now."""
    lost, failures = {each.key for each in passed.failures}, list[Failure]()
    jobs = [job for job in jobs if job.task.key not in lost]
    if not jobs:
        return failures
    name = jobs[0].setup.spec.name
    with report.bar(f"{name}  scoring", len(jobs), "tasks") as advance:
        for job in jobs:
            begin, task = perf_counter(), job.task
            with noting(failures, name, task.entry.name, task.key):
                stored = stored_backbone(job, passed.refusals.get((name, task.key), ""))
                unreadable = {  # different images
                    sample.key
                    for source in task.vector_sources
                    for sample, read in zip(source.samples, stored.vectors[source.name].shown, strict=True)
                    if not read
                }
                keep(job, task.results(stored), len(unreadable), begin)
            advance(1)
    return failures


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
        measured = MeasuredLayers(source, Shards(job.measured, source.shards), layers)
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


def readers_of(job: ScoreJob) -> dict[str, VectorReader]:
    """Readers of the vectors that a task takes, by name of the source.

    Raises:
        UnreadableImageError: None of a source's images could be read.
    """
    readers = {}
    for source in job.task.vector_sources:
        reader = readers[source.name] = VectorReader(source, Shards(job.vectors[source.name], source.shards))
        if not reader.shown.any():
            raise nothing_read(source)
    return readers


def keep(job: ScoreJob, findings: Findings, unreadable: int, begin: float) -> None:
    """Write what belongs to the records of a task, then these, which name it.

    Args:
        job: The task, and where its files are.
        findings: What it says of a backbone.
        unreadable: Images that were left out.
        begin: When it began, by `perf_counter`.
    """
    spec, entry, files, outcomes = job.setup.spec, job.task.entry, job.kept, findings.outcomes
    if findings.arrays:
        write_arrays(findings.arrays, files.beside["arrays"])
    # the layers of a floor are draws, whose spread is the uncertainty; an analysis chooses no layer
    primary = None if entry.analysis else entry.metric
    assessed = {} if spec.is_floor else assess_outcomes(outcomes, primary)
    fields = job.fields(files, unreadable, begin)
    frame = to_frame(to_records(fields, spec, entry, outcomes, assessed))
    write_items(measured_items(outcomes), files.beside["items"])
    keep_examples(job, outcomes)
    write_checked(frame, files.records, files.companions())
