"""One-off checks of a machine with a GPU: its tests, its speed, and whether its numbers agree.

    python -m workshop.perf.on_gpu --output DIR                     all of it, about half an hour
    python -m workshop.perf.on_gpu --output DIR tests budgets       some steps

Each step has a time limit, and its output is kept in ``DIR/<step>.log``; ``DIR/summary.json`` says how each
step ended and how long it took, and is written after every step. The trainings continue from their
checkpoints in ``DIR/pretrained`` when the step is run again.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

PYTHON = sys.executable
# maximum difference in points between scores of the mini suite on the GPU and on the CPU
LARGEST_DIFFERENCE = 0.5

# time limit in seconds of all commands of a step, and their arguments; they run until one fails
GpuStep = tuple[int, tuple[tuple[str, ...], ...]]


class Ended(NamedTuple):
    """How a step ended: the exit code of its last command (None: time limit), and its duration."""

    step: str
    code: int | None
    seconds: float


def steps(output: Path, batch: int) -> dict[str, GpuStep]:
    """The steps, in order of importance."""

    def run(name: str, device: str = "cuda") -> tuple[str, ...]:
        # a separate cache: what another device or batch size has stored is not used
        folders = ("--cache", str(output / f"{name}-cache"), "--output", str(output / name))
        return (PYTHON, "-m", "layerboard", "run", "--no-examples", "--device", device, *folders)

    perf = (PYTHON, "-m", "workshop.perf", "--device", "cuda", "--batch", str(batch), "--rounds", "20")
    check = (PYTHON, "-m", "layerboard", "leaderboard", "--check", "--tolerance", str(LARGEST_DIFFERENCE))
    pretrain = (PYTHON, "-m", "workshop.pretrain", "--device", "cuda")
    train = (*pretrain, "--output", str(output / "pretrained"), "--steps", "60000", "--probe-every", "5000")
    passes = ("pass", "pass-cka", "throughput", "attention", "memory")
    products = ("gram", "cka", "davis", "spair", "knn", "decode")
    formats, dtypes = (*run("formats"), "--tasks"), "float32,amp-bfloat16,bfloat16,float16"
    return {
        "tests": (300, ((PYTHON, "-m", "pytest", "-q", "-m", "gpu"),)),
        "budgets": (540, ((*perf, "--save", str(output / "results"), "--only", *passes, *products),)),
        "mini": (
            540,
            (
                run("cpu", "cpu"),
                run("cuda"),
                (*check, "--output", str(output / "cuda"), "--baseline", str(output / "cpu")),
            ),
        ),
        # the scores are those of 64 images per batch, and the time that they take
        "batch": (
            540,
            (
                run("batch-64"),
                (*run("batch-auto"), "--batch-size", "auto"),
                (*check, "--output", str(output / "batch-auto"), "--baseline", str(output / "batch-64")),
            ),
        ),
        "formats": (
            300,
            ((*formats, "knn", "davis", "cost", "--dtype", dtypes), (*formats, "cost", "--compile")),
        ),
        "dino": (540, ((*train, "dino"),)),
        "moco": (540, ((*train, "moco"),)),
    }


def _run(step: GpuStep, log: TextIO) -> int | None:
    """Exit code of the last command that was run; None if the time limit was reached."""
    seconds, commands = step
    end = time.monotonic() + seconds
    for words in commands:
        left = end - time.monotonic()
        try:
            subprocess.run(words, stdout=log, stderr=subprocess.STDOUT, timeout=left, check=True)
        except subprocess.CalledProcessError as error:
            return error.returncode
        except subprocess.TimeoutExpired:
            return None
    return 0


def main(words: Sequence[str] | None = None) -> int:
    """Run the requested steps; returns 1 if one failed, not if one only reached its limit (a training)."""
    parser = argparse.ArgumentParser(
        "python -m workshop.perf.on_gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="STEP", help=", ".join(steps(Path(), 1)))
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--batch", type=int, default=256, help="images of a batch of a pass")
    given = parser.parse_args(words)
    every = steps(given.output, given.batch)
    if unknown := {*given.names} - {*every}:
        parser.error(f"there is no step {', '.join(sorted(unknown))}")
    given.output.mkdir(parents=True, exist_ok=True)
    ended: list[Ended] = []
    for name in given.names or every:
        begin = time.monotonic()
        with (given.output / f"{name}.log").open("w", encoding="utf-8") as log:
            code = _run(every[name], log)
        ended.append(Ended(name, code, round(time.monotonic() - begin, 1)))
        text = json.dumps([step._asdict() for step in ended], indent=1)
        (given.output / "summary.json").write_text(f"{text}\n", encoding="utf-8")
        print(ended[-1], flush=True)
    return int(any(step.code for step in ended))


if __name__ == "__main__":
    sys.exit(main())
