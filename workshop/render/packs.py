"""The datasets of the mini suite, rendered by several processes and packed. Rendering processes import it."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from layerboard.benchmark.engines.base import LocalEngine
from layerboard.benchmark.engines.processes import ProcessEngine
from layerboard.benchmark.engines.progress import Message, Reporter
from layerboard.tasks.datasets.classes import Classification
from layerboard.zoo.atomic import remove_leftovers
from layerboard.zoo.errors import InputError
from workshop.list_queue import results_in_order
from workshop.render.facts import MINI_VERSION
from workshop.render.write_packs import packed_files, write_dataset
from workshop.render.writers.write import Piece, finish, missing_pieces, render_piece


def rendered_data(cache: Path, workers: int, report: Reporter) -> Path:
    """The folder of the mini suite's datasets, after rendering what is missing; raises InputError."""
    root = cache / "mini-data" / MINI_VERSION
    remove_leftovers([root.parent])
    try:
        if missing := missing_pieces(root):
            render_pieces(root, missing, workers, report)
        finish(root)
    except (FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
        raise InputError(f"{root} cannot be used: {error.strerror}; choose another --cache") from error
    return root


def render_pieces(root: Path, pieces: Sequence[Piece], workers: int, report: Reporter) -> None:
    """Render pieces in parallel processes; raises WorkerDiedError if one was killed."""
    engine = ProcessEngine(workers, threads=None) if workers > 1 and len(pieces) > 1 else LocalEngine()
    images = sum(piece.images for piece in pieces)
    with report.bar("rendering the mini datasets", images, "images") as advance:

        def relay(message: Message) -> None:  # what each piece does advances the one bar
            kind, _, content = message
            if kind in ("advance", "say"):
                (advance if kind == "advance" else report.say)(content)

        results_in_order(engine, partial(_render, root), pieces, Reporter(relay))


def _render(root: Path, piece: Piece, report: Reporter) -> None:
    with report.bar(piece.dataset, piece.images, "images") as advance:
        render_piece(root, piece)
        advance(piece.images)


def pack_data(rendered: Path, target: Path) -> None:
    """Pack the datasets of the mini suite, all files of each folder; raises InputError.

    ``target`` is a new folder, or a pack that has some of them. Datasets of one name, which are several
    tables of the same images, are packed together.
    """
    from layerboard.benchmark.plan.suites import MINI_SUITE

    remove_leftovers([target])
    for entry in MINI_SUITE.datasets:
        dataset, folder = entry.read(rendered), rendered / entry.folder
        classes = dataset.train.classes if isinstance(dataset, Classification) else ()
        splits = {"train": folder / "train", "validation": folder / "val"} if classes else {"files": folder}
        shards = {
            f"{split}-00000-of-00001": packed_files(rendered, below, classes)
            for split, below in splits.items()
        }
        write_dataset(rendered, target, entry.name, shards, classes)
