"""Outputs of several runs, of several machines perhaps, as one: records with all that belongs to them."""

import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from leaderboards.records.key import TOLERANCE, RecordKey, keys_of
from leaderboards.records.record import (
    UNREADABLE,
    add_suite,
    read_frame,
    suites_of,
    with_all_columns,
    write_frame,
)
from leaderboards.records.seal import companions_of, file_digest, is_older, read_sealed
from leaderboards.records.thumbnails import FOLDER, is_whole, thumbnails_of
from tasks.registry import DEPENDS_ON_LOAD
from zoo.atomic import whole_file
from zoo.errors import InputError

SAME = {
    "backbone": "backbone",
    "task": "task",
    "dataset": "dataset",
    "protocol": "protocol",
    "data": "data",
    "revision": "weights",
    "depth": "depth",
    "input_size": "input size",
    "interpolation": "interpolation",
    "dtype": "dtype",
    "split": "split",
    "transform": "transform",
}
"""Columns in which two files of one result agree, and what they are called."""

COMPANIONS = {"items": ".parquet", "arrays": ".npz", "examples": ".npz"}
"""Folders of what may belong to records, and how its files end."""


@dataclass(frozen=True)
class Result:
    """The records of one backbone (or pair) and task, and the files that belong to them.

    Attributes:
        folder: The output folder.
        name: Path of the records below ``folder/records``.
        frame: The records, as they were written.
        suites: Suites that they belong to.
        beside: What belongs to them (items, arrays, examples): name of its folder and path below it.
        pictures: Files of the small pictures that its examples need.
    """

    folder: Path
    name: Path
    frame: pd.DataFrame
    suites: tuple[str, ...]
    beside: Mapping[str, Path]
    pictures: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """File of the records."""
        return self.folder / "records" / self.name

    @property
    def date(self) -> str:
        """When they were scored."""
        return str(self.frame["date"].max())


def merge_outputs(folders: Sequence[Path], output: Path) -> int:
    """Put the records, items, arrays and examples of output folders into one, beside what that has already.

    A result that several folders have is kept once, the newest, and belongs to the suites of all. Files are
    copied as they are, so their seals stay; nothing is written unless all can be.

    Args:
        folders: Folders that runs have written.
        output: Folder of the result, which may be one of them.

    Returns:
        How many results the output has.

    Raises:
        InputError: A folder has no records, a file is damaged, or two files are different results of one
            backbone, task, dataset and protocol.
    """
    every = [result for folder in folders for result in _results(folder)]
    if output.resolve() not in [folder.resolve() for folder in folders] and (output / "records").is_dir():
        every = [*_results(output, strict=False), *every]
    kept: dict[Path, Result] = {}
    for result in every:
        kept[result.name] = _one_of(kept[result.name], result) if result.name in kept else result
    for result in kept.values():
        _write(result, output)
    return len(kept)


def difference(first: pd.DataFrame, second: pd.DataFrame) -> str:
    """Why two frames of records are not one result, as a phrase; "" where they are.

    They are where they are of the same weights, images and options and all numbers agree as well as numbers
    of two machines do (`leaderboards.records.key.TOLERANCE`). Times of forwards, which never do, are not
    compared; nor are fingerprints: they name the times of the images' files, which differ from machine to
    machine.
    """
    for column, called in SAME.items():
        found = [", ".join(sorted(map(str, set(frame[column])))) for frame in (first, second)]
        if found[0] != found[1]:
            one, other = (text or "not known" for text in found)
            return f"the {called} is {one} in the one and {other} in the other"
    before, now = (_numbers(frame[~frame["metric"].isin(DEPENDS_ON_LOAD)]) for frame in (first, second))
    if before.keys() != now.keys():
        return "they are of different layers, poolings or metrics"
    limit = TOLERANCE.limit(str(first["task"].iloc[0]), analysis=bool(first["analysis"].iloc[0]))
    for key, value in before.items():
        if limit.is_moved(value, now[key]):
            where = f"{key.metric} of layer {key.layer} ({key.pooling})"
            return f"{where} is {_number_text(value)} in the one and {_number_text(now[key])} in the other"
    return ""


def _number_text(value: float) -> str:
    return "no number" if math.isnan(value) else f"{value:.4g}"


def _numbers(frame: pd.DataFrame) -> dict[RecordKey, float]:
    """The numbers of a file by their keys."""
    return dict(zip(keys_of(frame), frame["value"].astype(float), strict=True))


