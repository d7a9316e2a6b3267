"""The manifest of a submission, and who measured the results beside it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from layerboard.leaderboards.records.files import VERSION
from layerboard.zoo.atomic import file_sha256, write_whole
from layerboard.zoo.errors import InputError

MANIFEST = "submission.json"
SUBMISSIONS, VERIFIED = "submissions", "verified"  # folders of a results repository
# who measured a result, in words of pages; "" in the field ``claim`` of records outside submissions
CLAIMS = {"": "run here", "verified": "verified here", "authors": "by the authors", "submitted": "by others"}
DATE = "%Y-%m-%dT%H:%M:%S+00:00"


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The metadata of a submission; `docs/how-to/results.md` explains the fields."""

    results_version: int
    layerboard: str  # version of this package that wrote it
    claim: str  # ``authors`` or ``submitted``
    date: str  # UTC, of `submit`, as `DATE`
    replaces: str  # name of an earlier submission that it corrects; "" for none
    partial: bool
    weights: Mapping[str, str]  # revisions by backbone
    files: Mapping[str, str]  # SHA-256 by path

    def write(self, folder: Path) -> None:
        write_whole(folder / MANIFEST, json.dumps(asdict(self), indent=2, sort_keys=True) + "\n")


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a submission; raises InputError if it is missing or of another kind."""
    try:
        manifest = Manifest(**json.loads((folder / MANIFEST).read_bytes()))
        datetime.strptime(manifest.date, DATE)
        texts = [manifest.replaces, *manifest.weights.values(), *manifest.files.values()]
        if manifest.claim in ("authors", "submitted") and all(isinstance(text, str) for text in texts):
            return manifest
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        pass
    raise InputError(f"expected a submission with its {MANIFEST} at {folder}; `submit` writes one")


def claim_of(folder: Path) -> str:
    """Who measured the results of a submission, a name of `CLAIMS`; "" for a folder that is none."""
    if not (folder / MANIFEST).is_file():
        return ""
    claim, mark = read_manifest(folder).claim, _mark_of(folder)
    verified = mark.is_file() and file_sha256(folder / MANIFEST).encode() in mark.read_bytes()
    return "verified" if verified else claim


def mark_verified(folder: Path, measured: Sequence[str]) -> Path:
    """Record in the repository of a submission which results were measured again; returns the file."""
    date, digest = datetime.now(UTC).strftime(DATE), file_sha256(folder / MANIFEST)
    facts = {"manifest": digest, "date": date, "layerboard": VERSION, "measured": [*measured]}
    write_whole(path := _mark_of(folder), json.dumps(facts, indent=2, sort_keys=True) + "\n")
    return path


def _mark_of(folder: Path) -> Path:
    folder = folder.resolve()
    return folder.parents[1] / VERIFIED / f"{folder.name}.json"
