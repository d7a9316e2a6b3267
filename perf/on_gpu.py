"""What a machine with a graphics card is asked once: its tests, its speed, and whether its numbers agree.

    python -m perf.on_gpu --output DIR                     all of it, about half an hour
    python -m perf.on_gpu --output DIR tests budgets       some steps

Each step has a time limit, and its words are kept in ``DIR/<step>.log``; ``DIR/summary.json`` says how each
ended and how long it took, and is there after every step. The trainings go on from their checkpoints in
``DIR/pretrained`` when the step is run again.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

PYTHON = sys.executable
LARGEST_DIFFERENCE = 0.5
"""Points by which a score of the mini suite on the card may differ from that on the processor."""


@dataclass(frozen=True, slots=True)
class GpuStep:
    """Commands that are run in turn until one fails."""

    commands: tuple[tuple[str, ...], ...]  # the words of each
    seconds: int  # how long they may take together


@dataclass(frozen=True, slots=True)
class Ended:
    """How a step ended: the exit code of its last command (None: the time was up), and after how long."""

    step: str
    code: int | None
    seconds: float


def steps(output: Path, batch: int) -> dict[str, GpuStep]:
    """What is asked, in the order of worth."""
    perf = (PYTHON, "-m", "perf", "--device", "cuda", "--batch", str(batch), "--rounds", "20")
    run = (PYTHON, "-m", "benchmark", "run", "--no-examples", "--cache", str(output / "cache"))
    check = (PYTHON, "-m", "benchmark", "leaderboard", "--check", "--tolerance", str(LARGEST_DIFFERENCE))
    train = (
        PYTHON,
        "-m",
        "benchmark",
        "pretrain",
        "--device",
        "cuda",
        "--output",
        str(output / "pretrained"),
    )
    passes = ("pass", "pass-cka", "throughput", "attention", "memory")
    products = ("gram", "cka", "davis", "spair", "segment", "knn")
    return {
        "tests": GpuStep(((PYTHON, "-m", "pytest", "-q", "-m", "gpu"),), 300),
        "budgets": GpuStep(((*perf, "--save", str(output / "results"), "--only", *passes, *products),), 540),
        "mini": GpuStep(
            (
                (*run, "--device", "cpu", "--output", str(output / "cpu")),
                (*run, "--device", "cuda", "--output", str(output / "cuda")),
                (*check, "--output", str(output / "cuda"), "--baseline", str(output / "cpu")),
            ),
            540,
        ),
        "dino": GpuStep(((*train, "dino", "--steps", "60000", "--probe-every", "5000"),), 540),
        "moco": GpuStep(((*train, "moco", "--steps", "60000", "--probe-every", "5000"),), 540),
    }


def carry_out(names: Sequence[str], output: Path, batch: int) -> Iterator[Ended]:
    """Run steps in turn, each whatever became of the others."""
    every = steps(output, batch)
    for name in names or every:
        begin = time.monotonic()
        with (output / f"{name}.log").open("w", encoding="utf-8") as log:
            code = _run(every[name], begin, log)
        yield Ended(name, code, round(time.monotonic() - begin, 1))


def _run(step: GpuStep, begin: float, log: TextIO) -> int | None:
    """Exit code of the last command that was run; None if the time was up."""
    for words in step.commands:
        left = step.seconds - (time.monotonic() - begin)
        try:
            subprocess.run(words, stdout=log, stderr=subprocess.STDOUT, timeout=left, check=True)
        except subprocess.CalledProcessError as error:
            return error.returncode
        except subprocess.TimeoutExpired:
            return None
    return 0


def main(words: Sequence[str] | None = None) -> int:
    """Run what is asked for; gives 1 if a step failed: one whose time is up, such as a training, has not."""
    parser = argparse.ArgumentParser(
        "python -m perf.on_gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="STEP", help=", ".join(steps(Path(), 1)))
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--batch", type=int, default=256, help="images of a batch of a pass")
    given = parser.parse_args(words)
    if unknown := {*given.names} - {*steps(Path(), 1)}:
        parser.error(f"there is no step {', '.join(sorted(unknown))}")
    given.output.mkdir(parents=True, exist_ok=True)
    ended: list[Ended] = []
    for step in carry_out(given.names, given.output, given.batch):
        ended.append(step)
        text = json.dumps([asdict(each) for each in ended], indent=1)
        (given.output / "summary.json").write_text(f"{text}\n", encoding="utf-8")
        print(step, flush=True)
    return int(any(step.code for step in ended))


if __name__ == "__main__":
    sys.exit(main())
