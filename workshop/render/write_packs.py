"""Packs: the files of a dataset as rows of Arrow streams, which `layerboard.tasks.datasets.packs` reads."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from layerboard.tasks.datasets.packs.pack import content_digest
from layerboard.tasks.datasets.reading.files import require_text
from layerboard.zoo.atomic import whole_file
from layerboard.zoo.errors import InputError
from layerboard.zoo.reading import read_regular

GROUP_ROWS = 1000  # largest number of rows that are in memory at once while a shard is written
GROUP_BYTES = 32 << 20  # their bytes, not counting the last file


class PackedFile(NamedTuple):
    """A file to be packed."""

    path: str  # relative to the data folder, with ``/`` between names
    size: int  # bytes
    label: int | None = None  # class, of images that have one


def write_dataset(
    data: Path,
    target: Path,
    name: str,
    shards: Mapping[str, Sequence[PackedFile]],
    classes: Sequence[str] = (),
) -> None:
    """Add a dataset to a pack: the files of each shard, by its name, such as ``train-00000-of-00001``.

    If classes are named, in the order of labels, all files are images. Shards that are there are kept. Raises
    InputError if a file is missing or has changed.
    """
    for shard, rows in shards.items():
        if not (file := target / name / f"{shard}.arrow").exists():
            write_shard(file, data, rows, classes)


def packed_files(data: Path, folder: Path, classes: Sequence[str] = ()) -> list[PackedFile]:
    """All files below a folder, in order; those in a folder of a class have its label, its place."""
    labels = {name: label for label, name in enumerate(classes)}
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [
        PackedFile(
            require_text(path.relative_to(data).as_posix(), f"names of files in {data}"),
            path.stat().st_size,
            labels.get(path.parent.name),
        )
        for path in paths
    ]


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
