"""Records: one number each, kept as parquet files that are written atomically."""

from collections.abc import Iterable, Sequence
from dataclasses import MISSING, dataclass, fields
from io import BytesIO
from pathlib import Path

import pandas as pd
from pyarrow import ArrowException
from pyarrow.parquet import read_schema

from leaderboards.records.checksum import has_checksum, read_checked
from zoo.errors import InputError

UNREADABLE = (OSError, ValueError, KeyError, TypeError, OverflowError, ArrowException)
"""What reading a damaged file raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One number and everything that is needed to trust or repeat it.

    Attributes:
        suite: Suites of the runs that asked for it, one a line; see `of_suite`.
        backbone: Name of the backbone.
        family: Its family.
        trained: False for seeded random weights.
        revision: Commit of its repository or digest of its local weights.
        depth: Its number of blocks.
        input_size: Side in pixels at which it was evaluated.
        task: Name of the task.
        protocol: ``standard`` or ``paper``.
        dataset: Name of the dataset; of costs, of the device.
        split: Split, or splits, that were read.
        data: Short digest of what was looked at: the images and their ground truth. Scores are ranked
            together only where it is the same.
        partial: Whether the dataset on disk differs from the official one.
        coverage: What was there of the dataset, in words.
        layer: 1..depth (0: what enters block 1).
        tap: ``block``, ``final`` (after the family's final norm) or a sublayer of the block, see
            `zoo.spec.Layer`; of several blocks taken together their numbers, such as ``9+10+11+12``, of which
            ``layer`` is the deepest. Such records stand beside those of single layers, as transformed ones.
        pooling: ``cls``, ``mean`` or ``grid`` (dense tasks); of an analysis, the tokens that it looks at.
        head: Attention head, from 0; -1: all heads, or none.
        metric: Name of the metric.
        transform: What was done to the features before they were scored (`tasks.transforms`); "" for
            nothing. Such records stand beside those of the features as they are and are ranked with none.
        primary: Whether the leaderboard shows this metric and pooling of the task.
        analysis: Whether it describes the backbone and does not rank it; such records have a page of their
            own. Tasks that the registry calls analyses are ones with or without it.
        value: The number, in the metric's unit (percent for scores; CKA in -1..1); NaN where there is none.
        ci_low: Lower end of the 95 % interval; NaN where none was computed.
        ci_high: Upper end.
        chosen: Share of 100 random halves of the data on which this block is the best of its backbone's, by
            this metric and pooling; NaN where nothing was split.
        held_out: Its mean score, on the other halves, of the splits that chose it; NaN where none did.
        tied: Whether this block may be its backbone's best one, in this metric and pooling: together with the
            one that scores best, whose field is False, such blocks hold the true best with 95 %.
        n: Number of units that the value is taken over.
        unit: What they are.
        reason: Why there is no value; "" where there is one.
        interpolation: Rule by which position embeddings were fitted to the images; "" where there is no
            attention, or the network is somebody's own object.
        other: For comparisons, the second backbone; "" for scores.
        other_layer: Its layer; -1 for scores.
        other_tap: Its tap; "" for scores.
        dtype: Dtype of the forward pass.
        device: Kind of device of the forward pass.
        fingerprint: Identity of the features and of the scoring.
        seconds: Time of the scoring of this file's records, together.
        version: Version of this package.
        date: UTC date of the scoring, ISO 8601.
    """

    suite: str
    backbone: str
    family: str
    trained: bool
    revision: str
    depth: int
    input_size: int
    task: str
    protocol: str
    dataset: str
    split: str
    data: str = ""
    partial: bool
    coverage: str
    layer: int
    tap: str
    pooling: str
    head: int = -1
    metric: str
    primary: bool
    analysis: bool = False
    value: float
    ci_low: float = float("nan")
    ci_high: float = float("nan")
    chosen: float = float("nan")
    held_out: float = float("nan")
    tied: bool = False
    n: int
    unit: str
    reason: str = ""
    transform: str = ""
    interpolation: str = ""
    other: str = ""
    other_layer: int = -1
    other_tap: str = ""
    dtype: str
    device: str
    fingerprint: str
    seconds: float
    version: str
    date: str


COLUMNS = tuple(field.name for field in fields(Record))
_DEFAULTS = {field.name: field.default for field in fields(Record) if field.default is not MISSING}


def to_frame(records: Sequence[Record]) -> pd.DataFrame:
    """Records as a data frame with the columns `COLUMNS`."""
    columns = {name: [getattr(record, name) for record in records] for name in COLUMNS}
    return pd.DataFrame(columns, columns=list(COLUMNS))


def with_defaults(records: pd.DataFrame) -> pd.DataFrame:
    """Records that were made in bulk, with the columns `COLUMNS`: fields that are not given are as usual."""
    usual = {name: value for name, value in _DEFAULTS.items() if name not in records}
    return records.assign(**usual)[list(COLUMNS)]


def suite_names(text: str) -> list[str]:
    """Names of the suites in the field `suite` of a record."""
    return text.split("\n")


def suites_of(records: pd.DataFrame) -> list[str]:
    """Names of the suites to which records belong, sorted."""
    return sorted({name for text in records["suite"].unique() for name in suite_names(text)})


def of_suite(records: pd.DataFrame, suite: str) -> pd.DataFrame:
    """The records that belong to a suite, perhaps among others; their column `suite` says it alone."""
    asked = [suite in suite_names(text) for text in records["suite"]]
    return records[asked].assign(suite=suite).reset_index(drop=True)


def add_suite(records: pd.DataFrame, suite: str) -> pd.DataFrame:
    """Records that belong to a suite, too."""
    joined = {text: "\n".join(sorted({*suite_names(text), suite})) for text in records["suite"].unique()}
    return records.assign(suite=records["suite"].map(joined))


def read_frame(path: Path) -> pd.DataFrame:
    """The records of a parquet file; raises InputError where it is damaged, or a table of something else."""
    try:
        lacking = (
            [] if has_checksum(path) else [name for name in COLUMNS if name not in read_schema(path).names]
        )
        frame = pd.DataFrame() if lacking else pd.read_parquet(BytesIO(read_checked(path)))[list(COLUMNS)]
    except UNREADABLE as error:
        raise InputError(f"cannot read records {path}: {error}; delete the file and run again") from error
    if lacking:
        raise InputError(
            f"expected records in {path} but found a table without {', '.join(lacking)}; remove that file"
        )
    return frame


def read_records(folders: Iterable[Path]) -> pd.DataFrame:
    """All records below some folders, in sorted file order.

    Raises:
        InputError: There are none, or a file is damaged, or a table of something else.
    """
    folders = tuple(folders)
    paths = sorted(path for folder in folders for path in folder.rglob("*.parquet"))
    frames = [read_frame(path) for path in paths if not path.name.startswith(".")]
    if not frames:
        where = " or ".join(map(str, folders)) or "no folder"
        raise InputError(
            f"expected records (*.parquet) in {where} but found none; `python -m benchmark run` writes them"
        )
    return pd.concat(frames, ignore_index=True)


def suite_records(folder: Path, suite: str) -> pd.DataFrame:
    """The records below a folder that belong to a suite; an empty frame where there are no files."""
    if not any(folder.rglob("*.parquet")):
        return pd.DataFrame()
    return of_suite(read_records([folder]), suite)
