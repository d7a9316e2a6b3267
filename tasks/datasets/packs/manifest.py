"""Manifest of a pack: datasets, counts and digests in a JSON file, and a dataset card."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from layerboard.tasks.datasets.packs.shards import Shard
from layerboard.zoo.atomic import write_whole
from layerboard.zoo.errors import InputError

MANIFEST = "layerboard.json"
FORMAT = 2  # changes with the format of packs
CARD = "README.md"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PackedShard:
    """A shard: its name in the pack, bytes, and SHA-256 (as on the Hub)."""

    name: str
    bytes: int
    sha256: str

    def __post_init__(self) -> None:
        if self.name.startswith("/") or ".." in self.name.split("/"):
            raise ValueError(f"the shard {self.name!r} is outside of it")


@dataclass(frozen=True, slots=True)
class PackedDataset:
    """A dataset of a pack."""

    coverage: str  # its coverage when it was packed, in words
    files: int
    bytes: int
    digest: str  # digest of its files' paths, sizes and digests in order, independent of shards
    shards: tuple[PackedShard, ...]


Manifest = Mapping[str, PackedDataset]  # datasets by name


def rows_digest(shards: Sequence[Shard]) -> str:
    """Digest of the paths, sizes and digests of all rows in order: 32 hexadecimal digits of BLAKE2b."""
    state = blake2b(digest_size=16)
    for shard in shards:
        rows = zip(shard.paths, shard.sizes, shard.digests.to_pylist(), strict=True)
        state.update("".join(f"{path}\0{size}\0{digest}\n" for path, size, digest in rows).encode())
    return state.hexdigest()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a pack atomically."""
    datasets = {name: asdict(dataset) for name, dataset in sorted(manifest.items())}
    content = {"format": FORMAT, "datasets": datasets}
    write_whole(folder / MANIFEST, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def read_pack_manifest(folder: Path) -> Manifest:
    """Manifest of a pack; empty if there is none; raises InputError."""
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_bytes())
        if (version := content["format"]) == FORMAT:
            datasets = {}
            for name, dataset in content["datasets"].items():
                shards = tuple(_checked(PackedShard, shard) for shard in dataset["shards"])
                datasets[name] = _checked(PackedDataset, {**dataset, "shards": shards})
            return datasets
    except (OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(
            f"expected what a pack says of itself in {path}, which is malformed ({error}); fetch it again"
        ) from error
    raise InputError(
        f"expected a pack of format {FORMAT} in {path}, found {version}; "
        "pack again, or use the version that wrote it"
    )


def _checked(kind: type[T], content: Mapping[str, Any]) -> T:
    """A dataclass from fields with checked types; raises LookupError, TypeError or ValueError."""
    for field in fields(kind):  # type: ignore[arg-type]
        if field.type in (str, int) and not isinstance(content[field.name], field.type):
            raise TypeError(f"{field.name} is no {field.type.__name__}")
    return kind(**content)


def dataset_card(manifest: Manifest) -> str:
    """The dataset card: YAML with the shards of each dataset and split, then Markdown."""
    lines = ["---", "configs:"]
    for name, dataset in sorted(manifest.items()):
        lines += [f"- config_name: {name}", "  data_files:"]
        names = (PurePosixPath(shard.name).name for shard in dataset.shards)
        for split in sorted({name.rpartition("-of-")[0].rpartition("-")[0] for name in names}):
            lines += [f"  - split: {split}", f"    path: {name}/{split}-*.arrow"]
    lines += ["---", "", "# Datasets in their official layouts", ""]
    lines += ["Each row is a file: its path below the data folder, and its bytes. Read it with", ""]
    lines += ["    layerboard run --data hf:THIS", "", "| dataset | what is there | files | bytes |"]
    lines += ["|---|---|---|---|"]
    rows = sorted(manifest.items())
    lines += [f"| {name} | {data.coverage} | {data.files:,} | {data.bytes:,} |" for name, data in rows]
    lines += ["", "Licences are those of the datasets; not all of them may be handed on.", ""]
    return "\n".join(lines)
