"""All seven mini datasets, in pieces that are rendered, checked and repaired independently of each other."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mini.render.seeds import MINI_VERSION
from mini.render.writers import WRITERS
from mini.render.writers.base import Note, Writer
from zoo.atomic import temporary_folder, whole_file
from zoo.errors import InputError


@dataclass(frozen=True, slots=True)
class Manifest:
    """Files that were rendered together."""

    files: Mapping[str, str]  # digest of each by its path below the datasets' folder
    notes: list[Note] = field(default_factory=list)  # what the annotation files need to know of the images


def manifest_of(root: Path, notes: Iterable[Note] = ()) -> Manifest:
    """The manifest of all files below a folder."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return Manifest({path.relative_to(root).as_posix(): _digest(path) for path in files}, list(notes))


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write a manifest, with a digest of its own in the first line."""
    content = {"version": MINI_VERSION, "files": dict(manifest.files), "notes": manifest.notes}
    text = json.dumps(content)
    with whole_file(path) as draft:
        draft.write_text(f"{_hash(text.encode())}\n{text}", encoding="utf-8")


def read_manifest(path: Path) -> Manifest | None:
    """The manifest; None where there is none, or a damaged one, or one of another version."""
    try:
        first, _, text = path.read_text(encoding="utf-8").partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    if first != _hash(text.encode()):
        return None
    content = json.loads(text)
    return Manifest(content["files"], content["notes"]) if content["version"] == MINI_VERSION else None


def is_intact(root: Path, manifest: Manifest | None) -> bool:
    """Whether every file of a manifest is there, bit for bit."""
    return manifest is not None and all(
        is_file(root / name, digest) for name, digest in manifest.files.items()
    )


def is_file(path: Path, digest: str) -> bool:
    """Whether a file with those bytes is there."""
    try:
        return _digest(path) == digest
    except OSError:
        return False


def _digest(path: Path) -> str:
    return _hash(path.read_bytes())


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


MARKER = "mini-version.txt"  # file in a complete folder of mini datasets that holds their version
MANIFESTS = ".manifests"  # folder, below that of the datasets, of the manifests


@dataclass(frozen=True, slots=True)
class Piece:
    """Images that are rendered together."""

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
