"""Output folders of several runs, possibly of several machines, merged: records with their companions."""

import math
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pandas as pd

from layerboard.leaderboards.records import record
from layerboard.leaderboards.records.checksum import companions_of, read_checked, write_checked
from layerboard.leaderboards.records.fields import date_problem
from layerboard.leaderboards.records.files import OWN_ENDING, is_own_name
from layerboard.leaderboards.records.key import TOLERANCE, keys_of
from layerboard.leaderboards.records.thumbnails import FOLDER, is_whole, thumbnails_of
from layerboard.tasks.datasets.integrity import require
from layerboard.tasks.framework.registry import DEPENDS_ON_LOAD
from layerboard.zoo.atomic import whole_file
from layerboard.zoo.errors import DamagedError, InputError, first_line

SAME = (  # columns in which two files of one result agree
    *("backbone", "task", "dataset", "protocol", "data", "revision", "depth", "input_size", "interpolation"),
    *("dtype", "split", "transform"),
)

# folders and extensions of companions of records
COMPANIONS = {"items": ".parquet", "arrays": ".npz", "examples": ".npz"}

Key = tuple[frozenset[str], str]  # backbones, and name of the file


@dataclass(frozen=True)
class StoredResult:
    """The records of one backbone (or pair) and task, and the files that belong to them."""

    folder: Path
    name: Path  # path below ``folder/records``
    records: pd.DataFrame
    companions: Mapping[str, str]  # folders of companions, and digests of the files
    changed: bool = False  # whether records say more than their file: further suites, another name of data
    stored: Path | None = None  # path of its files, if they are of another name

    @property
    def key(self) -> Key:
        """What two results share if they are of the same backbone, or pair in any order, and task."""
        row = self.records.iloc[0]
        return frozenset({row["backbone"], row["other"]}), self.name.name

    @property
    def path(self) -> Path:
        return self.folder / "records" / (self.stored or self.name)

    def companion(self, kind: str, folder: Path | None = None) -> Path:
        name = self.name if folder else self.stored or self.name
        return (folder or self.folder) / kind / name.with_suffix(COMPANIONS[kind])

    def on(self, dataset: str) -> "StoredResult":
        """The result with another name of its data."""
        former = str(self.records["dataset"].iloc[0])
        if former == dataset:
            return self
        suites = self.records["suite"].str.replace(former, dataset, regex=False)
        records = self.records.assign(dataset=dataset, suite=suites)
        (subject,) = record.subjects_of(records)
        name = self.name.parent / subject.path.name
        return replace(self, name=name, records=records, changed=True, stored=self.stored or self.name)

    @property
    def suites(self) -> list[str]:
        return record.suites_of(self.records)

    @cached_property
    def pictures(self) -> list[str]:
        """Thumbnail files that its examples need; raises InputError if the examples are damaged."""
        if "examples" not in self.companions:
            return []
        path = self.companion("examples")
        try:
            return thumbnails_of(path)
        except record.UNREADABLE as error:
            raise DamagedError(f"cannot read examples {path}: {first_line(error)}") from error


def merge_outputs(folders: Sequence[Path], output: Path) -> int:
    """Merge the records, items, arrays and examples of output folders into one, beside its own.

    Files are copied unchanged, so their checksums remain, and records after their companions. Nothing is
    written unless everything can be.
    Returns the number of results in the output folder. Raises InputError if a folder has no records, if a
    file is damaged or of another results version, or as `merged` does.
    """
    every = [results_of(folder) for folder in folders]
    if output.resolve() not in [folder.resolve() for folder in folders] and (output / "records").is_dir():
        every = [results_of(output, strict=False), *every]
    results = merged(every)
    names = {result.name for result in results}
    for path in paths_of(output):
        if path.relative_to(output / "records") not in names:
            _result(output, path)  # raises for a damaged file, which would stay otherwise
    for result in results:
        for kind in result.companions:
            copy_file(result.companion(kind), result.companion(kind, output))
        for picture in result.pictures:
            if not is_whole(output / FOLDER / picture):
                copy_file(result.folder / FOLDER / picture, output / FOLDER / picture)
        target = output / "records" / result.name
        if result.changed:
            write_checked(result.records, target, result.companions)
        else:
            copy_file(result.path, target)
    return len(results)


def merged(every: Iterable[Sequence[StoredResult]]) -> list[StoredResult]:
    """The results of several folders; of equal results the newest, in the suites of all.

    Raises InputError for two different results of one backbone, task, dataset and protocol.
    """
    results: dict[Key, StoredResult] = {}
    own: dict[str, str] = {}  # names of the user's own data by their digests: the first name is kept
    for folder_results in every:
        for each in folder_results:
            dataset = str(each.records["dataset"].iloc[0])
            name = own.setdefault(dataset[-OWN_ENDING:], dataset) if is_own_name(dataset) else dataset
            result = each.on(name)
            other = results.get(result.key)
            results[result.key] = _newer(other, result) if other else result
    return [*results.values()]


