"""What a pack says of itself: datasets, shards, counts and digests, in one JSON file."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b, sha256
from pathlib import Path, PurePosixPath
from typing import cast

from tasks.datasets.packs.shards import Shard
from zoo.atomic import whole_file
from zoo.errors import InputError

MANIFEST = "layerboard.json"
"""Name of the file."""

FORMAT = 1
"""Changes when packs are written in another way."""

_CHUNK = 1 << 22


@dataclass(frozen=True, slots=True)
class PackedShard:
    """A parquet file: its name below the pack, rows, bytes, and SHA-256, which the Hub shows, too."""

    name: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class PackedDataset:
    """A dataset of a pack.

    Attributes:
        coverage: What was there of it when it was packed, in words.
        files: Number of its files.
        bytes: Their bytes.
        digest: Digest of their paths, sizes and digests in order, whatever shards they are in.
        shards: The parquet files that hold them.
    """

    coverage: str
    files: int
    bytes: int
    digest: str
    shards: tuple[PackedShard, ...]


Manifest = Mapping[str, PackedDataset]
"""Datasets by name."""


def rows_digest(shards: Sequence[Shard]) -> str:
    """Digest of the paths, sizes and digests of all rows in order: 32 hexadecimal digits of BLAKE2b."""
    found = blake2b(digest_size=16)
    for shard in shards:
        rows = zip(shard.paths, shard.sizes.tolist(), shard.digests.tolist(), strict=True)
        found.update("".join(f"{path}\0{size}\0{one.decode()}\n" for path, size, one in rows).encode())
    return found.hexdigest()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file."""
    found = sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write what a pack says of itself; it is there whole or not at all."""
    content = {"format": FORMAT, "datasets": {name: asdict(one) for name, one in sorted(manifest.items())}}
    with whole_file(folder / MANIFEST) as draft:
        draft.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> Manifest:
    """What a pack says of itself; nothing where it says nothing.

    Raises:
        InputError: The file is malformed, or of a later version.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_bytes())
        if content["format"] != FORMAT:
            raise InputError(
                f"expected a pack of format {FORMAT} in {path}, found {content['format']}; "
                "pack again, or use the version that wrote it"
            )
        return {name: _dataset(one) for name, one in content["datasets"].items()}
    except (OSError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise _malformed(path, error) from error
    except ValueError as error:
        raise error if isinstance(error, InputError) else _malformed(path, error) from error


def _malformed(path: Path, error: Exception) -> InputError:
    return InputError(
        f"expected what a pack says of itself in {path}, which is malformed ({error}); fetch it again"
    )


def _dataset(fields: Mapping[str, object]) -> PackedDataset:
    shards = cast("Sequence[Mapping[str, object]]", fields["shards"])
    found = tuple(_shard(one) for one in shards)
    _require(fields, {"coverage": str, "files": int, "bytes": int, "digest": str})
    return PackedDataset(**{**fields, "shards": found})  # type: ignore[arg-type]


def _shard(fields: Mapping[str, object]) -> PackedShard:
    _require(fields, {"name": str, "rows": int, "bytes": int, "sha256": str})
    name = str(fields["name"])
    if name.startswith("/") or ".." in name.split("/"):
        raise ValueError(f"the shard {name!r} is outside of it")
    return PackedShard(**fields)  # type: ignore[arg-type]


def _require(fields: Mapping[str, object], kinds: Mapping[str, type]) -> None:
    for name, kind in kinds.items():
        if not isinstance(fields[name], kind):
            raise TypeError(f"{name} is no {kind.__name__}")


CARD = "README.md"
"""Name of the file."""


def card_of(manifest: Manifest) -> str:
    """The card, Markdown behind YAML that names the shards of each dataset and split."""
    lines = ["---", "configs:"]
    for name, dataset in sorted(manifest.items()):
        lines += [f"- config_name: {name}", "  data_files:"]
        splits = {
            PurePosixPath(shard.name).name.rpartition("-of-")[0].rpartition("-")[0]
            for shard in dataset.shards
        }
        for split in sorted(splits):
            lines += [f"  - split: {split}", f"    path: {name}/{split}-*.parquet"]
    lines += ["---", "", "# Datasets in their official layouts", ""]
    lines += ["Each row is a file: its path below the data folder, and its bytes. Read it with", ""]
    lines += ["    python -m benchmark run --data hf:THIS", "", "| dataset | what is there | files | bytes |"]
    lines += ["|---|---|---|---|"]
    rows = sorted(manifest.items())
    lines += [f"| {name} | {one.coverage} | {one.files:,} | {one.bytes:,} |" for name, one in rows]
    lines += ["", "Licences are those of the datasets; not all of them may be handed on.", ""]
    return "\n".join(lines)
