"""Runs killed at random moments and started again, and several runs at once on one cache."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

from tests.faults.counts import Count
from tests.faults.places import Reference, difference, started


def kill_runs(reference: Reference, folder: Path, kills: int, seed: int = 0) -> Count:
    """Kill a run with two workers so many times, five times before each that may end; compare what it leaves.

    What is wanted: the same records, nothing left in memory, no temporary file but those of the killed.
    """
    draw, count = random.Random(seed), Count("runs killed, then finished")
    usual = _seconds(reference, folder / "usual")
    for chain in range(-(-kills // 5)):
        place = folder / f"killed-{chain}"
        for _ in range(min(5, kills - 5 * chain)):
            process = started(place, reference.data)
            time.sleep(draw.uniform(0.1, 1.0) * usual)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            count.tried += 1
        process = started(place, reference.data)
        code = process.wait(timeout=20 * usual)
        problem = f"exit code {code}" if code else difference(place, reference)
        if problem:
            count.problems.append(f"chain {chain}: {problem}")
        else:
            count.answered += min(5, kills - 5 * chain)
    return count


def run_together(reference: Reference, folder: Path, together: int) -> Count:
    """Start so many runs at once on one cache and output.

    What is wanted: all end well, with the records of one.
    """
    count, place = Count(f"{together} runs at once"), folder / f"together-{together}"
    processes = [started(place, reference.data) for _ in range(together)]
    for number, process in enumerate(processes):
        code = _waited(process)
        count.note(f"run {number}", f"exit code {code}" if code else difference(place, reference))
    return count


def _seconds(reference: Reference, place: Path) -> float:
    """How long an undisturbed run takes."""
    begin = time.perf_counter()
    _waited(started(place, reference.data))
    return time.perf_counter() - begin


def _waited(process: subprocess.Popen[bytes]) -> int:
    return process.wait(timeout=900)
