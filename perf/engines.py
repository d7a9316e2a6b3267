"""Two workers beside one, on work that keeps one core busy."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec

import torch

from benchmark.engines.base import Engine
from benchmark.engines.processes import ProcessEngine
from benchmark.engines.progress import Reporter, Silent
from benchmark.request import Request
from perf.machine import processors
from perf.rounds import Setting
from perf.rows import Budget, Row

JOBS = 8

Span = tuple[float, float]
"""When a job began and when it was over, by a clock that all processes of the machine share."""


def _ray(workers: int) -> Engine:
    from benchmark.engines.ray import RayEngine

    return RayEngine(Request(engine="ray", device="cpu", workers=workers))


ENGINES: dict[str, Callable[[int], Engine]] = {
    "processes": lambda workers: ProcessEngine(workers, threads=1),
    "ray": _ray,
}
"""Engines on this machine, by name: with so many workers."""


def engine_rows(setting: Setting) -> Iterator[Row]:
    """Jobs a second of two workers over one, from the first job's begin: how long workers start is apart."""
    products = 20 if setting.quick else 600
    for name, make in ENGINES.items():
        what, budget = f"{name}: throughput of two workers over one", Budget(1.8, at_least=True)
        if processors() < 2:
            yield Row(what, None, budget=budget, note="one processor")
            continue
        if name == "ray" and find_spec("ray") is None:
            yield Row(what, None, budget=budget, note="Ray is not installed")
            continue
        ratios, figures = [], dict[str, list[float]]()
        for _ in range(max(1, setting.rounds // 2)):
            one, two = (_seconds(make(workers), [products] * JOBS) for workers in (1, 2))
            ratios.append(one / two)
            for workers, seconds in (("one", one), ("two", two)):
                figures.setdefault(workers, []).append(1000 * seconds)
        medians = {workers: statistics.median(seconds) for workers, seconds in figures.items()}
        yield Row(what, statistics.median(ratios), budget=budget, figures=medians, note=f"{JOBS} jobs")


def busy(products: int, report: Reporter) -> Span:
    """Matrix products of one thread, as a forward of a small backbone has them."""
    del report
    seeded = torch.Generator().manual_seed(0)
    matrix = torch.randn(384, 384, generator=seeded) / 384**0.5
    begin, state = time.monotonic(), matrix
    for _ in range(products):
        state = torch.nn.functional.gelu(state @ matrix)
    return begin, time.monotonic()


def _seconds(engine: Engine, jobs: Sequence[int]) -> float:
    """From when the first job began to when the last one was over."""
    spans = engine.map(busy, jobs, Silent())
    return max(end for _, end in spans) - min(begin for begin, _ in spans)
