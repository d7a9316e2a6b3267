"""What was rendered: the digest of every file, and what annotation files are made of."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mini.render.seeds import MINI_VERSION
from mini.render.writers.base import Note
from zoo.atomic import whole_file


@dataclass(frozen=True, slots=True)
class Manifest:
    """Files that were rendered together.

    Attributes:
        files: Digest of each by its path below the datasets' folder.
        notes: What the annotation files need to know of the images.
    """

    files: Mapping[str, str]
    notes: list[Note] = field(default_factory=list)


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
