"""Scores of the tasks of one backbone, and comparisons of backbones, written to files."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from layerboard.benchmark.engines.progress import Advance, Reporter
from layerboard.benchmark.jobs.examples import write_examples
from layerboard.benchmark.jobs.job import CompareJob, ScoreJob
from layerboard.benchmark.passes.failures import Failure, noting
from layerboard.benchmark.passes.one_pass import PassResult
from layerboard.benchmark.passes.shards import MeasuredLayers, Shards, VectorReader
from layerboard.benchmark.plan.plan import patch_tokens
from layerboard.benchmark.records import records
from layerboard.leaderboards.records.arrays import write_arrays
from layerboard.leaderboards.records.checksum import write_checked
from layerboard.leaderboards.records.items import write_items
from layerboard.leaderboards.records.record import to_frame, with_defaults
from layerboard.tasks.framework.base import Findings, LayerOutcome, PairFindings, Score
from layerboard.tasks.framework.checks import nothing_read
from layerboard.tasks.framework.sets import marks_of
from layerboard.tasks.framework.stored import StoredBackbone
from layerboard.tasks.framework.task import ComparisonTask
from layerboard.zoo.spec import Layer


def run_scores(jobs: Sequence[ScoreJob], passed: PassResult, report: Reporter) -> PassResult:
    """Run the scoring jobs of one backbone, some of whose tasks failed in passes; returns new failures."""
    lost, failures = {each.key for each in passed.failures}, list[Failure]()
    jobs = [job for job in jobs if job.task.key not in lost]
    if not jobs:
        return PassResult()
    name = jobs[0].setup.spec.name
    with report.bar(f"{name}  scoring", len(jobs), "tasks") as advance:
        for job in jobs:
            begin, task = perf_counter(), job.task
            title = f"{name}  {task.entry.name}"
            with noting(failures, name, task), report.bar(title, 1, "tasks"):
                stored = stored_backbone(job, passed)
                unreadable = {  # different images
                    sample.key
                    for source in task.vector_sources
                    for sample, read in zip(source.samples, stored.vectors[source.name].shown, strict=True)
                    if not read
                }
                write_findings(job, task.results(stored), len(unreadable), begin)
            advance(1)
    return PassResult(failures=tuple(failures))


def stored_backbone(job: ScoreJob, passed: PassResult) -> StoredBackbone:
    """What the passes of a backbone stored for a task; raises UnreadableImageError if no image was read."""
    setup, task, end = job.setup, job.task, Layer(job.setup.spec.depth)
    refusal = passed.refusals.get((setup.spec.name, task.key), "")
    layers: tuple[Layer, ...] = ()
    measured: MeasuredLayers | None = None
    if job.measured is not None:
        source = task.measured[-1].source
        layers = task.measured_layers(source, setup.layers, setup.spec)
        if not refusal:
            measured = MeasuredLayers(source, Shards(job.measured, source.shards), layers)
    return StoredBackbone(
        spec=setup.spec,
        layers=setup.layers,
        last=end if end in setup.stored_layers else None,
        vectors=readers_of(job),
        measured=measured,
        unmeasured=dict.fromkeys(layers, refusal) if measured is None else measured.failures,
        refusal=refusal,
        workers=setup.request.workers,
        device=None if setup.device.type == "cpu" else setup.device,
        patch_tokens=partial(patch_tokens, setup.spec),
    )


def readers_of(job: ScoreJob) -> dict[str, VectorReader]:
    """Readers of vectors by name of the source; raises UnreadableImageError if no image was read."""
    readers = {}
    for source in job.task.vector_sources:
        reader = readers[source.name] = VectorReader(source, Shards(job.vectors[source.name], source.shards))
        if not reader.shown.any():
            raise nothing_read(source)
    return readers


def _marked(outcomes: Sequence[LayerOutcome], marks: Mapping[Layer, Sequence[str]]) -> list[LayerOutcome]:
    """Outcomes of sets of layers, with scores of 1 that say why they are there (`tasks.framework.sets`)."""
    marked = []
    for each in outcomes:
        scores = each.outcome.scores
        names = marks.get(each.layer, ()) if scores else ()
        scores = (*scores, *(Score(name, 1.0, 1, "sets") for name in names))
        marked.append(replace(each, outcome=replace(each.outcome, scores=scores)))
    return marked


def write_findings(job: ScoreJob, findings: Findings, unreadable: int, begin: float) -> None:
    """Write the companions of the records of a task, then the records, which name them.

    ``unreadable`` is the number of images left out, ``begin`` the value of `perf_counter` at the start.
    """
    spec, entry, files = job.setup.spec, job.task.entry, job.files
    outcomes: Sequence[LayerOutcome] = findings.outcomes
    if job.task.sets:
        outcomes = _marked(outcomes, marks_of(job.task.sets, spec.depth, job.setup.layers))
    if findings.arrays:
        write_arrays(findings.arrays, files.beside["arrays"])
    # layers of a floor are draws, whose spread is the uncertainty; an analysis chooses no layer
    primary = None if entry.analysis else entry.metric
    items = records.measured_items(outcomes)
    assessed = {} if spec.is_floor else records.assess_items(items, primary)
    fields = job.fields(files, unreadable, begin)
    frame = to_frame(records.to_records(fields, spec, entry, outcomes, assessed))
    write_items(items, files.beside["items"])
    write_examples(job, outcomes)
    write_checked(frame, files.records, files.companions())


def compare_all(jobs: Sequence[CompareJob], passed: PassResult, report: Reporter) -> PassResult:
    """Compare all backbones whose features exist; returns the failures."""
    failures: list[Failure] = []
    for task, members in jobs:
        lost = {each.backbone for each in passed.failures if each.key in (task.key, "")}
        ready = [member for member in members if member.setup.spec.name not in lost]
        if ready:
            bar = report.bar(f"comparing {len(ready)} backbones", 1, "tasks")
            with bar as advance, noting(failures, "", task):
                _compare(ready, task, passed, advance)
    return PassResult(failures=tuple(failures))


def _compare(jobs: Sequence[ScoreJob], task: ComparisonTask, passed: PassResult, advance: Advance) -> None:
    begin = perf_counter()
    written: dict[Path, tuple[records.ResultFiles, list[pd.DataFrame], dict[str, NDArray[np.generic]]]] = {}
    stored = [stored_backbone(job, passed) for job in jobs]
    unreadable = int((~stored[0].of_source.shown).sum())
    for pooling in task.poolings:
        for findings in task.compare(stored, pooling):
            sides = [jobs[findings.first], jobs[findings.second]]
            first, second = sorted((findings.first, findings.second))
            files = jobs[first].files_with(jobs[second])
            _, frames, arrays = written.setdefault(files.records, (files, [], {}))
            fields = sides[0].fields(files, unreadable, begin)
            fields |= {"other": sides[1].setup.spec.name, "n": len(task.source.samples) - unreadable}
            in_tables = task.entry.analysis or pooling == records.table_pooling(sides[0].setup.spec)
            primary = in_tables and findings.metric == task.entry.metric
            frames.append(_frame({**fields, "pooling": pooling, "primary": primary}, findings))
            arrays |= findings.arrays
        advance(1 / len(task.poolings))
    for files, frames, arrays in written.values():
        if not records.is_current(files):
            if arrays:
                write_arrays(arrays, files.beside["arrays"])
            write_checked(pd.concat(frames, ignore_index=True), files.records, files.companions())


def _frame(fields: Mapping[str, object], findings: PairFindings) -> pd.DataFrame:
    """Records of all layers of one backbone against all layers of another, in bulk."""
    rows, columns = (index.ravel() for index in np.indices(findings.value.shape))
    values, margin = findings.value.ravel(), records.NORMAL * findings.error.ravel()
    of_layers = {
        "layer": [findings.layers[row].index for row in rows],
        "tap": [findings.layers[row].tap for row in rows],
        "other_layer": [findings.others[column].index for column in columns],
        "other_tap": [findings.others[column].tap for column in columns],
        "value": values,
        "ci_low": values - margin,
        "ci_high": values + margin,
        "reason": np.where(np.isnan(values), findings.reason, ""),
    }
    return with_defaults(pd.DataFrame({**fields, "metric": findings.metric, "unit": "images", **of_layers}))
