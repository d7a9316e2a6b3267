"""What the columns of a file of records may contain: each reader of records relies on it."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from layerboard.zoo.errors import shortened
from layerboard.zoo.spec import Dtype, Layer

MOST_ROWS = 2**17  # of one backbone and task
MOST_BYTES = 2**28  # of all texts of a file, and of its pages when unpacked
LONGEST_TEXT = 2**16  # in bytes
DEEPEST = 1000  # blocks
RANGES = {  # least and largest whole number of a column
    "depth": (0, DEEPEST),
    "layer": (-1, DEEPEST),
    "other_layer": (-1, DEEPEST),
    "head": (-1, 10_000),
    "input_size": (0, 10_000),
    "n": (0, 10**12),
}
DAY = timedelta(days=1)  # by which clocks may differ

TEXT = pa.dictionary(pa.int32(), pa.string())
WANTED = {str: TEXT, bool: pa.bool_(), int: pa.int64(), float: pa.float64()}


def to_plain(table: pa.Table) -> pa.Table:
    """A table with texts as they are, not as numbers of distinct ones, and without chunks."""
    plain = [each.with_type(pa.string()) if each.type == TEXT else each for each in table.schema]
    return table.cast(pa.schema(plain)).combine_chunks()


def read_table(content: bytes, facts: pq.FileMetaData, kinds: Mapping[str, type]) -> pa.Table:
    """The columns of a parquet file of records that have a kind, each of the kind that it should be.

    ``facts`` is the file's footer; texts are numbers of distinct ones (`TEXT`).

    Raises ValueError for another kind of column, missing texts, whole numbers beyond `RANGES`, unknown
    formats and taps, and for tables that are far larger than any run writes.
    """
    there = {*facts.schema.names}  # files of earlier versions lack some
    texts = [name for name, kind in kinds.items() if kind is str and name in there]
    with pq.ParquetFile(pa.BufferReader(content), metadata=facts, read_dictionary=texts) as file:
        names = [name for name in file.schema_arrow.names if name in kinds]
        unpacked = sum(facts.row_group(group).total_byte_size for group in range(facts.num_row_groups))
        if facts.num_rows > MOST_ROWS or unpacked > MOST_BYTES:
            size = f"{facts.num_rows:,} rows of {unpacked:,} bytes"
            raise ValueError(f"it has {size}, more than any run writes")
        if len({*names}) < len(names):
            raise ValueError("it has a column twice")
        table = file.read(names, use_threads=False)
    columns = {name: _column(table[name], name, kinds[name]) for name in names}
    for column, (least, most) in RANGES.items():
        values = columns[column].to_numpy() if column in columns else np.zeros(0)
        if len(wrong := values[(values < least) | (values > most)]):
            raise ValueError(f"its {column} is {wrong[0]}, expected {least} to {most:,}")
    if unknown := _values(columns, "dtype") - {*get_args(Dtype)}:
        raise ValueError(f"there is no number format {shortened(min(unknown))}")
    for tap in (_values(columns, "tap") | _values(columns, "other_tap")) - {""}:
        if max(layer.index for layer in Layer.of_record(1, tap).members) > DEEPEST:
            raise ValueError(f"there is no layer {shortened(tap)}")
    return pa.table(columns)


def _column(column: pa.ChunkedArray, name: str, kind: type) -> pa.ChunkedArray:
    """A column of the kind that it should be; raises ValueError if it is of another kind."""
    stored = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    is_kind = {
        str: pa.types.is_string(stored) or pa.types.is_large_string(stored),
        bool: pa.types.is_boolean(stored),
        int: pa.types.is_integer(stored),
        float: pa.types.is_floating(stored) or pa.types.is_integer(stored),
    }[kind]
    if not is_kind or (kind is not float and column.null_count):
        raise ValueError(f"its column {name} is {stored}, expected {kind.__name__} in every row")
    if kind is str:
        _require_short(column, name)
    return column if column.type == WANTED[kind] else column.cast(WANTED[kind])


def _values(columns: Mapping[str, pa.ChunkedArray], name: str) -> set[str]:
    return {*columns[name].unique().to_pylist()} if name in columns else set()


def _require_short(column: pa.ChunkedArray, name: str) -> None:
    """Raise ValueError for texts that are too long to be unpacked."""
    if column.nbytes <= min(LONGEST_TEXT, MOST_BYTES // max(1, len(column))):
        return
    lengths = 0
    for chunk in column.chunks:
        packed = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        sizes = pc.binary_length(packed.dictionary)
        if (pc.max(sizes).as_py() or 0) > LONGEST_TEXT:
            raise ValueError(f"its column {name} has a text of more than {LONGEST_TEXT:,} bytes")
        lengths += pc.sum(sizes.take(packed.indices)).as_py() or 0
    if lengths > MOST_BYTES:
        raise ValueError(f"its column {name} has {lengths:,} bytes, more than any run writes")


def date_problem(dates: Iterable[str]) -> str:
    """What is wrong with days of records, as a phrase; "" if nothing is."""
    for text in dates:
        try:
            date = datetime.fromisoformat(text)
        except ValueError:
            return f"{shortened(text)} is no date"
        if date.replace(tzinfo=date.tzinfo or UTC) > datetime.now(UTC) + DAY:
            return f"the date {text} is in the future"
    return ""
