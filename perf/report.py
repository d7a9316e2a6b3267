"""The report of a large leaderboard: how long it takes, how large it is, how soon a browser has it.

Records are synthetic: 90 backbones, 8 tasks and 26 layers with intervals.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import cycle
from pathlib import Path

import numpy as np
import pandas as pd

from layerboard.leaderboards.board import Board
from layerboard.leaderboards.facts import Facts
from layerboard.leaderboards.records.record import COLUMNS, Record
from layerboard.leaderboards.report.content import report_of
from layerboard.leaderboards.report.page import report_page
from layerboard.tasks.registry import TASKS, TaskEntry
from layerboard.zoo.spec import FAMILIES
from perf.measuring import Budget, Row, Setting

USUAL = Record(
    suite="large", backbone="", family="", trained=True, revision="0" * 12, depth=1, input_size=224, task="",
    protocol="standard", dataset="", split="val", data="0" * 8, partial=False, coverage="all", layer=1,
    tap="block", pooling="grid", metric="", primary=True, value=0.0, n=1000, unit="images", dtype="float32",
    device="cpu", fingerprint="f", seconds=1.0, version="0", date="2026-01-01T00:00:00+00:00",
)  # fmt: skip


def synthetic(backbones: int, tasks: int, layers: int, seed: int = 0) -> pd.DataFrame:
    """Records of so many backbones, tasks and layers, and of the random floor."""
    random = np.random.default_rng(seed)
    families = [name for name in FAMILIES if name not in ("other", "random")]
    parts = []
    for task in [entry for entry in TASKS if not entry.analysis and entry.metrics][:tasks]:
        for number in range(backbones):
            family = families[number % len(families)]
            facts = {"backbone": f"{family.lower()}-{number:02d}", "family": family, "depth": layers}
            peak, top = random.uniform(0.4, 1) * layers, random.uniform(30, 90)
            values = top * (1 - np.abs(np.arange(1, layers + 1) - peak) / layers)
            values += random.normal(0, 1, layers)
            chosen = np.where(np.arange(layers) == np.argmax(values), 1.0, 0.0)
            parts.append(_rows(task, facts, np.clip(values, 0, 100), chosen))
        floor = {"backbone": "random", "family": "random", "trained": False, "depth": 10}
        parts.append(_rows(task, floor, random.normal(2, 0.3, 10), np.full(10, np.nan)))
    return pd.concat(parts, ignore_index=True)[[*COLUMNS]]


def _rows(task: TaskEntry, facts: dict[str, object], values: np.ndarray, chosen: np.ndarray) -> pd.DataFrame:
    """The records of one backbone and task."""
    width = 0.5 + values / 50
    record = asdict(USUAL) | {"task": task.name, "dataset": f"{task.name}-data", "metric": task.metrics[0]}
    return pd.DataFrame([record | facts] * len(values)).assign(
        layer=np.arange(1, len(values) + 1),
        value=values,
        ci_low=values - width,
        ci_high=values + width,
        chosen=chosen,
        held_out=np.where(chosen > 0, values - 0.3, np.nan),
    )


def facts_for(records: pd.DataFrame) -> dict[str, Facts]:
    """Invented facts of the records' backbones."""
    random = np.random.default_rng(1)
    said = cycle((("images", "Apache-2.0"), ("labels", "MIT"), ("texts", "CC-BY-NC-4.0")))
    widths = (768,) * int(records["depth"].max())
    return {
        name: Facts(*words, int(random.uniform(5, 1100) * 1e6), widths)
        for name, words in zip(sorted(set(records["backbone"])), said, strict=False)
    }


def interactive(page: Path) -> tuple[float, float]:
    """Seconds until the page's script has run, and until another task's charts are there."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        start = time.perf_counter()
        tab.goto(page.as_uri())
        tab.wait_for_selector("html[data-ready]")
        ready = time.perf_counter() - start
        tab.locator("#view-curves").scroll_into_view_if_needed()
        tab.wait_for_selector("#view-curves svg")
        start = time.perf_counter()
        tab.select_option("#task", index=1)
        wanted = tab.eval_on_selector("#task", "select => select.value")
        tab.wait_for_function(
            "name => document.querySelector('#view-curves .what').textContent.includes(name)"
            " && document.querySelector('#view-curves svg')",
            arg=wanted,
        )
        changed = time.perf_counter() - start
        browser.close()
    return ready, changed


def report_rows(setting: Setting) -> Iterator[Row]:
    """Seconds and megabytes of the page, and how soon a browser that is on the path answers."""
    backbones, tasks, layers = (6, 2, 6) if setting.quick else (90, 8, 26)
    records = synthetic(backbones, tasks, layers)
    facts, start = facts_for(records), time.perf_counter()
    page = report_page(report_of(Board.of(records, "large"), facts))
    seconds = time.perf_counter() - start
    what, note = f"report of {backbones} backbones, {tasks} tasks", f"{len(records):,} records"
    yield Row(f"{what}: written", seconds, "s", Budget(20), note=note)
    yield Row(f"{what}: size", len(page.encode()) / 1e6, "MB", Budget(15))
    names = ("answers in a browser", "another task's charts in a browser")
    times: tuple[float | None, float | None] = (None, None)
    why = "a quick look opens no browser" if setting.quick else ""
    if not why and not shutil.which("chromium"):
        why = "no Chromium on the path"
    if not why:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "large.html"
            path.write_text(page, encoding="utf-8")
            times = interactive(path)
    for name, value in zip(names, times, strict=True):
        yield Row(f"{what}: {name}", value, "s", note=why)
