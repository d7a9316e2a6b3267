"""All seven mini datasets, in pieces that are rendered, checked and repaired independently of each other."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mini.render.manifest import (
    Manifest,
    is_file,
    is_intact,
    manifest_of,
    read_manifest,
    write_manifest,
)
from mini.render.seeds import MINI_VERSION
from mini.render.writers import WRITERS
from mini.render.writers.base import Writer
from zoo.atomic import temporary_folder
from zoo.errors import InputError

MARKER = "mini-version.txt"
"""File in a complete folder of mini datasets that holds their version."""

MANIFESTS = ".manifests"
"""Folder, below that of the datasets, of the manifests."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Images that are rendered together.

    Attributes:
        dataset: Name of the dataset.
        unit: Which of its units.
        images: How many.
    """

    dataset: str
    unit: int
    images: int


def missing_pieces(root: Path) -> tuple[Piece, ...]:
    """Pieces of which a file is not there, or is not what was rendered; large ones first.

    Every byte is read. Large pieces come first, so that processes that share the work end together.

    Raises:
        InputError: Something else is at ``root``.
    """
    _require_own(root)
    pieces = [
        Piece(writer.name, unit, images) for writer in WRITERS for unit, images in enumerate(writer.images)
    ]
    missing = (piece for piece in pieces if not is_intact(root, read_manifest(_manifest_path(root, piece))))
    return tuple(sorted(missing, key=lambda piece: -piece.images))


def render_piece(root: Path, piece: Piece) -> None:
    """Render the images of a piece; its manifest, which is written last, says that they are there.

    Files that are there with the same bytes stay as they are. Several processes may do this at the same time,
    also with the same piece: their bytes are equal.
    """
    writer = next(writer for writer in WRITERS if writer.name == piece.dataset)
    with temporary_folder(root.parent) as draft:
        notes = writer.render(draft, piece.unit)
        manifest = manifest_of(draft, notes)
        _move(draft, root, manifest)
    write_manifest(_manifest_path(root, piece), manifest)


def finish(root: Path) -> None:
    """Write the annotation files that are not there or damaged, once no piece is missing."""
    for writer in WRITERS:
        path = root / MANIFESTS / f"{writer.name}.json"
        if not is_intact(root, read_manifest(path)):
            _annotate(root, writer, path)
    if not _is_marked(root):
        (root / MARKER).write_text(f"{MINI_VERSION}\n", encoding="utf-8")


def _annotate(root: Path, writer: Writer, path: Path) -> None:
    pieces = [Piece(writer.name, unit, images) for unit, images in enumerate(writer.images)]
    notes = [_notes(root, piece) for piece in pieces]
    with temporary_folder(root.parent) as draft:
        writer.finish(draft, notes)
        manifest = manifest_of(draft)
        _move(draft, root, manifest)
    write_manifest(path, manifest)


def _notes(root: Path, piece: Piece) -> Sequence[dict[str, object]]:
    manifest = read_manifest(_manifest_path(root, piece))
    if manifest is None:
        raise InputError(f"{root} was changed while it was read; run again")
    return [dict(note) for note in manifest.notes]


def _move(draft: Path, root: Path, manifest: Manifest) -> None:
    """Put files into place; equal ones keep their time, by which features know them."""
    for name, digest in manifest.files.items():
        target = root / name
        if not is_file(target, digest):
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(draft / name, target)


def _manifest_path(root: Path, piece: Piece) -> Path:
    return root / MANIFESTS / f"{piece.dataset}-{piece.unit:03d}.json"


def _require_own(root: Path) -> None:
    """Raise InputError for files of somebody else; an old version of the datasets goes away."""
    if (root / MANIFESTS).is_dir() or not root.exists() or (root.is_dir() and not any(root.iterdir())):
        return
    if not (root / MARKER).is_file():
        raise InputError(
            f"expected an empty or no folder at {root} for the mini datasets, found other files there"
        )
    if not _is_marked(root):
        shutil.rmtree(root)


def _is_marked(root: Path) -> bool:
    try:
        return (root / MARKER).read_text(encoding="utf-8").strip() == MINI_VERSION
    except (OSError, UnicodeDecodeError):
        return False
