"""Records of comparisons: one file for each pair of backbones."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmark.engines.progress import Advance, Reporter
from benchmark.extraction.failures import Failure, failure
from benchmark.jobs.job import CompareJob, Pair, ScoreJob
from benchmark.jobs.scores import stored_backbone
from benchmark.scores.records import NORMAL, Scored, base_fields, is_current
from leaderboards.records.arrays import write_arrays
from leaderboards.records.checksum import write_checked
from leaderboards.records.record import with_defaults
from tasks.comparing import ComparisonTask, PairFindings

Refusals = Mapping[tuple[str, str], str]
"""By backbone and key of a task, why the one cannot show what the other is fed."""


@dataclass
class _Written:
    """What is to be written of one pair."""

    frames: list[pd.DataFrame] = field(default_factory=list)
    arrays: dict[str, NDArray[np.generic]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Round:
    """What the records of one comparison share.

    Attributes:
        task: The comparison.
        pooling: What of the features was compared.
        images: Images that could be read.
        unreadable: Images that could not.
        begin: When it began.
    """

    task: ComparisonTask
    pooling: str
    images: int
    unreadable: int
    begin: float


def compare_all(
    jobs: Sequence[CompareJob], failed: Collection[Failure], refusals: Refusals, report: Reporter
) -> tuple[Failure, ...]:
    """Compare all backbones whose features are there; gives the failures of those comparisons."""
    failures: list[Failure] = []
    for job in jobs:
        task, lost = job.task, {each.backbone for each in failed if each.key in (job.task.key, "")}
        ready = [member for member in job.members if member.setup.spec.name not in lost]
        if not ready:
            continue
        with report.bar(f"comparing {len(ready)} backbones", 1, "tasks") as advance:
            try:
                _compare(ready, task, refusals, advance)
            except Exception as error:
                failures.append(failure(error, "", task.entry.name, task.key))
    return tuple(failures)


def _compare(jobs: Sequence[ScoreJob], task: ComparisonTask, refusals: Refusals, advance: Advance) -> None:
    begin = perf_counter()
    written: dict[Path, tuple[Pair, _Written]] = {}
    stored = [stored_backbone(job, refusals.get((job.setup.spec.name, task.key), "")) for job in jobs]
    unreadable = int((~stored[0].of_source.shown).sum())
    images = len(task.source.samples) - unreadable
    for pooling in task.poolings:
        now = _Round(task, pooling, images, unreadable, begin)
        for findings in task.compare(stored, pooling, jobs[0].setup.device):
            pair = Pair(
                jobs[min(findings.first, findings.second)], jobs[max(findings.first, findings.second)]
            )
            _, files = written.setdefault(pair.kept.records, (pair, _Written()))
            files.frames.append(_frame(now, pair, (jobs[findings.first], jobs[findings.second]), findings))
            files.arrays |= findings.arrays
        advance(1 / len(task.poolings))
    for pair, files in written.values():
        if not is_current(pair.kept):
            if files.arrays:
                write_arrays(files.arrays, pair.kept.beside["arrays"])
            frame = pd.concat(files.frames, ignore_index=True)
            write_checked(frame, pair.kept.records, pair.kept.companions())


def _frame(now: _Round, pair: Pair, sides: tuple[ScoreJob, ScoreJob], found: PairFindings) -> pd.DataFrame:
    """Records of all layers of one backbone against all layers of another, in bulk."""
    context, task = sides[0].setup.context, now.task
    scored = Scored(task, pair.kept.fingerprint, pair.kept.data, now.unreadable, perf_counter() - now.begin)
    margin = NORMAL * found.error.ravel()
    rows, columns = (index.ravel() for index in np.indices(found.value.shape))
    first = [found.layers[row] for row in rows]
    second = [found.others[column] for column in columns]
    values = found.value.ravel()
    in_tables = task.entry.analysis or now.pooling == context.table_pooling
    constants = {
        **base_fields(context, scored),
        "pooling": now.pooling,
        "n": now.images,
        "metric": found.metric,
        "primary": in_tables and found.metric == task.entry.metric,
        "unit": "images",
        "other": sides[1].setup.spec.name,
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
            "reason": np.where(np.isnan(values), found.reason, ""),
        }
    )
    return with_defaults(frame)
