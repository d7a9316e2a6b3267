"""Manifest of a pack: the shards of each dataset and a digest of its files, in a JSON file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from layerboard.zoo.errors import InputError

MANIFEST = "layerboard.json"
FORMAT = 2  # changes with the format of packs


@dataclass(frozen=True, slots=True)
class PackedShard:
    """A shard: its name in the pack, and its bytes."""

    name: str
    bytes: int

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not isinstance(self.bytes, int):
            raise TypeError(f"no name and bytes of a shard: {self.name!r}, {self.bytes!r}")
        if self.name.startswith("/") or ".." in self.name.split("/"):
            raise ValueError(f"the shard {self.name!r} is outside of it")


@dataclass(frozen=True, slots=True)
class PackedDataset:
    """A dataset of a pack."""

    digest: str  # `packs.shards.rows_digest` of its shards
    shards: tuple[PackedShard, ...]


Manifest = Mapping[str, PackedDataset]  # datasets by name


def read_pack_manifest(folder: Path) -> Manifest:
    """Manifest of a pack; empty if there is none; raises InputError."""
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_bytes())
        if (version := content["format"]) == FORMAT:
            return {name: _dataset(dataset) for name, dataset in content["datasets"].items()}
    except (OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(
            f"expected what a pack says of itself in {path}, which is malformed ({error}); fetch it again"
        ) from error
    raise InputError(f"expected a pack of format {FORMAT} in {path}, found {version}; fetch it again")


def _dataset(content: Mapping[str, object]) -> PackedDataset:
    shards = content["shards"]
    if not isinstance(shards, list):
        raise TypeError("shards is no list")
    return PackedDataset(
        str(content["digest"]), tuple(PackedShard(each["name"], each["bytes"]) for each in shards)
    )
