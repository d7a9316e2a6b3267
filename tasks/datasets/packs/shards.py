"""Shards, the parquet files of a pack: how they are written, and the offset of each row's bytes.

A row is a file, with path and bytes in one column, as ``datasets`` stores an image, and with size and digest.
The bytes of a row group are one uncompressed page of plain values, each preceded by its length in four bytes.
So the sizes give the offset of each file, counted from the end, and a file is read without its neighbours.
"""

import json
import os
import struct
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute
from pyarrow.parquet import ParquetFile, ParquetWriter

from layerboard.zoo.atomic import whole_file
from layerboard.zoo.errors import InputError
from layerboard.zoo.reading import read_regular

GROUP_ROWS = 1000  # largest number of rows of a row group, which other readers load as a whole
GROUP_BYTES = 32 << 20  # bytes of a row group, not counting its last file
LARGEST_FILE = 2**31 - 2**26  # largest size of a file in bytes, since a page is limited to 2 GiB
LENGTH = struct.Struct("<I")  # length before each value of a page (Apache Parquet, Encodings.md, Plain)
_WHOLE_PAGE = 2**31 - 1  # page size in bytes, never reached, so that a row group has one page


class PackedFile(NamedTuple):
    """A file to be packed."""

    path: str  # relative to the data folder, with ``/`` between names
    size: int  # bytes
    label: int | None = None  # class, of images that have one


class Shard(NamedTuple):
    """The rows of a parquet file: paths, sizes, digests (`content_digest`) and offsets of their bytes."""

    file: Path
    paths: list[str]
    sizes: NDArray[np.int64]
    digests: NDArray[np.bytes_]
    starts: NDArray[np.int64]


def content_digest(content: bytes) -> str:
    """Digest of a file's bytes, 32 hexadecimal digits of BLAKE2b."""
    return blake2b(content, digest_size=16).hexdigest()


def write_shard(file: Path, data: Path, rows: Sequence[PackedFile], classes: Sequence[str] = ()) -> None:
    """Write files as rows, atomically; raises InputError if one is missing or its size has changed.

    Equal files in the same order give equal bytes with the same version of pyarrow. If classes are named, in
    the order of labels, all files are images.
    """
    schema = _schema(classes)
    column, *others = schema.names
    compression = dict.fromkeys((*others, f"{column}.path"), "ZSTD") | {f"{column}.bytes": "NONE"}
    options = {"use_dictionary": False, "write_statistics": False, "data_page_size": _WHOLE_PAGE}
    with whole_file(file) as draft:
        with ParquetWriter(draft, schema, compression=compression, **options) as writer:
            for group in _groups(rows):
                writer.write_table(_table(data, group, schema), row_group_size=len(group))
        shard = read_shard(draft)
        with draft.open("rb") as written:
            for size, start in zip(shard.sizes.tolist(), shard.starts.tolist(), strict=True):
                if os.pread(written.fileno(), LENGTH.size, start - LENGTH.size) != LENGTH.pack(size):
                    raise InputError("this version of pyarrow writes parquet in another way; use another one")


def _schema(classes: Sequence[str]) -> Any:  # noqa: ANN401  # pyarrow has no types of its own
    text, binary, integer = ({"dtype": kind, "_type": "Value"} for kind in ("string", "binary", "int64"))
    stored = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rest = [("size", pa.int64(), integer), ("digest", pa.string(), text)]
    columns: list[tuple[str, Any, object]] = [("file", stored, {"bytes": binary, "path": text}), *rest]
    if classes:
        label = ("label", pa.int64(), {"names": list(classes), "_type": "ClassLabel"})
        columns = [("image", stored, {"_type": "Image"}), label, *rest]
    features = {"info": {"features": {name: feature for name, _, feature in columns}}}
    fields = [(name, kind) for name, kind, _ in columns]
    return pa.schema(fields, metadata={"huggingface": json.dumps(features)})


def _groups(rows: Sequence[PackedFile]) -> Iterator[list[PackedFile]]:
    group: list[PackedFile] = []
    held = 0
    for row in rows:
        group.append(row)
        held += row.size
        if len(group) == GROUP_ROWS or held >= GROUP_BYTES:
            yield group
            group, held = [], 0
    if group:
        yield group


def _table(data: Path, rows: Sequence[PackedFile], schema: Any) -> Any:  # noqa: ANN401  # of pyarrow
    contents = []
    for row in rows:
        path = data / row.path
        try:
            content = read_regular(path)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from error
        if len(content) != row.size:
            raise InputError(f"{path} changed from {row.size:,} to {len(content):,} bytes; pack again")
        contents.append(content)
    files = [{"bytes": content, "path": row.path} for content, row in zip(contents, rows, strict=True)]
    columns = {
        schema.names[0]: pa.array(files, schema.field(0).type),
        "label": [row.label for row in rows],
        "size": [row.size for row in rows],
        "digest": [content_digest(content) for content in contents],
    }
    return pa.table({name: columns[name] for name in schema.names}, schema=schema)


def read_shard(file: Path) -> Shard:
    """The rows of a parquet file without their bytes; raises InputError."""
    try:
        with ParquetFile(file) as stored:
            column = stored.schema_arrow.names[0]
            columns = stored.read(columns=[f"{column}.path", "size", "digest"])
            if any(columns[name].null_count for name in ("size", "digest")):
                raise ValueError("a row has no size or no digest")
            sizes = columns["size"].to_numpy().astype(np.int64)
            starts = _starts(stored.metadata, f"{column}.bytes", sizes)
            paths = [str(path) for path in compute.struct_field(columns[column], "path").to_pylist()]
            digests = np.array(columns["digest"].to_pylist(), dtype="S32")
            room = file.stat().st_size - sizes  # readers trust these numbers
            if np.any(sizes < 0) or np.any(starts < LENGTH.size) or np.any(starts > room):
                raise ValueError("its rows do not fit into it")
    except (OSError, ValueError, KeyError, TypeError, LookupError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"expected a shard of a pack at {file}, which is damaged ({reason}); fetch it again"
        ) from error
    return Shard(file, paths, sizes, digests, starts)


def _starts(metadata: Any, column: str, sizes: NDArray[np.int64]) -> NDArray[np.int64]:  # noqa: ANN401  # pyarrow
    starts, row = [], 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        chunks = (group.column(index) for index in range(group.num_columns))
        chunk = next((chunk for chunk in chunks if chunk.path_in_schema == column), None)
        if chunk is None or chunk.compression != "UNCOMPRESSED" or chunk.has_dictionary_page:
            raise ValueError("its bytes are not stored as `data pack` stores them")
        held = sizes[row : row + group.num_rows]
        # for each row: its length, its bytes, and all rows after it
        behind = np.cumsum((held + LENGTH.size)[::-1])[::-1]
        starts.append(chunk.data_page_offset + chunk.total_compressed_size - behind + LENGTH.size)
        row += group.num_rows
    return np.concatenate([np.empty(0, np.int64), *starts])
