"""Records of comparisons: one file for each pair of backbones."""

from collections.abc import Sequence
from itertools import combinations_with_replacement
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmark.engines.progress import Advance, Reporter
from benchmark.features.loading import shard_count
from benchmark.jobs.job import BackboneRun, Failure
from benchmark.jobs.scores import readers_of
from benchmark.plan.plan import BoundTask
from benchmark.scores.cka_matrix import Compared, compare
from benchmark.scores.records import Scored, base_fields, file_name, file_under, is_current
from leaderboards.records.record import with_all_columns, write_frame
from tasks.base import digest
from tasks.cka import CkaProblem

Pair = tuple[BackboneRun, BackboneRun]

NORMAL = 1.959964
"""Standard errors to each side of a 95 % interval."""


def stale_comparisons(runs: Sequence[BackboneRun], tasks: Sequence[BoundTask]) -> list[BoundTask]:
    """Comparisons of which a pair's records are absent or belong to something else."""
    return [task for task in tasks if any(not _current(pair, task) for pair in _pairs(runs))]


def file_comparisons_under_suite(runs: Sequence[BackboneRun], tasks: Sequence[BoundTask]) -> None:
    """Let current comparisons belong to the run's suite."""
    for task in tasks:
        for pair in _pairs(runs):
            file_under(_path(pair, task), _fingerprint(pair, task), pair[0].suite)


def compare_all(runs: Sequence[BackboneRun], tasks: Sequence[BoundTask], report: Reporter) -> list[Failure]:
    """Compare all backbones whose features are there; gives the failures of those comparisons."""
    failures: list[Failure] = []
    for task in tasks:
        ready = [run for run in runs if not any(f.key in (task.key, "") for f in run.failures)]
        if not ready:
            continue
        with report.bar(f"comparing {len(ready)} backbones", 1, "tasks") as advance:
            try:
                _compare(_sorted(ready), task, advance)
            except Exception as error:
                ready[0].failures.clear()
                ready[0].fail(task, error)
                failures += ready[0].failures
    return failures


def _compare(runs: Sequence[BackboneRun], task: BoundTask, advance: Advance) -> None:
    assert isinstance(task.problem, CkaProblem)
    begin = perf_counter()
    frames: dict[tuple[str, str], list[pd.DataFrame]] = {}
    compared = [_compared(run, task) for run in runs]
    unreadable = int((~compared[0].vectors.shown).sum())
    images = len(task.problem.source.samples) - unreadable
    for pooling in task.problem.rule.poolings:
        chosen = [(run, one) for run, one in zip(runs, compared, strict=True) if one.offers(pooling)]
        if chosen:
            both = compare(task.problem, [one for _, one in chosen], pooling, runs[0].device)
            values, errors = (_blocks(chosen, matrix) for matrix in both)
            for (pair, block), (_, error) in zip(values, errors, strict=True):
                shared = base_fields(pair[0].context, _scored(pair, task, unreadable, begin))
                key = pair[0].plan.spec.name, pair[1].plan.spec.name
                frames.setdefault(key, []).append(_frame(shared, pair, pooling, block, error, images))
        advance(1 / len(task.problem.rule.poolings))
    for pair in _pairs(runs):
        key = pair[0].plan.spec.name, pair[1].plan.spec.name
        if key in frames and not _current(pair, task):
            write_frame(pd.concat(frames[key], ignore_index=True), _path(pair, task))


def _compared(run: BackboneRun, task: BoundTask) -> Compared:
    assert isinstance(task.problem, CkaProblem)
    (one,) = (one for one in run.plan.passes if task in one.dense)
    grams = run.store(one, task.task.name, run.dense_print(one, task))
    grams.missing(shard_count(one.source))
    return Compared(run.plan.spec.name, run.layers, readers_of(run, task)[one.source.name], grams)


def _scored(pair: Pair, task: BoundTask, unreadable: int, begin: float) -> Scored:
    return Scored(task, _fingerprint(pair, task), unreadable, perf_counter() - begin)


def _blocks(
    chosen: Sequence[tuple[BackboneRun, Compared]], matrix: NDArray[np.float64]
) -> list[tuple[Pair, NDArray[np.float64]]]:
    """The part of the matrix that belongs to each unordered pair of backbones."""
    stops = np.cumsum([len(one.layers) for _, one in chosen])
    spans = [slice(stop - len(one.layers), stop) for stop, (_, one) in zip(stops, chosen, strict=True)]
    return [
        ((chosen[a][0], chosen[b][0]), matrix[spans[a], spans[b]])
        for a, b in combinations_with_replacement(range(len(chosen)), 2)
    ]


def _frame(
    shared: dict[str, object],
    pair: Pair,
    pooling: str,
    block: NDArray[np.float64],
    error: NDArray[np.float64],
    images: int,
) -> pd.DataFrame:
    """Records of all layers of one backbone against all layers of another, in bulk."""
    margin = NORMAL * error.ravel()
    rows, columns = (index.ravel() for index in np.indices(block.shape))
    first = [pair[0].layers[row] for row in rows]
    second = [pair[1].layers[column] for column in columns]
    values = block.ravel()
    constants = {
        **shared,
        "pooling": pooling,
        "metric": "CKA",
        "primary": pooling == pair[0].context.table_pooling,
        "n": images,
        "unit": "images",
        "other": pair[1].plan.spec.name,
        "ci_low": block.ravel() - margin,
        "ci_high": block.ravel() + margin,
        "chosen": float("nan"),
        "held_out": float("nan"),
        "tied": False,
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


def _pairs(runs: Sequence[BackboneRun]) -> list[Pair]:
    return list(combinations_with_replacement(_sorted(runs), 2))


def _sorted(runs: Sequence[BackboneRun]) -> list[BackboneRun]:
    """By name, so that a pair has one file whatever the order of a run."""
    return sorted(runs, key=lambda run: run.plan.spec.name)


def _path(pair: Pair, task: BoundTask) -> Path:
    names = (run.plan.spec.name for run in pair)
    return pair[0].config.output / "records" / file_name(task, *names)


def _fingerprint(pair: Pair, task: BoundTask) -> str:
    return digest([run.fingerprint(task) for run in pair])


def _current(pair: Pair, task: BoundTask) -> bool:
    return is_current(_path(pair, task), _fingerprint(pair, task))
