"""The report of a large leaderboard: its duration and size.

Records are synthetic: 90 backbones, 8 tasks and 26 layers with intervals.
"""

import time
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.findings.facts import Facts
from layerboard.leaderboards.records.record import Record, to_frame
from layerboard.leaderboards.report.content import report_of
from layerboard.leaderboards.report.page import report_page
from layerboard.tasks.framework.registry import TASKS
from layerboard.zoo.spec import FAMILIES, FLOORS
from tests.leaderboards import builder
from workshop.perf.measuring import Budget, Row, Setting


def synthetic(backbones: int, tasks: int, layers: int, seed: int = 0) -> pd.DataFrame:
    """Records of that many backbones, tasks and layers, and of the random floor."""
    random = np.random.default_rng(seed)
    families = [name for name in FAMILIES if name not in ("other", *FLOORS)]
    records: list[Record] = []
    for task in [entry for entry in TASKS if not entry.analysis and entry.metrics][:tasks]:
        facts: dict[str, Any] = {"suite": "large", "task": task.name, "metric": task.metrics[0]}
        for number, family in zip(range(backbones), cycle(families), strict=False):
            peak, top = random.uniform(0.4, 1) * layers, random.uniform(30, 90)
            values = top * (1 - np.abs(np.arange(1, layers + 1) - peak) / layers)
            values = np.clip(values + random.normal(0, 1, layers), 0, 100)
            name = f"{family.lower()}-{number:02d}"
            records += builder.layers(values.tolist(), backbone=name, family=family, **facts)
        records += builder.floor(random.normal(2, 0.3, 10).tolist(), **facts)
    frame = to_frame(records)
    values, width = frame["value"], 0.5 + frame["value"] / 50
    best = values == frame.groupby(["task", "backbone"])["value"].transform("max")
    chosen = best.astype(float).where(frame["trained"])
    held_out = (values - 0.3).where(chosen > 0)
    return frame.assign(ci_low=values - width, ci_high=values + width, chosen=chosen, held_out=held_out)


def report_rows(setting: Setting) -> Iterator[Row]:
    """Seconds and megabytes of the page."""
    backbones, tasks, layers = (6, 2, 6) if setting.quick else (90, 8, 26)
    records = synthetic(backbones, tasks, layers)
    known = Facts("images", "Apache-2.0", 86_000_000, (768,) * layers)
    facts, start = dict.fromkeys(sorted(set(records["backbone"])), known), time.perf_counter()
    page = report_page(report_of(Board.of(records, "large"), facts))
    seconds = time.perf_counter() - start
    what, note = f"report of {backbones} backbones, {tasks} tasks", f"{len(records):,} records"
    yield Row(f"{what}: written", seconds, "s", Budget(20), note=note)
    yield Row(f"{what}: size", len(page.encode()) / 1e6, "MB", Budget(6))
