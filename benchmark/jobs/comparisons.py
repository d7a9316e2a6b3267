"""Records of comparisons: one file for each pair of backbones."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmark.engines.progress import Advance, Reporter
from benchmark.extraction.failures import Failure, noting
from benchmark.jobs.job import CompareJob, Pair, ScoreJob
from benchmark.jobs.scores import stored_backbone
from benchmark.scores.records import NORMAL, ResultFiles, is_current, table_pooling
from leaderboards.records.arrays import write_arrays
from leaderboards.records.checksum import write_checked
from leaderboards.records.record import with_defaults
from tasks.comparing import ComparisonTask, PairFindings

Refusals = Mapping[tuple[str, str], str]
"""By backbone and key of a task, why the one cannot show what the other is fed."""


def compare_all(
    jobs: Sequence[CompareJob], failed: Collection[Failure], refusals: Refusals, report: Reporter
) -> tuple[Failure, ...]:
    """Compare all backbones whose features are there; gives the failures of those comparisons."""
    failures: list[Failure] = []
    for job in jobs:
        task, lost = job.task, {each.backbone for each in failed if each.key in (job.task.key, "")}
        ready = [member for member in job.members if member.setup.spec.name not in lost]
        if ready:
            bar = report.bar(f"comparing {len(ready)} backbones", 1, "tasks")
            with bar as advance, noting(failures, "", task.entry.name, task.key):
                _compare(ready, task, refusals, advance)
    return tuple(failures)


def _compare(jobs: Sequence[ScoreJob], task: ComparisonTask, refusals: Refusals, advance: Advance) -> None:
    begin = perf_counter()
    written: dict[Path, tuple[ResultFiles, list[pd.DataFrame], dict[str, NDArray[np.generic]]]] = {}
    stored = [stored_backbone(job, refusals.get((job.setup.spec.name, task.key), "")) for job in jobs]
    unreadable = int((~stored[0].of_source.shown).sum())
    for pooling in task.poolings:
        for findings in task.compare(stored, pooling, jobs[0].setup.device):
            sides = [jobs[findings.first], jobs[findings.second]]
            files = Pair(*(jobs[side] for side in sorted((findings.first, findings.second)))).kept
            _, frames, arrays = written.setdefault(files.records, (files, [], {}))
            fields = sides[0].fields(files, unreadable, begin)
            fields |= {"other": sides[1].setup.spec.name, "n": len(task.source.samples) - unreadable}
            in_tables = task.entry.analysis or pooling == table_pooling(sides[0].setup.spec)
            primary = in_tables and findings.metric == task.entry.metric
            frames.append(_frame({**fields, "pooling": pooling, "primary": primary}, findings))
            arrays |= findings.arrays
        advance(1 / len(task.poolings))
    for files, frames, arrays in written.values():
        if not is_current(files):
            if arrays:
                write_arrays(arrays, files.beside["arrays"])
            write_checked(pd.concat(frames, ignore_index=True), files.records, files.companions())


def _frame(fields: Mapping[str, object], findings: PairFindings) -> pd.DataFrame:
    """Records of all layers of one backbone against all layers of another, in bulk."""
    rows, columns = (index.ravel() for index in np.indices(findings.value.shape))
    values, margin = findings.value.ravel(), NORMAL * findings.error.ravel()
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
