"""The manifest of a submission, and which results a results repository has measured again."""

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from layerboard.leaderboards.records.fields import LONGEST_NAME, date_problem, name_problem
from layerboard.leaderboards.records.files import VERSION
from layerboard.zoo.atomic import file_sha256, write_whole
from layerboard.zoo.errors import DamagedError, InputError, first_line
from layerboard.zoo.reading import read_regular

MANIFEST = "submission.json"
SUBMISSIONS, VERIFIED = "submissions", "verified"  # folders of a results repository
# who measured a result, in words of pages; "" in the field ``claim`` of records outside submissions
CLAIMS = {"": "run here", "verified": "verified here", "authors": "by the authors", "submitted": "by others"}
DATE = "%Y-%m-%dT%H:%M:%S+00:00"
LONGEST_JSON = 2**24  # bytes
LARGEST_FILE, LARGEST, MOST_FILES = 2**28, 2**32, 20_000  # bytes, and files, of a submission


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The metadata of a submission; `docs/how-to/results.md` explains the fields."""

    results_version: int
    layerboard: str  # version of this package that wrote it
    claim: str  # ``authors`` or ``submitted``
    date: str  # UTC, of `submission write`, as `DATE`
    replaces: str  # name of an earlier submission that it corrects; "" for none
    partial: bool
    weights: Mapping[str, str]  # revisions by backbone
    files: Mapping[str, str]  # SHA-256 by path

    def write(self, folder: Path) -> None:
        write_whole(folder / MANIFEST, json.dumps(asdict(self), indent=2, sort_keys=True) + "\n")


def read_submission_manifest(folder: Path) -> Manifest:
    """The manifest of a submission; raises InputError if it is missing or of another kind."""
    try:
        manifest = Manifest(**_read_json(folder / MANIFEST))
        if problem := _problem(manifest):
            raise ValueError(problem)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        why = "" if isinstance(error, OSError) else f" ({first_line(error)})"
        expected = f"expected a submission with its {MANIFEST} at {folder}{why}"
        raise InputError(f"{expected}; `submission write` writes one") from error
    return manifest


def _problem(manifest: Manifest) -> str:
    """What a manifest says that `submission write` never writes, as a phrase; "" if there is nothing."""
    kinds = {"results_version": int, "layerboard": str, "claim": str, "date": str, "replaces": str}
    for name, kind in (kinds | {"partial": bool, "weights": dict, "files": dict}).items():
        if type(getattr(manifest, name)) is not kind:
            return f"its {name} is no {kind.__name__}"
    if not all(isinstance(text, str) for text in (*manifest.weights.values(), *manifest.files.values())):
        return "its weights or files are no texts"
    if manifest.claim not in ("authors", "submitted"):
        return "its claim is neither authors nor submitted"
    if datetime.strptime(manifest.date, DATE).strftime(DATE) != manifest.date:
        return "its date is written otherwise"
    if not manifest.layerboard.isascii() or len(manifest.layerboard) > LONGEST_NAME:
        return "its version of layerboard is none"
    replaced = name_problem("submission", manifest.replaces) if manifest.replaces else ""
    return replaced or date_problem([manifest.date])


def _read_json(path: Path) -> Any:  # noqa: ANN401
    """The content of a JSON file that names nothing twice; raises OSError, ValueError or RecursionError."""
    if path.is_symlink():
        raise ValueError(f"{path.name} is a link")
    return json.loads(read_regular(path, LONGEST_JSON), object_pairs_hook=_once)


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    if len(named := dict(pairs)) < len(pairs):
        raise ValueError("a field is there twice")
    return named


def submitted_files(folder: Path) -> list[str]:
    """Paths of all files of a submission, sorted, without its manifest.

    Raises InputError for links, which lead elsewhere, for anything else but files and folders, and for more
    or larger files than a submission has.
    """
    names, size, below = [], 0, [folder]
    if folder.is_symlink():
        raise InputError(f"expected a submission at {folder}, found a link; give the folder itself")
    while below:
        for entry in os.scandir(below.pop()):
            state = entry.stat(follow_symlinks=False)
            name = Path(entry.path).relative_to(folder).as_posix()
            if stat.S_ISDIR(state.st_mode):
                below.append(Path(entry.path))
                continue
            if not stat.S_ISREG(state.st_mode):
                kind = "a link" if entry.is_symlink() else "no regular file"
                raise InputError(f"{folder / name} is {kind}, which no submission has; refuse it")
            size += state.st_size
            names.append(name)
            if state.st_size > LARGEST_FILE or size > LARGEST or len(names) + len(below) > MOST_FILES:
                raise InputError(
                    f"expected at most {MOST_FILES:,} files of {LARGEST_FILE:,} bytes each, {LARGEST:,} in "
                    f"all, in the submission {folder}, found more at {name}; refuse it"
                )
    return sorted({*names} - {MANIFEST})


def digests_of(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of `submitted_files`, by path; raises InputError as it does."""
    return {name: file_sha256(folder / name) for name in submitted_files(folder)}


