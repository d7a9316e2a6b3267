"""What the columns of a file of records may contain, and what they may not if others measured them.

Each reader of records relies on the first; the second keeps what others hand in apart from what is there.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from layerboard.leaderboards.records.files import OTHER_PAGES
from layerboard.zoo.errors import shortened
from layerboard.zoo.spec import FLOORS, Dtype, Layer, Variant, entry_name

MOST_ROWS = 2**17  # of one backbone and task
MOST_BYTES = 2**28  # of all texts of a file, and of its pages when unpacked
LONGEST_TEXT, LONGEST_NAME = 2**16, 200  # in bytes
LONGEST_REASON = 4000  # in characters, of any text of another's
MOST_SUITES = 20
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

NAMES = ("suite", "backbone", "other", "task", "dataset", "protocol", "transform")  # of files and pages
WORDS = (
    "family",
    "metric",
    "pooling",
    "split",
    "unit",
    "interpolation",
    "device",
    "version",
    "revision",
    "sha256",
    "view_size",
)
# signs of names beside letters and digits; the dataset of a cost is a device
SIGNS, USUAL_SIGNS = {"submission": ".@+_-", "dataset": ".@+_/:,() -"}, ".@+_/:,-"


@dataclass(frozen=True)
class Known:
    """What this package itself names, which others can neither resemble nor describe otherwise."""

    names: frozenset[tuple[str, str]] = frozenset()  # each with what it names, as `names_in` has them
    families: Mapping[str, tuple[str, bool]] = field(default_factory=dict)  # and whether trained, by backbone


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
    chunks = [(each, pa.types.is_dictionary(each.type)) for each in column.chunks]
    sizes = [pc.binary_length(each.dictionary if is_packed else each) for each, is_packed in chunks]
    longest = max((pc.max(each).as_py() or 0 for each in sizes), default=0)
    if longest > LONGEST_TEXT:
        raise ValueError(f"its column {name} has a text of more than {LONGEST_TEXT:,} bytes")
    if longest * len(column) <= MOST_BYTES:
        return
    every = (
        each.take(chunk.indices) if is_packed else each
        for each, (chunk, is_packed) in zip(sizes, chunks, strict=True)
    )
    if (lengths := sum(pc.sum(each).as_py() or 0 for each in every)) > MOST_BYTES:
        raise ValueError(f"its column {name} has {lengths:,} bytes, more than any run writes")


def name_problem(what: str, name: str) -> str:
    """What is wrong with a name that comes from others, as a phrase; "" if nothing is.

    Names become parts of paths and pages, and people tell them apart by eye.
    """
    signs = SIGNS.get(what, USUAL_SIGNS)
    is_plain = re.fullmatch(f"[A-Za-z0-9][A-Za-z0-9{re.escape(signs)}]*", name) and len(name) <= LONGEST_NAME
    is_plain = is_plain and not (what == "submission" and name.casefold() in OTHER_PAGES)
    if not is_plain or any(part in name for part in ("//", "..", "  ")) or name[-1:] in ("/", ".", " "):
        letters = f"ASCII letters, digits and {signs.replace(' ', '')}"
        which = "which begins with a letter or digit, has no // or .., and is no page of a site"
        return f"the {what} {shortened(name)} needs a name of {letters}, {which}"
    return ""


def foreign_problem(records: pd.DataFrame, known: Known) -> str:
    """What the records of another may not say, as a phrase; "" if there is nothing."""
    for column in NAMES:
        every = {name for text in records[column].unique() for name in text.split("\n")}
        optional = {""} if column in ("other", "transform") else set()
        problems = (name_problem(column, name) for name in sorted(every - optional))
        if problem := next(filter(None, problems), ""):
            return problem
        if len(every) > MOST_SUITES:
            return f"it is of {len(every):,} suites, expected at most {MOST_SUITES}"
    for column in WORDS:
        for text in records[column].unique():
            if re.fullmatch(r"(?! )[ -~]*(?<! )", text) is None or len(text) > LONGEST_NAME:
                return f"the {column} {shortened(text)} is not of printable ASCII characters"
    for column in map(str, records.select_dtypes(exclude=["number", "bool"])):
        if records[column].str.len().max() > LONGEST_REASON:
            return f"the {column} has more than {LONGEST_REASON:,} characters"
    problem = date_problem(records["date"].unique()) or _number_problem(records)
    return (
        problem or _facts_problem(records, known) or names_differing_in_case(names_in(records), known.names)
    )


def date_problem(dates: Iterable[str]) -> str:
    """What is wrong with days that others name, as a phrase; "" if nothing is."""
    for text in dates:
        try:
            date = datetime.fromisoformat(text)
        except ValueError:
            return f"{shortened(text)} is no date"
        if date.replace(tzinfo=date.tzinfo or UTC) > datetime.now(UTC) + DAY:
            return f"the date {text} is in the future"
    return ""


def _number_problem(records: pd.DataFrame) -> str:
    for column in records.select_dtypes("float"):
        if np.isinf(records[column]).any():
            return f"a {column} is infinite"
    low, high = records["ci_low"], records["ci_high"]
    return "an interval ends below its beginning" if (low > high).any() else ""


def _facts_problem(records: pd.DataFrame, known: Known) -> str:
    """Whether a backbone of the registry is called another's, or another one is called a floor."""
    rows = records[["backbone", "family", "trained", "input_size"]].drop_duplicates()
    for name, family, trained, size in rows.itertuples(index=False, name=None):
        facts, asked = known.families.get(entry_name(name)), Variant.of(name).input_size
        if facts is None and family in FLOORS and known.families:
            return f"{name} is called a floor ({family}), and the registry has no such floor"
        if facts is not None and facts != (family, trained):
            return f"{name} is called {_family(family, trained)}, in the registry it is {_family(*facts)}"
        if asked and size != asked:
            return f"{name} was measured at {size} px"
    return ""


def _family(family: str, trained: bool) -> str:
    return f"of the family {family}, {'trained' if trained else 'untrained'}"


def names_in(records: pd.DataFrame) -> set[tuple[str, str]]:
    """The names of some records, each with what it names."""
    columns = {"other": "backbone"}
    return {
        (columns.get(column, column), name)
        for column in NAMES
        for text in records[column].unique()
        for name in text.split("\n")
        if name
    }


def names_differing_in_case(names: Iterable[tuple[str, str]], known: Iterable[tuple[str, str]]) -> str:
    """Two names that differ in case alone, as a phrase; "" if there are none."""
    folded = {(what, name.casefold()): name for what, name in known}
    for what, name in sorted(names):
        if (other := folded.setdefault((what, name.casefold()), name)) != name:
            return f"the {what} {name} differs from {other} in case alone"
    return ""