def _newer(first: StoredResult, second: StoredResult) -> StoredResult:
    """The newer of two files of one result; raises InputError if they are different results."""
    reason = "they are compared in two orders" if first.name != second.name else ""
    if reason := reason or difference(first.records, second.records):
        problem = f"{first.path} and {second.path} are two different results: {reason}"
        raise InputError(f"{problem}; remove one of them, or leave one out")
    newer = second if str(second.records["date"].max()) > str(first.records["date"].max()) else first
    for suite in sorted({*first.suites, *second.suites} - {*newer.suites}):
        newer = replace(newer, records=record.add_suite(newer.records, suite), changed=True)
    return newer


def difference(first: pd.DataFrame, second: pd.DataFrame) -> str:
    """Why two frames of records are not the same result, as a phrase; "" if they are.

    They are the same if weights, images and options are equal and all numbers agree as well as numbers of two
    machines do. Times of forward passes, which never agree, are ignored, and so are fingerprints, which
    include the times of image files.
    """
    for column in SAME:
        texts = _both(first, second, column)
        if texts[0] != texts[1]:
            parts = _both(first, second, "coverage") if column == "data" else texts
            notes = [re.findall(r"limited to [^;,:]+", text) for text in parts]
            if notes[0] != notes[1]:
                first_note, second_note = (note[0] if note else "not limited" for note in notes)
                return f"the first is {first_note}, the second is {second_note}"
            before, now = (text or "not known" for text in (parts if parts[0] != parts[1] else texts))
            called = "weights are" if column == "revision" else f"{column.replace('_', ' ')} is"
            return f"the {called} {before} in the one and {now} in the other"
    frames = [records[~records["metric"].isin(DEPENDS_ON_LOAD)] for records in (first, second)]
    numbers = [dict(zip(keys_of(rows), rows["value"].astype(float), strict=True)) for rows in frames]
    if numbers[0].keys() != numbers[1].keys():
        return "they are of different layers, poolings or metrics"
    limit = TOLERANCE.limit(str(first["task"].iloc[0]), analysis=bool(first["analysis"].iloc[0]))
    for key, value in numbers[0].items():
        if limit.distance(value, numbers[1][key]) > limit.amount:
            texts = ["no number" if math.isnan(each[key]) else f"{each[key]:.4g}" for each in numbers]
            where = f"{key.metric} of layer {key.layer} ({key.pooling})"
            return f"{where} is {texts[0]} in the one and {texts[1]} in the other"
    return ""


def _both(first: pd.DataFrame, second: pd.DataFrame, column: str) -> list[str]:
    return [", ".join(sorted(map(str, set(records[column])))) for records in (first, second)]


def results_of(folder: Path, *, strict: bool = True) -> list[StoredResult]:
    """All results of an output folder; unless ``strict``, there may be none, and damaged ones are skipped."""
    paths, expected = paths_of(folder), f"an output folder with records (*.parquet) at {folder}"
    require(paths or not strict, expected, remedy="`layerboard run --output` writes one")
    results: dict[Key, StoredResult] = {}
    for path in paths:
        with nullcontext() if strict else suppress(InputError):
            result = _result(folder, path)
            if (other := results.get(result.key)) is not None:
                raise DamagedError(f"{path} is of the same backbones and task as {other.path}")
            results[result.key] = result
    return [*results.values()]


def paths_of(folder: Path) -> list[Path]:
    """The record files of an output folder, sorted."""
    return sorted(path for path in (folder / "records").rglob("*.parquet") if not path.name.startswith("."))


def _result(folder: Path, path: Path) -> StoredResult:
    """The result in a file of records; raises InputError if it or a companion has changed since writing.

    Also if it is not of the one backbone and task that its path names, or of a day to come.
    """
    name = path.relative_to(folder / "records")
    if any(part.startswith(".") for part in name.parts):
        raise DamagedError(f"{path} is in a hidden folder, where no run writes", "remove that folder")
    records = record.read_frame(path)
    try:
        record.require_own_name(records, name)
        companions = companions_of(read_checked(path))
        if problem := date_problem(records["date"].unique()):
            raise ValueError(problem)
    except record.UNREADABLE as error:
        raise DamagedError(f"cannot use records {path}: {first_line(error)}") from error
    result = StoredResult(folder, name, records, companions)
    for kind in companions:
        if kind not in COMPANIONS:
            problem = f"{result.path} names {kind!r} as a folder of what belongs to it, expected "
            raise DamagedError(f"{problem}{', '.join(COMPANIONS)}", "no run writes that: remove the file")
        record.companion(folder / kind, name.with_suffix(COMPANIONS[kind]))
    for picture in result.pictures:
        if not is_whole(folder / FOLDER / picture):
            what = f"the picture {folder / FOLDER / picture} of {result.companion('examples')}"
            raise DamagedError(f"{what} is missing or damaged", "copy the whole folder, or run again")
    return result


def copy_file(source: Path, target: Path) -> None:
    """Copy a file atomically; does nothing if source and target are the same."""
    if source.resolve() == target.resolve():
        return
    with whole_file(target) as temporary:
        shutil.copyfile(source, temporary)
