"""Shards, the Arrow files of a pack: each row is a file of an official layout, with its digest.

A shard is an Arrow stream, the format in which ``datasets`` stores tables itself. It is mapped into memory:
any thread or process reads a row without its neighbours, and no file stays open.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import compute

from layerboard.zoo.atomic import whole_file
from layerboard.zoo.errors import InputError
from layerboard.zoo.reading import read_regular, require_regular

GROUP_ROWS = 1000  # largest number of rows that are in memory at once while a shard is written
GROUP_BYTES = 32 << 20  # their bytes, not counting the last file
LARGEST_FILE = (
    2**31 - 2**26
)  # largest size of a file in bytes, since Arrow counts those of a group in 32 bits


class PackedFile(NamedTuple):
    """A file to be packed."""

    path: str  # relative to the data folder, with ``/`` between names
    size: int  # bytes
    label: int | None = None  # class, of images that have one


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


def write_shard(file: Path, data: Path, rows: Sequence[PackedFile], classes: Sequence[str] = ()) -> None:
    """Write files as rows, atomically; raises InputError if one is missing or its size has changed.

    Equal files in the same order give equal bytes with the same version of pyarrow. If classes are named, in
    the order of labels, all files are images.
    """
    schema = _schema(classes)
    with whole_file(file) as draft, pa.ipc.new_stream(str(draft), schema) as writer:
        for group in _groups(rows):
            writer.write_batch(_batch(data, group, schema))


def _schema(classes: Sequence[str]) -> Any:  # noqa: ANN401  # of pyarrow
    text, binary = ({"dtype": kind, "_type": "Value"} for kind in ("string", "binary"))
    stored = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    columns: list[tuple[str, Any, object]] = [("file", stored, {"bytes": binary, "path": text})]
    if classes:
        label = ("label", pa.int64(), {"names": list(classes), "_type": "ClassLabel"})
        columns = [("image", stored, {"_type": "Image"}), label]
    columns.append(("digest", pa.string(), text))
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


def _batch(data: Path, rows: Sequence[PackedFile], schema: Any) -> Any:  # noqa: ANN401  # of pyarrow
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
        schema.names[0]: files,
        "label": [row.label for row in rows],
        "digest": [content_digest(content) for content in contents],
    }
    return pa.record_batch({name: columns[name] for name in schema.names}, schema=schema)


def read_shard(file: Path) -> Shard:
    """The rows of a shard, whose bytes stay on disk; raises InputError."""
    try:
        require_regular(file)
        with pa.memory_map(str(file)) as mapped, pa.ipc.open_stream(mapped) as stream:
            table = stream.read_all()
        table.validate(full=True)  # offsets beyond the file would be followed
        contents, paths = (compute.struct_field(table.column(0), field) for field in ("bytes", "path"))
        columns = contents, paths, table["digest"]
        kinds = pa.binary(), pa.string(), pa.string()
        if any(column.type != kind or column.null_count for column, kind in zip(columns, kinds, strict=True)):
            raise ValueError("its columns are not those that `pack` writes")
        if table.nbytes > file.stat().st_size:
            raise ValueError("its rows do not fit into it")
    except (OSError, ValueError, LookupError, TypeError, MemoryError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"expected a shard of a pack at {file}, which is damaged ({reason}); fetch it again"
        ) from error
    return Shard(file, list(paths.to_pylist()), contents, table["digest"])
