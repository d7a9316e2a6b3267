"""Faults made on purpose, and a count of how each was answered.

    python -m tests.faults                      all of it, about half an hour on two cores
    python -m tests.faults --short              what CI runs, about two minutes
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
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import torch

ALONE = ("options", "fields", "bytes", "bombs", "foreign", "environments", "mutations")
OF_RUNS = ("damages", "outputs")
PARTS = (*ALONE, *OF_RUNS)


def parsed() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true", help="a few of everything")
    parser.add_argument("--damages", type=int, default=100, help="of each kind of file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    arguments = parser.parse_args()
    if arguments.short:
        arguments.damages = 3
    return arguments


def counts(arguments: argparse.Namespace, folder: Path) -> Iterator["Count"]:
    """Carry out the parts that were asked for, in turn."""
    every, times, seed = 6 if arguments.short else 1, arguments.damages, arguments.seed
    alone: dict[str, Callable[[Path], Iterable[Count]]] = {
        "options": lambda place: [try_options(place, every)],
        "fields": lambda place: [break_fields(place, every)],
        "bytes": lambda place: break_bytes(place, times, seed),
        "bombs": lambda place: [blow_up(place, every)],
        "foreign": lambda place: [rename_foreign(place, every)],
        "environments": lambda place: [try_environments(place, every * every, seed)],
        "mutations": lambda place: mutate(place, 10 * times, seed),
    }
    for part in ALONE:
        if part in arguments.only:
            yield from alone[part](folder / part)
    if {*OF_RUNS} & {*arguments.only}:
        yield from counts_of_runs(arguments, folder)


def counts_of_runs(arguments: argparse.Namespace, folder: Path) -> Iterator["Count"]:
    """Carry out the parts that begin with what a run leaves."""
    reference, times, seed = make_reference(folder), arguments.damages, arguments.seed
    if "damages" in arguments.only:
        yield from damage_files(reference, folder, times, seed)
    if "outputs" in arguments.only:
        for part in (forge_records, exchange_folders, name_steering):
            yield part(reference, folder, times, seed)


def main() -> None:
    """Print a line for each part, then every problem."""
    arguments = parsed()
    torch.set_num_threads(1)
    print(HEAD, flush=True)
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LAYERBOARD_CACHE"] = str(Path(folder) / "default-cache")
        for count in counts(arguments, Path(folder)):
            print(count, flush=True)
            problems += count.problems
    print(f"{len(problems)} problems", *problems, sep="\n  ")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    os.environ["HF_HUB_OFFLINE"] = "1"
    from tests.faults.bombs import blow_up, rename_foreign
    from tests.faults.broken_bytes import break_bytes
    from tests.faults.broken_fields import break_fields
    from tests.faults.counts import HEAD, Count
    from tests.faults.damage import damage_files
    from tests.faults.environments import try_environments
    from tests.faults.mutations import mutate
    from tests.faults.outputs import exchange_folders, forge_records, name_steering
    from tests.faults.places import make_reference
    from tests.faults.wrong_options import try_options

    main()
