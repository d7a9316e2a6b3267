"""Official folders written as packs."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from layerboard.tasks.datasets.base import Data, DatasetEntry
from layerboard.tasks.datasets.classes import Classification
from layerboard.tasks.datasets.hub_spec import PREFIX
from layerboard.tasks.datasets.packs import manifest as manifests
from layerboard.tasks.datasets.packs.manifest import (
    CARD,
    MANIFEST,
    PackedDataset,
    PackedShard,
    dataset_card,
    read_pack_manifest,
)
from layerboard.tasks.datasets.packs.shards import LARGEST_FILE, PackedFile, read_shard, write_shard
from layerboard.tasks.datasets.reading.files import data_root, require_text
from layerboard.zoo.atomic import PARTIAL, file_sha256, remove_leftovers, write_whole
from layerboard.zoo.errors import InputError


class DatasetPlan(NamedTuple):
    """A dataset to be written, as found in its folder."""

    entry: DatasetEntry[Data]
    coverage: str
    classes: tuple[str, ...]  # class names of its images; empty without labels
    # rows of each shard by its name below the pack, such as ``davis-2017-val/files-00000-of-00002.arrow``
    shards: Mapping[str, Sequence[PackedFile]]

    @property
    def bytes(self) -> int:
        return sum(map(total_size, self.shards.values()))


def total_size(files: Iterable[PackedFile]) -> int:
    """Total size of files in bytes."""
    return sum(file.size for file in files)


def require_room(target: Path, names: Sequence[str]) -> None:
    """Raise InputError if the folder of a pack with these datasets contains anything else.

    Partially written files of interrupted runs are removed.
    """
    if target.exists() and not target.is_dir():
        raise InputError(f"expected a folder for the pack at {target}, found a file")
    remove_leftovers([target])
    known = {MANIFEST, CARD, ".git", ".gitattributes", ".cache", *names, *read_pack_manifest(target)}
    if others := _others(target, known):
        raise InputError(
            f"expected a new folder, or a pack, at {target}, found {others[0]} in it; choose another --to"
        )


def plan_dataset(data: Path, entry: DatasetEntry[Data], largest: int) -> DatasetPlan:
    """Read a dataset and assign its files to shards of at most ``largest`` bytes, or of one file."""
    dataset = entry.read(data)
    classes = dataset.train.classes if isinstance(dataset, Classification) else ()
    shards: dict[str, list[PackedFile]] = {}
    for split, paths in entry.contents(data).items():
        groups = _groups(data, paths, {wnid: label for label, wnid in enumerate(classes)}, largest)
        for number, files in enumerate(groups):
            shards[f"{entry.name}/{split}-{number:05d}-of-{len(groups):05d}.arrow"] = files
    return DatasetPlan(entry, str(dataset.coverage), classes, shards)


def _groups(
    data: Path, paths: Iterable[Path], labels: Mapping[str, int], largest: int
) -> list[list[PackedFile]]:
    """Files of each shard, with classes from folder names."""
    groups: list[list[PackedFile]] = [[]]
    held = 0
    for path in sorted({*paths}):
        relative = require_text(path.relative_to(data).as_posix(), f"names of files in {data}")
        try:
            size = path.stat().st_size
        except OSError as error:
            raise InputError(f"cannot find {path}: {error.strerror}") from error
        if size > LARGEST_FILE:
            raise InputError(f"expected files of at most {LARGEST_FILE:,} bytes, found {size:,} in {path}")
        if groups[-1] and held + size > largest:
            groups.append([])
            held = 0
        groups[-1].append(PackedFile(relative, size, labels.get(path.parent.name)))
        held += size
    return groups


def require_same_pack(data: Path, target: Path, plan: DatasetPlan) -> None:
    """Raise InputError if a pack already has the dataset, but with other files or shards."""
    written = (_is_written(target / name, data, files) for name, files in plan.shards.items())
    if plan.entry.name in read_pack_manifest(target) and not all(written):
        raise InputError(
            f"{target} has {plan.entry.name} already, of other files or in other shards, which is not "
            "written over; choose another --to"
        )


def write_dataset(
    data: Path, target: Path, plan: DatasetPlan, advance: Callable[[float], None]
) -> PackedDataset:
    """Write a dataset's shards, and add it to the manifest once they read the same as the folder.

    Shards from an interrupted run, and a dataset that the pack already has, are kept if they match the plan
    and no file has changed since; otherwise InputError is raised. ``advance`` is called with the bytes of
    files written.
    """
    require_same_pack(data, target, plan)
    folder = target / plan.entry.name
    names = {Path(name).name for name in plan.shards}
    if others := _others(folder, names):
        raise InputError(
            f"expected the {len(names)} shards of {plan.entry.name} in {folder}, found {others[0]}, which an "
            f"interrupted writing of other files left; remove {folder}"
        )
    for name, files in plan.shards.items():
        if not _is_written(target / name, data, files):
            write_shard(target / name, data, files, plan.classes)
        advance(total_size(files))
    return _published(target, plan)


def _published(target: Path, plan: DatasetPlan) -> PackedDataset:
    """Write the manifest and the card; raises InputError if the pack does not read the same as the folder."""
    before, name = read_pack_manifest(target), plan.entry.name
    written = {**before, name: before.get(name) or _packed(target, plan)}
    manifests.write_manifest(target, written)
    try:
        coverage = str(plan.entry.read(data_root(Path(f"{PREFIX}{target.absolute()}"))).coverage)
        if coverage != plan.coverage:
            raise InputError(
                f"{name} changed while it was packed, from {plan.coverage} to {coverage}; pack again"
            )
    except InputError:
        manifests.write_manifest(target, before)
        raise
    card, others = target / CARD, {other: written[other] for other in written if other != name}
    if not card.exists() or card.read_text(encoding="utf-8") == dataset_card(
        others
    ):  # the user has not edited it
        write_whole(card, dataset_card(written))
    return written[name]


def _packed(target: Path, plan: DatasetPlan) -> PackedDataset:
    """Manifest entry of a dataset with existing shards."""
    shards = [read_shard(target / name) for name in plan.shards]
    files = tuple(
        PackedShard(name, shard.file.stat().st_size, file_sha256(shard.file))
        for name, shard in zip(plan.shards, shards, strict=True)
    )
    rows = sum(len(shard.paths) for shard in shards)
    return PackedDataset(plan.coverage, rows, plan.bytes, manifests.rows_digest(shards), files)


def _others(folder: Path, known: Collection[str]) -> list[str]:
    """Sorted names in a folder, if it exists, except known ones and partially written files."""
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return [name for name in names if name not in known and not name.startswith(PARTIAL)]


def _is_written(file: Path, data: Path, rows: Sequence[PackedFile]) -> bool:
    try:
        time = file.stat().st_mtime_ns
        stored = read_shard(file)
        return (
            stored.paths == [row.path for row in rows]
            and stored.sizes == [row.size for row in rows]
            and all((data / row.path).stat().st_mtime_ns < time for row in rows)
        )
    except (OSError, InputError):
        return False
