"""Shards, the Arrow files of a pack: each row is a file of an official layout, with its digest.

A shard is an Arrow stream, the format in which ``datasets`` stores tables itself. It is mapped into memory:
any thread or process reads a row without its neighbours, and no file stays open.
"""

from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import compute

from layerboard.tasks.datasets.integrity import explaining
from layerboard.zoo.reading import require_regular

ROWS = pa.schema([("path", pa.string()), ("bytes", pa.binary()), ("digest", pa.string())])
"""The rows of a shard: path of each file in its official layout, its bytes, and their `content_digest`."""

_DAMAGE = OSError, ValueError, LookupError, TypeError, MemoryError, pa.ArrowException


def content_digest(content: bytes) -> str:
    """Digest of a file's bytes, 32 hexadecimal digits of BLAKE2b."""
    return blake2b(content, digest_size=16).hexdigest()


def rows_digest(rows: Any) -> str:  # noqa: ANN401  # a table of pyarrow, which has no types of its own
    """Digest of the paths, sizes and digests of `ROWS` in order: 32 hexadecimal digits of BLAKE2b."""
    columns = rows["path"], compute.binary_length(rows["bytes"]), rows["digest"]
    facts = zip(*(column.to_pylist() for column in columns), strict=True)
    return content_digest("".join(f"{path}\0{size}\0{digest}\n" for path, size, digest in facts).encode())


def read_shard(file: Path) -> Any:  # noqa: ANN401  # a table of pyarrow
    """The `ROWS` of a shard, whose bytes stay on disk; raises InputError."""
    damaged = f"expected a shard of a pack at {file}, which is damaged"
    with explaining(damaged, *_DAMAGE, remedy="fetch it again"):
        require_regular(file)
        with pa.memory_map(str(file)) as mapped, pa.ipc.open_stream(mapped) as stream:
            table = stream.read_all()
        table.validate(full=True)  # offsets beyond the file would be followed
        paths, contents = (compute.struct_field(table.column(0), field) for field in ("path", "bytes"))
        rows = pa.table([paths, contents, table["digest"]], ROWS.names)
        if rows.schema != ROWS or any(column.null_count for column in rows.columns):
            raise ValueError("its columns are not those of a pack")
        if table.nbytes > file.stat().st_size:
            raise ValueError("its rows do not fit into it")
    return rows
