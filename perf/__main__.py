"""The budgets of speed as one table: what, measured, budget, met or not.

    python -m perf                          everything, on the processor: about half an hour on two cores
    python -m perf --only pass gram spair   some topics
    python -m perf --quick                  small shapes, in about a minute: that it works, not how fast
    python -m perf --device cuda --batch 64 --rounds 20 --save

Candidates take turns within one process; ratios are medians of the rounds' ratios, so that what slows a
machine down hits all of them alike. ``--save`` writes to `perf/results`: do it where nothing else runs.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch

from benchmark.engines.choose import find_device
from perf.board import board_rows
from perf.machine import this_machine
from perf.rounds import Setting
from perf.rows import Row, as_data, as_table
from perf.saving import RESULTS, save
from perf.topics import TOPICS
from zoo.errors import InputError


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print; gives the exit code, 0 whether or not budgets are met, 2 for wrong words."""
    given = _arguments(words)
    try:
        device = find_device(given.device)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    rounds = given.rounds or (1 if given.quick else 5)
    setting = Setting(device, getattr(torch, given.dtype), rounds, given.quick, given.batch)
    machine = this_machine(setting)
    if machine.busy and not given.quick:
        print("other work runs on this machine: ratios may hold, times do not", file=sys.stderr)
    rows = list(measured(given.only, setting, given.data))
    if given.json:
        print(json.dumps({"machine": asdict(machine), "rows": as_data(rows)}, indent=1))
    else:
        print(f"{machine}\n\n{as_table(rows)}")
    if given.save:
        print(f"wrote {save(machine, rows, given.save).name}", file=sys.stderr)
    return 0


def measured(names: Sequence[str], setting: Setting, data: Path | None = None) -> Iterator[tuple[str, Row]]:
    """Rows of topics, or of all, with their names; what is measured is said on standard error."""
    for topic in TOPICS:
        if not names or topic.name in names:
            print(f"measuring {topic.name} ...", file=sys.stderr, flush=True)
            rows = partial(board_rows, data=data) if topic.name == "board" else topic.rows
            try:
                yield from ((topic.name, row) for row in rows(setting))
            except Exception as error:  # the other topics are worth having
                yield topic.name, Row("failed", None, note=" ".join(str(error).split()))


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m perf", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=(), choices=[one.name for one in TOPICS], metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="small shapes, one round")
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument(
        "--save",
        nargs="?",
        type=Path,
        const=RESULTS,
        metavar="DIR",
        help="write to DIR, or to perf/results, named by the device",
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"))
    parser.add_argument("--batch", type=int, default=8, help="images of a batch of a pass")
    parser.add_argument("--rounds", type=int, help="after one that warms up (5)")
    parser.add_argument("--data", type=Path, help="real datasets for the topic board; else the mini suite's")
    given = parser.parse_args(words)
    if given.quick and given.save:
        parser.error("--quick shows that it works, not how fast: nothing to --save")
    return given


if __name__ == "__main__":
    sys.exit(main())
