"""Shards, the Arrow files of a pack: each row is a file of an official layout, with its digest.

A shard is an Arrow stream, the format in which ``datasets`` stores tables itself. It is mapped into memory:
any thread or process reads a row without its neighbours, and no file stays open.
"""

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import compute

from layerboard.tasks.datasets.integrity import explaining
from layerboard.zoo.reading import require_regular

_DAMAGE = OSError, ValueError, LookupError, TypeError, MemoryError, pa.ArrowException


class Shard(NamedTuple):
    """The rows of a file of a pack, in Arrow columns on disk."""

    file: Path
    paths: list[str]
    contents: Any  # the bytes of each file, a chunked array; pyarrow has no types of its own
    digests: Any  # `content_digest` of each, a chunked array

    @property
    def sizes(self) -> list[int]:
        """Bytes of each row."""
        return list(compute.binary_length(self.contents).to_pylist())


def content_digest(content: bytes) -> str:
    """Digest of a file's bytes, 32 hexadecimal digits of BLAKE2b."""
    return blake2b(content, digest_size=16).hexdigest()


def one_column(columns: Iterable[Any], kind: Any) -> Any:  # noqa: ANN401  # of pyarrow
    """Chunked arrays of one type behind each other, without a copy."""
    return pa.chunked_array([chunk for column in columns for chunk in column.chunks], type=kind)


def rows_digest(shards: Iterable[Shard]) -> str:
    """Digest of the paths, sizes and digests of all rows in order: 32 hexadecimal digits of BLAKE2b."""
    state = blake2b(digest_size=16)
    for shard in shards:
        rows = zip(shard.paths, shard.sizes, shard.digests.to_pylist(), strict=True)
        state.update("".join(f"{path}\0{size}\0{digest}\n" for path, size, digest in rows).encode())
    return state.hexdigest()


def read_shard(file: Path) -> Shard:
    """The rows of a shard, whose bytes stay on disk; raises InputError."""
    damaged = f"expected a shard of a pack at {file}, which is damaged"
    with explaining(damaged, *_DAMAGE, remedy="fetch it again"):
        require_regular(file)
        with pa.memory_map(str(file)) as mapped, pa.ipc.open_stream(mapped) as stream:
            table = stream.read_all()
        table.validate(full=True)  # offsets beyond the file would be followed
        contents, paths = (compute.struct_field(table.column(0), field) for field in ("bytes", "path"))
        columns = contents, paths, table["digest"]
        kinds = pa.binary(), pa.string(), pa.string()
        if any(column.type != kind or column.null_count for column, kind in zip(columns, kinds, strict=True)):
            raise ValueError("its columns are not those of a pack")
        if table.nbytes > file.stat().st_size:
            raise ValueError("its rows do not fit into it")
    return Shard(file, list(paths.to_pylist()), contents, table["digest"])
