"""Per-item measurements of one backbone and task, with every layer in one parquet file."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import astuple
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from layerboard.tasks.framework.base import Items, Over, Statistic
from layerboard.zoo.atomic import whole_file
from layerboard.zoo.errors import DamagedError, first_line
from layerboard.zoo.reading import decoded, require_regular

Place = tuple[int, str, str]  # layer, tap and pooling

TEXT = pa.dictionary(pa.int32(), pa.string())
PLACE = pa.schema([("layer", pa.int32()), ("tap", TEXT), ("pooling", TEXT)])
ITEM = pa.schema([("unit", TEXT), ("key", TEXT), ("cluster", TEXT), ("stratum", TEXT)])
HEAD = (*PLACE.names, *ITEM.names)

UNPACKED, RATIO = 2**30, 100  # bytes that items may unpack to, or times the bytes that are stored
SMALL = 2**19  # bytes of a file of items that is kept in memory
STATISTICS = b"statistics"  # their key in the file's metadata


def write_items(measured: Mapping[Place, Items], path: Path) -> None:
    """Write the items of every place so that a reader sees either all of the file or none.

    One row per item and place: its place, unit, key, cluster and stratum, and one float32 column per value;
    labels and partitions are int32. A column that a place does not measure is null there; a value that an
    item lacks is NaN. Each place is a row group, so that it can be read alone; a place without items leaves
    nothing. Raises ValueError if two places give one metric different statistics.
    """
    names = dict.fromkeys(name for items in measured.values() for name in items.values)
    whole = [name for name in names if name == "label" or name.startswith("start ")]
    columns = pa.schema([(name, pa.int32() if name in whole else pa.float32()) for name in names])
    metadata = {STATISTICS: json.dumps(_shared_statistics(measured.values())).encode()}
    schema = pa.schema([*PLACE, *ITEM, *columns], metadata=metadata)
    options = {"compression": "zstd", "write_page_checksum": True}
    with whole_file(path) as temporary, pq.ParquetWriter(temporary, schema, **options) as writer:
        for layer, items in measured.items():
            if items.keys:
                writer.write_table(_table(layer, items, schema), row_group_size=len(items.keys))


def read_items(path: Path, places: Collection[Place] | None = None) -> dict[Place, Items]:
    """Items of some places, or of all, in a file; raises InputError if it is missing or of another kind."""
    if places is not None and not places:
        return {}
    try:
        table = _read(path, places).unify_dictionaries().combine_chunks()
        return {layer: items for layer, items in _items(table) if places is None or layer in places}
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        problem = f"expected per-item measurements in {path} but cannot read them: {first_line(error)}"
        raise DamagedError(problem) from error


def known_places(path: Path, places: Collection[Place]) -> dict[Place, Items]:
    """`read_items` for pages, which ask for the same places repeatedly: a small file is read once."""
    try:
        stamp = path.stat()
    except OSError:
        return read_items(path, places)  # which says what is wrong
    if stamp.st_size > SMALL:
        return read_items(path, places)
    return {at: items for at, items in _whole(path, stamp.st_size, stamp.st_mtime_ns).items() if at in places}


@lru_cache(maxsize=128)
def _whole(path: Path, *stamp: int) -> dict[Place, Items]:
    """All items of a file, as long as it has this size and time."""
    del stamp
    return read_items(path)


def _read(path: Path, places: Collection[Place] | None) -> pa.Table:
    """The row groups of a file that may contain one of some places; all for None.

    Their statistics tell: a scan with filters costs several times as much for such a file.
    """
    stored = require_regular(path)
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        facts = file.metadata
        if (unpacked := 8 * facts.num_rows * facts.num_columns) > max(UNPACKED, RATIO * stored):
            raise ValueError(f"its {stored:,} bytes unpack to {unpacked:,}, more than any run writes")
        groups = range(file.num_row_groups)
        wanted = [n for n in groups if places is None or _may_hold(file.metadata.row_group(n), places)]
        return file.read_row_groups(wanted, use_threads=False)


def _may_hold(group: pq.RowGroupMetaData, places: Collection[Place]) -> bool:
    """Whether a row group may contain one of some places, by the minima and maxima of its columns."""
    ends = [group.column(column).statistics for column in range(len(PLACE))]
    return any(end is None or not end.has_min_max for end in ends) or any(
        all(end.min <= value <= end.max for end, value in zip(ends, layer, strict=True)) for layer in places
    )


def _shared_statistics(measured: Collection[Items]) -> dict[str, tuple[str, str]]:
    """Column and kind of every metric of any place; raises ValueError if two places disagree."""
    shared: dict[str, tuple[str, str]] = {}
    for items in measured:
        for metric, statistic in items.statistics.items():
            if shared.setdefault(metric, astuple(statistic)) != astuple(statistic):
                raise ValueError(f"{metric} is {shared[metric]} of one layer and {statistic} of another")
    return shared


def _table(place: Place, items: Items, schema: pa.Schema) -> pa.Table:
    count, (layer, tap, pooling) = len(items.keys), place
    texts = ([tap] * count, [pooling] * count, [items.unit] * count, items.keys, items.clusters, items.strata)
    columns = [pa.array([layer] * count, pa.int32())]
    columns += [pa.array(text, pa.string()).dictionary_encode() for text in texts]
    for field in list(schema)[len(HEAD) :]:
        values = items.values.get(field.name)
        filled = None if values is None else pa.array(values.astype(field.type.to_pandas_dtype()))
        columns.append(pa.nulls(count, field.type) if filled is None else filled)
    return pa.table(columns, schema=schema)


def _items(table: pa.Table) -> Iterator[tuple[Place, Items]]:
    """Each place with its items: the rows of a place are adjacent; equal texts share memory."""
    if not table.num_rows:
        return
    stored = decoded(dict[str, tuple[str, Over]], table.schema.metadata[STATISTICS])
    statistics = {metric: Statistic(*each) for metric, each in stored.items()}
    texts = {name: table[name].chunk(0) for name in HEAD[1:]}
    codes = {name: column.indices.to_numpy() for name, column in texts.items()}
    words = {name: np.asarray(texts[name].dictionary.to_pylist(), object) for name in ITEM.names}
    known: dict[tuple[str, bytes], tuple[str, ...]] = {}

    def text(name: str, rows: slice) -> tuple[str, ...]:
        key = name, codes[name][rows].tobytes()
        if key not in known:
            known[key] = tuple(words[name][codes[name][rows]].tolist())
        return known[key]

    ends = [table["layer"].to_numpy(), codes["tap"], codes["pooling"]]
    changes = np.any([np.diff(end) != 0 for end in ends], axis=0)
    starts = [0, *(np.flatnonzero(changes) + 1).tolist()]
    for start, stop in zip(starts, [*starts[1:], table.num_rows], strict=True):
        layer, tap, pooling = (table[name][start].as_py() for name in PLACE.names)
        rows = {name: table[name][start:stop] for name in table.column_names[len(HEAD) :]}
        values = {
            name: column.to_numpy().astype(np.float64)
            for name, column in rows.items()
            if column.null_count < stop - start
        }
        units, keys, clusters, strata = (text(name, slice(start, stop)) for name in ITEM.names)
        measured = {metric: each for metric, each in statistics.items() if each.measured(values)}
        yield (layer, tap, pooling), Items(units[0], keys, clusters, strata, values, measured)
