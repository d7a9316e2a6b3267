"""Submissions: results as files that others can check, in the layout of `docs/how-to/results.md`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from layerboard.leaderboards.merge import StoredResult, copy_file, results_of
from layerboard.leaderboards.records.arrays import read_arrays
from layerboard.leaderboards.records.checksum import write_checked
from layerboard.leaderboards.records.files import RESULTS_VERSION, VERSION, safe_name
from layerboard.leaderboards.records.items import read_items
from layerboard.leaderboards.records.manifest import CLAIMS, DATE, MANIFEST, Manifest, claim_of, read_manifest
from layerboard.zoo.atomic import file_sha256
from layerboard.zoo.errors import InputError, some

SHARED = ("items", "arrays")  # examples are left out: they contain thumbnails of the images
PATH = re.compile(  # whose last name is captured
    r"(?<![\w./\\~:<-])(?:\.{1,2}|~\w*|[A-Za-z]:)?[/\\](?:[^\s/\\,;:'\"]+[/\\])*([^\s/\\,;:'\"]+)[/\\]?"
)
Both = tuple[StoredResult, StoredResult]  # a result, and its public version


def public_results(folder: Path) -> list[Both]:
    """The results of an output folder, each with its public version, in which paths are their last names.

    Raises InputError if there are none, if a file has changed since writing, if some were submitted before,
    if items or arrays name a path, or if two backbones would get the same name.
    """
    results = [(result, _public(result)) for result in results_of(folder)]
    if submitted := [str(result.path) for result, _ in results if result.records["claim"].any()]:
        raise InputError(f"{some(submitted)} came by a submission; submit what you measured yourself alone")
    if len({public.name for _, public in results}) < len(results):
        raise InputError(f"two backbones of {folder} lie in folders of one name; rename one and run it again")
    return results


def public_name(backbone: str) -> str:
    """The name of a backbone without its folders; Hub ids keep their owner."""
    path = re.match(r"(onnx:|)(?:[/\\~]|\.{1,2}[/\\]|[A-Za-z]:[/\\]).*?([^/\\]+)[/\\]*$", backbone)
    return path[1] + path[2] if path else backbone


def _public(result: StoredResult) -> StoredResult:
    records, parent = result.records.copy(), str(result.name.parent)
    for name in {*records["backbone"], *records["other"]} - {""}:
        parent = parent.replace(safe_name(name), safe_name(public_name(name)))
    for column in records.select_dtypes(exclude=["number", "bool"]):
        is_name = column in ("backbone", "other")
        records[column] = records[column].map(public_name if is_name else lambda text: PATH.sub(r"\1", text))
    if places := [text for text in _texts(result) if PATH.fullmatch(text)]:
        raise InputError(f"what belongs to {result.path} names {places[0]}, which is on one machine alone")
    shared = {kind: digest for kind, digest in result.companions.items() if kind in SHARED}
    return replace(result, name=Path(parent) / result.name.name, records=records, companions=shared)


def _texts(result: StoredResult) -> Iterable[str]:
    items = read_items(result.companion("items")) if "items" in result.companions else {}
    arrays = read_arrays(result.companion("arrays")) if "arrays" in result.companions else {}
    names = {name for each in items.values() for name in (*each.keys, *each.clusters, *each.strata)}
    return names.union(*(map(str, array.flat) for array in arrays.values() if array.dtype.kind == "U"))


def write_submission(results: Sequence[Both], folder: Path, claim: str, replaces: str = "") -> str:
    """Write the public files of some results into a new folder, the manifest last; returns a pull request."""
    for result, public in results:
        for kind in public.companions:
            copy_file(result.companion(kind), public.companion(kind, folder))
        write_checked(public.records, folder / "records" / public.name, public.companions)
    rows = pd.concat([public.records for _, public in results])
    manifest = Manifest(
        results_version=RESULTS_VERSION,
        layerboard=VERSION,
        claim=claim,
        date=datetime.now(UTC).strftime(DATE),
        replaces=replaces,
        partial=bool(rows["partial"].any()),
        weights=weights_of(rows),
        files=digests_of(folder),
    )
    manifest.write(folder)
    tasks, datasets = (", ".join(sorted({*rows[column]})) for column in ("task", "dataset"))
    weights = "\n".join(f"- {name}: weights `{revision}`" for name, revision in manifest.weights.items())
    return f"""\
# Results of {", ".join(manifest.weights)}

{len(results)} results of {tasks} on {datasets}.
Claim: {claim}. Partial: {"some results" if manifest.partial else "none"}. Replaces: {replaces or "none"}.
Scored with layerboard {VERSION}, results version {RESULTS_VERSION}.

{weights}

`{MANIFEST}` has SHA-256 `{file_sha256(folder / MANIFEST)}`.
`layerboard verify submissions/{folder.name}` scores the items again; `--data DIR` measures a tenth again.
"""


def weights_of(records: pd.DataFrame) -> dict[str, str]:
    """The commit or digest of each backbone's weights; several are separated by commas."""
    revisions = records.groupby("backbone")["revision"].unique()
    return {str(name): ", ".join(sorted(each)) for name, each in revisions.items()}


def digests_of(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder except the manifest, by path."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path != folder / MANIFEST]
    return {path.relative_to(folder).as_posix(): file_sha256(path) for path in paths}


@dataclass(frozen=True, eq=False)
class Submission:
    """A submission as it was found."""

    folder: Path
    manifest: Manifest
    results: Sequence[StoredResult]
    problems: Sequence[str]  # a sentence for each file, or weights, that differ from what was submitted

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def tasks(self) -> list[str]:
        return sorted({str(result.records["task"].iloc[0]) for result in self.results})

    @property
    def measured(self) -> str:
        """Who measured it, in words of pages."""
        return CLAIMS[claim_of(self.folder)]


def read_submission(folder: Path) -> Submission:
    """Read a submission with all of its records.

    Raises InputError if it is none, if it has another `RESULTS_VERSION`, or if a file is damaged.
    """
    manifest = read_manifest(folder)
    if (theirs := manifest.results_version) != RESULTS_VERSION:
        raise InputError(f"{folder} has results version {theirs}, this layerboard {RESULTS_VERSION}")
    results = results_of(folder)
    weights = weights_of(pd.concat([result.records for result in results]))
    problems = _unlike("file", manifest.files, digests_of(folder))
    problems += _unlike("weights of", manifest.weights, weights)
    return Submission(folder, manifest, results, problems)


def _unlike(what: str, submitted: Mapping[str, str], today: Mapping[str, str]) -> list[str]:
    names = [name for name in sorted({*submitted, *today}) if submitted.get(name) != today.get(name)]
    pairs = [(name, submitted.get(name, "nothing"), today.get(name, "nothing")) for name in names]
    return [f"{what} {name}: {before} was submitted, {now} is there" for name, before, now in pairs]
