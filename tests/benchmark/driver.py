"""Runs command lines in forks of one process that has imported everything: ``driver.py JOBS.json``.

A job is a list of arguments, the number of the file before whose appearance it is killed (0: never), and a
file for the count of images that its backbones were shown. Jobs of one list run at the same time, lists one
after the other. Prints the exit statuses; minus 9 is killed.
"""

import json
import os
import signal
import sys
import traceback
from pathlib import Path

import pytest
import torch

from layerboard.benchmark.commands.app import main
from tests.benchmark.runs import Tally, leave_cost_out


def die_at(number: int) -> None:
    """Kill this process instead of its n-th rename of a file."""
    left, replace = number, os.replace

    def replacing(source: object, target: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)  # type: ignore[arg-type]

    os.replace = replacing  # type: ignore[assignment]


def start(arguments: list[str], dies: int, shown: str) -> int:
    """Fork a command line; gives its process id."""
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        torch.set_num_threads(1)
        die_at(dies)
        sys.argv = ["layerboard", *arguments]
        with pytest.MonkeyPatch.context() as patch, Tally(Path(shown)).watching():
            leave_cost_out(patch)
            main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except Exception:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def status(child: int) -> int:
    """Exit status of a process, once it has ended."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    together = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps([[status(child) for child in [start(*job) for job in jobs]] for jobs in together]))
