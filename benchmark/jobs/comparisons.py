"""Records of comparisons: one file for each pair of backbones."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmark.engines.progress import Advance, Reporter
from benchmark.features.shards import Shards
from benchmark.jobs.failures import Failure, failure
from benchmark.jobs.job import CompareJob, Pair, ScoreJob
from benchmark.jobs.scores import readers_of
from benchmark.plan.bound import Comparison
from benchmark.plan.plan import Plan
from benchmark.scores.cka_matrix import Compared, compare
from benchmark.scores.records import Scored, base_fields, is_current
from leaderboards.records.record import with_all_columns, write_frame

NORMAL = 1.959964
"""Standard errors to each side of a 95 % interval."""


@dataclass(frozen=True)
class Side:
    """A backbone of a comparison: its job and its stored features."""

    job: ScoreJob
    stored: Compared


def compare_all(
    plan: Plan, jobs: Sequence[CompareJob], failed: Collection[Failure], report: Reporter
) -> tuple[Failure, ...]:
    """Compare all backbones whose features are there; gives the failures of those comparisons."""
    failures: list[Failure] = []
    tasks = {task.key: task for task in plan.tasks.comparisons}
    for job in jobs:
        task, lost = tasks[job.task], {one.backbone for one in failed if one.key in (job.task, "")}
        ready = [member for member in job.members if member.setup.spec.name not in lost]
        if not ready:
            continue
        with report.bar(f"comparing {len(ready)} backbones", 1, "tasks") as advance:
            try:
                _compare(plan, ready, task, advance)
            except Exception as error:
                failures.append(failure(error, "", task.subject.entry.name, task.key))
    return tuple(failures)


def _compare(plan: Plan, jobs: Sequence[ScoreJob], task: Comparison, advance: Advance) -> None:
    begin = perf_counter()
    frames: dict[Path, list[pd.DataFrame]] = {}
    members = [Side(job, _stored(plan, job, task)) for job in jobs]
    unreadable = int((~members[0].stored.vectors.shown).sum())
    images = len(task.problem.source.samples) - unreadable
    for pooling in task.problem.rule.poolings:
        chosen = [member for member in members if member.stored.offers(pooling)]
        if chosen:
            stored = [member.stored for member in chosen]
            values, errors = compare(task.problem, stored, pooling, jobs[0].setup.device)
            for pair, block, error in _blocks(chosen, values, errors):
                scored = Scored(
                    task.subject, pair.kept.fingerprint, pair.kept.data, unreadable, perf_counter() - begin
                )
                shared = base_fields(pair.first.setup.context, scored) | {"pooling": pooling, "n": images}
                frames.setdefault(pair.kept.records, []).append(_frame(shared, pair, block, error))
        advance(1 / len(task.problem.rule.poolings))
    for both in combinations_with_replacement(jobs, 2):
        pair = Pair(*both)
        kept = pair.kept
        if kept.records in frames and not is_current(kept):
            write_frame(pd.concat(frames[kept.records], ignore_index=True), kept.records)


def _stored(plan: Plan, job: ScoreJob, task: Comparison) -> Compared:
    source = task.problem.source
    assert job.measured is not None
    grams = Shards.open(job.measured, source.shards)
    reader = readers_of(plan, job)[source.name]
    return Compared(job.setup.spec.name, job.setup.layers, reader, grams)


def _blocks(
    members: Sequence[Side], values: NDArray[np.float64], errors: NDArray[np.float64]
) -> list[tuple[Pair, NDArray[np.float64], NDArray[np.float64]]]:
    """The parts of both matrices that belong to each unordered pair of backbones."""
    stops = np.cumsum([len(one.stored.layers) for one in members])
    spans = [slice(stop - len(one.stored.layers), stop) for stop, one in zip(stops, members, strict=True)]
    return [
        (Pair(members[a].job, members[b].job), values[spans[a], spans[b]], errors[spans[a], spans[b]])
        for a, b in combinations_with_replacement(range(len(members)), 2)
    ]


def _frame(
    shared: dict[str, object], pair: Pair, block: NDArray[np.float64], error: NDArray[np.float64]
) -> pd.DataFrame:
    """Records of all layers of one backbone against all layers of another, in bulk."""
    margin = NORMAL * error.ravel()
    rows, columns = (index.ravel() for index in np.indices(block.shape))
    first = [pair.first.setup.layers[row] for row in rows]
    second = [pair.second.setup.layers[column] for column in columns]
    values = block.ravel()
    constants = {
        **shared,
        "metric": "CKA",
        "primary": shared["pooling"] == pair.first.setup.context.table_pooling,
        "unit": "images",
        "other": pair.second.setup.spec.name,
        "ci_low": values - margin,
        "ci_high": values + margin,
    }
    frame = pd.DataFrame(
        {
            **constants,
            "layer": [layer.index for layer in first],
            "tap": [layer.tap for layer in first],
            "other_layer": [layer.index for layer in second],
            "other_tap": [layer.tap for layer in second],
            "value": values,
            "reason": np.where(np.isnan(values), "features do not vary or are not finite", ""),
        }
    )
    return with_all_columns(frame)
