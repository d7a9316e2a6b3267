"""Waiting times at the command line, and two workers compared with one."""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

import torch

from layerboard.benchmark.engines.choose import find_engine
from layerboard.benchmark.engines.progress import Reporter, Silent
from layerboard.benchmark.forms.request import Request
from workshop.list_queue import results_in_order
from workshop.perf.measuring import Budget, Rounds, Row, Setting, processors

PROGRAM = (sys.executable, "-m", "layerboard")


def command_rows(setting: Setting) -> Iterator[Row]:
    """Seconds of commands that do not need torch, and until the first line of a run."""
    tries = 1 if setting.quick else setting.rounds
    for words in (("list", "backbones"), ("--help",)):
        seconds = statistics.median(_whole(words) for _ in range(tries))
        yield Row(f"`{words[0]}`", seconds, "s", Budget(0.5))
    seconds = statistics.median(_first_line() for _ in range(tries))
    yield Row("first line of `run`", seconds, "s", Budget(3))


def mini_rows(setting: Setting) -> Iterator[Row]:
    """The mini suite, run and run again."""
    part = ["--limit", "1", "--tasks", "knn", "--backbones", "mini-dino"] if setting.quick else []
    with tempfile.TemporaryDirectory() as folder:
        words = ["run", *part, "--output", f"{folder}/output", "--cache", f"{folder}/cache"]
        yield Row("mini suite, first run", _whole(words), "s", Budget(120))
        yield Row("mini suite, second run", _whole(words), "s", Budget(8))


def _whole(words: Sequence[str]) -> float:
    begin = time.perf_counter()
    subprocess.run([*PROGRAM, *words], check=True, capture_output=True)
    return time.perf_counter() - begin


def _first_line() -> float:
    """Seconds until a run reports its request; the run is then ended."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["run", "--tasks", "cost", "--output", f"{folder}/output", "--cache", f"{folder}/cache"]
        begin = time.perf_counter()
        with subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
            assert run.stdout is not None
            run.stdout.readline()
            seconds = time.perf_counter() - begin
            run.terminate()
        return seconds


JOBS = 8


def engine_rows(setting: Setting) -> Iterator[Row]:
    """Jobs per second of two workers over one, from the start of the first job, since workers start apart."""
    products = 20 if setting.quick else 600
    for name in ("processes", "ray"):
        what, budget = f"{name}: throughput of two workers over one", Budget(1.8, at_least=True)
        if processors() < 2:
            yield Row(what, None, budget=budget, note="one processor")
            continue
        seconds: dict[str, list[float]] = {"one": [], "two": []}
        for _ in range(max(1, setting.rounds // 2)):
            for workers, times in enumerate(seconds.values(), 1):
                times.append(_seconds(name, workers, [products] * JOBS))
        yield Rounds(seconds).row(what, ("one", "two"), budget, f"{JOBS} jobs")


def busy(products: int, report: Reporter) -> tuple[float, float]:
    """Matrix products in one thread, as in a forward pass of a small backbone; returns start and end times.

    The clock is shared by all processes of the machine.
    """
    matrix = torch.randn(384, 384, generator=torch.Generator().manual_seed(0)) / 384**0.5
    del report
    begin, state = time.monotonic(), matrix
    for _ in range(products):
        state = torch.nn.functional.gelu(state @ matrix)
    return begin, time.monotonic()


def _seconds(name: str, workers: int, jobs: Sequence[int]) -> float:
    """Seconds from the start of the first job to the end of the last."""
    engine = find_engine((), Request(engine=name, device="cpu", workers=workers), [torch.device("cpu")])
    spans = results_in_order(engine, busy, jobs, Silent())
    return max(end for _, end in spans) - min(begin for begin, _ in spans)
