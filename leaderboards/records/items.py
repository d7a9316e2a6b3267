"""Per-item measurements of one backbone and task, every layer in one parquet file."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tasks.base import Items, Statistic
from zoo.atomic import whole_file
from zoo.errors import InputError

Place = tuple[int, str, str]
"""Layer, tap and pooling."""

TEXT = pa.dictionary(pa.int32(), pa.string())
PLACE = pa.schema([("layer", pa.int32()), ("tap", TEXT), ("pooling", TEXT)])
ITEM = pa.schema([("unit", TEXT), ("key", TEXT), ("cluster", TEXT), ("stratum", TEXT)])
HEAD = (*PLACE.names, *ITEM.names)

STATISTICS = b"statistics"
"""Key of the statistics in the file's metadata."""


def write_items(measured: Mapping[Place, Items], path: Path) -> None:
    """Write the items of every place so that a reader sees either all of the file or none.

    One row an item and place: its place, unit, key, cluster and stratum, and a float32 column a value; labels
    and partitions are int32. A column that a place does not measure is null there, one that an item lacks is
    NaN. Each place is a row group, so that one can be read without the others.

    Args:
        measured: Items of each layer, tap and pooling; those without any item leave nothing behind.
        path: The file.

    Raises:
        ValueError: Two places give one metric different statistics.
    """
    names = dict.fromkeys(name for items in measured.values() for name in items.values)
    columns = pa.schema([(name, _type(name)) for name in names])
    metadata = {STATISTICS: json.dumps(_shared_statistics(measured.values())).encode()}
    schema = pa.schema([*PLACE, *ITEM, *columns], metadata=metadata)
    with whole_file(path) as temporary, _writer(temporary, schema) as writer:
        for place, items in measured.items():
            if items.keys:
                writer.write_table(_table(place, items, schema), row_group_size=len(items.keys))


def read_items(path: Path, places: Collection[Place] | None = None) -> dict[Place, Items]:
    """Items of some places of a file; places that it lacks are left out.

    Args:
        path: A file that `write_items` wrote.
        places: Layers, taps and poolings; all of the file if None. The others are not read.

    Raises:
        InputError: The file is missing, damaged, or something else.
    """
    if places is not None and not places:
        return {}
    wanted = [list(zip(PLACE.names, "===", place, strict=True)) for place in sorted(places or ())]
    try:
        table = _read(path, wanted).unify_dictionaries().combine_chunks()
        statistics = {
            metric: Statistic(column, over)
            for metric, (column, over) in json.loads(table.schema.metadata[STATISTICS]).items()
        }
        return {place: _items(rows, statistics) for place, rows in _by_place(table)}
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"expected per-item measurements in {path} but cannot read them: {error}; "
            "delete the file and run again"
        ) from error


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer whose pages carry checksums."""
    return pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True)


def _read(path: Path, wanted: list[list[tuple[str, str, object]]]) -> pa.Table:
    """Rows of a file that meet one of the conditions; all where there is none."""
    return pq.read_table(path, filters=wanted or None, page_checksum_verification=True)


def _type(name: str) -> pa.DataType:
    """Type of a column: partitions of the items are whole numbers."""
    return pa.int32() if name == "label" or name.startswith("start ") else pa.float32()


def _shared_statistics(measured: Collection[Items]) -> dict[str, tuple[str, str]]:
    """Column and kind of every metric of any place; raises ValueError where two places disagree."""
    shared: dict[str, tuple[str, str]] = {}
    for items in measured:
        for metric, statistic in items.statistics.items():
            if shared.setdefault(metric, astuple(statistic)) != astuple(statistic):
                raise ValueError(f"{metric} is {shared[metric]} of one layer and {statistic} of another")
    return shared


def _table(place: Place, items: Items, schema: pa.Schema) -> pa.Table:
    """Rows of one place, with all columns of the file."""
    count = len(items.keys)
    texts = {"unit": [items.unit] * count, "key": items.keys}
    texts |= {"cluster": items.clusters, "stratum": items.strata}
    texts |= {name: [value] * count for name, value in zip(("tap", "pooling"), place[1:], strict=True)}
    columns = [pa.array([place[0]] * count, pa.int32())]
    columns += [pa.array(texts[name], pa.string()).dictionary_encode() for name in HEAD[1:]]
    for field in list(schema)[len(HEAD) :]:
        values = items.values.get(field.name)
        columns.append(pa.nulls(count, field.type) if values is None else _column(values, field.type))
    return pa.table(columns, schema=schema)


def _column(values: NDArray[np.float64], kind: pa.DataType) -> pa.Array:
    """Values as an arrow column."""
    if kind == pa.float32():
        return pa.array(values.astype(np.float32))
    return pa.array(values.astype(np.int32))


def _by_place(table: pa.Table) -> Iterator[tuple[Place, pa.Table]]:
    """The rows of each place, which lie together."""
    if not table.num_rows:
        return
    codes = [table["layer"].to_numpy(), *(_codes(table, name)[0] for name in ("tap", "pooling"))]
    changes = np.any([np.diff(code) != 0 for code in codes], axis=0)
    starts = [0, *(np.flatnonzero(changes) + 1).tolist()]
    for start, stop in zip(starts, [*starts[1:], table.num_rows], strict=True):
        layer, tap, pooling = (table[name][start].as_py() for name in PLACE.names)
        yield (layer, tap, pooling), table.slice(start, stop - start)


def _items(rows: pa.Table, statistics: Mapping[str, Statistic]) -> Items:
    """Items of the rows of one place."""
    units = _texts(rows, "unit")
    names = [name for name in rows.column_names[len(HEAD) :] if rows[name].null_count < rows.num_rows]
    values = {name: rows[name].to_numpy().astype(np.float64) for name in names}
    measured = {metric: statistic for metric, statistic in statistics.items() if statistic.measured(values)}
    return Items(
        units[0],
        _texts(rows, "key"),
        _texts(rows, "cluster"),
        _texts(rows, "stratum"),
        values,
        measured,
    )


def _texts(rows: pa.Table, name: str) -> tuple[str, ...]:
    """A column of texts; rows of the same text share one object."""
    codes, words = _codes(rows, name)
    return tuple(words[code] for code in codes)


def _codes(rows: pa.Table, name: str) -> tuple[NDArray[np.int32], Sequence[str]]:
    """Numbers of a column's texts, [rows], and the texts."""
    column = rows[name].combine_chunks()
    array = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    return array.indices.to_numpy(), array.dictionary.to_pylist()
