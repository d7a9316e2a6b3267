"""Scores of one backbone's tasks as files."""

from time import perf_counter

import pandas as pd

from benchmark.features.loading import shard_count
from benchmark.jobs.job import VECTORS, BackboneRun
from benchmark.plan.plan import BoundTask
from benchmark.scores.assess import Assessments, assess_outcomes, measured
from benchmark.scores.layers import LayerOutcome, VectorReader, score_measurements, score_vectors
from benchmark.scores.records import Scored, file_name, to_records
from leaderboards.records.items import write_items
from leaderboards.records.record import to_frame, write_frame


def score_task(run: BackboneRun, task: BoundTask) -> pd.DataFrame:
    """Score a task on every layer from its stored features and write its records and items."""
    begin = perf_counter()
    outcomes, unreadable = _outcomes(run, task)
    spec = run.plan.spec
    assessed: Assessments = {}
    if not spec.is_floor:  # its layers are draws, whose spread is the uncertainty
        assessed = assess_outcomes(outcomes, task.task.metric)
    scored = Scored(task, run.fingerprint(task), unreadable, perf_counter() - begin)
    frame = to_frame(to_records(run.context, scored, outcomes, assessed))
    write_items(measured(outcomes), run.config.output / "items" / file_name(task, spec.name))
    write_frame(frame, run.records_path(task))
    return frame


def _outcomes(run: BackboneRun, task: BoundTask) -> tuple[list[LayerOutcome], int]:
    workers = run.config.workers
    if task.task.kind == "dense":
        (one,) = (one for one in run.plan.passes if task in one.dense)
        store = run.store(one, task.task.name, run.dense_print(one, task))
        store.missing(shard_count(one.source))
        return score_measurements(task.dense, store, run.layers, workers), 0
    readers = readers_of(run, task)
    outcomes = score_vectors(task.vector, readers, run.layers, workers, run.device)
    return outcomes, sum(int((~reader.shown).sum()) for reader in readers.values())


def readers_of(run: BackboneRun, task: BoundTask) -> dict[str, VectorReader]:
    """Readers of the vectors that a task scores."""
    names = {source.name for source in task.vector_sources}
    readers: dict[str, VectorReader] = {}
    for one in run.plan.passes:
        if one.source.name in names:
            store = run.store(one, VECTORS, run.vectors_print(one))
            store.missing(shard_count(one.source))
            readers[one.source.name] = VectorReader(one.source, store)
    return readers
