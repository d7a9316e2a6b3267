"""Faults made on purpose, and a count of how each was answered.

    python -m tests.faults                      all of it, many minutes on two cores
    python -m tests.faults --short              a few of everything
    python -m tests.faults --damages 100 --only damages

Flips bits in, truncates and removes files of every kind that a run leaves; breaks every field of ground
truth in every way, and the bytes of pickles, arrays, masks and images; reads files that are small and cost
much, and foreign formats by the names of images; changes every kind of file that decides a number, of which
another number needs another digest; forges and exchanges what others hand over, with names that steer
terminals; gives every option of every command values that are none of its own; starts commands with closed
streams, without a home, with foreign variables, and with libraries that break.
Exit code 1 if anything was not answered as it should be: each such case is printed.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

import torch

from tests.faults.bombs import blow_up, rename_foreign
from tests.faults.broken_bytes import break_bytes
from tests.faults.broken_fields import break_fields
from tests.faults.damage import damage_files
from tests.faults.environments import try_environments
from tests.faults.mutations import mutate
from tests.faults.outputs import disturb_outputs
from tests.faults.trials import Effort, Trial
from tests.faults.wrong_options import try_options

PARTS: dict[str, Callable[[Path, Effort], Iterator[Trial]]] = {
    "options": try_options,
    "fields": break_fields,
    "bytes": break_bytes,
    "bombs": blow_up,
    "foreign": rename_foreign,
    "environments": try_environments,
    "mutations": mutate,
    "damages": damage_files,
    "outputs": disturb_outputs,
}
ROW = "{:<44} {:>6} {:>6} {:>6}"


def main() -> None:
    """Print a line for each kind of trial, then every problem."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true", help="a few of everything")
    parser.add_argument("--damages", type=int, default=100, help="of each kind of file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=[*PARTS])
    arguments = parser.parse_args()
    effort = Effort(*((6, 3) if arguments.short else (1, arguments.damages)), arguments.seed)
    torch.set_num_threads(1)
    print(ROW.format("what", "tried", "good", "bad"), flush=True)
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LAYERBOARD_CACHE"] = str(Path(folder) / "default-cache")
        for part in arguments.only:
            for what, group in groupby(PARTS[part](Path(folder) / part, effort), lambda trial: trial.what):
                trials = [*group]
                wrong = [f"{trial.name}: {trial.problem}" for trial in trials if trial.problem]
                print(ROW.format(what, len(trials), len(trials) - len(wrong), len(wrong)), flush=True)
                problems += wrong
    print(f"{len(problems)} problems", *problems, sep="\n  ")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
