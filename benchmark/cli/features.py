"""The command `features`: stored vectors as files. Heavy libraries are imported when it runs."""

from collections.abc import Sequence
from pathlib import Path

import typer

from benchmark.cli.interrupt import ended_by_signals
from benchmark.cli.options import command_of
from benchmark.engines.progress import Terminal
from benchmark.request import ELSEWHERE, Request


@command_of(Request, without=("floor", "transform", *ELSEWHERE))
def features_command(request: Request) -> None:
    """Write the vectors of backbones, layers and poolings as files that `score` and any code can read.

    Vectors come from the cache; what is not there goes through the backbone once. One file a layer and
    pooling: OUTPUT/features/BACKBONE/TASK.DATASET.PROTOCOL/LAYER.POOLING.npz (.npy for cka). The options are
    those of `run`.

    Example: `python -m benchmark features -b dino-b16 -t knn --images MY_FOLDER --layers 8-12 --poolings cls`
    """
    report = Terminal()
    with ended_by_signals(report, "interrupted; what is finished is kept, run again to go on"):
        from benchmark.exchange.vectors import write_vectors

        found = write_vectors(request, report)
    report.say(f"{found.images or 'no'} {'image' if found.images == 1 else 'images'} went through a backbone")
    for line in found.left_out:
        report.say(f"left out: {line}")
    for each in found.failures:
        report.say(f"failed: {each}")
    _say_files(found.files, report)
    failed = [each.bad_input for each in found.failures]
    raise typer.Exit((2 if all(failed) else 1) if failed else 0)


def _say_files(files: Sequence[tuple[str, Path]], report: Terminal) -> None:
    """How many files are where, and how one of each folder is scored."""
    folders: dict[Path, list[tuple[str, Path]]] = {}
    for option, path in files:
        folders.setdefault(path.parent, []).append((option, path))
    for folder, inside in folders.items():
        report.say(f"wrote {len(inside)} {'file' if len(inside) == 1 else 'files'} in {folder}")
    for option, path in dict(files).items():
        report.say(f"for example: python -m benchmark {option} {path}")
