"""What a user waits for at the command line."""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from perf.rounds import Setting
from perf.rows import Budget, Row

PROGRAM = (sys.executable, "-m", "benchmark")


def command_rows(setting: Setting) -> Iterator[Row]:
    """Seconds of commands that need no torch, and until the first line of a run."""
    tries = 1 if setting.quick else setting.rounds
    for words in (("list", "backbones"), ("--help",)):
        yield Row(f"`{words[0]}`", _median(partial(_whole, words), tries), "s", Budget(0.5))
    yield Row("first line of `run`", _median(_first_line, tries), "s", Budget(3))


def mini_rows(setting: Setting) -> Iterator[Row]:
    """The mini suite, rendered and run, and run again."""
    part = ["--limit", "1", "--tasks", "knn", "--backbones", "mini-dino"] if setting.quick else []
    with tempfile.TemporaryDirectory() as folder:
        words = ["run", *part, "--output", f"{folder}/output", "--cache", f"{folder}/cache"]
        yield Row("mini suite, first run", _whole(words), "s", Budget(120))
        yield Row("mini suite, second run", _whole(words), "s", Budget(15))


def _median(measure: Callable[[], float], tries: int) -> float:
    return statistics.median(measure() for _ in range(tries))


def _whole(words: Sequence[str]) -> float:
    """Seconds of a command."""
    begin = time.perf_counter()
    subprocess.run([*PROGRAM, *words], check=True, capture_output=True)
    return time.perf_counter() - begin


def _first_line() -> float:
    """Seconds until a run says what it was asked for; it is ended then."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["run", "--tasks", "cost", "--output", f"{folder}/output", "--cache", f"{folder}/cache"]
        begin = time.perf_counter()
        with subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
            assert run.stdout is not None
            run.stdout.readline()
            seconds = time.perf_counter() - begin
            run.terminate()
        return seconds
