"""Records: one number each, stored in parquet files that are written atomically."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from functools import lru_cache
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ArrowException
from pyarrow import parquet as pq

from layerboard.leaderboards.records import checksum
from layerboard.leaderboards.records.arrays import read_arrays
from layerboard.leaderboards.records.fields import read_table, to_plain
from layerboard.leaderboards.records.files import OWN_ENDING, scored_path, task_key
from layerboard.leaderboards.records.key import keys_of
from layerboard.zoo.errors import DamagedError, InputError, first_line
from layerboard.zoo.reading import read_regular
from layerboard.zoo.spec import stands_for_set

UNREADABLE = (OSError, ValueError, KeyError, TypeError, OverflowError, ArrowException)  # damaged files raise
ABSENT, UNLIKE = "are not there", "are not those that were written"  # states of companions of records


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One number with what is needed to trust or repeat it; `docs/reference/columns.md` explains the fields.

    Scores are ranked together only if ``data`` is the same. Records of transformed features and of layer sets
    are kept beside those of single layers, and are not ranked.
    """

    suite: str  # suites of the runs that requested it, one per line, see `of_suite`
    backbone: str
    family: str
    trained: bool  # False for seeded random weights
    revision: str  # commit of its repository or digest of its local weights
    sha256: str = ""  # of the file of its weights, or of the lines of ``sha256sum`` for several; "" for none
    depth: int
    input_size: int  # input size in pixels of the evaluation
    view_size: str = ""  # of scores: how large the first image was shown (`ViewSize`); "" if unknown
    task: str
    protocol: str
    dataset: str  # for costs, the device
    split: str
    data: str = ""  # short digest of the data: the images and their ground truth
    partial: bool  # whether the dataset on disk differs from the official one
    coverage: str  # the available part of the dataset, in words
    layer: int  # 1..depth; 0: the input of block 1; for a set its deepest layer
    tap: str  # see `zoo.spec.Layer`; for a set of layers their numbers, such as ``9+10+11+12``
    # ``cls``, ``mean`` or ``grid``; for an analysis, the tokens that it uses; for costs, the view size
    pooling: str
    head: int = -1  # attention head, from 0; -1: all heads, or none
    metric: str
    primary: bool  # whether it is the primary metric in the usual pooling: the class token, or the mean
    analysis: bool = False  # whether it describes the backbone and does not rank it
    value: float  # percent for scores; CKA in -1..1; NaN without one
    ci_low: float = float("nan")  # of the 95 % interval; NaN if none was computed
    ci_high: float = float("nan")
    chosen: float = float("nan")  # share of 100 random halves of the data on which this block is the best
    held_out: float = float("nan")  # mean score on the other halves, over the splits that chose it
    maybe_best: bool = False  # whether it may be the best block of its backbone (95 %)
    n: int  # number of units behind the value
    unit: str
    reason: str = ""  # why there is no value
    transform: str = ""  # transform of the features before scoring (`tasks.transforms`)
    interpolation: str = ""  # rule by which position embeddings were fitted to the images
    other: str = ""  # for comparisons, the second backbone
    other_layer: int = -1
    other_tap: str = ""
    claim: str = ""  # always empty: a column that every file of this results version has
    dtype: str
    device: str
    fingerprint: str  # identity of the features and of the scoring
    seconds: float  # of the scoring of all records of this file
    version: str
    date: str  # UTC, of the scoring, ISO 8601


class Subject(NamedTuple):
    """The subject of a file, which all of its records share: a backbone or a pair, and a task."""

    backbone: str
    other: str
    task: str
    dataset: str
    protocol: str
    transform: str
    sets: bool  # whether they are of sets of layers

    @property
    def path(self) -> Path:
        """The file of its records, below their folder."""
        names = (self.backbone, self.other) if self.other else (self.backbone,)
        return scored_path(task_key(*self[2:]), *names)


