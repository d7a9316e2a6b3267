"""Submissions: results as files that others can check, in the layout of `docs/how-to/results.md`."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from layerboard.leaderboards.exchange.merge import StoredResult, copy_file, results_of
from layerboard.leaderboards.records.arrays import read_arrays
from layerboard.leaderboards.records.checksum import write_checked
from layerboard.leaderboards.records.fields import (
    Known,
    foreign_problem,
    name_problem,
    names_differing_in_case,
)
from layerboard.leaderboards.records.files import RESULTS_VERSION, VERSION, scored_path
from layerboard.leaderboards.records.items import read_items
from layerboard.leaderboards.records.manifest import (
    CLAIMS,
    DATE,
    MANIFEST,
    Manifest,
    changed_files,
    digests_of,
    of_others,
    read_submission_manifest,
    submitted_files,
    unlike,
)
from layerboard.leaderboards.records.record import VERIFIED
from layerboard.zoo.atomic import file_sha256, temporary_folder
from layerboard.zoo.errors import DamagedError, InputError, some

SHARED = ("items", "arrays")  # examples are left out: they contain thumbnails of the images
PATH = re.compile(  # whose last name is captured
    r"(?<![\w./\\~:<-])(?:\.{1,2}|~\w*|[A-Za-z]:)?[/\\](?:[^\s/\\,;:'\"]+[/\\])*([^\s/\\,;:'\"]+)[/\\]?"
)
Both = tuple[StoredResult, StoredResult]  # a result, and its public version


def public_results(folder: Path, known: Known = Known()) -> list[Both]:  # noqa: B008
    """The results of an output folder, each with its public version, in which paths are their last names.

    Raises InputError if there are none, if a file has changed since writing, if some were submitted before,
    if items or arrays name a path, if two backbones would get the same name, or for a name or field that
    others may not hand in (`foreign_problem`); ``known`` are the names of this package.
    """
    results = [(result, _public(result)) for result in results_of(folder)]
    if submitted := [str(result.path) for result, _ in results if result.records["claim"].any()]:
        raise InputError(f"{some(submitted)} came by a submission; submit what you measured yourself alone")
    if len({public.name for _, public in results}) < len(results):
        raise InputError(f"two backbones of {folder} lie in folders of one name; rename one and run it again")
    names: set[tuple[str, str]] = set()
    for result, public in results:
        if problem := _foreign(public, known, names):
            raise InputError(f"{result.path} cannot be submitted: {problem}; run it again under another name")
    return results


def _foreign(result: StoredResult, known: Known, names: set[tuple[str, str]]) -> str:
    """What another's result may not say, as a phrase; its names are compared with ``names`` and added."""
    problem = foreign_problem(result.records, known) or names_differing_in_case(result.names, names)
    names |= result.names
    return problem


def public_name(backbone: str) -> str:
    """The name of a backbone without its folders; Hub ids keep their owner."""
    path = re.match(r"(onnx:|)(?:[/\\~]|\.{1,2}[/\\]|[A-Za-z]:[/\\]).*?([^/\\]+)[/\\]*$", backbone)
    return path[1] + path[2] if path else backbone


def _public(result: StoredResult) -> StoredResult:
    records = result.records.copy()
    names = [name for name in records.loc[records.index[0], ["backbone", "other"]] if name]
    if result.name.parent != scored_path("", *names).parent:  # in the other order
        names.reverse()
    parent = scored_path("", *map(public_name, names)).parent
    for column in records.select_dtypes(exclude=["number", "bool"]):
        is_name = column in ("backbone", "other")
        records[column] = records[column].map(public_name if is_name else lambda text: PATH.sub(r"\1", text))
    if places := [text for text in _texts(result) if PATH.fullmatch(text)]:
        raise InputError(f"what belongs to {result.path} names {places[0]}, which is on one machine alone")
    shared = {kind: digest for kind, digest in result.companions.items() if kind in SHARED}
    return replace(result, name=parent / result.name.name, records=records, companions=shared)


