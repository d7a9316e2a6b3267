"""Tables that say which class each image is of: CSV files, and what ``imagefolder`` calls metadata."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from tasks.datasets.fields import describe, is_number
from tasks.datasets.files import require_text, some
from zoo.errors import InputError

FILE_COLUMNS = ("file_name", "file", "filename", "path", "image")
"""Names of the column of files, in order of preference; in any case of letters."""

LABEL_COLUMNS = ("label", "class")
"""The same of the column of classes."""

SPLIT_COLUMN = "split"
"""Name of the column that says train or val; a table need not have it."""

DELIMITERS = ",;\t|"
"""What may stand between columns, the first of those that part a header best."""

METADATA = ("metadata.csv", "metadata.jsonl")
"""Files inside a folder of images that ``datasets`` writes and reads."""


@dataclass(frozen=True, slots=True)
class Row:
    """What a table says of one image.

    Attributes:
        number: Line of the file that it ends on, from 1.
        file: Path of the image, as written.
        label: Its class; "" where it has none.
        split: Its split in small letters; "" where none is named.
    """

    number: int
    file: str
    label: str
    split: str


@dataclass(frozen=True, slots=True)
class LabelTable:
    """A table of labels.

    Attributes:
        path: The file.
        rows: Its rows, at least one.
        columns: Columns that were read, in words.
    """

    path: Path
    rows: tuple[Row, ...]
    columns: str


def read_label_table(path: Path, *, required: bool) -> LabelTable | None:
    """The rows of a table with a column of files and one of classes.

    ``.jsonl``: one JSON object a line; anything else: text in columns with a header (`DELIMITERS`).

    Args:
        path: The file.
        required: Whether it must have a column of classes; otherwise None is given where it has none.

    Raises:
        InputError: It cannot be read, or lacks a column, or has no row, or one without a file.
    """
    records = list(_json_lines(path) if path.suffix.lower() == ".jsonl" else _csv_lines(path))
    if not records:
        raise InputError(f"expected a row for each image in {path}, found none")
    header = list(dict.fromkeys(name for _, record in records for name in record))
    file, label = (_column(header, names) for names in (FILE_COLUMNS, LABEL_COLUMNS))
    if label is None and not required:
        return None
    if file is None or label is None:
        raise InputError(
            f"expected a column {_either(FILE_COLUMNS)} and a column {_either(LABEL_COLUMNS)} in the first "
            f"line of {path}, found {some(map(describe, header), 6)}"
        )
    split = _column(header, (SPLIT_COLUMN,))
    rows = tuple(
        Row(number, record.get(file, ""), record.get(label, ""), record.get(split or "", "").lower())
        for number, record in records
    )
    if nameless := [row.number for row in rows if not row.file]:
        raise InputError(f"expected an image in every row of {path}, found none in line {nameless[0]}")
    return LabelTable(path, rows, ", ".join(name for name in (file, label, split) if name))


def _either(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _column(header: Iterable[str], names: Sequence[str]) -> str | None:
    """The column of the first of some names that a header has."""
    found = {name.lower(): name for name in reversed(list(header))}
    return next((found[name] for name in names if name in found), None)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise InputError(f"cannot read labels {path}: {what}") from error


def _csv_lines(path: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Line number and cells of each row by column."""
    text = _text(path)
    delimiter = max(DELIMITERS, key=text.lstrip().partition("\n")[0].count)
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    header: list[str] = []
    try:
        for cells in reader:
            cells = [cell.strip() for cell in cells]
            if not any(cells):
                continue
            if not header:
                header = cells
            elif len(cells) > len(header):
                raise InputError(
                    f"expected {len(header)} columns in every line of {path}, found {len(cells)} in line "
                    f"{reader.line_num}; put text that holds {delimiter!r} into quotation marks"
                )
            else:
                missing = [""] * (len(header) - len(cells))
                yield reader.line_num, dict(zip(header, [*cells, *missing], strict=True))
    except csv.Error as error:
        raise InputError(f"cannot read labels {path}, line {reader.line_num}: {error}") from error


def _json_lines(path: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Line number and fields of each object by name."""
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"expected one JSON object a line in {path}, found {line[:40]!r}") from error
        if not isinstance(found, dict):
            raise InputError(f"expected one JSON object a line in {path}, found {describe(found)}")
        where = f"text in {path}"
        yield number, {name: _word(value, where) for name, value in found.items()}


def _word(value: object, where: str) -> str:
    """A value as text; "" for null and for what is no text and no number."""
    if isinstance(value, str):
        return require_text(value, where).strip()
    return str(value) if is_number(value) else ""