def changed_files(folder: Path, manifest: Manifest) -> list[str]:
    """A sentence for each file of a submission that is not what its manifest says."""
    return unlike("file", manifest.files, digests_of(folder))


def unlike(what: str, submitted: Mapping[str, str], today: Mapping[str, str]) -> list[str]:
    """A sentence for each name whose digest is another, missing or new."""
    names = [name for name in sorted({*submitted, *today}) if submitted.get(name) != today.get(name)]
    pairs = [(name, submitted.get(name, "nothing"), today.get(name, "nothing")) for name in names]
    return [f"{what} {name}: {before} was submitted, {now} is there" for name, before, now in pairs]


@contextmanager
def of_others() -> Iterator[None]:
    """Files of a submission are read inside: whoever reads them cannot make them again."""
    try:
        yield
    except DamagedError as error:
        raise InputError(f"{error.found}; refuse it, or ask its sender for a new submission") from error


def claim_of(folder: Path) -> str:
    """Who measured the results of a submission, as it claims; "" for a folder that is none."""
    return read_submission_manifest(folder).claim if os.path.lexists(folder / MANIFEST) else ""


def mark_verified(folder: Path, measured: Sequence[str]) -> Path:
    """Record in the repository of a submission which results were measured again; returns the file.

    Raises InputError as `marks_file`.
    """
    date, digest = datetime.now(UTC).strftime(DATE), file_sha256(folder / MANIFEST)
    facts = {"manifest": digest, "date": date, "layerboard": VERSION, "measured": [*measured]}
    write_whole(path := marks_file(folder), json.dumps(facts, indent=2, sort_keys=True) + "\n")
    return path


def marks_file(folder: Path) -> Path:
    """The file of marks of a submission; raises InputError unless it lies in a results repository."""
    whole = folder.resolve()
    path = whole.parent.with_name(VERIFIED) / f"{whole.name}.json"
    is_linked = any(each.is_symlink() for each in (folder, path, path.parent))
    if is_linked or whole.parent.name != SUBMISSIONS:
        raise InputError(
            f"--mark writes {VERIFIED}/NAME.json beside the folder {SUBMISSIONS} of a results repository; "
            f"{folder} does not lie in one: give REPOSITORY/{SUBMISSIONS}/NAME"
        )
    return path


def verified_results(repository: Path, folder: Path) -> frozenset[str]:
    """Paths of the records of a submission that its repository has measured again.

    None if it has none, or if the manifest is another one since.
    """
    path = repository / VERIFIED / f"{folder.name}.json"
    try:
        facts = {} if path.parent.is_symlink() else _read_json(path)
        if facts["manifest"] == file_sha256(folder / MANIFEST):
            return frozenset(name for name in facts["measured"] if isinstance(name, str))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    return frozenset()
