"""Official folders written as packs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.datasets.base import Data, DatasetEntry, Part
from tasks.datasets.files import data_root, require_text
from tasks.datasets.packs.manifest import (
    CARD,
    MANIFEST,
    Manifest,
    PackedDataset,
    PackedShard,
    card_of,
    file_sha256,
    read_manifest,
    rows_digest,
    write_manifest,
)
from tasks.datasets.packs.shards import LARGEST_FILE, PackedFile, read_shard, write_shard
from zoo.atomic import PARTIAL, remove_leftovers
from zoo.errors import InputError


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """A shard to be written.

    Attributes:
        name: Below the pack, such as ``davis-2017-val/files-00000-of-00002.parquet``.
        files: Its rows.
        classes: Names of the classes of its images; none where they have no labels.
    """

    name: str
    files: tuple[PackedFile, ...]
    classes: tuple[str, ...]

    @property
    def bytes(self) -> int:
        """Bytes of its files."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class DatasetPlan:
    """A dataset to be written, as it is in its folder."""

    entry: DatasetEntry[Data]
    coverage: str
    shards: tuple[ShardPlan, ...]

    @property
    def bytes(self) -> int:
        """Bytes of its files."""
        return sum(shard.bytes for shard in self.shards)


def require_room(target: Path, names: Sequence[str]) -> Manifest:
    """What is in a pack already; what killed writers left there half written is removed.

    Raises:
        InputError: One of the datasets is in it, or the folder holds something else.
    """
    if target.exists() and not target.is_dir():
        raise InputError(f"expected a folder for the pack at {target}, found a file")
    remove_leftovers([target])
    manifest = read_manifest(target)
    if there := sorted({*names} & {*manifest}):
        raise InputError(
            f"{target} has {', '.join(there)} already, which is not written over; choose another --to"
        )
    known = {MANIFEST, CARD, ".git", ".gitattributes", ".cache", *names, *manifest}
    found = sorted(path.name for path in target.iterdir()) if target.exists() else []
    if others := [name for name in found if name not in known and not name.startswith(PARTIAL)]:
        raise InputError(
            f"expected a new folder, or a pack, at {target}, found {others[0]} in it; choose another --to"
        )
    return manifest


def plan_dataset(data: Path, entry: DatasetEntry[Data], largest: int) -> DatasetPlan:
    """Read a dataset's folder and share its files among shards.

    Args:
        data: Folder that holds the dataset's folder.
        entry: The dataset.
        largest: Bytes of files of a shard at most, unless one file is larger.

    Raises:
        InputError: The dataset is broken.
    """
    coverage = entry.read(data).coverage
    shards = (shard for part in entry.contents(data) for shard in _shards(data, entry.name, part, largest))
    return DatasetPlan(entry, str(coverage), tuple(shards))


def _shards(data: Path, name: str, part: Part, largest: int) -> list[ShardPlan]:
    labels = {wnid: label for label, wnid in enumerate(part.classes)}
    groups: list[list[PackedFile]] = [[]]
    held = 0
    for path in sorted({*part.paths}):
        file = _sized(data, path.relative_to(data).as_posix(), labels.get(path.parent.name))
        if groups[-1] and held + file.size > largest:
            groups.append([])
            held = 0
        groups[-1].append(file)
        held += file.size
    named = (f"{name}/{part.name}-{number:05d}-of-{len(groups):05d}.parquet" for number in range(len(groups)))
    return [ShardPlan(one, tuple(files), part.classes) for one, files in zip(named, groups, strict=True)]


def _sized(data: Path, path: str, label: int | None) -> PackedFile:
    try:
        size = (data / require_text(path, f"names of files in {data}")).stat().st_size
    except OSError as error:
        raise InputError(f"cannot find {data / path}: {error.strerror}") from error
    if size > LARGEST_FILE:
        raise InputError(f"expected files of at most {LARGEST_FILE:,} bytes, found {size:,} in {data / path}")
    return PackedFile(path, size, label)


def write_dataset(
    data: Path, target: Path, plan: DatasetPlan, advance: Callable[[float], None]
) -> PackedDataset:
    """Write a dataset's shards and say so in the pack's manifest, once they read as the folder does.

    Shards that an interrupted writing left are kept where they hold the files of the plan, and no file has
    changed since.

    Args:
        data: Folder that holds the dataset's folder.
        target: Folder of the pack.
        plan: The dataset.
        advance: Told the bytes of the files that are written.

    Raises:
        InputError: A file has changed, or other shards are in the dataset's folder.
    """
    _require_own(target / plan.entry.name, plan)
    for shard in plan.shards:
        file = target / shard.name
        if not _is_written(file, data, shard):
            write_shard(file, data, shard.files, shard.classes)
        advance(shard.bytes)
    found = _packed(target, plan)
    before = read_manifest(target)
    written = {**before, plan.entry.name: found}
    write_manifest(target, written)
    try:
        _require_same(target, plan)
    except InputError:
        write_manifest(target, before)
        raise
    _write_card(target, before, written)
    return found


def _require_own(folder: Path, plan: DatasetPlan) -> None:
    """Raise InputError for files that are no shards of the plan: of another folder, or another size."""
    names = {Path(shard.name).name for shard in plan.shards}
    found = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if others := [name for name in found if name not in names and not name.startswith(PARTIAL)]:
        raise InputError(
            f"expected the {len(names)} shards of {plan.entry.name} in {folder}, found {others[0]}, which an "
            f"interrupted writing of other files left; remove {folder}"
        )


def _is_written(file: Path, data: Path, shard: ShardPlan) -> bool:
    """Whether a shard is there with these files, none of which is newer."""
    try:
        time = file.stat().st_mtime_ns
        found = read_shard(file)
        return (
            found.paths == [one.path for one in shard.files]
            and found.sizes.tolist() == [one.size for one in shard.files]
            and all((data / one.path).stat().st_mtime_ns < time for one in shard.files)
        )
    except (OSError, InputError):
        return False


def _packed(target: Path, plan: DatasetPlan) -> PackedDataset:
    shards = [read_shard(target / shard.name) for shard in plan.shards]
    said = tuple(
        PackedShard(planned.name, len(shard.paths), shard.file.stat().st_size, file_sha256(shard.file))
        for planned, shard in zip(plan.shards, shards, strict=True)
    )
    files = sum(len(shard.paths) for shard in shards)
    return PackedDataset(plan.coverage, files, plan.bytes, rows_digest(shards), said)


def _write_card(target: Path, before: Manifest, written: Manifest) -> None:
    """Write the pack's card for people and for ``datasets``, unless somebody wrote another one."""
    path = target / CARD
    if not path.exists() or path.read_text(encoding="utf-8") == card_of(before):
        path.write_text(card_of(written), encoding="utf-8")


def _require_same(target: Path, plan: DatasetPlan) -> None:
    """Raise InputError unless the pack reads as the folder did."""
    found = str(plan.entry.read(data_root(Path(f"hf:{target.absolute()}"))).coverage)
    if found != plan.coverage:
        raise InputError(
            f"{plan.entry.name} changed while it was packed, from {plan.coverage} to {found}; pack again"
        )
