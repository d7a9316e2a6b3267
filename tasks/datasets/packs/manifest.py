"""Manifest of a pack: the shards of each dataset and a digest of its files, in a JSON file."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from layerboard.tasks.datasets.integrity import require
from layerboard.zoo.reading import read_as

MANIFEST = "layerboard.json"
FORMAT = 2  # changes with the format of packs


@dataclass(frozen=True, slots=True)
class PackedShard:
    """A shard: its name in the pack, and its bytes."""

    name: str
    bytes: int

    def __post_init__(self) -> None:
        if self.name.startswith("/") or ".." in self.name.split("/"):
            raise ValueError(f"the shard {self.name!r} is outside of it")


@dataclass(frozen=True, slots=True)
class PackedDataset:
    """A dataset of a pack."""

    digest: str  # `packs.shards.rows_digest` of its shards
    shards: tuple[PackedShard, ...]


Manifest = Mapping[str, PackedDataset]  # datasets by name


@dataclass(frozen=True, slots=True)
class _Versioned:
    """What tells how the rest of a manifest is written."""

    format: int


@dataclass(frozen=True, slots=True)
class _Pack(_Versioned):
    """What a pack says of itself."""

    datasets: dict[str, PackedDataset]


def read_pack_manifest(folder: Path) -> Manifest:
    """Manifest of a pack; empty if there is none; raises InputError."""
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    version = read_as(_Versioned, path).format
    require(version == FORMAT, f"a pack of format {FORMAT} in {path}", version, "fetch it again")
    return read_as(_Pack, path).datasets
