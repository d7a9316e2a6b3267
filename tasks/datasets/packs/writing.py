"""Official folders written as packs."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.datasets.base import Data, DatasetEntry
from tasks.datasets.classes import Classification
from tasks.datasets.files import data_root, require_text
from tasks.datasets.hub_spec import PREFIX
from tasks.datasets.packs import manifest as manifests
from tasks.datasets.packs.manifest import CARD, MANIFEST, PackedDataset, PackedShard, card_of, read_manifest
from tasks.datasets.packs.shards import LARGEST_FILE, PackedFile, read_shard, write_shard
from zoo.atomic import PARTIAL, remove_leftovers
from zoo.errors import InputError


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """A shard to be written."""

    name: str  # below the pack, such as ``davis-2017-val/files-00000-of-00002.parquet``
    files: tuple[PackedFile, ...]  # its rows
    classes: tuple[str, ...]  # names of the classes of its images; none where they have no labels

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class DatasetPlan:
    """A dataset to be written, as it is in its folder."""

    entry: DatasetEntry[Data]
    coverage: str
    shards: tuple[ShardPlan, ...]

    @property
    def bytes(self) -> int:
        return sum(shard.bytes for shard in self.shards)


def require_room(target: Path, names: Sequence[str]) -> None:
    """Raise InputError where a pack has one of the datasets already, or its folder holds something else.

    What killed writers left there half written is removed.
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
    if others := _others(target, known):
        raise InputError(
            f"expected a new folder, or a pack, at {target}, found {others[0]} in it; choose another --to"
        )


def plan_dataset(data: Path, entry: DatasetEntry[Data], largest: int) -> DatasetPlan:
    """Read a dataset and share its files among shards of so many bytes, or of one file; raises InputError."""
    dataset = entry.read(data)
    classes = dataset.train.classes if isinstance(dataset, Classification) else ()
    shards: list[ShardPlan] = []
    for split, paths in entry.contents(data).items():
        groups = _groups(data, paths, {wnid: label for label, wnid in enumerate(classes)}, largest)
        for number, files in enumerate(groups):
            name = f"{entry.name}/{split}-{number:05d}-of-{len(groups):05d}.parquet"
            shards.append(ShardPlan(name, tuple(files), classes))
    return DatasetPlan(entry, str(dataset.coverage), tuple(shards))


def _groups(
    data: Path, paths: Iterable[Path], labels: Mapping[str, int], largest: int
) -> list[list[PackedFile]]:
    """Files of one shard after the other, each with its class by the name of its folder."""
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


def write_dataset(
    data: Path, target: Path, plan: DatasetPlan, advance: Callable[[float], None]
) -> PackedDataset:
    """Write a dataset's shards, and say so in the manifest once they read as the folder does.

    Shards that an interrupted writing left are kept where they hold the files of the plan, and no file has
    changed since; else InputError is raised. ``advance`` is told the bytes of the files that are written.
    """
    folder = target / plan.entry.name
    names = {Path(shard.name).name for shard in plan.shards}
    if others := _others(folder, names):
        raise InputError(
            f"expected the {len(names)} shards of {plan.entry.name} in {folder}, found {others[0]}, which an "
            f"interrupted writing of other files left; remove {folder}"
        )
    for shard in plan.shards:
        file = target / shard.name
        if not _is_written(file, data, shard):
            write_shard(file, data, shard.files, shard.classes)
        advance(shard.bytes)
    return _published(target, plan)


def _published(target: Path, plan: DatasetPlan) -> PackedDataset:
    """Write the manifest and the card; raises InputError where the pack does not read as the folder does."""
    shards = [read_shard(target / shard.name) for shard in plan.shards]
    files = []
    for planned, shard in zip(plan.shards, shards, strict=True):
        digest = manifests.file_sha256(shard.file)
        files.append(PackedShard(planned.name, len(shard.paths), shard.file.stat().st_size, digest))
    rows = sum(shard.rows for shard in files)
    packed = PackedDataset(plan.coverage, rows, plan.bytes, manifests.rows_digest(shards), tuple(files))
    before = read_manifest(target)
    written = {**before, plan.entry.name: packed}
    manifests.write_manifest(target, written)
    try:
        coverage = str(plan.entry.read(data_root(Path(f"{PREFIX}{target.absolute()}"))).coverage)
        if coverage != plan.coverage:
            raise InputError(
                f"{plan.entry.name} changed while it was packed, from {plan.coverage} to {coverage}; "
                "pack again"
            )
    except InputError:
        manifests.write_manifest(target, before)
        raise
    card = target / CARD
    if not card.exists() or card.read_text(encoding="utf-8") == card_of(before):  # nobody wrote another one
        card.write_text(card_of(written), encoding="utf-8")
    return packed


def _others(folder: Path, known: Collection[str]) -> list[str]:
    """Sorted names in a folder, if it is there, but the known ones and those of half written files."""
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return [name for name in names if name not in known and not name.startswith(PARTIAL)]


def _is_written(file: Path, data: Path, shard: ShardPlan) -> bool:
    try:
        time = file.stat().st_mtime_ns
        stored = read_shard(file)
        return (
            stored.paths == [planned.path for planned in shard.files]
            and stored.sizes.tolist() == [planned.size for planned in shard.files]
            and all((data / planned.path).stat().st_mtime_ns < time for planned in shard.files)
        )
    except (OSError, InputError):
        return False