def _texts(result: StoredResult) -> Iterable[str]:
    items = read_items(result.companion("items")) if "items" in result.companions else {}
    arrays = read_arrays(result.companion("arrays")) if "arrays" in result.companions else {}
    names = {name for each in items.values() for name in (*each.keys, *each.clusters, *each.strata)}
    return names.union(*(map(str, array.flat) for array in arrays.values() if array.dtype.kind == "U"))


def write_submission(results: Sequence[Both], folder: Path, claim: str, replaces: str = "") -> str:
    """Write the public files of some results as a new folder, which is there whole or not at all.

    Returns the text of a pull request.
    """
    with temporary_folder(folder.parent) as temporary:
        draft = temporary / folder.name
        for result, public in results:
            for kind in public.companions:
                copy_file(result.companion(kind), public.companion(kind, draft))
            write_checked(public.records, draft / "records" / public.name, public.companions)
        rows = pd.concat([public.records for _, public in results])
        manifest = Manifest(
            results_version=RESULTS_VERSION,
            layerboard=VERSION,
            claim=claim,
            date=datetime.now(UTC).strftime(DATE),
            replaces=replaces,
            partial=bool(rows["partial"].any()),
            weights=weights_by_backbone(rows),
            files=digests_of(draft),
        )
        manifest.write(draft)
        draft.rename(folder)
    tasks, datasets = (", ".join(sorted({*rows[column]})) for column in ("task", "dataset"))
    weights = "\n".join(f"- {name}: weights `{revision}`" for name, revision in manifest.weights.items())
    return f"""\
# Results of {", ".join(manifest.weights)}

{len(results)} results of {tasks} on {datasets}.
Claim: {claim}. Partial: {"some results" if manifest.partial else "none"}. Replaces: {replaces or "none"}.
Scored with layerboard {VERSION}, results version {RESULTS_VERSION}.

{weights}

`{MANIFEST}` has SHA-256 `{file_sha256(folder / MANIFEST)}`.
`layerboard submission verify submissions/{folder.name}` scores the items again;
`--data DIR` measures a tenth again.
"""


def weights_by_backbone(records: pd.DataFrame) -> dict[str, str]:
    """The commit or digest of each backbone's weights; several are separated by commas."""
    revisions = records.groupby("backbone")["revision"].unique()
    return {str(name): ", ".join(sorted(each)) for name, each in revisions.items()}


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
        verified = sum((result.records["claim"] == VERIFIED).all() for result in self.results)
        said = f"; verified here: {verified} of {len(self.results)} results" if verified else ""
        return f"{CLAIMS[self.manifest.claim]}{said}"


def read_submission(folder: Path, known: Known = Known()) -> Submission:  # noqa: B008
    """Read a submission with all of its records.

    Raises InputError if it is none, if it has another `RESULTS_VERSION`, if a file is damaged or a link, if a
    file is not of the one backbone and task that its path names, or for records that say what no run writes
    (`foreign_problem`). ``known`` are the names of this package.
    """
    if problem := name_problem("submission", folder.resolve().name):
        raise InputError(f"{problem}; ask its sender for another name")
    submitted_files(folder)
    manifest = read_submission_manifest(folder)
    if (theirs := manifest.results_version) != RESULTS_VERSION:
        raise InputError(f"{folder} has results version {theirs}, this layerboard {RESULTS_VERSION}")
    results = results_of(folder)
    with of_others():
        names: set[tuple[str, str]] = set()
        for result in results:
            if problem := _foreign(result, known, names):
                raise DamagedError(f"{result.path} is not what a run writes: {problem}")
    weights = weights_by_backbone(pd.concat([result.records for result in results]))
    problems = [*changed_files(folder, manifest), *unlike("weights of", manifest.weights, weights)]
    return Submission(folder, manifest, results, problems)
