"""All mini datasets, in pieces that are rendered, checked and repaired independently of each other."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from layerboard.zoo.atomic import temporary_folder, write_whole
from layerboard.zoo.errors import InputError
from layerboard.zoo.reading import read_regular
from workshop.render.facts import MINI_VERSION
from workshop.render.writers import WRITERS
from workshop.render.writers.base import Note, Writer

MARKER = "mini-version.txt"  # file in a complete folder of mini datasets that holds their version
MANIFESTS = ".manifests"  # folder of manifests: which files were rendered together, with a digest of each


class Piece(NamedTuple):
    """Images that are rendered together."""

    dataset: str
    unit: int
    images: int


def missing_pieces(root: Path) -> tuple[Piece, ...]:
    """Pieces with a missing file or one that differs from what was rendered; every byte is read.

    Large pieces come first, so that parallel processes finish together. Raises InputError: something else is
    at ``root``.
    """
    _require_own(root)
    pieces = [piece for writer in WRITERS for piece in _pieces(writer)]
    missing = [piece for piece in pieces if not _is_intact(root, _manifest_path(root, piece))]
    return tuple(sorted(missing, key=lambda piece: -piece.images))


def render_piece(root: Path, piece: Piece) -> None:
    """Render the images of a piece; its manifest is written last, which marks it as complete.

    Existing files with the same bytes are kept. Several processes may do this at the same time, even with the
    same piece, since their bytes are equal.
    """
    writer = next(writer for writer in WRITERS if writer.name == piece.dataset)
    with temporary_folder(root.parent) as draft:
        _publish(draft, root, _manifest_path(root, piece), writer.render(draft, piece.unit))


def finish(root: Path) -> None:
    """Write the missing or damaged annotation files, after all pieces are complete."""
    for writer in WRITERS:
        path = root / MANIFESTS / f"{writer.name}.json"
        if not _is_intact(root, path):
            manifests = [_read_manifest(_manifest_path(root, piece)) for piece in _pieces(writer)]
            if None in manifests:
                raise InputError(f"{root} was changed while it was read; run again")
            with temporary_folder(root.parent) as draft:
                writer.finish(draft, [note for manifest in manifests if manifest for note in manifest[1]])
                _publish(draft, root, path, ())
    if not _is_marked(root):
        (root / MARKER).write_text(f"{MINI_VERSION}\n", encoding="utf-8")


def _pieces(writer: Writer) -> list[Piece]:
    return [Piece(writer.name, unit, images) for unit, images in enumerate(writer.images)]


def _manifest_path(root: Path, piece: Piece) -> Path:
    return root / MANIFESTS / f"{piece.dataset}-{piece.unit:03d}.json"


def _publish(draft: Path, root: Path, path: Path, notes: Iterable[Note]) -> None:
    """Move all files of a draft into place, then their manifest; equal files keep their modification time.

    Stored features identify files by that time. The manifest has a digest of itself in the first line.
    """
    files = sorted(file for file in draft.rglob("*") if file.is_file())
    digests = {file.relative_to(draft).as_posix(): _digest(file.read_bytes()) for file in files}
    for name, digest in digests.items():
        target = root / name
        if not _is_file(target, digest):
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(draft / name, target)
    text = json.dumps({"version": MINI_VERSION, "files": digests, "notes": list(notes)})
    write_whole(path, f"{_digest(text.encode())}\n{text}")


def _read_manifest(path: Path) -> tuple[dict[str, str], list[Note]] | None:
    """Digests of files, and the notes; None if the manifest is missing, damaged, or of another version."""
    try:
        first, _, text = read_regular(path).decode().partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    if first != _digest(text.encode()) or (content := json.loads(text))["version"] != MINI_VERSION:
        return None
    return content["files"], content["notes"]


def _is_intact(root: Path, path: Path) -> bool:
    """Whether every file of a manifest is there, bit for bit."""
    manifest = _read_manifest(path)
    return manifest is not None and all(_is_file(root / name, digest) for name, digest in manifest[0].items())


def _is_file(path: Path, digest: str) -> bool:
    try:
        return _digest(read_regular(path)) == digest
    except OSError:
        return False


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def _require_own(root: Path) -> None:
    """Raise InputError for foreign files; an old version of the datasets is removed."""
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
        return read_regular(root / MARKER).decode() == f"{MINI_VERSION}\n"
    except (OSError, UnicodeDecodeError):
        return False
