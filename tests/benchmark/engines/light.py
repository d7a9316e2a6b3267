"""What processes of the tests do, alone in a module that imports little: each process imports it."""

import os
import time

from layerboard.benchmark.engines.progress import Reporter
from layerboard.zoo.errors import InputError


def number(seconds: float, report: Reporter) -> None:
    """Say the number of this process, and wait."""
    report.say(str(os.getpid()))
    time.sleep(seconds)


def double(job: int, report: Reporter) -> int:
    """Report and give twice the number; numbers above 2 end the process."""
    with report.bar(f"job {job}", 1, "jobs") as advance:
        advance(1)
    report.say(f"said {job}")
    if job > 2:
        time.sleep(0.3)  # until what was said is sent
        os._exit(3)
    return 2 * job


def refuse() -> int:
    """What reading a job does whose data is not where the worker is."""
    raise InputError("there is no folder of data here")


class Unreadable:
    """A job that no other process can read."""

    def __reduce__(self) -> object:
        return refuse, ()
