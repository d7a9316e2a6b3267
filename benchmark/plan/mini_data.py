"""The datasets of the mini suite in the cache. Imports little, since rendering processes import it."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from layerboard.benchmark.engines.base import LocalEngine
from layerboard.benchmark.engines.processes import ProcessEngine
from layerboard.benchmark.engines.progress import Reporter, Silent
from layerboard.mini.render.seeds import MINI_VERSION
from layerboard.mini.render.writers.write import Piece, finish, missing_pieces, render_piece
from layerboard.zoo.errors import InputError


def mini_data(cache: Path, workers: int, report: Reporter) -> Path:
    """The folder of the mini suite's datasets, after rendering what is missing; raises InputError."""
    root = cache / "mini-data" / MINI_VERSION
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
        engine.map(partial(_render, root), pieces, Silent(advance, report.say))


def _render(root: Path, piece: Piece, report: Reporter) -> None:
    with report.bar(piece.dataset, piece.images, "images") as advance:
        render_piece(root, piece)
        advance(piece.images)