def subjects_of(records: pd.DataFrame) -> set[Subject]:
    """The subjects of some records, each once."""
    (*columns, _), sets = Subject._fields, records["tap"].map(stands_for_set)
    rows = {*zip(*(records[column] for column in columns), sets, strict=True)}
    return {*map(Subject._make, rows)}


COLUMNS = tuple(field.name for field in fields(Record))
_KINDS = get_type_hints(Record)
_DEFAULTS = {field.name: field.default for field in fields(Record) if field.default is not MISSING}


def to_frame(records: Sequence[Record]) -> pd.DataFrame:
    """Records as a data frame with the columns `COLUMNS`."""
    return pd.DataFrame({name: [getattr(record, name) for record in records] for name in COLUMNS})


def with_defaults(records: pd.DataFrame) -> pd.DataFrame:
    """Records that were made in bulk, with the columns `COLUMNS`; missing fields get their defaults."""
    usual = {name: value for name, value in _DEFAULTS.items() if name not in records}
    if not usual and [*records] == [*COLUMNS]:
        return records
    return records.assign(**usual)[list(COLUMNS)]


def suite_names(text: str) -> list[str]:
    """Names of the suites in the field `suite` of a record."""
    return text.split("\n")


def suites_of(records: pd.DataFrame) -> list[str]:
    """Names of the suites of records, sorted."""
    return sorted({name for text in records["suite"].unique() for name in suite_names(text)})


def of_suite(records: pd.DataFrame, suite: str) -> pd.DataFrame:
    """The records of a suite, among others perhaps; their column `suite` names it alone."""
    asked = records["suite"].isin([text for text in records["suite"].unique() if suite in suite_names(text)])
    return records[asked].assign(suite=suite).reset_index(drop=True)


def add_suite(records: pd.DataFrame, suite: str) -> pd.DataFrame:
    """Records with the suite added."""
    joined = {text: "\n".join(sorted({*suite_names(text), suite})) for text in records["suite"].unique()}
    return records.assign(suite=records["suite"].map(joined))


def read_frame(path: Path) -> pd.DataFrame:
    """The records of a parquet file; raises DamagedError if it is damaged or another kind of table."""
    return _joined([_table_of(path)])


def _joined(tables: Iterable[pa.Table]) -> pd.DataFrame:
    """Tables of files of records, one after the other, as one frame."""
    alike = groupby(tables, key=lambda table: table.column_names)
    parts = [with_defaults(to_plain(pa.concat_tables(each)).to_pandas()) for _, each in alike]
    return parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)


def _table_of(path: Path) -> pa.Table:
    """The fields of a file of records, before those of earlier versions get their defaults."""
    try:
        content = read_regular(path, checksum.LARGEST)
        facts = checksum.require_checked(content) if checksum.has_checksum(content) else None
        schema = pq.read_schema(pa.BufferReader(content)) if facts is None else facts.schema
        needed = {*COLUMNS} - ({*_DEFAULTS} if facts else set())
        if not (lacking := needed - {*schema.names}):
            return read_table(content, facts or checksum.require_checked(content), _KINDS)
    except UNREADABLE as error:
        raise DamagedError(f"cannot read records {path}: {first_line(error)}") from error
    names = ", ".join(name for name in COLUMNS if name in lacking)
    problem = f"expected records in {path} but found a table without {names}"
    raise DamagedError(problem, "remove that file")


def companion(folder: Path, name: Path) -> Path:
    """Path of a companion such as ``name`` in ``OUTPUT/items``; InputError unless it is what records name.

    A folder without records beside it is accepted unchecked.
    """
    if state := companion_state(folder, name):
        problem = f"the {folder.name} of {_records_of(folder, name)} {state}"
        raise DamagedError(problem, "copy the whole folder, or delete that file and run again")
    return folder / name


def known_arrays(folder: Path, key: str, names: Sequence[str], *arrays: str) -> dict[str, NDArray[Any]]:
    """Arrays of named backbones and a task, all or some; none if they cannot be read."""
    try:
        return read_arrays(companion(folder, scored_path(key, *names, ending="npz")), arrays)
    except (OSError, ValueError):
        return {}


