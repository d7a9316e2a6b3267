"""The budgets of speed as one table: what was measured, the result, the budget, and whether it is met.

    python -m workshop.perf                          everything, on the processor: half an hour on two cores
    python -m workshop.perf --only pass gram spair   some topics
    python -m workshop.perf --quick                  small shapes, about a minute: that it works, not how fast
    python -m workshop.perf --device cuda --batch 64 --rounds 20 --save

Candidates take turns within one process; ratios are medians of the ratios of rounds, so that anything that
slows the machine down affects all of them alike. ``--save`` writes to `workshop/perf/results`: use it only if
nothing else is running.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, get_args

from layerboard.benchmark.engines.choose import find_device
from layerboard.zoo.atomic import write_whole
from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import Dtype
from workshop.perf.board import board_rows
from workshop.perf.commands import command_rows, engine_rows, mini_rows
from workshop.perf.decode import decode_rows
from workshop.perf.grids import keypoint_rows, region_rows, video_rows
from workshop.perf.measuring import Machine, Row, Setting, as_data, as_table, this_machine
from workshop.perf.memory import memory_rows
from workshop.perf.passes import attention_rows, gram_rows, pass_rows, throughput_rows
from workshop.perf.report import report_rows
from workshop.perf.vectors import cka_rows, gram_matrix_rows, large_bank_rows, neighbour_rows

RESULTS = Path(__file__).parent / "results"


def save(machine: Machine, new: list[dict[str, Any]], folder: Path = RESULTS) -> Path:
    """Write rows beside those of other topics on a device of that name; returns the Markdown page."""
    path = folder / f"{re.sub(r'[^a-z0-9]+', '-', machine.device.lower()).strip('-')}.json"
    before = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.is_file() else []
    order, measured_again = [*TOPICS], {row["topic"] for row in new}
    old = [row for row in before if row["topic"] in order and row["topic"] not in measured_again]
    every = sorted([*old, *new], key=lambda row: order.index(row["topic"]))
    page = f"# {machine.device}\n\n{machine}\n\n{as_table(every, 'github')}\n"
    content = json.dumps({"machine": asdict(machine), "rows": every}, indent=1) + "\n"
    for target, text in ((path, content), (path.with_suffix(".md"), page)):
        write_whole(target, text)
    return path.with_suffix(".md")


TOPICS: dict[str, Callable[[Setting], Iterator[Row]]] = {
    "pass": pass_rows,
    "pass-cka": gram_rows,
    "throughput": throughput_rows,
    "attention": attention_rows,
    "memory": memory_rows,
    "decode": decode_rows,
    "gram": gram_matrix_rows,
    "cka": cka_rows,
    "davis": video_rows,
    "jf": region_rows,
    "spair": keypoint_rows,
    "knn": neighbour_rows,
    "knn-large": large_bank_rows,
    "board": board_rows,
    "engines": engine_rows,
    "report": report_rows,
    "commands": command_rows,
    "mini": mini_rows,
}  # rows that are measured together, by the name of their topic


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print; returns the exit code: 0 whether or not budgets are met, 2 for wrong arguments."""
    given = _arguments(words)
    try:
        device = find_device(given.device)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    rounds = given.rounds or (1 if given.quick else 5)
    setting = Setting(device, given.dtype, rounds, given.quick, given.batch)
    machine = this_machine(setting)
    if machine.busy and not given.quick:
        print("other work runs on this machine: ratios may hold, times do not", file=sys.stderr)
    rows = as_data(measured(given.only, setting, given.data))
    if given.json:
        print(json.dumps({"machine": asdict(machine), "rows": rows}, indent=1))
    else:
        print(f"{machine}\n\n{as_table(rows)}")
    if given.save:
        print(f"wrote {save(machine, rows, given.save).name}", file=sys.stderr)
    return 0


def measured(names: Sequence[str], setting: Setting, data: Path | None = None) -> Iterator[tuple[str, Row]]:
    """Rows of topics, or of all, with their names; progress is printed to standard error."""
    for name in (name for name in TOPICS if not names or name in names):
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        rows = partial(board_rows, data=data) if name == "board" else TOPICS[name]
        try:
            yield from ((name, row) for row in rows(setting))
        except Exception as error:  # the other topics are still useful
            yield name, Row("failed", None, note=" ".join(str(error).split()))


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m workshop.perf", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=(), choices=[*TOPICS], metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="small shapes, one round")
    parser.add_argument("--json", action="store_true", help="for machines")
    saved = "write to DIR, or to workshop/perf/results"
    parser.add_argument("--save", nargs="?", type=Path, const=RESULTS, metavar="DIR", help=saved)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", choices=get_args(Dtype))
    parser.add_argument("--batch", type=int, default=8, help="images of a batch of a pass")
    parser.add_argument("--rounds", type=int, help="after one that warms up (5)")
    parser.add_argument("--data", type=Path, help="real datasets for the topic board; else the mini suite's")
    given = parser.parse_args(words)
    if given.quick and given.save:
        parser.error("--quick shows that it works, not how fast: nothing to --save")
    return given


if __name__ == "__main__":
    sys.exit(main())