def _results(folder: Path, *, strict: bool = True) -> list[Result]:
    """All results of an output folder, checked.

    Args:
        folder: The folder.
        strict: Whether a damaged one is an error; otherwise it is left out.

    Raises:
        InputError: There are none, or one is damaged.
    """
    paths = [path for path in (folder / "records").rglob("*.parquet") if not path.name.startswith(".")]
    if strict and not paths:
        raise InputError(
            f"expected an output folder with records (*.parquet) at {folder}, found none; "
            "`python -m benchmark run --output` writes one"
        )
    found = []
    for path in sorted(paths):
        try:
            found.append(_result(folder, path))
        except InputError:
            if strict:
                raise
    return found


def _result(folder: Path, path: Path) -> Result:
    name = path.relative_to(folder / "records")
    if any(part.startswith(".") for part in name.parts):
        raise InputError(f"{path} is in a hidden folder, where no run writes; remove that folder")
    frame = read_frame(path)
    beside = dict(_beside(folder, name, path))
    pictures = _pictures(folder, beside["examples"]) if "examples" in beside else ()
    return Result(folder, name, frame, tuple(suites_of(with_all_columns(frame.copy()))), beside, pictures)


def _pictures(folder: Path, examples: Path) -> tuple[str, ...]:
    """Files of the pictures of examples; raises InputError where one is not as it was."""
    path = folder / "examples" / examples
    try:
        names = tuple(thumbnails_of(path))
    except UNREADABLE as error:
        raise InputError(f"cannot read examples {path}: {error}; delete the file and run again") from error
    for name in names:
        if not is_whole(folder / FOLDER / name):
            raise InputError(
                f"the picture {folder / FOLDER / name} of {path} is missing or damaged; copy the whole "
                "folder, or run again"
            )
    return names


def _beside(folder: Path, name: Path, path: Path) -> Iterator[tuple[str, Path]]:
    """Folders and files of what belongs to some records; raises InputError where it is not as it was."""
    try:
        content = read_sealed(path)
        companions = companions_of(content)
    except UNREADABLE as error:
        raise InputError(f"cannot read records {path}: {error}; delete the file and run again") from error
    for kind, digest in companions.items():
        if kind not in COMPANIONS:
            raise InputError(
                f"{path} names {kind!r} as a folder of what belongs to it, expected {', '.join(COMPANIONS)}; "
                "no run writes that: remove the file"
            )
        companion = name.with_suffix(COMPANIONS[kind])
        if not _has_digest(folder / kind / companion, digest):
            state = (
                "are not those that were written" if (folder / kind / companion).exists() else "are not there"
            )
            raise InputError(
                f"the {kind} of {path} {state}; copy the whole folder, or delete that file and run again"
            )
        yield kind, companion
    if is_older(content) and (folder / "items" / name).is_file():
        yield "items", name


def _has_digest(path: Path, digest: str) -> bool:
    try:
        return file_digest(path) == digest
    except OSError:
        return False


def _one_of(first: Result, second: Result) -> Result:
    """The newer one of two files of one result; raises InputError where they are two results."""
    frames = [with_all_columns(one.frame.copy()) for one in (first, second)]
    if reason := difference(*frames):
        raise InputError(
            f"{first.path} and {second.path} are two different results: {reason}; remove one of them, or "
            "merge without it"
        )
    newer = second if second.date > first.date else first
    return replace(newer, suites=tuple(sorted({*first.suites, *second.suites})))


def _write(result: Result, output: Path) -> None:
    """Copy a result, its records last; they are sealed again where they belong to further suites."""
    for kind, name in result.beside.items():
        _copy(result.folder / kind / name, output / kind / name)
    for picture in result.pictures:
        if not is_whole(output / FOLDER / picture):
            _copy(result.folder / FOLDER / picture, output / FOLDER / picture)
    target = output / "records" / result.name
    if set(result.suites) == set(suites_of(with_all_columns(result.frame.copy()))):
        _copy(result.path, target)
        return
    frame = result.frame
    for suite in result.suites:
        frame = add_suite(frame, suite)
    companions = {kind: file_digest(output / kind / name) for kind, name in result.beside.items()}
    write_frame(frame, target, companions)


def _copy(source: Path, target: Path) -> None:
    if source.resolve() == target.resolve():
        return
    with whole_file(target) as temporary:
        shutil.copyfile(source, temporary)