def unlike_companions(records: pd.DataFrame, folder: Path, ending: str) -> list[Subject]:
    """Subjects of records whose companions in a folder are not those that were written with them."""
    every = sorted(subjects_of(records))
    return [each for each in every if companion_state(folder, each.path.with_suffix(ending)) == UNLIKE]


def companion_state(folder: Path, name: Path) -> str:
    """What is wrong with a companion of records, as a phrase: `ABSENT` or `UNLIKE`; "" if nothing is."""
    if not (folder.parent / "records").is_dir():
        return ""
    try:
        stamps = [path.stat() for path in (_records_of(folder, name), folder / name)]
    except OSError:
        return ABSENT
    return _state(folder, name, *((stamp.st_size, stamp.st_mtime_ns) for stamp in stamps))


@lru_cache(maxsize=1 << 14)
def _state(folder: Path, name: Path, *stamps: tuple[int, int]) -> str:
    """`companion_state`, cached by size and time of the files: pages ask for the same ones repeatedly."""
    del stamps
    try:
        content = checksum.read_checked(_records_of(folder, name))
        if (digest := checksum.companions_of(content).get(folder.name)) is None:
            return ABSENT
        if checksum.file_digest(folder / name) != digest:
            return UNLIKE
        (*columns, _) = Subject._fields
        first = next(pq.ParquetFile(BytesIO(content)).iter_batches(1, columns=[*columns, "tap"]))
        (row,) = first.to_pylist()
        subject = Subject._make([*(row[column] for column in columns), stands_for_set(row["tap"])])
        return "" if _is_named(name, subject) else UNLIKE
    except UNREADABLE:
        return UNLIKE


def _records_of(folder: Path, name: Path) -> Path:
    return folder.parent / "records" / name.with_suffix(".parquet")


def recorded_name(output: Path, name: str) -> str:
    """The name that the user's own data have in the records of a folder, else ``name``.

    Names end with a digest of the content, so the same data may have two, such as of a folder and in memory.
    """
    for path in sorted((output / "records").glob(f"*/*{name[-OWN_ENDING:]}.*.parquet")):
        with suppress(*UNREADABLE):
            return str(pq.read_table(path, columns=["dataset"])["dataset"][0].as_py())
    return name


def require_own_name(records: pd.DataFrame, name: Path) -> None:
    """Raise ValueError unless all records are of the one backbone (or pair) and task that a file names.

    A number may be there once: of two, a reader would not know which one counts.
    """
    every = subjects_of(records)
    if len(every) != 1:
        raise ValueError(f"it is of {len(every):,} backbones or tasks, expected one")
    if not _is_named(name, every.pop()):
        raise ValueError("it is not of the backbone and task that its path names")
    if len({*keys_of(records)}) < len(records):
        raise ValueError("it has a number twice")


def _is_named(name: Path, subject: Subject) -> bool:
    """Whether a path, whatever its extension, is that of the files of a backbone (or pair) and task."""
    turned = scored_path(task_key(*subject[2:]), subject.other, subject.backbone)
    return name.with_suffix(".parquet") in ((subject.path, turned) if subject.other else (subject.path,))


def read_records(folders: Iterable[Path]) -> pd.DataFrame:
    """All records below some folders, in sorted file order; raises InputError if there are none."""
    folders = tuple(folders)
    paths = sorted(path for folder in folders for path in folder.rglob("*.parquet"))
    tables = [_table_of(path) for path in paths if not path.name.startswith(".")]
    if not tables:
        at = " or ".join(map(str, folders)) or "no folder"
        raise InputError(f"expected records (*.parquet) in {at} but found none; `layerboard run` writes them")
    return _joined(tables)


def folder_records(folder: Path) -> pd.DataFrame:
    """The records below a folder; an empty frame if there are no files."""
    return read_records([folder]) if any(folder.rglob("*.parquet")) else pd.DataFrame()
